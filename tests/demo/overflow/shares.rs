//! What each region should have of the connections, and whether it had that.

use anyhow::{Result, ensure};
use serde::Serialize;

use super::scale::Scale;

/// How far a region may be off, requests a second of the tutorial.
const TOLERANCE: f64 = 1.0;
/// Over how long, in seconds of the tutorial; and at least in ours, since a busy machine stands still
/// now and then.
const WINDOW: f64 = 5.0;
const LEAST_WINDOW: f64 = 0.3;

/// A load on two regions. Rates are requests a second of the tutorial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Plan {
    pub(crate) rate: f64,
    /// Capacities, nearest first.
    pub(crate) capacities: [f64; 2],
    /// Whether the nearest has nobody left.
    pub(crate) first_is_down: bool,
}

/// What the second region had once the first bursts were through, requests a second of the tutorial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Shares {
    /// What it should have.
    pub(crate) expected: f64,
    /// What it had over the rest of the round.
    pub(crate) whole: f64,
    /// What it had in the emptiest and in the fullest window of that.
    pub(crate) windows: (f64, f64),
}

impl Plan {
    /// What each region has in the long run: the nearest what it can take, the other the rest up to its
    /// own capacity, and what nobody has room for is served by the nearest that lives.
    pub(crate) fn steady(&self) -> [f64; 2] {
        let [near, far] = self.capacities;
        if self.first_is_down {
            return [0.0, self.rate];
        }
        let overflowed = (self.rate - near).clamp(0.0, far);
        [self.rate - overflowed, overflowed]
    }

    /// What nobody has room for.
    fn surplus(&self) -> f64 {
        (self.rate - self.capacities[0] - self.capacities[1]).max(0.0)
    }

    /// Holds the arrivals at each region (seconds, in order) against that. `None`: the second region
    /// should have nothing and had nothing, or all and had all.
    ///
    /// # Errors
    /// When a region had more or less than it may have, with both numbers.
    pub(crate) fn check(&self, arrivals: &[Vec<f64>; 2], scale: Scale) -> Result<Option<Shares>> {
        let Self { rate, capacities, first_is_down } = *self;
        let [near, far] = arrivals;
        if first_is_down {
            ensure!(
                near.is_empty(),
                "{rate}/s: {} connections to the region that is down",
                near.len()
            );
            return Ok(None);
        }
        let expected = self.steady()[1];
        if expected == 0.0 {
            ensure!(far.is_empty(), "{rate}/s: {} connections to the second region", far.len());
            return Ok(None);
        }
        let limit = scale.faster(capacities[0]);
        if self.surplus() == 0.0 {
            let most = most_at_once(near, limit);
            // Servers note a moment later than the packet path decides, and in bunches.
            let bound = burst(limit) + 2.0 + limit * 0.02;
            ensure!(
                most <= bound,
                "{rate}/s: the first region had {most:.1} connections above its {limit}/s in some \
                 window; {bound:.1} are its burst"
            );
        }
        self.second(arrivals, expected, scale).map(Some)
    }

    fn second(&self, [near, far]: &[Vec<f64>; 2], expected: f64, scale: Scale) -> Result<Shares> {
        let Self { rate, .. } = *self;
        ensure!(!far.is_empty(), "{rate}/s: no connection to the second region");
        // The first burst is through when the first connection spills; where both are full, the
        // second region has one of its own to lose.
        let own = match self.surplus() {
            0.0 => 0.0,
            surplus => burst(scale.faster(self.capacities[1])) / scale.faster(surplus),
        };
        let start = far[0] + own;
        let end = far[far.len() - 1].max(near.last().copied().unwrap_or(0.0));
        let window = (WINDOW * scale.0).max(LEAST_WINDOW);
        ensure!(end - start >= window, "{rate}/s: the round is over before the bursts are through");
        let told = |from: f64, to: f64| {
            let inside = far.iter().filter(|time| (from..to).contains(*time)).count();
            scale.told_rate(inside as f64 / (to - from))
        };
        let whole = told(start, end);
        let count = ((end - start) / window) as u32;
        let each = (0..count).map(|n| start + f64::from(n) * window);
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for rate in each.map(|from| told(from, from + window)) {
            (least, most) = (least.min(rate), most.max(rate));
        }
        for had in [whole, least, most] {
            ensure!(
                (had - expected).abs() <= TOLERANCE,
                "{rate}/s: the second region had {had:.2} a second, not {expected} ± {TOLERANCE}"
            );
        }
        Ok(Shares { expected, whole, windows: (least, most) })
    }
}

/// Connections that a limit (a second) lets pass at once: a tenth of a second's, at least ten.
fn burst(limit: f64) -> f64 {
    (limit * 0.1).max(10.0)
}

/// The most that came above a rate in any window.
fn most_at_once(times: &[f64], rate: f64) -> f64 {
    let Some(first) = times.first() else { return 0.0 };
    let (mut most, mut least) = (0.0_f64, f64::INFINITY);
    for (number, time) in times.iter().enumerate() {
        let above = number as f64 - rate * (time - first);
        least = least.min(above);
        most = most.max(above - least + 1.0);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVEN: [f64; 2] = [10.0, 10.0];

    fn plan(rate: f64, capacities: [f64; 2]) -> Plan {
        Plan { rate, capacities, first_is_down: false }
    }

    /// `overflowed` of every `of` requests at a rate from a request on go to the second region.
    fn arrivals(
        rate: f64,
        count: usize,
        from: usize,
        overflowed: usize,
        of: usize,
    ) -> [Vec<f64>; 2] {
        let mut arrivals: [Vec<f64>; 2] = Default::default();
        for number in 0..count {
            let region = usize::from(number >= from && (number - from) % of < overflowed);
            arrivals[region].push(1000.0 + number as f64 / rate);
        }
        arrivals
    }

    #[test]
    fn what_the_first_cannot_take_goes_on_and_the_rest_stays() {
        assert_eq!(plan(10.0, EVEN).steady(), [10.0, 0.0]);
        assert_eq!(plan(15.0, EVEN).steady(), [10.0, 5.0]);
        assert_eq!(plan(20.0, EVEN).steady(), [10.0, 10.0]);
        assert_eq!(plan(20.0, [12.0, 4.0]).steady(), [16.0, 4.0]);
        assert_eq!(plan(20.0, [4.0, 12.0]).steady(), [8.0, 12.0]);
        let first_down = Plan { first_is_down: true, ..plan(15.0, EVEN) };
        assert_eq!(first_down.steady(), [0.0, 15.0]);
    }

    #[test]
    fn the_second_region_has_its_share_within_one_a_second() {
        let scale = Scale(1.0);
        let shares =
            plan(20.0, EVEN).check(&arrivals(20.0, 500, 20, 1, 2), scale).unwrap().unwrap();
        assert!((9.9..10.1).contains(&shares.whole), "{shares:?}");
        // A third of 15 is 5; of 20 it is 6.7, and the first region then has 13.3.
        assert!(plan(15.0, EVEN).check(&arrivals(15.0, 500, 30, 1, 3), scale).is_ok());
        let error = plan(20.0, EVEN).check(&arrivals(20.0, 500, 20, 1, 3), scale).unwrap_err();
        assert!(error.to_string().starts_with("20/s: the first region had"), "{error}");
        let error = plan(20.0, EVEN).check(&arrivals(20.0, 500, 20, 2, 3), scale).unwrap_err();
        assert!(error.to_string().contains("had 13.3"), "{error}");
    }

    #[test]
    fn below_capacity_nobody_spills_and_a_dead_region_has_nobody() {
        let scale = Scale(0.5);
        assert_eq!(plan(10.0, EVEN).check(&arrivals(20.0, 500, 500, 1, 2), scale).unwrap(), None);
        assert!(plan(10.0, EVEN).check(&arrivals(20.0, 500, 499, 1, 2), scale).is_err());
        let first_down = Plan { first_is_down: true, ..plan(20.0, EVEN) };
        assert!(first_down.check(&arrivals(40.0, 500, 0, 1, 1), scale).is_ok());
        assert!(first_down.check(&arrivals(40.0, 500, 1, 1, 1), scale).is_err());
    }

    #[test]
    fn a_burst_is_what_came_above_the_rate() {
        let even: Vec<_> = (0..100).map(|n| f64::from(n) * 0.1).collect();
        assert!((most_at_once(&even, 10.0) - 1.0).abs() < 1e-6);
        assert!((most_at_once(&even, 5.0) - 50.5).abs() < 1e-6);
    }
}
