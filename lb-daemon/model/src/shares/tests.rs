use std::collections::VecDeque;

use proptest::{collection::vec, prelude::*};

use super::{
    balance::{LONGEST, STEP},
    *,
};

fn sharer(weight: u32, share: f64) -> Sharer {
    Sharer { weight, share, asked: 1.0 }
}

fn even(shares: &[f64]) -> Vec<u8> {
    let sharers: Vec<_> = shares.iter().map(|&share| sharer(1, share)).collect();
    ramps(&sharers)
}

#[test]
fn a_start_is_a_line_from_a_twentieth() {
    let minute = Duration::from_secs(60);
    let at = |seconds| started(Duration::from_secs(seconds), minute);
    assert_eq!([at(0), at(3), at(6), at(30), at(60), at(600)], [0.05, 0.05, 0.1, 0.5, 1.0, 1.0]);
    assert_eq!(started(Duration::ZERO, Duration::ZERO), 1.0);
}

#[test]
fn who_is_alone_or_like_all_others_gives_nothing_away() {
    assert_eq!(even(&[0.05]), [255]);
    assert_eq!(even(&[0.3; 4]), [255; 4]);
    assert_eq!(even(&[]), [0; 0]);
}

#[test]
fn one_that_comes_to_others_takes_its_part() {
    assert_eq!(even(&[1.0, 1.0, 0.1, 1.0]), [255, 255, 26, 255]);
    assert_eq!(even(&[1.0, 0.6, 0.8]), [255, 153, 204]);
}

#[test]
fn no_more_than_half_is_given_away() {
    // One old among nine new: 1 + 9 x = 5.
    let ramps = even(&[1.0, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05]);
    assert_eq!((ramps[0], ramps[1], ramps[9]), (255, 113, 113));
    // By weight: 1 + 9 x = 5 of one with nine times the weight.
    let sharers = [sharer(1, 1.0), sharer(9, 0.05)];
    assert_eq!(super::ramps(&sharers), [255, 113]);
}

#[test]
fn weights_of_overrides_are_kept_beyond_half_of_a_group() {
    let asked = |list: &[(f64, f64)]| {
        let sharers: Vec<_> =
            list.iter().map(|&(share, asked)| Sharer { weight: 1, share, asked }).collect();
        ramps(&sharers)
    };
    // A tenth of 255 is 25.5, a hundredth 2.55.
    let ramps = asked(&[[(1.0, 1.0)].as_slice(), &[(1.0, 0.1); 9]].concat());
    assert_eq!((ramps[0], ramps[1], ramps[9]), (255, 26, 26));
    assert_eq!(asked(&[(1.0, 1.0), (1.0, 0.01)]), [255, 3]);
    // Only their ratio counts.
    assert_eq!(asked(&[(1.0, 0.3); 3]), [255; 3]);
    assert_eq!(asked(&[(1.0, 0.5), (1.0, 0.25)]), [255, 128]);
    // What comes of other reasons still leaves half of what the overrides do: 1 + 0.1 = 1.1, so 1 + 0.1 x is enough.
    assert_eq!(asked(&[(1.0, 1.0), (0.05, 0.1)]), [255, 1]);
    // Nine in slow start under 10 %, one whole: 1 + 0.9 is kept for the half of 1.9.
    let ramps = asked(&[[(1.0, 1.0)].as_slice(), &[(0.05, 0.1); 9]].concat());
    assert_eq!((ramps[0], ramps[1]), (255, 1));
}

proptest! {
    /// Found again by bisection: the least factor with which one is whole and half is kept.
    #[test]
    fn the_factor_is_the_least(given in vec((1..1000_u32, 1..=1000_u32), 1..20)) {
        let sharers: Vec<_> = given
            .iter()
            .map(|&(weight, share)| sharer(weight, f64::from(share) / 1000.0))
            .collect();
        let whole: f64 = given.iter().map(|(weight, _)| f64::from(*weight)).sum();
        let kept = |factor: f64| -> f64 {
            sharers.iter().map(|s| f64::from(s.weight) * (s.share * factor).min(1.0)).sum()
        };
        let suffices = |factor: f64| {
            sharers.iter().any(|s| s.share * factor >= 1.0) && kept(factor) >= whole / 2.0
        };
        let (mut low, mut high) = (0.0, 1001.0);
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            if suffices(middle) { high = middle } else { low = middle }
        }
        let found = factor(&sharers);
        prop_assert!((found - high).abs() < 1e-6 * high, "{found} is not {high}");
        let ramps = ramps(&sharers);
        prop_assert!(ramps.contains(&255));
        prop_assert!(ramps.iter().all(|ramp| *ramp > 0));
    }
}

const SECOND: Duration = Duration::from_secs(1);

fn member(utilisation: Option<f64>) -> Balanced {
    Balanced { weight: 1, own: 1.0, share: None, utilisation }
}

fn shares(members: &[Balanced]) -> Vec<Option<f64>> {
    members.iter().map(|member| member.share).collect()
}

/// Backends that say what they were offered as a part of what they can do, `lag` seconds ago. Who gets
/// what is what the packet path does with ramps: connections by weight and ramp.
struct Backends {
    speeds: Vec<f64>,
    members: Vec<Balanced>,
    rate: f64,
    lag: usize,
    said: VecDeque<Vec<f64>>,
}

impl Backends {
    fn new(speeds: &[f64], weights: &[u32], rate: f64, lag: usize) -> Self {
        let member = |&weight| Balanced { weight, own: 1.0, share: None, utilisation: None };
        let members = weights.iter().map(member).collect();
        Self { speeds: speeds.to_vec(), members, rate, lag, said: VecDeque::new() }
    }

    /// A second; what backends are utilised by now.
    fn second(&mut self) -> Vec<f64> {
        let sharer = |m: &Balanced| sharer(m.weight, m.share.unwrap_or(1.0));
        let ramps = ramps(&self.members.iter().map(sharer).collect::<Vec<_>>());
        let parts: Vec<_> = self
            .members
            .iter()
            .zip(&ramps)
            .map(|(member, ramp)| f64::from(member.weight) * f64::from(*ramp))
            .collect();
        let whole: f64 = parts.iter().sum();
        let utilised: Vec<_> = parts
            .iter()
            .zip(&self.speeds)
            .map(|(part, speed)| self.rate * part / whole / speed)
            .collect();
        self.said.push_back(utilised.clone());
        if self.said.len() > self.lag
            && let Some(said) = self.said.pop_front()
        {
            for (member, said) in self.members.iter_mut().zip(said) {
                member.utilisation = Some(said);
            }
        }
        balance(&mut self.members, SECOND);
        utilised
    }
}

/// The highest over the lowest.
fn spread(utilised: &[f64]) -> f64 {
    let highest = utilised.iter().copied().fold(0.0, f64::max);
    highest / utilised.iter().copied().fold(f64::INFINITY, f64::min)
}

#[test]
fn who_is_utilised_more_takes_less_bit_by_bit() {
    let mut members = [member(Some(0.8)), member(Some(0.2))];
    balance(&mut members, SECOND);
    // Mean 0.5: logarithms move by ln(0.5 / 0.8) / 10 and ln(0.5 / 0.2) / 10, and the largest is 1.
    let expected = ((0.5_f64 / 0.8).ln() / 10.0 - (0.5_f64 / 0.2).ln() / 10.0).exp();
    let found = members[0].share.unwrap();
    assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
    assert_eq!(members[1].share, Some(1.0));
}

#[test]
fn who_has_nothing_to_do_moves_nothing() {
    let mut members = [member(Some(0.09)), member(Some(0.0)), member(Some(0.05))];
    balance(&mut members, SECOND);
    assert_eq!(shares(&members), [Some(1.0); 3]);
    members[0].share = Some(0.5);
    balance(&mut members, SECOND);
    assert_eq!(shares(&members), [Some(0.5), Some(1.0), Some(1.0)], "what was learnt stays");
}

#[test]
fn who_does_not_say_has_the_mean_and_where_nobody_does_all_are_whole() {
    let mut members = [member(Some(0.9)), member(None), member(Some(0.3))];
    for _ in 0..200 {
        balance(&mut members, SECOND);
    }
    let [Some(low), Some(middle), Some(high)] = members.map(|member| member.share) else {
        panic!("{members:?}");
    };
    // It never gets less utilised here, so it comes to the bound.
    assert!((low, high) == (0.05, 1.0) || low < 0.1, "{low} {high}");
    assert!((middle - (low + high) / 2.0).abs() < 0.03, "{low} {middle} {high}");
    for member in &mut members {
        member.utilisation = None;
    }
    balance(&mut members, SECOND);
    assert_eq!(shares(&members), [None; 3]);
}

#[test]
fn one_that_begins_to_say_begins_at_the_mean() {
    let mut members = [member(Some(0.5)), member(Some(0.5)), member(Some(0.5))];
    (members[0].share, members[1].share) = (Some(1.0), Some(0.5));
    balance(&mut members, SECOND);
    assert_eq!(shares(&members), [Some(1.0), Some(0.5), Some(0.75)]);
}

#[test]
fn a_long_pause_and_a_wild_report_move_no_more_than_a_step() {
    let mut members = [member(Some(1000.0)), member(Some(0.1))];
    balance(&mut members, Duration::from_secs(3600));
    let moved = members[0].share.unwrap().ln();
    assert!((-2.0 * STEP * LONGEST..0.0).contains(&moved), "{moved}");
    let mut members = [member(Some(1000.0)), member(Some(0.1))];
    balance(&mut members, Duration::ZERO);
    assert_eq!(shares(&members), [Some(1.0); 2]);
}

proptest! {
    /// Whatever their speeds and weights, as far as half of the slots reach, and with reports that are
    /// three seconds old.
    #[test]
    fn utilisation_becomes_even_and_stays_so(
        given in vec((0.4f64..1.0, 1u32..4), 2..12),
        load in 0.3f64..1.2,
    ) {
        let weights: Vec<_> = given.iter().map(|(_, weight)| *weight).collect();
        let speeds: Vec<_> =
            given.iter().map(|(speed, weight)| 100.0 * speed * f64::from(*weight)).collect();
        // By weight the largest part of them can be this much too slow.
        let least = given.iter().map(|(speed, _)| *speed).fold(1.0, f64::min);
        let most = given.iter().map(|(speed, _)| *speed).fold(0.0, f64::max);
        let wanted: f64 = speeds.iter().sum::<f64>() / most / 100.0;
        prop_assume!(wanted > 0.55 * f64::from(weights.iter().sum::<u32>()));
        let rate = load * speeds.iter().sum::<f64>();
        let mut backends = Backends::new(&speeds, &weights, rate, 3);
        let began = spread(&backends.second());
        let mut worst = began;
        for second in 0..240 {
            let utilised = backends.second();
            let now = spread(&utilised);
            worst = worst.max(now);
            if second > 90 {
                prop_assert!(now < 1.06, "{second} s: {now} of {began}, {least} to {most}: {utilised:?}");
            }
        }
        prop_assert!(worst < began * 1.1, "{worst} of {began}");
    }
}
