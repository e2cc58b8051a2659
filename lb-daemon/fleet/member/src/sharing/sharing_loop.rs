//! The loop that owns [`Sharing`]. The order of what it does is what makes sharing safe:
//!
//! 1. A round decides what to take and what to give.
//! 2. Its ledger is stored. Until it is, the one before is in force, and no other round begins.
//! 3. What the stored ledger says is enforced, lower limits first. If that fails, nothing is said, and no round begins until
//!    it has succeeded.
//! 4. Only then peers and etcd are told.
//!
//! So others hear of a gift when it can be neither used nor forgotten here any more, and of one that was taken when a crash
//! cannot lose it. Nothing changes [`Sharing`] between 3 and 4: messages wait in the inbox until the next tick. Each step
//! that is cancelled or fails leaves the later ones undone, which is as if the balancer had crashed there.
//!
//! Times are those since the boot, which go on while the host sleeps: after that the loop knows that it may have missed
//! messages.

use std::{collections::BTreeMap, future::pending, io, sync::Arc, time::Duration};

use lb_base::{
    boot_clock,
    conditions::{ConditionReason, Conditions, Subject},
    error_chain,
};
use lb_model::Name;
use lb_peers::PeerMessage;
use lb_sharing::{Demand, GroupKey, Parts, ReportedCapacity, Sharing, epoch::Statement};
use tokio::{
    sync::{Notify, watch},
    task::{JoinHandle, spawn_blocking},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    Enforcer, EpochRequest, FleetView, GroupName, GroupShare, LedgerFile, PeerErrors, PeerStatus,
    SharingStatus,
    loads::Loads,
    peers::{Direction, ErrorBoard, Inbox, PeerClients, PeerServer, ReceivedMessage},
};

/// Interval of rounds.
const ROUND: Duration = Duration::from_millis(250);
/// Least time between two rounds, whatever happens: each may be stored, and a message goes to every peer.
const SHORTEST: Duration = Duration::from_millis(50);
/// Rounds that come early take at most one of so many parts of the time: in a fleet with many balancers and groups, some group
/// begins to refuse connections all the time.
const MOST_OF_TIME: u32 = 20;
/// A disk that takes longer does not answer.
const SLOW_DISK: Duration = Duration::from_secs(2);

/// Subject of the condition that the disk does not take what this balancer owns.
pub(crate) const LEDGER: Subject = Subject::new(ConditionReason::Store, "ledger of the fleet");
const PORTIONS: Subject = Subject::new(ConditionReason::PacketPath, "portions of capacities");

/// What the loop is made of.
pub(super) struct LoopParts<E> {
    pub(super) sharing: Sharing,
    pub(super) file: Arc<LedgerFile>,
    pub(super) enforcer: E,
    pub(super) view: watch::Receiver<FleetView>,
    pub(super) loads: watch::Receiver<Arc<Loads>>,
    /// Notified when a group begins to refuse connections.
    pub(super) refusals: Arc<Notify>,
    pub(super) inbox: Inbox,
    pub(super) errors: ErrorBoard,
    pub(super) clients: PeerClients,
    pub(super) server: PeerServer,
    pub(super) epoch_requests: watch::Sender<Option<EpochRequest>>,
    pub(super) status: watch::Sender<SharingStatus>,
    pub(super) conditions: Conditions,
    pub(super) leaving: watch::Receiver<bool>,
    /// The fleet knows a later start of this balancer than its ledger.
    pub(super) is_old: CancellationToken,
    pub(super) stop: CancellationToken,
}

/// A write of the ledger that is under way.
struct Writing {
    since: Instant,
    job: JoinHandle<io::Result<()>>,
}

pub(super) struct SharingLoop<E> {
    parts: LoopParts<E>,
    /// The last view. Its groups, members and epoch are those that [`Sharing`] has.
    view: FleetView,
    /// A newer view is there.
    view_changed: bool,
    view_is_open: bool,
    writing: Option<Writing>,
    store_error: Option<String>,
    /// What is in force; `None`: not known, because nothing was enforced yet, or the last time failed.
    enforced: Option<BTreeMap<GroupName, Parts>>,
    enforce_error: Option<String>,
    /// The generation whose portions are in force, and the one whose new groups are among them.
    enforced_generation: u64,
    adopted_generation: u64,
    heard: BTreeMap<Name, PeerStatus>,
    last_tick: Instant,
    /// How long the last round took, without waiting for the disk or the packet path.
    round_time: Duration,
    /// The next tick should not wait for its time.
    is_early: bool,
    /// A round was due while the ledger was being written.
    missed_round: bool,
    is_leaving: bool,
    /// What it has to say in etcd of the others.
    statement: Option<Statement>,
    is_old: bool,
}

impl<E: Enforcer> SharingLoop<E> {
    pub(super) fn new(parts: LoopParts<E>) -> Self {
        Self {
            parts,
            view: FleetView::default(),
            view_changed: true,
            view_is_open: true,
            writing: None,
            store_error: None,
            enforced: None,
            enforce_error: None,
            enforced_generation: 0,
            adopted_generation: 0,
            heard: BTreeMap::new(),
            last_tick: Instant::now(),
            round_time: Duration::ZERO,
            is_early: true,
            missed_round: false,
            is_leaving: false,
            statement: None,
            is_old: false,
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            let earliest = (self.round_time * MOST_OF_TIME).clamp(SHORTEST, ROUND);
            let wait = if self.is_early { earliest } else { ROUND };
            let mut may_tell = true;
            tokio::select! {
                biased;
                () = self.parts.stop.cancelled() => break,
                stored = finished(&mut self.writing) => self.take_stored(stored),
                () = sleep_until(self.last_tick + wait) => {
                    // What is being stored is told once it is: one message to each peer says both. If the disk does not
                    // answer, the next tick tells what was in force before.
                    may_tell = !self.tick();
                    self.round_time = self.last_tick.elapsed();
                }
                changed = self.parts.view.changed(), if self.view_is_open => {
                    // Without its sender the last one stays.
                    self.view_is_open = changed.is_ok();
                    self.view_changed |= changed.is_ok();
                    self.is_early |= changed.is_ok();
                    continue;
                }
                () = self.parts.refusals.notified() => {
                    self.is_early = true;
                    continue;
                }
                Ok(()) = self.parts.leaving.changed() => {
                    self.is_leaving = *self.parts.leaving.borrow_and_update();
                    match self.is_leaving {
                        true => self.parts.sharing.leave(),
                        false => self.parts.sharing.stay(),
                    }
                    self.is_early = true;
                    continue;
                }
                () = self.parts.is_old.cancelled(), if !self.is_old => {
                    self.is_old = true;
                    self.parts.sharing.set_store_is_old();
                    self.is_early = true;
                    continue;
                }
            }
            let is_enforced = self.view.is_known() && self.enforce().await;
            if is_enforced && may_tell && !self.parts.stop.is_cancelled() {
                let began = Instant::now();
                self.tell();
                self.round_time += began.elapsed();
            }
            self.show();
        }
        self.end().await;
    }

    /// Takes in what happened, and begins a round. Returns whether a ledger is being stored from now on.
    fn tick(&mut self) -> bool {
        (self.last_tick, self.is_early) = (Instant::now(), false);
        self.take_view();
        if !self.view.is_known() {
            return false;
        }
        self.take_messages();
        self.statement = self.parts.sharing.statement(boot_clock::now());
        self.set_demands();
        if let Some(Writing { since, .. }) = &self.writing {
            self.missed_round = true;
            if since.elapsed() >= SLOW_DISK {
                self.note_store_error("the disk does not answer".into());
            }
            return false;
        }
        // While limits may be higher than they should be, nothing moves.
        if self.enforce_error.is_some() {
            return false;
        }
        let Some(ledger) = self.parts.sharing.round(boot_clock::now()) else { return false };
        let (file, ledger) = (Arc::clone(&self.parts.file), ledger.clone());
        let job = spawn_blocking(move || file.write(&ledger));
        self.writing = Some(Writing { since: Instant::now(), job });
        true
    }

    fn take_view(&mut self) {
        if !std::mem::take(&mut self.view_changed) {
            return;
        }
        let view = self.parts.view.borrow_and_update().clone();
        if !view.is_known() {
            return;
        }
        self.view = view;
        let FleetView { generation, births, membership, epoch, peers } = &mut self.view;
        let sharing = &mut self.parts.sharing;
        peers.remove(sharing.name());
        self.parts.clients.set_peers(peers);
        self.heard.retain(|name, _| peers.contains_key(name));
        sharing.set_membership(boot_clock::now(), membership.clone(), epoch.clone());
        sharing.set_groups(*generation, births.clone());
    }

    fn take_messages(&mut self) {
        let incarnation = self.parts.sharing.ledger().incarnation;
        for (from, ReceivedMessage { message, at }) in self.parts.inbox.take() {
            let PeerMessage { message, program_version, clock_ahead_ms } = message;
            let status = PeerStatus {
                last_heard: Instant::now().checked_sub(boot_clock::now().saturating_sub(at)),
                incarnation: message.incarnation,
                hears_this: message.receiver_incarnation == incarnation,
                epoch: message.epoch,
                version: program_version,
                clock_ahead_ms,
                store_is_old: message.store_is_old,
                is_leaving: message.is_leaving,
                errors: PeerErrors::default(),
                groups: Arc::clone(&message.groups),
            };
            let taken = self.parts.sharing.receive(at, message);
            if taken.is_ok() {
                self.heard.insert(from.clone(), status);
            }
            let taken = taken.map_err(|error| error.to_string());
            self.parts.errors.note(&from, Direction::Receiving, taken);
        }
    }

    fn set_demands(&mut self) {
        let loads = Arc::clone(&self.parts.loads.borrow());
        let adopted = self.parts.sharing.ledger().adopted;
        // Of a group whose portion is not stored yet nothing is said: peers would think that it lacks all of it.
        for group in self.view.births.keys().filter(|group| group.birth <= adopted) {
            let name = (group.pool.clone(), group.region.clone());
            let demand = match loads.demands.get(&name) {
                Some(Some(demand)) => *demand,
                // As if nothing was known of it.
                Some(None) if !self.is_leaving => continue,
                // A group that the packet path does not have yet keeps its portion, as if nothing was known of it.
                None if loads.generation < group.birth && !self.is_leaving => continue,
                Some(None) | None => {
                    Demand { per_second: 0.0, capacity: ReportedCapacity::Closed, may_send: false }
                }
            };
            self.parts.sharing.set_demand(group, demand);
        }
    }

    fn take_stored(&mut self, stored: Result<(), String>) {
        self.parts.sharing.stored(stored.is_ok());
        match stored {
            Ok(()) => {
                self.store_error = None;
                self.parts.conditions.end(&LEDGER);
            }
            Err(cause) => self.note_store_error(cause),
        }
        self.is_early |= std::mem::take(&mut self.missed_round);
    }

    fn note_store_error(&mut self, cause: String) {
        self.parts.conditions.begin(&LEDGER, &cause);
        self.store_error = Some(cause);
    }

    /// Enforces what is stored. Returns whether it is in force.
    async fn enforce(&mut self) -> bool {
        let portion = |(group, parts): (&GroupKey, Parts)| {
            ((group.pool.clone(), group.region.clone()), parts)
        };
        let portions: BTreeMap<GroupName, Parts> =
            self.parts.sharing.enforced().map(portion).collect();
        if self.enforced.as_ref() != Some(&portions) {
            self.enforced = None;
            if let Err(cause) = self.parts.enforcer.enforce(portions.clone()).await {
                self.parts.conditions.begin(&PORTIONS, &cause);
                self.enforce_error = Some(cause);
                self.parts.epoch_requests.send_if_modified(|request| request.take().is_some());
                return false;
            }
            self.parts.conditions.end(&PORTIONS);
            (self.enforced, self.enforce_error) = (Some(portions), None);
        }
        self.enforced_generation = self.view.generation;
        self.adopted_generation = self.view.generation.min(self.parts.sharing.ledger().adopted);
        true
    }

    /// Tells peers and etcd what is in force.
    fn tell(&mut self) {
        let now = boot_clock::now();
        self.parts.clients.send(self.parts.sharing.messages(now, self.view.peers.keys()));
        let step = self.parts.sharing.epoch_step(now);
        let request = step.map(|step| EpochRequest {
            step,
            membership: self.view.membership.clone(),
            epoch: self.view.epoch.clone(),
            decided: Instant::now(),
        });
        self.parts.epoch_requests.send_if_modified(|last| {
            let is_news = last.is_some() || request.is_some();
            *last = request;
            is_news
        });
    }

    fn show(&self) {
        let sharing = &self.parts.sharing;
        let (ledger, loads) = (sharing.ledger(), Arc::clone(&self.parts.loads.borrow()));
        let mut on_its_way: BTreeMap<&GroupKey, Parts> = BTreeMap::new();
        for transfer in ledger.pairs.values().flat_map(|pair| &pair.unacknowledged) {
            *on_its_way.entry(&transfer.group).or_default() += transfer.parts;
        }
        let share = |group: &GroupKey| {
            let name = (group.pool.clone(), group.region.clone());
            let demand = loads.demands.get(&name).copied().flatten();
            let enforced = self.enforced.as_ref().and_then(|portions| portions.get(&name));
            let share = GroupShare {
                owned: ledger.owned(group),
                enforced: enforced.copied().unwrap_or_default(),
                on_its_way: on_its_way.get(group).copied().unwrap_or_default(),
                demand: demand.map(|demand| demand.per_second),
                capacity: demand.map(|demand| demand.capacity),
            };
            (group.clone(), share)
        };
        let peer = |name: &Name| {
            let heard = self.heard.get(name).cloned().unwrap_or_default();
            (name.clone(), PeerStatus { errors: self.parts.errors.of(name), ..heard })
        };
        let has_left =
            self.is_leaving && self.enforced.is_some() && sharing.has_left(boot_clock::now());
        let status = SharingStatus {
            groups: self.view.births.keys().map(share).collect(),
            peers: self.view.peers.keys().map(peer).collect(),
            incarnation: ledger.incarnation,
            epoch: ledger.epoch,
            frozen: ledger.frozen,
            statement: self.statement.clone(),
            store_is_old: sharing.store_is_old(),
            is_overtaken: sharing.is_overtaken(),
            is_waiting_for_peers: sharing.is_waiting_for_peers(),
            lost_ledger: self.parts.status.borrow().lost_ledger.clone(),
            is_leaving: self.is_leaving,
            has_left: has_left.then_some(ledger.adopted),
            enforced_generation: self.enforced_generation,
            adopted_generation: self.adopted_generation,
            store_error: self.store_error.clone(),
            enforce_error: self.enforce_error.clone(),
            counters_error: loads.error.clone(),
        };
        self.parts.status.send_replace(status);
    }

    /// Ends what can be, and waits for what cannot be cancelled.
    async fn end(self) {
        let LoopParts { clients, server, epoch_requests, status, conditions, .. } = self.parts;
        drop(clients);
        epoch_requests.send_if_modified(|request| request.take().is_some());
        server.stop().await;
        if let Some(Writing { job, .. }) = self.writing {
            let _the_next_start_reads_what_was_stored = job.await;
        }
        conditions.end(&LEDGER);
        conditions.end(&PORTIONS);
        // Those who wait for the end wait for this.
        drop(status);
    }
}

/// Waits until the write is done.
async fn finished(writing: &mut Option<Writing>) -> Result<(), String> {
    let Some(Writing { job, .. }) = writing else { return pending().await };
    let result = job.await;
    *writing = None;
    match result {
        Ok(result) => result.map_err(|error| error_chain::message(&error)),
        Err(error) => Err(error_chain::message(&error)),
    }
}
