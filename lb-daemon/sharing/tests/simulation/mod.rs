//! A fleet in which everything but the code under test is simulated: hosts with disks and kernels, a network that loses,
//! repeats, delays and reorders, and etcd that all see alike. Admissions go through the packet path's own code.

mod etcd;
mod host;
mod kernel;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use lb_common_fake::arrivals::poisson;
use lb_model::Name;
use lb_sharing::{
    GroupKey, Ledger, Message, Parts, SILENCE, SharingError,
    epoch::{EpochStep, Forgotten},
};

use etcd::Etcd;
pub(crate) use host::Host;

/// Time is counted in steps.
pub(crate) const STEP: Duration = Duration::from_millis(10);
const ROUND: Duration = Duration::from_millis(250);
const BOOT: Duration = Duration::from_secs(1);
const SLACK: Duration = Duration::from_secs(1);
/// Refusals cause a round, at most so often.
const EARLY_ROUND: Duration = Duration::from_millis(50);

/// What the network and the disks do, as probabilities and times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    pub(crate) lost: f64,
    pub(crate) repeated: f64,
    pub(crate) delay: Duration,
    pub(crate) write_fails: f64,
    pub(crate) write_takes: Duration,
}

impl Faults {
    pub(crate) const NONE: Self = Self {
        lost: 0.0,
        repeated: 0.0,
        delay: Duration::ZERO,
        write_fails: 0.0,
        write_takes: Duration::from_millis(10),
    };
}

/// What was counted of one group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    /// Admitted connections of each step of the last second.
    last_second: VecDeque<u64>,
    /// Of each step since the beginning.
    pub(crate) offered: Vec<u64>,
    pub(crate) admitted: Vec<u64>,
}

impl Counted {
    /// Offered and admitted connections between two times.
    pub(crate) fn between(&self, from: Duration, to: Duration) -> (u64, u64) {
        let step = |at: Duration| (at.as_millis() / STEP.as_millis()) as usize;
        let range = step(from)..step(to).min(self.offered.len());
        (self.offered[range.clone()].iter().sum(), self.admitted[range].iter().sum())
    }
}

pub(crate) struct Fleet {
    pub(crate) hosts: Vec<Host>,
    pub(crate) etcd: Etcd,
    pub(crate) births: BTreeMap<GroupKey, BTreeSet<Name>>,
    pub(crate) capacity: BTreeMap<GroupKey, f64>,
    pub(crate) now: Duration,
    pub(crate) faults: Faults,
    pub(crate) counted: BTreeMap<GroupKey, Counted>,
    /// Hosts whose messages do not reach the second one.
    pub(crate) cut: BTreeSet<(Name, Name)>,
    /// What any second admitted beyond the capacity and the bursts.
    pub(crate) overshoot: Vec<String>,
    in_flight: Vec<(Duration, Name, Message)>,
    /// When a message of the second host last reached the first.
    heard: BTreeMap<(Name, Name), Duration>,
    random: fastrand::Rng,
}

pub(crate) fn name(index: usize) -> Name {
    Name::new(&format!("lb{index:03}")).unwrap()
}

pub(crate) fn group(index: usize, birth: u64) -> GroupKey {
    let pool = Name::new(&format!("pool{index}")).unwrap();
    GroupKey { pool, region: Name::new("eu").unwrap(), birth }
}

impl Fleet {
    /// A fleet in which all hosts were there when its groups were created, each with its capacity.
    pub(crate) fn new(hosts: usize, capacities: &[f64], seed: u64) -> Self {
        let names: Vec<Name> = (0..hosts).map(name).collect();
        let mut fleet = Self {
            hosts: names.iter().map(|name| Host::new(name.clone(), Ledger::default())).collect(),
            etcd: Etcd::default(),
            births: BTreeMap::new(),
            capacity: BTreeMap::new(),
            now: Duration::ZERO,
            faults: Faults::NONE,
            counted: BTreeMap::new(),
            cut: BTreeSet::new(),
            overshoot: vec![],
            in_flight: vec![],
            heard: BTreeMap::new(),
            random: fastrand::Rng::with_seed(seed),
        };
        for name in &names {
            fleet.etcd.members.insert(name.clone(), (0, 0));
            fleet.etcd.renew(name, Duration::ZERO);
        }
        fleet.etcd.generation = 1;
        for (index, capacity) in capacities.iter().enumerate() {
            let group = group(index, 1);
            fleet.births.insert(group.clone(), names.iter().cloned().collect());
            fleet.capacity.insert(group.clone(), *capacity);
            fleet.counted.insert(group, Counted::default());
        }
        for at in 0..hosts {
            fleet.start(at, false);
        }
        fleet
    }

    /// Boots a host, which takes a while. The limits in its kernel are gone.
    pub(crate) fn boot(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        (host.is_up, host.boots_at) = (false, Some(self.now + BOOT));
    }

    /// Starts a daemon, after a boot or without one.
    pub(crate) fn start(&mut self, at: usize, reboot: bool) {
        let others = self.hosts.iter().map(|host| host.name.clone()).filter(|n| *n != name(at));
        let others: Vec<Name> = others.collect();
        let now = self.now;
        let host = &mut self.hosts[at];
        host.is_up = true;
        if reboot {
            host.kernel = Default::default();
        }
        let member = self.etcd.members.get_mut(&host.name);
        let member = member.filter(|_| host.reaches_etcd);
        // The fleet knows a later start than the disk does.
        let is_old = member.as_ref().is_some_and(|(_, known)| host.disk.incarnation < *known);
        if let Some((_, known)) = member {
            host.disk.incarnation = host.disk.incarnation.max(*known);
            *known = host.disk.incarnation + 1;
        }
        host.start(now, reboot.then_some(others));
        let Some(daemon) = &mut host.daemon else { return };
        if is_old {
            daemon.sharing.set_store_is_old();
        }
        daemon.sharing.set_groups(self.etcd.generation, self.births.clone());
        daemon.next_round = now + ROUND.mul_f64(self.random.f64());
    }

    /// Replaces a host's disk by an old copy, as if its machine had been restored.
    pub(crate) fn restore(&mut self, at: usize, copy: Ledger) {
        let epoch = self.etcd.epoch.as_ref().map_or(0, |epoch| epoch.number);
        self.hosts[at].disk = copy;
        self.hosts[at].old_disk = Some(epoch);
        self.boot(at);
    }

    /// Adds a host that joins the fleet.
    pub(crate) fn join(&mut self) {
        let name = name(self.hosts.len());
        let epoch = self.etcd.epoch.as_ref();
        let epoch = epoch.map_or(0, |epoch| epoch.number - u64::from(!epoch.closed));
        let ledger = Ledger::new_member(self.etcd.generation, epoch);
        self.etcd.members.insert(name.clone(), (epoch, 0));
        self.hosts.push(Host::new(name, ledger));
        self.start(self.hosts.len() - 1, false);
    }

    /// Tells a host to leave the fleet.
    pub(crate) fn tell_to_leave(&mut self, at: usize) {
        self.hosts[at].leaves = true;
        if let Some(daemon) = &mut self.hosts[at].daemon {
            daemon.sharing.leave();
        }
    }

    /// Kills a daemon. What it was writing may have reached the disk.
    pub(crate) fn kill(&mut self, at: usize) {
        // What it heard is gone with it.
        self.heard.retain(|(to, _), _| *to != name(at));
        if let Some(daemon) = self.hosts[at].daemon.take()
            && let Some((ledger, _)) = daemon.writing
            && self.random.bool()
        {
            self.hosts[at].disk = ledger;
        }
    }

    /// Sets the demand of a host for a group, connections a second.
    pub(crate) fn demand(&mut self, at: usize, group: &GroupKey, per_second: f64) {
        self.hosts[at].demand.insert(group.clone(), per_second);
    }

    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.step();
        }
    }

    fn step(&mut self) {
        self.now += STEP;
        for at in 0..self.hosts.len() {
            if self.hosts[at].boots_at.is_some_and(|boots_at| boots_at <= self.now) {
                self.hosts[at].boots_at = None;
                self.start(at, true);
            }
        }
        self.packets();
        self.deliver();
        for at in 0..self.hosts.len() {
            self.daemon(at);
        }
        self.check_whole();
    }

    /// New connections of one step.
    fn packets(&mut self) {
        let groups: Vec<GroupKey> = self.births.keys().cloned().collect();
        // What a forgotten balancer goes on to admit comes on top.
        let is_bounded = self.counted_hosts().count() == self.hosts.len();
        for group in groups {
            let (mut offered, mut admitted, mut bursts) = (0, 0, 0.0);
            for host in &mut self.hosts {
                let rate = host.demand.get(&group).copied().unwrap_or(0.0);
                let mut connections = poisson(&mut self.random, rate * STEP.as_secs_f64());
                if !host.is_up {
                    // What it admitted before still counts for a second.
                    host.kernel.enforce(&group, Parts::NONE, 0.0, self.now);
                    connections = 0;
                }
                let taken = host.kernel.offer(&group, connections, self.now);
                if let Some(daemon) = &mut host.daemon
                    && taken < connections
                    && !daemon.refuses
                {
                    daemon.refuses = true;
                    daemon.next_round = self.now.max(daemon.last_round + EARLY_ROUND);
                }
                offered += connections;
                admitted += taken;
                bursts += host.kernel.limiters[&group].largest_burst();
            }
            let steps = (self.now.as_millis() / STEP.as_millis()) as usize - 1;
            let counted = self.counted.entry(group.clone()).or_default();
            counted.offered.resize(steps, 0);
            counted.admitted.resize(steps, 0);
            counted.offered.push(offered);
            counted.admitted.push(admitted);
            counted.last_second.push_back(admitted);
            if counted.last_second.len() > (1_000 / STEP.as_millis()) as usize {
                counted.last_second.pop_front();
            }
            if !is_bounded {
                counted.last_second.clear();
            }
            let second: u64 = counted.last_second.iter().sum();
            let most = self.capacity[&group] + bursts;
            if second as f64 > most {
                self.overshoot.push(format!("{second} instead of {most} at {:?}", self.now));
            }
        }
    }

    fn deliver(&mut self) {
        let (due, later) =
            std::mem::take(&mut self.in_flight).into_iter().partition(|(at, ..)| *at <= self.now);
        self.in_flight = later;
        let due: Vec<(Duration, Name, Message)> = due;
        for (_, to, message) in due {
            let host = self.hosts.iter_mut().find(|host| host.name == to);
            if let Some(daemon) = host.filter(|h| h.is_up).and_then(|host| host.daemon.as_mut()) {
                self.heard.insert((to, message.from.clone()), self.now);
                match daemon.sharing.receive(self.now, message) {
                    Ok(()) | Err(SharingError::NotAMember(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }

    fn daemon(&mut self, at: usize) {
        let (now, capacities) = (self.now, self.capacity.clone());
        let capacity = |group: &GroupKey| capacities.get(group).copied().unwrap_or(0.0);
        let host = &mut self.hosts[at];
        if !host.is_up {
            return;
        }
        let Some(daemon) = &mut host.daemon else { return };
        let mut speaks = false;
        if daemon.writing.as_ref().is_some_and(|(_, done)| *done <= now)
            && let Some((ledger, _)) = daemon.writing.take()
        {
            let fails = self.random.f64() < self.faults.write_fails;
            // A write that fails may have been made.
            if !fails || self.random.bool() {
                host.disk = ledger;
            }
            daemon.sharing.stored(!fails);
            speaks = true;
        }
        if host.reaches_etcd && daemon.sees_next <= now {
            let seen = (self.etcd.membership(now), self.etcd.epoch.clone());
            daemon.sharing.set_membership(now, seen.0.clone(), seen.1.clone());
            daemon.seen = seen;
            daemon.sees_next = now + Duration::from_millis(self.random.u64(0..500));
            daemon.sharing.set_groups(self.etcd.generation, self.births.clone());
        }
        if daemon.next_round <= now {
            daemon.next_round = now + ROUND;
            daemon.refuses = false;
            speaks = true;
            if let Some(ledger) = host.round(capacity, now)
                && let Some(daemon) = &mut host.daemon
            {
                let takes = self.faults.write_takes.mul_f64(self.random.f64());
                daemon.writing = Some((ledger, now + takes));
                daemon.writes += 1;
            }
            self.etcd_step(at);
        }
        if speaks {
            self.hosts[at].enforce(capacity, now);
            self.send(at);
        }
    }

    /// Renews the lease, and takes part in epochs.
    fn etcd_step(&mut self, at: usize) {
        let now = self.now;
        let host = &mut self.hosts[at];
        let Some(daemon) = &host.daemon else { return };
        if !host.reaches_etcd || !self.etcd.members.contains_key(&host.name) {
            return;
        }
        self.etcd.renew(&host.name, now);
        self.etcd.state(&host.name, daemon.sharing.statement(now));
        let (membership, epoch) = &daemon.seen;
        let was_forgotten =
            self.etcd.epoch.as_ref().is_some_and(|epoch| epoch.forgotten.contains(&host.name));
        if was_forgotten && let Some((since, _)) = self.etcd.members.get_mut(&host.name) {
            *since = daemon.sharing.ledger().epoch.max(*since);
        }
        if let Some(step) = daemon.sharing.epoch_step(now) {
            let seen = (membership, epoch.as_ref());
            if self.etcd.commit(&host.name, step.clone(), seen, now)
                && let EpochStep::Open { forgotten, .. } | EpochStep::Forget(forgotten) = step
            {
                self.check_forgotten(&forgotten);
            }
        }
        self.leave(at);
    }

    /// A balancer is forgotten only if no other one that is alive has heard from it for long, or if its disk is an old copy.
    fn check_forgotten(&self, forgotten: &Forgotten) {
        let alive = self.etcd.membership(self.now).alive;
        for ((to, from), at) in &self.heard {
            if forgotten.gone.contains(from) && alive.contains(to) {
                // Messages that overtook each other, and one that came since the last round, do not count.
                let silence = self.now - *at;
                assert!(silence + SLACK >= SILENCE, "{from} is forgotten after {silence:?}");
            }
        }
        for host in self.hosts.iter().filter(|host| forgotten.old_copies.contains(&host.name)) {
            assert!(host.old_disk.is_some(), "{} is forgotten, and its disk is right", host.name);
        }
    }

    /// Takes a host out of the fleet that has nothing left.
    fn leave(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        if host.leaves
            && let Some(daemon) = &host.daemon
            && daemon.writing.is_none()
            && daemon.sharing.has_left(self.now)
            && daemon.sharing.ledger().adopted == self.etcd.generation
            && self.etcd.epoch.as_ref().is_none_or(|epoch| epoch.closed)
        {
            (host.daemon, host.is_up, host.has_left) = (None, false, true);
            self.etcd.remove(&host.name);
        }
    }

    /// Creates a group, whose first owners are the balancers that are alive.
    pub(crate) fn create_group(&mut self, capacity: f64) {
        let membership = self.etcd.membership(self.now);
        let owners: BTreeSet<Name> = membership
            .alive
            .iter()
            .filter(|name| membership.members.contains_key(*name))
            .cloned()
            .collect();
        if owners.is_empty() {
            return;
        }
        self.etcd.generation += 1;
        let group = group(self.births.len(), self.etcd.generation);
        for host in &mut self.hosts {
            host.demand.insert(group.clone(), 0.3 * capacity);
        }
        self.births.insert(group.clone(), owners);
        self.capacity.insert(group.clone(), capacity);
        self.counted.insert(group, Counted::default());
    }

    fn send(&mut self, at: usize) {
        let names: Vec<Name> = self.hosts.iter().map(|host| host.name.clone()).collect();
        let from = names[at].clone();
        for (to, message) in self.hosts[at].messages(&names, self.now) {
            if self.cut.contains(&(from.clone(), to.clone())) {
                continue;
            }
            let copies = usize::from(self.random.f64() >= self.faults.lost)
                + usize::from(self.random.f64() < self.faults.repeated);
            for _ in 0..copies {
                let delay = STEP + self.faults.delay.mul_f64(self.random.f64());
                self.in_flight.push((self.now + delay, to.clone(), message.clone()));
            }
        }
    }

    /// Hosts whose parts belong to them: not those that are forgotten and have not given up yet.
    fn counted_hosts(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter().filter(|host| {
            let epoch = self.etcd.epoch.as_ref();
            let forgotten = epoch.filter(|epoch| epoch.forgotten.contains(&host.name));
            forgotten.is_none_or(|epoch| host.enforced_epoch >= epoch.number)
        })
    }

    /// What the kernels enforce together is never more than the whole.
    fn check_whole(&self) {
        for group in self.births.keys() {
            let limiters = self.counted_hosts().filter(|host| host.is_up);
            let enforced: Parts =
                limiters.filter_map(|host| Some(host.kernel.limiters.get(group)?.parts)).sum();
            assert!(enforced <= Parts::WHOLE, "{enforced} at {:?}: {:?}", self.now, self.etcd);
        }
    }

    /// What all ledgers say that is owned or on its way, of one group. Acknowledgements are on no disk.
    pub(crate) fn owned_and_on_its_way(&self, group: &GroupKey) -> Parts {
        let hosts = self.hosts.iter().filter(|host| !host.has_left);
        let ledger =
            |host: &'_ Host| host.daemon.as_ref().map(|daemon| daemon.sharing.ledger().clone());
        let disks: BTreeMap<&Name, Ledger> = hosts
            .map(|host| (&host.name, ledger(host).unwrap_or_else(|| host.disk.clone())))
            .collect();
        let of = |ledger: &Ledger, own: &Name| {
            let on_its_way = ledger.pairs.iter().flat_map(|(to, pair)| {
                let theirs = disks.get(to).and_then(|theirs| theirs.pairs.get(own));
                let applied = theirs.map_or(0, |theirs| theirs.applied);
                pair.unacknowledged.iter().filter(move |transfer| transfer.number > applied)
            });
            let on_its_way = on_its_way.filter(|transfer| transfer.group == *group);
            ledger.owned(group) + on_its_way.map(|transfer| transfer.parts).sum()
        };
        disks.iter().map(|(name, ledger)| of(ledger, name)).sum()
    }

    /// Portion of the offered connections that was not admitted between two times, over all groups.
    pub(crate) fn sent_elsewhere(&self, from: Duration, to: Duration) -> f64 {
        let (mut offered, mut admitted) = (0, 0);
        for counted in self.counted.values() {
            let (all, taken) = counted.between(from, to);
            offered += all;
            admitted += taken;
        }
        1.0 - admitted as f64 / offered.max(1) as f64
    }
}
