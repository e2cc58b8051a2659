//! Faults of a fleet at random moments: a plan that follows from a seed.
//!
//! Each fault lasts for a while and is ended. What it happens to has no other fault meanwhile; faults of different parts
//! overlap as chance has it.

use std::fmt;
use std::time::Duration;

use lb_tests::random::Random;
use lb_tests::topology::Cut;

/// What is wrong for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `kill -9` of a server of etcd.
    EtcdKilled(usize),
    /// A server of etcd is stopped in the middle of what it does.
    EtcdFrozen(usize),
    /// `kill -9` of the server that leads.
    LeaderKilled,
    /// The server that leads is stopped in the middle of what it does.
    LeaderFrozen,
    /// All servers but this one are killed.
    QuorumLost(usize),
    /// All servers but this one are stopped in the middle of what they do.
    QuorumFrozen(usize),
    /// All servers are killed.
    EtcdGone,
    /// Nothing lasts: all history before the present is taken away.
    EtcdCompacted,
    /// `kill -9` of a daemon. Its packet program goes on.
    DaemonKilled(usize),
    /// A daemon is asked to stop. Its packet program goes on.
    DaemonStopped(usize),
    /// A daemon is stopped in the middle of what it does.
    DaemonFrozen(usize),
    /// A balancer cannot reach others.
    CutOff(usize, Cut),
    /// A balancer leaves the fleet, and joins again.
    Left(usize),
    /// A balancer's host loses power and is taken out of the routes, until it is ready again.
    HostGone(usize),
    /// A balancer is taken out of the routes: flows move between balancers.
    OutOfRoutes(usize),
    /// A backend's health check fails.
    Unhealthy(usize),
}

/// What a fault happens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Etcd,
    Balancer(usize),
    /// Which balancer and which backend flows come to.
    Routes,
}

/// A fault with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incident {
    /// When it begins, from the beginning of the plan.
    pub from: Duration,
    /// When it ends.
    pub to: Duration,
    /// What is wrong.
    pub fault: Fault,
}

/// What a plan is made for.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Servers of etcd.
    pub etcd: usize,
    /// Balancers. The last one can be taken out of the routes.
    pub balancers: usize,
    /// Backends.
    pub backends: usize,
    /// Within so long all faults end.
    pub length: Duration,
}

/// Most of the faults last so long.
const SHORT: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(12)];
/// Some last longer than it takes to be forgotten by the other balancers.
const LONG: [Duration; 2] = [Duration::from_secs(35), Duration::from_secs(55)];
/// Time between two faults of a part.
const BETWEEN: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(14)];
/// After a backend was unhealthy, health checks have to pass before flows may move: a flow that began elsewhere than at
/// home is known to one balancer only.
const RECOVERY: Duration = Duration::from_secs(6);
/// One in so many faults is long, if the plan has room for it.
const LONG_ONES: u64 = 6;

impl fmt::Display for Incident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [from, to] = [self.from, self.to].map(|time| time.as_secs_f64());
        write!(f, "{from:.1} s to {to:.1} s: {:?}", self.fault)
    }
}

/// Incidents in the order in which they begin. Equal seeds give equal plans.
pub fn plan(seed: u64, size: &Size) -> Vec<Incident> {
    let mut random = Random::new(seed);
    let mut incidents = Vec::new();
    let balancers = (0..size.balancers).map(Part::Balancer);
    for part in balancers.chain([Part::Etcd, Part::Routes]) {
        let mut at = within(&mut random, [Duration::ZERO, BETWEEN[1]]);
        loop {
            let fault = choose(&mut random, part, size);
            let may_be_long = size.length > 2 * LONG[1] && fault.may_be_long();
            let is_long = random.below(LONG_ONES) == 0 && may_be_long;
            let to = at + within(&mut random, if is_long { LONG } else { SHORT });
            if to > size.length {
                break;
            }
            let incident = Incident { from: at, to, fault };
            if !incidents.iter().any(|other| incident.is_at_odds_with(other)) {
                incidents.push(incident);
            }
            at = to + within(&mut random, BETWEEN);
        }
    }
    incidents.sort_by_key(|incident| incident.from);
    incidents
}

impl Incident {
    /// Whether the two must not overlap although they happen to different parts.
    fn is_at_odds_with(&self, other: &Self) -> bool {
        // The same cut twice: the first that ends would end both.
        if let (Fault::CutOff(one, Cut::Peer(peer)), Fault::CutOff(its_peer, Cut::Peer(two))) =
            (self.fault, other.fault)
            && (one, peer) == (two, its_peer)
        {
            return self.from < other.to + RECOVERY && other.from < self.to + RECOVERY;
        }
        let moves_flows = |it: &Self| it.fault.uses_routes();
        let overlap = self.from < other.to + RECOVERY && other.from < self.to + RECOVERY;
        overlap && moves_flows(self) && moves_flows(other)
    }
}

impl Fault {
    /// Whether flows move between balancers, or begin elsewhere than at home.
    fn uses_routes(self) -> bool {
        matches!(self, Self::HostGone(_) | Self::OutOfRoutes(_) | Self::Unhealthy(_))
    }

    fn may_be_long(self) -> bool {
        !matches!(self, Self::Unhealthy(_) | Self::EtcdCompacted)
    }
}

fn choose(random: &mut Random, part: Part, size: &Size) -> Fault {
    let last = size.balancers - 1;
    match part {
        Part::Etcd => {
            let server = random.below(size.etcd as u64) as usize;
            match random.below(10) {
                0 | 1 => Fault::EtcdKilled(server),
                2 => Fault::EtcdFrozen(server),
                3 | 4 => Fault::LeaderKilled,
                5 => Fault::LeaderFrozen,
                6 => Fault::QuorumLost(server),
                7 => Fault::QuorumFrozen(server),
                8 => Fault::EtcdGone,
                _ => Fault::EtcdCompacted,
            }
        }
        Part::Balancer(balancer) => {
            let others = size.balancers as u64 - 1;
            let peer = (balancer + 1 + random.below(others.max(1)) as usize) % size.balancers;
            match random.below(11) {
                0 | 1 => Fault::DaemonKilled(balancer),
                2 => Fault::DaemonStopped(balancer),
                3 => Fault::DaemonFrozen(balancer),
                4 => Fault::CutOff(balancer, Cut::PeersAndEtcd),
                5 => Fault::CutOff(balancer, Cut::Peers),
                6 if peer != balancer => Fault::CutOff(balancer, Cut::Peer(peer)),
                6 | 7 => Fault::CutOff(balancer, Cut::Etcd),
                8 => Fault::Left(balancer),
                _ if balancer == last => Fault::HostGone(balancer),
                _ => Fault::DaemonKilled(balancer),
            }
        }
        Part::Routes if random.below(3) == 0 => {
            Fault::Unhealthy(random.below(size.backends as u64) as usize)
        }
        Part::Routes => Fault::OutOfRoutes(last),
    }
}

fn within(random: &mut Random, [least, most]: [Duration; 2]) -> Duration {
    least + Duration::from_millis(random.below((most - least).as_millis() as u64 + 1))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::mem::{Discriminant, discriminant};

    use super::*;

    const SIZE: Size =
        Size { etcd: 3, balancers: 4, backends: 6, length: Duration::from_secs(240) };

    fn part(fault: Fault) -> Part {
        match fault {
            Fault::DaemonKilled(it)
            | Fault::DaemonStopped(it)
            | Fault::DaemonFrozen(it)
            | Fault::CutOff(it, _)
            | Fault::Left(it)
            | Fault::HostGone(it) => Part::Balancer(it),
            Fault::OutOfRoutes(_) | Fault::Unhealthy(_) => Part::Routes,
            _ => Part::Etcd,
        }
    }

    #[test]
    fn a_part_has_one_fault_at_a_time() {
        for seed in 0..200 {
            let plan = plan(seed, &SIZE);
            for (place, one) in plan.iter().enumerate() {
                assert!(one.from < one.to && one.to <= SIZE.length, "{seed}: {one}");
                for other in &plan[place + 1..] {
                    assert!(one.from <= other.from);
                    let overlap = other.from < one.to;
                    assert!(!overlap || part(one.fault) != part(other.fault), "{one}; {other}");
                }
            }
        }
    }

    #[test]
    fn flows_move_only_while_all_begin_at_home() {
        let moves = |it: &&Incident| {
            part(it.fault) == Part::Routes || matches!(it.fault, Fault::HostGone(_))
        };
        for seed in 0..200 {
            let plan = plan(seed, &SIZE);
            let moving: Vec<_> = plan.iter().filter(moves).collect();
            for pair in moving.windows(2) {
                assert!(pair[0].to + RECOVERY <= pair[1].from, "{}; {}", pair[0], pair[1]);
            }
        }
    }

    #[test]
    fn only_the_last_balancer_is_taken_out_of_the_routes() {
        for seed in 0..200 {
            for incident in plan(seed, &SIZE) {
                if let Fault::HostGone(it) | Fault::OutOfRoutes(it) = incident.fault {
                    assert_eq!(it, 3, "{incident}");
                }
                if let Fault::CutOff(it, Cut::Peer(peer)) = incident.fault {
                    assert!(it != peer && peer < 4, "{incident}");
                }
            }
        }
    }

    #[test]
    fn a_seed_is_a_plan_and_many_have_every_fault() {
        assert_eq!(plan(7, &SIZE), plan(7, &SIZE));
        assert_ne!(plan(7, &SIZE), plan(8, &SIZE));
        let all = (0..50).flat_map(|seed| plan(seed, &SIZE));
        let kinds: HashSet<Discriminant<Fault>> =
            all.map(|incident| discriminant(&incident.fault)).collect();
        assert_eq!(kinds.len(), 16);
        let longer = |it: &Incident| it.to - it.from >= LONG[0];
        assert!((0..50).flat_map(|seed| plan(seed, &SIZE)).any(|it| longer(&it)));
        let short = Size { length: Duration::from_secs(40), ..SIZE };
        assert!((0..50).all(|seed| !plan(seed, &short).iter().any(longer)));
        assert!((0..50).all(|seed| plan(seed, &short).len() > 5));
    }
}
