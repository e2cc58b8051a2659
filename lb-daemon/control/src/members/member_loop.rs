use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    MemberCommand, MemberUpdate, clock,
    mailbox::MailboxSender,
    path_losses::{PathLosses, is_own_silence, longest_row},
    portions::{PortionRequest, PortionWriter},
    table::Members,
    wall_clock,
};
use crate::{counters::HealthCounters, health_state::RestoredHoldDowns, status::StatusUpdate};
use lb_base::{
    error_chain,
    heartbeat::Heartbeat,
    loops::{LoopCounters, LoopEnd, SECOND, ticks},
    queue::{Receiver, UnboundedReceiver, UnboundedSender},
};
use lb_common::abi::member::Accepts;
use lb_health::HealthChange;
use lb_model::{
    Configuration, MemberState, Name,
    capacity::Portions,
    next_hop::{NextHop, NoNextHop},
    overrides::{Affected, Overrides},
};
use lb_net::{NetChange, NextHopChange, Unresolved};
use lb_publish::reconcile::MemberPath;

/// How long open connections of a backend wait for its next hop at least, before they move.
const AWAITED_FOR: Duration = Duration::from_secs(10);

/// Most results of checks that are taken together.
const MOST_CHANGES: usize = 256;

/// What sensors report.
#[derive(Debug)]
pub struct Sensed {
    /// Results of checks.
    pub health: Receiver<HealthChange>,
    /// Next hops of backends, and ports of bonds.
    pub network: Receiver<NetChange>,
}

/// To the loops that are told of each change.
#[derive(Debug)]
pub(crate) struct UpdateSenders {
    pub(crate) status: UnboundedSender<StatusUpdate>,
    pub(crate) state: MailboxSender,
}

/// What is in force before the first configuration, so that no start opens a limit.
#[derive(Debug)]
pub(crate) struct Initial {
    pub(crate) hold_downs: RestoredHoldDowns,
    pub(crate) overrides: Arc<Overrides>,
    pub(crate) portions: Portions,
}

/// Takes results of checks and next hops, and writes them to the packet path.
#[derive(Debug)]
pub struct MemberLoop<W> {
    words: W,
    sensed: Sensed,
    commands: UnboundedReceiver<MemberCommand>,
    portions: PortionWriter,
    updates: UpdateSenders,
    health_counters: HealthCounters,
    counters: LoopCounters,
    /// What packets see.
    configuration: Arc<Configuration>,
    members: Members,
    /// Next hops as written, or why there is none.
    next_hops: BTreeMap<IpAddr, Result<NextHop, NoNextHop>>,
    /// Since when backends have no next hop that keep their open connections until they have one again.
    awaited: BTreeMap<IpAddr, Instant>,
    /// Next hops that found no room, which is tried again.
    without_room: BTreeMap<IpAddr, NextHop>,
    /// Backends of pools with direct return.
    direct: Arc<BTreeSet<IpAddr>>,
    path_losses: PathLosses,
}

impl<W: MemberPath> MemberLoop<W> {
    pub(crate) fn new(
        (health_counters, counters): (HealthCounters, LoopCounters),
        mut words: W,
        sensed: Sensed,
        (commands, asked_portions): (
            UnboundedReceiver<MemberCommand>,
            UnboundedReceiver<PortionRequest>,
        ),
        updates: UpdateSenders,
        initial: Initial,
    ) -> Self {
        let Initial { hold_downs, overrides, portions } = initial;
        words.set_overrides(Arc::clone(&overrides));
        words.set_portions(portions.clone().into());
        Self {
            words,
            sensed,
            commands,
            portions: PortionWriter::new(asked_portions, portions),
            updates,
            health_counters,
            counters,
            configuration: Arc::new(Configuration::EMPTY),
            members: Members::new(hold_downs, overrides),
            next_hops: BTreeMap::new(),
            awaited: BTreeMap::new(),
            without_room: BTreeMap::new(),
            direct: Arc::default(),
            path_losses: PathLosses::default(),
        }
    }

    /// Runs until `stop` is done or the state loop is gone. Changes of health come before all else. The heartbeat has its
    /// own tick, and proves that the loop turns.
    pub async fn run(mut self, heartbeat: Heartbeat, stop: impl Future<Output = ()>) -> LoopEnd {
        tokio::pin!(stop);
        let (mut beat, mut second) = (ticks(heartbeat.interval()), ticks(SECOND));
        let mut changes = Vec::with_capacity(MOST_CHANGES);
        loop {
            tokio::select! {
                biased;
                () = &mut stop => return LoopEnd::Stopped,
                _ = beat.tick() => heartbeat.beat(),
                count = self.sensed.health.recv_many(&mut changes, MOST_CHANGES) => match count {
                    0 => return LoopEnd::SensorEnded,
                    _ => {
                        let _turn = self.counters.turn();
                        self.apply_health_changes(&mut changes, Vec::new());
                    }
                },
                change = self.sensed.network.recv() => match change {
                    Some(change) => {
                        let _turn = self.counters.turn();
                        self.apply_network_change(change);
                    }
                    None => return LoopEnd::SensorEnded,
                },
                command = self.commands.recv() => match command {
                    Some(command) => {
                        let _turn = self.counters.turn();
                        self.execute(command);
                    }
                    None => return LoopEnd::Stopped,
                },
                () = self.words.next_step() => {}
                _ = second.tick() => {
                    let _turn = self.counters.turn();
                    let released = self.members.release_held(wall_clock(), clock());
                    self.apply_health_changes(&mut Vec::new(), released);
                    self.members.update_shares(&self.configuration, &mut self.words);
                    self.retry_without_room();
                    self.end_waits();
                    self.send_changes();
                }
                // The last one, because it is ready until all limits are written.
                () = self.portions.ready() => {
                    let _turn = self.counters.turn();
                    self.write_portions();
                }
            }
        }
    }

    /// Writes some of the limits that other portions change. Whoever asked is told after the status loop.
    fn write_portions(&mut self) {
        let Some(enforced) = self.portions.step(&mut self.words) else { return };
        // Without a status loop the daemon is stopping.
        let _ = self.updates.status.send(StatusUpdate::Portions(enforced.portions.clone()));
        enforced.reply();
    }

    /// Takes what checks found, and members whose hold is over, and writes it to the packet path.
    fn apply_health_changes(
        &mut self,
        changes: &mut Vec<HealthChange>,
        released: Vec<(Name, IpAddr, MemberState)>,
    ) {
        let (now, at) = (wall_clock(), clock());
        let mut pools: BTreeMap<Name, BTreeMap<IpAddr, Accepts>> = BTreeMap::new();
        for change in &*changes {
            let lost = self.path_losses.last(change.address, at);
            let excused = lost.map(|lost| lost + longest_row(&self.configuration, &change.pool));
            let taken = self.members.take_health_change(change, now, at, excused);
            let Some(taken) = taken else { continue };
            if taken.is_held {
                self.health_counters.hold_downs.inc();
            }
            let accepts = taken.state.accepts();
            let there = self.words.state(&change.pool, change.address);
            if taken.is_news || there.is_some_and(|there| there != accepts) {
                pools.entry(change.pool.clone()).or_default().insert(change.address, accepts);
            }
        }
        for (pool, address, state) in released {
            pools.entry(pool).or_default().insert(address, state.accepts());
        }
        let written = self.write_members(&pools);
        let written = changes.iter().filter(|it| written.contains(&(&it.pool, it.address)));
        self.health_counters.written(written.map(|change| change.at));
        self.send_changes();
        changes.clear();
    }

    /// Writes what members accept that changed: first all that get less, then those that get more, each with its share
    /// before it is up. Returns those whose words were others.
    fn write_members<'p>(
        &mut self,
        pools: &'p BTreeMap<Name, BTreeMap<IpAddr, Accepts>>,
    ) -> BTreeSet<(&'p Name, IpAddr)> {
        let (mut rising, mut written) = (Vec::new(), BTreeSet::new());
        for (name, states) in pools {
            let accepts = |address| self.words.state(name, address).unwrap_or(Accepts::Nothing);
            let (falls, rises): (Vec<_>, Vec<_>) = states
                .iter()
                .map(|(address, state)| (*address, *state))
                .filter(|(address, state)| accepts(*address) != *state)
                .partition(|(address, state)| accepts(*address) as u8 > *state as u8);
            self.words.set_states(name, &falls);
            written.extend(falls.iter().chain(&rises).map(|(address, _)| (name, *address)));
            rising.push(rises);
        }
        let configuration = Arc::clone(&self.configuration);
        for ((name, states), rises) in pools.iter().zip(rising) {
            let Some(pool) = configuration.pools.get(name) else { continue };
            if !rises.is_empty() {
                self.members.begin_slow_start(name, pool);
            }
            self.members.write_ramps(name, pool, &mut self.words);
            self.words.set_states(name, &rises);
            let changed: Vec<_> = states.keys().copied().collect();
            self.members.write_last_resorts(name, pool, &changed, &mut self.words);
        }
        written
    }

    /// Puts overrides in force for these pools.
    fn override_members(&mut self, overrides: Arc<Overrides>, affected: &[Affected]) {
        let now = wall_clock();
        self.words.set_overrides(Arc::clone(&overrides));
        self.members.set_overrides(overrides);
        let mut pools: BTreeMap<Name, BTreeMap<IpAddr, Accepts>> = BTreeMap::new();
        for Affected { pool, backends, .. } in affected {
            let Some(configured) = self.configuration.pools.get(pool) else { continue };
            let changed = self.members.override_backends(pool, configured, backends, now);
            if !changed.is_empty() {
                pools.insert(pool.clone(), changed);
            }
        }
        self.write_members(&pools);
        for Affected { pool, backends, .. } in affected.iter().filter(|it| it.has_groups) {
            self.words.update_limits(pool, backends);
        }
        self.send_changes();
    }

    fn apply_network_change(&mut self, change: NetChange) {
        match change {
            NetChange::NextHops(changes) => self.apply_next_hop_changes(changes),
            NetChange::Interfaces(configured) => self.words.set_configured_interfaces(&configured),
            NetChange::Bonds(bonds) => self.words.set_bonds(&bonds),
        }
    }

    /// Writes all of them before it tells anybody: packets meet a part of them for as short a time as can be.
    fn apply_next_hop_changes(&mut self, changes: Vec<NextHopChange>) {
        let now = clock();
        let mut updates = Vec::new();
        for NextHopChange { address, hop } in changes {
            let is_momentary = hop.as_ref().is_err_and(Unresolved::is_momentary);
            let is_own_silence = hop.as_ref().is_err_and(|why| is_own_silence(address, why));
            let hop = hop.map_err(|why| NoNextHop::Other(error_chain::message(&why)));
            let hop = self.check_next_hop(address, hop);
            self.path_losses.set(address, hop.is_err() && !is_own_silence, now);
            // After each configuration the sensors report everything again, mostly unchanged.
            if self.next_hops.get(&address) != Some(&hop) {
                let is_lost = is_momentary && self.words.await_next_hop(address);
                updates.extend(if is_lost {
                    self.awaited.entry(address).or_insert(now);
                    self.note_next_hop(address, hop)
                } else {
                    self.set_next_hop(address, hop)
                });
            }
        }
        self.send(updates);
    }

    /// Refuses a next hop that is a gateway if the backend's pools use direct return: the gateway would send the packet
    /// back, because it is still addressed to the VIP. Refuses any from which a tunnel would have no source.
    fn check_next_hop(
        &self,
        backend: IpAddr,
        hop: Result<NextHop, NoNextHop>,
    ) -> Result<NextHop, NoNextHop> {
        match hop {
            Ok(NextHop { gateway, .. }) if gateway != backend && self.direct.contains(&backend) => {
                Err(NoNextHop::Other(format!(
                    "direct return needs a backend on the link, but the route leads through {gateway}"
                )))
            }
            Ok(NextHop { source: None, .. }) if !self.direct.contains(&backend) => {
                Err(NoNextHop::NoSource(backend))
            }
            hop => hop,
        }
    }

    /// Writes a backend's next hop. Returns what the other loops do not know yet.
    fn set_next_hop(
        &mut self,
        address: IpAddr,
        mut hop: Result<NextHop, NoNextHop>,
    ) -> Option<MemberUpdate> {
        self.without_room.remove(&address);
        self.awaited.remove(&address);
        let wanted = hop.as_ref().ok().copied();
        if let Err(error) = self.words.set_next_hop(address, wanted) {
            if let (true, Some(wanted)) = (error.is_full(), wanted) {
                self.without_room.insert(address, wanted);
            }
            hop = Err(NoNextHop::Other(error_chain::message(&error)));
            // The previous next hop is no longer valid either.
            if let Err(error) = self.words.set_next_hop(address, None) {
                let error = error_chain::message(&error);
                tracing::error!(backend = %address, error, "backend {address}: its next hop cannot be written");
            }
        }
        self.note_next_hop(address, hop)
    }

    /// Notes what is written of a backend's next hop. Returns what the other loops do not know yet.
    fn note_next_hop(
        &mut self,
        address: IpAddr,
        hop: Result<NextHop, NoNextHop>,
    ) -> Option<MemberUpdate> {
        let before = self.next_hops.insert(address, hop.clone());
        (before.as_ref() != Some(&hop)).then_some(MemberUpdate::NextHop { address, hop })
    }

    /// Gives up next hops of backends that are unreachable by their checks, and those that were awaited for longer than the
    /// checks need to say so.
    fn end_waits(&mut self) {
        let mut longest: BTreeMap<IpAddr, Duration> =
            self.awaited.keys().map(|it| (*it, AWAITED_FOR)).collect();
        if longest.is_empty() {
            return;
        }
        for (name, pool) in &self.configuration.pools {
            let row = longest_row(&self.configuration, name);
            for address in pool.backends.keys() {
                let Some(longest) = longest.get_mut(address) else { continue };
                let member = self.members.pool(name).and_then(|pool| pool.get(address));
                let is_gone = member.is_some_and(|it| it.state == MemberState::Unreachable);
                *longest = if is_gone { Duration::ZERO } else { row.max(*longest) };
            }
        }
        let now = clock();
        let is_over = |(address, since): (&IpAddr, &Instant)| {
            let over = longest.get(address).is_none_or(|longest| *since + *longest <= now);
            over.then_some(*address)
        };
        let over: Vec<_> = self.awaited.iter().filter_map(is_over).collect();
        for address in over {
            self.awaited.remove(&address);
            // Taking away needs no room.
            let _ = self.words.set_next_hop(address, None);
        }
    }

    /// Next hops that are no longer used are free after a grace period.
    fn retry_without_room(&mut self) {
        let mut updates = Vec::new();
        for (address, hop) in std::mem::take(&mut self.without_room) {
            updates.extend(self.set_next_hop(address, Ok(hop)));
        }
        self.send(updates);
    }

    fn execute(&mut self, command: MemberCommand) {
        match command {
            MemberCommand::DropGateways(direct, reply) => {
                self.drop_gateways(direct);
                let _ = reply.send(());
            }
            MemberCommand::Configure(configuration, pools, reply) => {
                self.configure(configuration, &pools);
                let _ = reply.send(());
            }
            MemberCommand::Override(overrides, affected, reply) => {
                self.override_members(overrides, &affected);
                let _ = reply.send(());
            }
            MemberCommand::KeepNextHops(backends) => {
                self.next_hops.retain(|address, _| backends.contains(address));
                self.without_room.retain(|address, _| backends.contains(address));
                self.awaited.retain(|address, _| backends.contains(address));
                self.path_losses.keep(&backends);
                // A sensor may have reported one after its backend was removed.
                self.words.keep_next_hops(&backends);
            }
        }
    }

    /// For the opposite change nothing is needed, because the sensors report all they know again.
    fn drop_gateways(&mut self, direct: Arc<BTreeSet<IpAddr>>) {
        self.direct = Arc::clone(&direct);
        let mut updates = Vec::new();
        for address in direct.iter() {
            let Some(Ok(hop)) = self.next_hops.get(address).cloned() else { continue };
            if let hop @ Err(_) = self.check_next_hop(*address, Ok(hop)) {
                updates.extend(self.set_next_hop(*address, hop));
            }
        }
        self.send(updates);
    }

    fn configure(&mut self, configuration: Arc<Configuration>, pools: &[Name]) {
        let now = wall_clock();
        let before = std::mem::replace(&mut self.configuration, configuration);
        if !Arc::ptr_eq(&before, &self.configuration) {
            let gone = before.pools.keys();
            let gone = gone.filter(|name| !self.configuration.pools.contains_key(*name));
            gone.for_each(|name| self.members.remove_pool(name));
        }
        for name in pools {
            let Some(pool) = self.configuration.pools.get(name) else { continue };
            self.members.configure(name, pool, &self.words, now);
            self.members.begin_slow_start(name, pool);
            self.members.write_ramps(name, pool, &mut self.words);
            self.members.write_states(name, pool, &mut self.words, now);
            self.members.write_last_resorts(name, pool, &[], &mut self.words);
        }
        self.send_changes();
    }

    /// Tells the other loops which members changed, after the packet path has it.
    fn send_changes(&mut self) {
        let updates = self.members.take_updates();
        self.send(updates);
    }

    fn send(&self, updates: Vec<MemberUpdate>) {
        if !updates.is_empty() {
            // Without the other loops the daemon is stopping.
            self.updates.state.put(&updates);
            let _ = self.updates.status.send(StatusUpdate::Members(updates));
        }
    }
}
