//! A fleet in simulated time: balancers, a network that loses nothing, and clients that begin connections at random.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::Result;
use lb_common_fake::arrivals::poisson;
use lb_model::Name;
use lb_sharing::{GroupKey, epoch::Membership};

use crate::{
    balancer::{Balancer, Packet},
    cost::Cost,
};

/// Time is counted in steps. A message takes one.
pub(crate) const STEP: Duration = Duration::from_millis(10);
/// How long a write of the ledger takes: fsync of an SSD.
const DISK: Duration = Duration::from_millis(5);
/// Capacity of each group, connections a second for each balancer.
const CAPACITY: f64 = 100.0;
/// Portion of a group's demand at one balancer, and what the others have together.
const UNEVEN: f64 = 0.7;

/// How large a fleet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) balancers: usize,
    pub(crate) regions: usize,
    /// Each has a group in each region.
    pub(crate) pools: usize,
}

impl Size {
    pub(crate) fn groups(self) -> usize {
        self.pools * self.regions
    }
}

/// What all balancers know alike.
pub(crate) struct Groups {
    /// In their order.
    pub(crate) keys: Vec<GroupKey>,
    /// Connections a second of each, for the whole fleet.
    pub(crate) capacity: f64,
    pub(crate) disk: Duration,
}

/// Connections of one step, over all groups.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) offered: u64,
    pub(crate) admitted: u64,
}

pub(crate) struct Fleet {
    pub(crate) balancers: Vec<Balancer>,
    pub(crate) groups: Groups,
    pub(crate) now: Duration,
    /// Of each step since the start.
    pub(crate) counted: Vec<Counted>,
    names: Vec<Name>,
    regions: Vec<Name>,
    /// For each balancer what reaches it in the next step.
    in_flight: Vec<Vec<Packet>>,
    random: fastrand::Rng,
}

pub(crate) fn name(of: &str, number: usize) -> Result<Name> {
    Ok(Name::new(&format!("{of}-{number:04}"))?)
}

impl Fleet {
    /// A fleet whose balancers were all alive when its groups were created. The first `measured` are.
    ///
    /// # Errors
    /// A name is too long.
    pub(crate) fn new(size: Size, measured: usize, seed: u64) -> Result<Self> {
        let named =
            |of, count| (0..count).map(|number| name(of, number)).collect::<Result<Vec<_>>>();
        let (names, regions) = (named("lb", size.balancers)?, named("region", size.regions)?);
        let pools = named("pool", size.pools)?;
        let of_pool = |pool: &Name| {
            let of_region =
                |region: &Name| GroupKey { pool: pool.clone(), region: region.clone(), birth: 1 };
            regions.iter().map(of_region).collect::<Vec<_>>()
        };
        let keys: Vec<GroupKey> = pools.iter().flat_map(of_pool).collect();
        let owners: BTreeSet<Name> = names.iter().cloned().collect();
        let births: BTreeMap<_, _> = keys.iter().map(|key| (key.clone(), owners.clone())).collect();
        let membership = Membership {
            members: names.iter().map(|name| (name.clone(), 0)).collect(),
            alive: owners,
            ..Membership::default()
        };
        let mut random = fastrand::Rng::with_seed(seed);
        let start = |(at, name): (usize, &Name)| {
            let first = Duration::from_millis(250).mul_f64(random.f64());
            let mut balancer = Balancer::new(name.clone(), first, keys.len());
            balancer.is_measured = at < measured;
            balancer.sharing.set_membership(Duration::ZERO, membership.clone(), None);
            balancer.sharing.set_groups(1, births.clone());
            balancer
        };
        let balancers: Vec<Balancer> = names.iter().enumerate().map(start).collect();
        let capacity = CAPACITY * size.balancers as f64;
        Ok(Self {
            in_flight: names.iter().map(|_| Vec::new()).collect(),
            balancers,
            groups: Groups { keys, capacity, disk: DISK },
            now: Duration::ZERO,
            counted: Vec::new(),
            names,
            regions,
            random,
        })
    }

    /// Sets the demand: `load` of the capacity of each group, from the balancers of its region (as many as there are), most
    /// of it at one of them: the first, or with `shifted` another one.
    pub(crate) fn demand(&mut self, load: f64, shifted: bool) {
        let (balancers, regions) = (self.balancers.len(), self.regions.len());
        for (place, key) in self.groups.keys.iter().enumerate() {
            let is_sender = |at: &usize| key.region == self.regions[at % regions];
            let senders: Vec<usize> = (0..balancers).filter(is_sender).collect();
            let most = if shifted { senders.get(1) } else { senders.first() };
            for at in &senders {
                let whole = load * self.groups.capacity;
                let others = senders.len() as f64 - 1.0;
                let portion = match Some(at) == most {
                    _ if senders.len() == 1 => 1.0,
                    true => UNEVEN,
                    false => (1.0 - UNEVEN) / others,
                };
                self.balancers[*at].loads[place].demand = portion * whole;
            }
        }
    }

    /// # Errors
    /// As [`Balancer::run`].
    pub(crate) fn run(&mut self, time: Duration) -> Result<()> {
        let end = self.now + time;
        while self.now < end {
            self.step()?;
        }
        Ok(())
    }

    /// # Errors
    /// As [`Balancer::run`].
    pub(crate) fn step(&mut self) -> Result<()> {
        self.now += STEP;
        self.connect();
        for (balancer, packets) in self.balancers.iter_mut().zip(&mut self.in_flight) {
            packets.drain(..).try_for_each(|packet| balancer.deliver(packet))?;
        }
        for at in 0..self.balancers.len() {
            if self.balancers[at].run(self.now, &self.groups)? {
                self.send(at);
            }
        }
        Ok(())
    }

    /// New connections of one step.
    fn connect(&mut self) {
        let mut counted = Counted::default();
        for load in self.balancers.iter_mut().flat_map(|balancer| &mut balancer.loads) {
            let arrivals = poisson(&mut self.random, load.demand * STEP.as_secs_f64());
            counted.offered += arrivals;
            counted.admitted += load.limiter.offer(arrivals, self.now);
        }
        self.counted.push(counted);
    }

    fn send(&mut self, at: usize) {
        let others = (0..self.names.len()).filter(|to| *to != at);
        let (messages, reports) = self.balancers[at].messages(self.now, &self.names);
        for (to, message) in others.zip(messages) {
            let is_measured = self.balancers[at].is_measured;
            let packet = if is_measured || self.balancers[to].is_measured {
                Packet::Bytes(self.balancers[at].encode(&message, &reports))
            } else {
                Packet::Message(Box::new(message))
            };
            self.in_flight[to].push(packet);
        }
    }

    /// What the measured balancers have cost so far, together.
    pub(crate) fn cost(&self) -> Cost {
        self.balancers.iter().filter(|balancer| balancer.is_measured).map(|it| it.cost).sum()
    }
}
