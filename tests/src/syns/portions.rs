//! What each balancer of a fleet may admit, and so what all of them may in a second.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use super::Limit;

const SECOND: Duration = Duration::from_secs(1);
/// Seconds that begin within such a time share a bound: that of the time from the first to the last of them.
const STEP: Duration = Duration::from_millis(50);
/// By how much a moment of what a balancer said may differ from that of a packet.
const MARGIN: Duration = Duration::from_millis(50);

/// The portions of a capacity that balancers enforced, as each of them said.
#[derive(Clone, Debug)]
pub struct Portions {
    /// By balancers: when it said so (after the first moment of a load), and the portion, in order.
    samples: Vec<Vec<(Duration, f64)>>,
}

/// The second of a run that came closest to its bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FullestSecond {
    /// When it began.
    pub begin: Duration,
    /// Connections that came in it.
    pub admitted: usize,
    /// The capacity of a second, and the burst of each balancer at its largest portion in this one.
    pub bound: f64,
}

impl FullestSecond {
    /// Connections above the bound.
    pub fn over(&self) -> f64 {
        self.admitted as f64 - self.bound
    }
}

impl fmt::Display for FullestSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { begin, admitted, bound } = self;
        let begin = begin.as_secs_f64();
        write!(f, "the second after {begin:.1} s had {admitted} of at most {bound:.0}")
    }
}

impl Portions {
    /// By balancers: moments and portions, in order.
    pub const fn new(samples: Vec<Vec<(Duration, f64)>>) -> Self {
        Self { samples }
    }

    /// The last that a balancer said before a moment.
    pub fn before(&self, balancer: usize, moment: Duration) -> Option<f64> {
        let samples = &self.samples[balancer];
        let number = samples.partition_point(|(at, _)| *at < moment);
        samples[..number].last().map(|(_, portion)| *portion)
    }

    /// The least that a balancer said from one moment to another.
    pub fn least(&self, balancer: usize, from: Duration, to: Duration) -> Option<f64> {
        let within = self.samples[balancer].iter().filter(|(at, _)| (from..to).contains(at));
        within.map(|(_, portion)| *portion).reduce(f64::min)
    }

    /// The largest portion from one moment to another: also what the balancer said last before and first after, because it
    /// changed at some moment between two answers. One that says nothing more goes on with what it said last.
    fn largest(&self, balancer: usize, from: Duration, to: Duration) -> f64 {
        let samples = &self.samples[balancer];
        let first = samples.partition_point(|(at, _)| *at < from).saturating_sub(1);
        let end = samples.partition_point(|(at, _)| *at < to);
        let within = samples[first..].iter().take(end + 1 - first);
        within.map(|(_, portion)| *portion).fold(0.0, f64::max)
    }

    /// Of all seconds that begin with one of these arrivals, which are in order, the one that is farthest above its bound, or
    /// least below it. `None`: nothing arrived.
    pub fn fullest_second(&self, arrivals: &[Duration], capacity: f64) -> Option<FullestSecond> {
        let mut bounds: HashMap<u128, f64> = HashMap::new();
        let mut fullest: Option<FullestSecond> = None;
        let mut end = 0;
        for (number, begin) in arrivals.iter().enumerate() {
            while arrivals.get(end).is_some_and(|at| *at < *begin + SECOND) {
                end += 1;
            }
            let step = begin.as_nanos() / STEP.as_nanos();
            let bound =
                *bounds.entry(step).or_insert_with(|| self.bound(STEP * step as u32, capacity));
            let second = FullestSecond { begin: *begin, admitted: end - number, bound };
            if fullest.is_none_or(|fullest| second.over() > fullest.over()) {
                fullest = Some(second);
            }
        }
        fullest
    }

    /// Most that may be admitted in any of the seconds that begin within a step.
    fn bound(&self, step: Duration, capacity: f64) -> f64 {
        let (from, to) = (step.saturating_sub(MARGIN), step + STEP + SECOND + MARGIN);
        let burst = |balancer| {
            let per_second = self.largest(balancer, from, to) * capacity;
            Limit { per_second, tick: 0.0 }.burst()
        };
        capacity + (0..self.samples.len()).map(burst).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    /// The first one gives 0.6 of the whole to the second one after five seconds, and is silent from then on.
    fn portions() -> Portions {
        Portions::new(vec![
            vec![(at(0), 0.9), (at(4_980), 0.9), (at(5_020), 0.3)],
            vec![(at(0), 0.1), (at(4_960), 0.1), (at(5_040), 0.7), (at(8_000), 0.7)],
        ])
    }

    #[test]
    fn bursts_are_those_of_the_largest_portions_in_a_second() {
        let bound = |step| portions().bound(at(step), 1_000.0);
        // By hand: 90 and the least burst, 90 and 70 while it moves, 30 and 70.
        assert_eq!(bound(1_000), 1_100.0);
        for moves in [4_000, 4_950, 5_000, 5_050] {
            assert_eq!(bound(moves), 1_160.0, "{moves}");
        }
        assert_eq!(bound(5_150), 1_100.0);
        assert_eq!(bound(60_000), 1_100.0);
    }

    #[test]
    fn one_connection_too_many_in_any_second_is_found() {
        // A thousand a second come evenly, and a burst in the middle of a second.
        let with_burst = |burst: usize| {
            let mut arrivals: Vec<_> =
                (0..10_000).map(|n| Duration::from_micros(n * 1_000)).collect();
            arrivals.extend(std::iter::repeat_n(at(2_500), burst));
            arrivals.sort();
            portions().fullest_second(&arrivals, 1_000.0).unwrap()
        };
        assert_eq!(with_burst(100).over(), 0.0);
        let fullest = with_burst(101);
        assert_eq!((fullest.over(), fullest.admitted), (1.0, 1_101));
        assert!((at(1_500)..=at(2_500)).contains(&fullest.begin), "{fullest}");
        assert_eq!(portions().fullest_second(&[], 1_000.0), None);
    }

    #[test]
    fn what_a_balancer_said_is_found_by_its_moment() {
        let portions = portions();
        assert_eq!(portions.before(0, at(0)), None);
        assert_eq!(portions.before(0, at(5_020)), Some(0.9));
        assert_eq!(portions.before(0, at(5_021)), Some(0.3));
        assert_eq!(portions.least(0, at(0), at(6_000)), Some(0.3));
        assert_eq!(portions.least(0, at(0), at(5_000)), Some(0.9));
        assert_eq!(portions.least(0, at(6_000), at(7_000)), None);
    }
}
