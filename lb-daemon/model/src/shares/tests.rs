use proptest::{collection::vec, prelude::*};

use super::*;

fn even(shares: &[f64]) -> Vec<u8> {
    let sharers: Vec<_> = shares.iter().map(|&share| Sharer { weight: 1, share }).collect();
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
    let sharers = [Sharer { weight: 1, share: 1.0 }, Sharer { weight: 9, share: 0.05 }];
    assert_eq!(super::ramps(&sharers), [255, 113]);
}

proptest! {
    /// Found again by bisection: the least factor with which one is whole and half is kept.
    #[test]
    fn the_factor_is_the_least(given in vec((1..1000_u32, 1..=1000_u32), 1..20)) {
        let sharers: Vec<_> = given
            .iter()
            .map(|&(weight, share)| Sharer { weight, share: f64::from(share) / 1000.0 })
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
