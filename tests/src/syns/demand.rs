//! What is asked of each balancer of a fleet, as SYNs at moments.

use std::net::SocketAddrV4;
use std::time::Duration;

use super::sources_in;
use crate::random::Random;
use crate::topology::FleetFabric;

/// New connections that come for some time, whether or not those before were answered.
#[derive(Clone, Debug)]
pub struct Demand {
    /// How long.
    pub time: Duration,
    /// New connections a second at each balancer.
    pub per_balancer: Vec<f64>,
}

impl Demand {
    /// So many a second altogether, of which each balancer gets its part (the parts are in any unit).
    pub fn new(time: Duration, per_second: f64, parts: &[f64]) -> Self {
        let whole: f64 = parts.iter().sum();
        let per_balancer = parts.iter().map(|part| per_second * part / whole).collect();
        Self { time, per_balancer }
    }
}

/// A SYN that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SentBy {
    /// When, after the first moment of the schedule.
    pub at: Duration,
    /// The balancer whose clients it comes from.
    pub balancer: usize,
    /// Where it comes from; nobody else does.
    pub from: SocketAddrV4,
}

/// SYNs, in the order of their moments.
///
/// Each schedule of a test needs a seed of its own: a SYN from an address and port that a balancer has just seen is taken
/// for a repeated one, which goes where the first went and counts against no limit.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Balancers that the demand names.
    pub balancers: usize,
    /// The SYNs.
    pub syns: Vec<SentBy>,
}

impl Schedule {
    /// One demand after the other. At each balancer connections come independently of each other (Poisson), as those of many
    /// clients do.
    pub fn poisson(seed: u64, demands: &[Demand]) -> Self {
        let mut random = Random::new(seed);
        // 53 bits are as many as a float has; never 0.
        let mut gap = move |per_second: f64| {
            let uniform = (1 + (random.next() >> 11)) as f64 / (1_u64 << 53) as f64;
            -uniform.ln() / per_second
        };
        Self::new(seed, demands, &mut gap)
    }

    /// The same with even gaps.
    pub fn even(seed: u64, demands: &[Demand]) -> Self {
        Self::new(seed, demands, &mut |per_second| 1.0 / per_second)
    }

    fn new(seed: u64, demands: &[Demand], gap: &mut dyn FnMut(f64) -> f64) -> Self {
        let balancers = demands.iter().map(|demand| demand.per_balancer.len()).max().unwrap_or(0);
        let mut moments: Vec<(f64, usize)> = Vec::new();
        let mut begin = 0.0;
        for Demand { time, per_balancer } in demands {
            let end = begin + time.as_secs_f64();
            for (balancer, per_second) in per_balancer.iter().enumerate() {
                if *per_second > 0.0 {
                    let mut at = begin + gap(*per_second);
                    while at < end {
                        moments.push((at, balancer));
                        at += gap(*per_second);
                    }
                }
            }
            begin = end;
        }
        moments.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut count = vec![0; balancers];
        moments.iter().for_each(|(_, balancer)| count[*balancer] += 1);
        let mut sources: Vec<_> = count
            .iter()
            .enumerate()
            .map(|(n, count)| sources_in(FleetFabric::syn_sources(n), seed, *count).into_iter())
            .collect();
        let syn = |(at, balancer): (f64, usize)| {
            let from = sources[balancer].next()?;
            Some(SentBy { at: Duration::from_secs_f64(at), balancer, from })
        };
        Self { balancers, syns: moments.into_iter().filter_map(syn).collect() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const TEN: Duration = Duration::from_secs(10);

    #[test]
    fn each_balancer_gets_its_part_in_its_time() {
        let demand = |time, parts: &[f64]| Demand::new(time, 1000.0, parts);
        let demands = [demand(TEN, &[7.0, 1.0, 1.0, 1.0]), demand(TEN, &[0.0, 1.0, 0.0, 0.0])];
        for (name, tolerance, schedule) in [
            ("poisson", 4.0, Schedule::poisson(3, &demands)),
            ("even", 0.05, Schedule::even(3, &demands)),
        ] {
            assert!(schedule.syns.is_sorted_by_key(|syn| syn.at));
            let sources: HashSet<_> = schedule.syns.iter().map(|syn| syn.from).collect();
            assert_eq!(sources.len(), schedule.syns.len());
            for (balancer, first, second) in [(0, 7000.0, 0.0), (1, 1000.0, 10_000.0)] {
                let count = |begin: Duration, end: Duration| {
                    let own = schedule.syns.iter().filter(|syn| syn.balancer == balancer);
                    own.filter(|syn| (begin..end).contains(&syn.at)).count() as f64
                };
                for (count, expected) in
                    [(count(Duration::ZERO, TEN), first), (count(TEN, 2 * TEN), second)]
                {
                    // Standard deviations of a Poisson process.
                    let off = (count - expected).abs() / f64::max(expected, 1.0).sqrt();
                    assert!(off <= tolerance, "{name}: {count} at {balancer}, not {expected}");
                }
            }
        }
    }
}
