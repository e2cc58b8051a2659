//! Which generation each balancer of a fleet has in force.

use serde::Serialize;
use spillway_proto::v1;

use crate::output::count;

/// Balancers that a line names; JSON has all.
const MOST_NAMES: usize = 5;

/// The generation that each live balancer has in force. Empty: the balancer is no member of a fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct BalancerGenerations {
    balancers: Vec<BalancerGeneration>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct BalancerGeneration {
    balancer: String,
    /// `null`: none, or it is unknown.
    generation: Option<u64>,
}

impl BalancerGeneration {
    fn new(balancer: &str, generation: u64) -> Self {
        let generation = Some(generation).filter(|generation| *generation > 0);
        Self { balancer: balancer.into(), generation }
    }

    fn is_behind(&self, generation: u64) -> bool {
        self.generation.unwrap_or_default() < generation
    }

    /// `lb-3 (generation 7)`
    fn describe(&self) -> String {
        match self.generation {
            Some(generation) => format!("{} (generation {generation})", self.balancer),
            None => format!("{} (no generation)", self.balancer),
        }
    }
}

impl From<Vec<v1::BalancerGeneration>> for BalancerGenerations {
    fn from(balancers: Vec<v1::BalancerGeneration>) -> Self {
        let balancer =
            |it: &v1::BalancerGeneration| BalancerGeneration::new(&it.balancer, it.generation);
        Self { balancers: balancers.iter().map(balancer).collect() }
    }
}

impl From<&v1::FleetStatus> for BalancerGenerations {
    /// The live members, and the balancer that answers: it serves calls, whatever etcd knows of it.
    fn from(status: &v1::FleetStatus) -> Self {
        let counts = |it: &&v1::FleetMember| it.alive || it.name == status.balancer;
        let members = status.members.iter().filter(counts);
        let mut balancers: Vec<_> =
            members.map(|it| BalancerGeneration::new(&it.name, it.generation)).collect();
        if !balancers.iter().any(|it| it.balancer == status.balancer) {
            balancers.push(BalancerGeneration::new(&status.balancer, 0));
        }
        Self { balancers }
    }
}

impl BalancerGenerations {
    /// The balancers that do not have this generation in force yet, in words; `None`: all have it.
    pub(super) fn lagging(&self, generation: u64) -> Option<String> {
        let behind = self.balancers.iter().filter(|it| it.is_behind(generation));
        let behind: Vec<_> = behind.map(BalancerGeneration::describe).collect();
        (!behind.is_empty()).then(|| listed(&behind, MOST_NAMES, ", "))
    }

    /// `in force at 3 of 4 balancers; not yet at lb-3 (generation 7)`; `None`: there is no fleet.
    pub(crate) fn line(&self, generation: u64) -> Option<String> {
        let all = self.balancers.len();
        let behind = self.balancers.iter().filter(|it| it.is_behind(generation)).count();
        let balancers = count(all as u64, "balancer");
        match self.lagging(generation) {
            _ if all == 0 => None,
            None if all == 1 => Some("in force at the only balancer of the fleet".into()),
            None => Some(format!("in force at all {balancers}")),
            Some(lagging) => {
                Some(format!("in force at {} of {balancers}; not yet at {lagging}", all - behind))
            }
        }
    }
}

/// `a, b, and 3 more`, with this between them.
pub(super) fn listed(names: &[String], most: usize, between: &str) -> String {
    match names.len().saturating_sub(most) {
        0 => names.join(between),
        more => format!("{}{between}and {more} more", names[..most].join(between)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generations(all: &[(&str, u64)]) -> BalancerGenerations {
        let message = |(balancer, generation): &(&str, u64)| v1::BalancerGeneration {
            balancer: (*balancer).into(),
            generation: *generation,
        };
        all.iter().map(message).collect::<Vec<_>>().into()
    }

    #[test]
    fn a_line_counts_the_balancers_and_names_those_that_lag() {
        let line = |all: &[(&str, u64)]| generations(all).line(8);
        assert_eq!(line(&[]), None);
        assert_eq!(line(&[("lb-1", 8)]).unwrap(), "in force at the only balancer of the fleet");
        assert_eq!(line(&[("lb-1", 8), ("lb-2", 9)]).unwrap(), "in force at all 2 balancers");
        let four = [("lb-1", 8), ("lb-2", 8), ("lb-3", 7), ("lb-4", 8)];
        let expected = "in force at 3 of 4 balancers; not yet at lb-3 (generation 7)";
        assert_eq!(line(&four).unwrap(), expected);
        let expected = "in force at 0 of 1 balancer; not yet at lb-1 (no generation)";
        assert_eq!(line(&[("lb-1", 0)]).unwrap(), expected);
        let nine: Vec<_> = ["a", "b", "c", "d", "e", "f", "g", "h", "i"].map(|it| (it, 7)).into();
        let expected = "in force at 0 of 9 balancers; not yet at a (generation 7), b (generation 7), c (generation \
                        7), d (generation 7), e (generation 7), and 4 more";
        assert_eq!(line(&nine).unwrap(), expected);
    }

    #[test]
    fn the_dead_do_not_count_unless_they_answer() {
        let member = |name: &str, alive, generation| v1::FleetMember {
            name: name.into(),
            alive,
            generation,
            ..Default::default()
        };
        let mut status = v1::FleetStatus {
            balancer: "lb-1".into(),
            member: true,
            members: vec![member("lb-2", true, 8), member("lb-3", false, 0)],
            ..Default::default()
        };
        let lagging = |status: &v1::FleetStatus| BalancerGenerations::from(status).lagging(8);
        // A balancer that does not see itself does not know anything yet.
        assert_eq!(lagging(&status).unwrap(), "lb-1 (no generation)");
        status.members.push(member("lb-1", false, 7));
        assert_eq!(lagging(&status).unwrap(), "lb-1 (generation 7)");
        status.members[2].generation = 8;
        assert_eq!(lagging(&status), None);
    }
}
