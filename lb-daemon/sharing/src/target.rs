//! How much of a capacity each balancer should own, and what one gives to the others to get there.

use crate::{Parts, ReportedCapacity, demand::SHORT};

/// Portion of the capacity, divided by the number of balancers, that each counts as its least demand: a balancer without
/// demand keeps something for its first connections.
const LEAST_DEMAND: f64 = 0.01;
/// A surplus up to this portion of an equal share stays.
const NARROW: f64 = 0.01;
/// A surplus up to this portion of an equal share stays, while all connections are admitted that can be.
const WIDE: f64 = 0.10;
/// A surplus of so many standard deviations of demand that stands still is there because demand moved, if there is one
/// group.
const DEVIATIONS: f64 = 2.0;

/// What a balancer knows of another one, or of itself, for one group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Holding {
    /// Offered connections a second, with those that are refused.
    pub demand: f64,
    /// What it owns, with what is on its way to it.
    pub parts: Parts,
    /// The capacity as it sees it.
    pub capacity: ReportedCapacity,
    /// Whether it sends connections to this group. Otherwise it needs none of it.
    pub may_send: bool,
}

/// What each of those that are known should own, in their order, as a fraction of the whole. Together as much as they
/// own. `None`: nothing should move, because the group is closed or because no balancer sends to it.
pub fn targets(holdings: &[Holding]) -> Option<Vec<f64>> {
    let owned = holdings.iter().map(|holding| holding.parts).sum::<Parts>().fraction();
    let senders = holdings.iter().filter(|holding| holding.may_send).count();
    if senders == 0 {
        return None;
    }
    let demand = |holding: &Holding, least: f64| {
        if holding.may_send { holding.demand.max(least) } else { 0.0 }
    };
    match median_capacity(holdings)? {
        ReportedCapacity::Closed => None,
        ReportedCapacity::Unlimited => {
            let weights: Vec<f64> = holdings.iter().map(|holding| demand(holding, 1.0)).collect();
            let sum: f64 = weights.iter().sum();
            Some(weights.iter().map(|weight| owned * weight / sum).collect())
        }
        ReportedCapacity::PerSecond(whole) => {
            // Parts of balancers that are not heard from are not there to be shared.
            let capacity = whole * owned;
            let least = LEAST_DEMAND * capacity / senders as f64;
            let weights: Vec<f64> = holdings.iter().map(|h| demand(h, least)).collect();
            let sum: f64 = weights.iter().sum();
            let scale = if sum > capacity { capacity / sum } else { 1.0 };
            // Half of what is spare by what demand varies by (Poisson), so that noise makes no balancer refuse; half in
            // equal parts, for demand that comes from elsewhere.
            let spare = (capacity - sum).max(0.0) / 2.0;
            let variation: f64 = weights.iter().map(|weight| weight.sqrt()).sum();
            let target = |(holding, weight): (&Holding, &f64)| {
                let equal = if holding.may_send { spare / senders as f64 } else { 0.0 };
                (weight * scale + equal + spare * weight.sqrt() / variation) / whole
            };
            Some(holdings.iter().zip(&weights).map(target).collect())
        }
    }
}

/// The capacity that balancers agree on: the median of what those that send to the group see. Balancers that each
/// computed with their own would give the same parts back and forth.
fn median_capacity(holdings: &[Holding]) -> Option<ReportedCapacity> {
    let senders = holdings.iter().filter(|holding| holding.may_send);
    let mut capacities: Vec<_> = senders.map(|holding| holding.capacity).collect();
    let middle = capacities.len().checked_sub(1)? / 2;
    Some(*capacities.select_nth_unstable_by(middle, ReportedCapacity::compare).1)
}

/// When parts should be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// At once: a balancer refuses connections while this one has far more than it uses.
    Now,
    /// Some time: what would move may be noise, or all connections are admitted that can be.
    Later,
}

/// What the first of `holdings` gives to each of the others, in their order, and when: its surplus, divided among those
/// below their target by what they lack. All balancers that are above their targets do so, so together they give what is
/// lacking. `None`: it gives nothing.
///
/// `groups` is the number of groups that this is decided for in each round: the more there are, the further away noise is
/// found in one of them.
pub fn gifts(holdings: &[Holding], groups: usize) -> Option<(Urgency, Vec<Parts>)> {
    let targets = targets(holdings)?;
    let (own, others) = (holdings.first()?, &holdings[1..]);
    let senders = holdings.iter().filter(|holding| holding.may_send).count() as f64;
    let equal_share =
        holdings.iter().map(|holding| holding.parts).sum::<Parts>().fraction() / senders;
    let surplus = own.parts.fraction() - targets[0];
    let is_needed = others.iter().any(Holding::refuses) && own.has_unused();
    let portion = if is_needed { NARROW } else { WIDE };
    let stays = if own.may_send { portion * equal_share } else { 0.0 };
    if surplus <= stays {
        return None;
    }
    let lacks: Vec<f64> = others
        .iter()
        .zip(&targets[1..])
        .map(|(other, target)| (target - other.parts.fraction()).max(0.0))
        .collect();
    let lacking: f64 = lacks.iter().sum();
    if lacking <= 0.0 {
        return None;
    }
    // Never more than is lacking: what others lack may be known late.
    let given = surplus.min(lacking);
    let mut gifts: Vec<Parts> =
        lacks.iter().map(|lack| Parts::from_fraction(given * lack / lacking)).collect();
    if !own.may_send {
        // It needs none, so what rounding left goes to the one that lacks most.
        let left = own.parts.saturating_sub(gifts.iter().copied().sum());
        let most = (0..lacks.len()).max_by(|a, b| lacks[*a].total_cmp(&lacks[*b]));
        if let Some(most) = most.filter(|_| left.0 <= holdings.len() as u64) {
            gifts[most] += left;
        }
    }
    let (noise, deviations) = (Noise::of(holdings), deviations(groups));
    // Many small surpluses may be what one balancer lacks.
    let lacks_much = |(other, lack): (&Holding, &f64)| {
        other.refuses() && *lack > deviations * noise.deviation(other)
    };
    let is_now = is_needed
        && (surplus > deviations * noise.deviation(own)
            || others.iter().zip(&lacks).any(lacks_much));
    Some((if is_now { Urgency::Now } else { Urgency::Later }, gifts))
}

impl Holding {
    /// Connections a second that it may admit.
    fn limit(&self) -> f64 {
        match self.capacity {
            ReportedCapacity::PerSecond(whole) => whole * self.parts.fraction(),
            ReportedCapacity::Unlimited => f64::INFINITY,
            ReportedCapacity::Closed => 0.0,
        }
    }

    fn refuses(&self) -> bool {
        self.may_send && self.demand > self.limit()
    }

    fn has_unused(&self) -> bool {
        !self.may_send || self.demand < self.limit()
    }
}

/// So many standard deviations are exceeded in one of `groups` about as rarely as [`DEVIATIONS`] in a single one: the
/// probability of a deviation falls with exp(-x²/2). Otherwise noise would move parts of some group in every round, and
/// each balancer would write its ledger as often.
fn deviations(groups: usize) -> f64 {
    (DEVIATIONS * DEVIATIONS + 2.0 * (groups.max(1) as f64).ln()).sqrt()
}

/// By how much targets vary while demand stands still.
struct Noise {
    /// Of each balancer's demand.
    mean: f64,
    whole: f64,
}

impl Noise {
    fn of(holdings: &[Holding]) -> Self {
        let demand: f64 = holdings.iter().map(|holding| holding.demand).sum();
        let whole = match median_capacity(holdings) {
            Some(ReportedCapacity::PerSecond(whole)) => whole.max(demand),
            _ => demand.max(1.0),
        };
        Self { mean: demand / holdings.len() as f64, whole }
    }

    /// Of one balancer's target, as a fraction of the whole: one standard deviation of arrivals at random (Poisson).
    fn deviation(&self, of: &Holding) -> f64 {
        (of.demand.max(self.mean) / SHORT.as_secs_f64()).sqrt() / self.whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};

    fn holding(demand: f64, fraction: f64, capacity: f64) -> Holding {
        Holding {
            demand,
            parts: Parts::from_fraction(fraction),
            capacity: ReportedCapacity::PerSecond(capacity),
            may_send: true,
        }
    }

    fn near(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} instead of {expected}");
        }
    }

    /// By hand: 1,000 a second, demand 560 + 3 × 80, so 200 are spare: 25 for each, and 100 by the roots of the demands,
    /// which are 23.66 and 8.94.
    #[test]
    fn each_gets_its_demand_and_a_portion_of_what_is_spare() {
        let holdings = [560.0, 80.0, 80.0, 80.0].map(|demand| holding(demand, 0.25, 1000.0));
        near(&targets(&holdings).unwrap(), &[0.631_862_7, 0.122_712_4, 0.122_712_4, 0.122_712_4]);
    }

    /// By hand: the demand is 2,000 for 1,000, so each gets half of its own; 10 of 4 balancers count as 2.5.
    #[test]
    fn beyond_the_capacity_all_get_the_same_portion_of_their_demand() {
        let holdings = [1400.0, 400.0, 197.5, 0.0].map(|demand| holding(demand, 0.25, 1000.0));
        near(&targets(&holdings).unwrap(), &[0.7, 0.2, 0.09875, 0.00125]);
    }

    #[test]
    fn balancers_that_do_not_send_need_nothing() {
        let mut holdings = [500.0, 0.0].map(|demand| holding(demand, 0.5, 1000.0));
        holdings[1].may_send = false;
        near(&targets(&holdings).unwrap(), &[1.0, 0.0]);
        holdings.swap(0, 1);
        let gift = vec![Parts::from_fraction(0.5)];
        assert_eq!(gifts(&holdings, 1), Some((Urgency::Later, gift)));
        holdings.iter_mut().for_each(|holding| holding.may_send = false);
        assert_eq!(targets(&holdings), None);
    }

    #[test]
    fn the_median_decides_and_a_closed_group_stays_as_it_is() {
        let seen = |capacities: [ReportedCapacity; 3]| {
            let holdings = capacities.map(|c| Holding { capacity: c, ..holding(5.0, 0.3, 1.0) });
            median_capacity(&holdings).unwrap()
        };
        let [five, nine] = [5.0, 9.0].map(ReportedCapacity::PerSecond);
        assert_eq!(seen([nine, five, ReportedCapacity::Closed]), five);
        assert_eq!(seen([ReportedCapacity::Unlimited, nine, five]), nine);
        let closed = Holding { capacity: ReportedCapacity::Closed, ..holding(9.0, 0.5, 1.0) };
        assert_eq!(targets(&[closed, closed]), None);
        assert_eq!(gifts(&[closed, closed], 1), None);
    }

    #[test]
    fn without_a_limit_parts_follow_demand() {
        let unlimited =
            |demand| Holding { capacity: ReportedCapacity::Unlimited, ..holding(demand, 0.5, 0.0) };
        near(&targets(&[unlimited(300.0), unlimited(100.0)]).unwrap(), &[0.75, 0.25]);
    }

    /// By hand: the targets are half each; of 10,000 a second, 4,000 arrivals vary by 89 a second within half a second.
    #[test]
    fn a_surplus_moves_at_once_if_it_is_no_noise_and_a_balancer_refuses() {
        let two = |surplus: f64, demands: [f64; 2]| {
            let fractions = [0.5 + surplus, 0.5 - surplus];
            [0, 1].map(|at| holding(demands[at], fractions[at], 10_000.0))
        };
        let urgency = |holdings: [Holding; 2]| gifts(&holdings, 1).map(|(urgency, _)| urgency);
        assert_eq!(urgency(two(0.04, [4_000.0; 2])), None, "both have what they need");
        assert_eq!(urgency(two(0.06, [4_000.0; 2])), Some(Urgency::Later));
        assert_eq!(urgency(two(0.01, [4_900.0, 4_950.0])), Some(Urgency::Later), "noise");
        assert_eq!(urgency(two(0.04, [4_700.0; 2])), Some(Urgency::Now));
        let mut others = two(0.04, [4_700.0; 2]);
        others.swap(0, 1);
        assert_eq!(urgency(others), None, "the one that refuses has none to give");
    }

    /// The tail of the normal distribution is 0.0228 at 2 deviations, 1.4e-4 at 3.634 and 1.2e-5 at 4.221: at most as much as
    /// that of one group, divided by the groups.
    #[test]
    fn the_more_groups_there_are_the_larger_noise_may_be() {
        for (groups, expected) in [(0, 2.0), (1, 2.0), (100, 3.634), (1_000, 4.221)] {
            assert!(
                (deviations(groups) - expected).abs() < 1e-3,
                "{groups}: {}",
                deviations(groups)
            );
        }
        // By hand: a surplus of 0.04 of 10,000 a second is 400; 4,700 vary by 97, so it is 4.1 deviations.
        let holdings = [0.54, 0.46].map(|fraction| holding(4_700.0, fraction, 10_000.0));
        let urgency = |groups| gifts(&holdings, groups).map(|(urgency, _)| urgency);
        assert_eq!(urgency(100), Some(Urgency::Now));
        assert_eq!(urgency(1_000), Some(Urgency::Later));
    }

    proptest! {
        #[test]
        fn targets_are_what_is_owned_and_gifts_fill_what_lacks(
            balancers in vec((0.0..3_000.0, 0.0..1.0, any::<bool>()), 1..20),
            capacity in prop_oneof![
                (0.1..2_000.0).prop_map(ReportedCapacity::PerSecond),
                Just(ReportedCapacity::Unlimited),
            ],
        ) {
            let sum: f64 = balancers.iter().map(|(_, portion, _)| portion).sum();
            let holdings: Vec<_> = balancers.iter().map(|(demand, portion, may_send)| Holding {
                demand: *demand,
                parts: Parts::from_fraction(portion / sum.max(1.0)),
                capacity,
                may_send: *may_send,
            }).collect();
            let owned = holdings.iter().map(|holding| holding.parts).sum::<Parts>().fraction();
            let Some(targets) = targets(&holdings) else {
                prop_assert!(holdings.iter().all(|holding| !holding.may_send));
                return Ok(());
            };
            prop_assert!((targets.iter().sum::<f64>() - owned).abs() < 1e-6);
            prop_assert!(targets.iter().all(|target| *target >= 0.0));
            // All give at the same time: nobody gets more than it lacks, and nobody falls below its target.
            let mut after: Vec<f64> = holdings.iter().map(|h| h.parts.fraction()).collect();
            for first in 0..holdings.len() {
                let mut seen = holdings.clone();
                seen.swap(0, first);
                if let Some((_, given)) = gifts(&seen, 1) {
                    let others = (1..seen.len()).map(|at| if at == first { 0 } else { at });
                    for (other, parts) in others.zip(given) {
                        after[other] += parts.fraction();
                        after[first] -= parts.fraction();
                    }
                }
            }
            for ((after, target), holding) in after.iter().zip(&targets).zip(&holdings) {
                let before = holding.parts.fraction();
                prop_assert!(*after >= before.min(*target) - 1e-6, "{after} of {target}");
                prop_assert!(*after <= before.max(*target) + 1e-6, "{after} of {target}");
            }
        }
    }
}
