//! The state of one balancer.

mod epochs;
mod exchange;
mod statements;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use lb_model::Name;

use crate::{
    GroupKey, GroupReport, Ledger, Message, Parts, ReportedCapacity,
    epoch::{Epoch, Membership},
    target::{self, Holding, Urgency},
};
use exchange::Peer;
pub use exchange::SharingError;

/// A balancer that no other one has heard from for so long may be forgotten.
pub const SILENCE: Duration = Duration::from_secs(30);
/// A balancer that was heard from within this time is there: it counts, and may be given parts.
pub const RECENT: Duration = Duration::from_secs(1);
/// A balancer that has not confirmed a transfer for longer is given nothing more: messages may reach only one of both, and
/// what is on its way to the other one is admitted by nobody.
const UNCONFIRMED: Duration = Duration::from_secs(2);
/// A longer gap between two rounds is an interruption: what was said meanwhile may have been missed.
const INTERRUPTION: Duration = Duration::from_secs(2);

/// Parts that need not move at once are given at most so often, times the number of balancers: if all do, a gift reaches
/// each of them, and has to be stored, once in this time.
const GIFT_INTERVAL: Duration = Duration::from_secs(1);
/// After a boot a balancer waits so long for what its peers know of it.
const BOOT_WAIT: Duration = Duration::from_secs(10);

/// What reaches a balancer for a group, and how much it thinks that the group takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Offered connections a second, with those that are refused.
    pub per_second: f64,
    /// The capacity of the whole fleet.
    pub capacity: ReportedCapacity,
    /// Whether the region is in this balancer's order of regions.
    pub may_send: bool,
}

/// The part of one balancer in sharing the capacities.
///
/// The caller goes round four times a second, and at once when a group begins to refuse connections:
/// 1. [`Self::set_demand`] for each group, and [`Self::receive`] for each message meanwhile;
/// 2. [`Self::round`]: if it returns a ledger, that has to be written, and [`Self::stored`] told how it went;
/// 3. enforce [`Self::enforced`], first the limits that get lower;
/// 4. send [`Self::messages`], if all limits that get lower were enforced.
///
/// In this order a balancer has let go of what it gives before others hear of it, and what it takes is on disk before the
/// giver forgets it.
#[derive(Clone, Debug)]
pub struct Sharing {
    name: Name,
    /// As it is stored.
    ledger: Ledger,
    /// The next one, while it is being written.
    storing: Option<Ledger>,
    /// The last write failed, so the store may have either ledger.
    is_store_unknown: bool,
    generation: u64,
    births: BTreeMap<GroupKey, BTreeSet<Name>>,
    groups: BTreeMap<GroupKey, Demand>,
    /// When parts that need not move at once were last given.
    last_gift: Option<Duration>,
    peers: BTreeMap<Name, Peer>,
    membership: Membership,
    /// Since when each member has been known to be one.
    member_since: BTreeMap<Name, Duration>,
    /// The epoch with the highest number.
    epoch: Option<Epoch>,
    /// Since when it has listened without an interruption.
    listening_since: Duration,
    last_round: Duration,
    /// The store was found to be an old copy, and does not say so yet.
    found_old: bool,
    /// The highest incarnation of this balancer that a peer knows.
    known_incarnation: u64,
    /// Peers that have to be heard before anything is enforced, and until when at most.
    awaited: Option<(BTreeSet<Name>, Duration)>,
    leaving: bool,
}

impl Sharing {
    /// A balancer that starts with the ledger of its store. If its maps are gone, as after a boot, `lost_maps` names its
    /// peers. It then enforces nothing until it has heard from all of them, or for ten seconds, because its store may be an
    /// old copy. Only balancers that parts moved to or from since can tell.
    ///
    /// The ledger's incarnation has to be one more than that of the start before, and stored.
    pub fn start(
        name: Name,
        ledger: Ledger,
        now: Duration,
        lost_maps: Option<BTreeSet<Name>>,
    ) -> Self {
        Self {
            name,
            // Until the groups are known nothing is taken for gone.
            generation: 0,
            ledger,
            storing: None,
            is_store_unknown: false,
            births: BTreeMap::new(),
            groups: BTreeMap::new(),
            last_gift: None,
            peers: BTreeMap::new(),
            membership: Membership::default(),
            member_since: BTreeMap::new(),
            epoch: None,
            listening_since: now,
            last_round: now,
            found_old: false,
            known_incarnation: 0,
            awaited: lost_maps.map(|peers| (peers, now + BOOT_WAIT)),
            leaving: false,
        }
    }

    /// Its name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// What it owns, as it is stored.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Whether its store turned out to be an old copy. It owns nothing until the others have forgotten it.
    pub fn store_is_old(&self) -> bool {
        let peers_know_more = self.known_incarnation > self.ledger.incarnation;
        self.ledger.is_old_copy || self.found_old || peers_know_more
    }

    /// Says that its store is an old copy: the fleet knows a later start of this balancer.
    pub fn set_store_is_old(&mut self) {
        self.found_old = true;
    }

    /// Gives everything away from now on.
    pub fn leave(&mut self) {
        self.leaving = true;
    }

    /// Takes part as before: it does not leave after all.
    pub fn stay(&mut self) {
        self.leaving = false;
    }

    /// Whether it enforces nothing yet, because its maps were lost and peers may know more than its store.
    pub fn is_waiting_for_peers(&self) -> bool {
        self.awaited.is_some()
    }

    /// Whether it owns nothing, everything that it gave away has arrived, and all members know that it leaves, so nothing is
    /// on its way to it. The transaction that removes it from the members has to compare the generation with the one of
    /// [`Ledger::adopted`]: a later one may have given it portions of new groups.
    pub fn has_left(&self, now: Duration) -> bool {
        let owns_nothing = self.ledger.owned.values().all(|parts| *parts == Parts::NONE);
        let none_is_sent = self.ledger.pairs.values().all(|pair| pair.unacknowledged.is_empty());
        let others = self.membership.members.keys().filter(|name| **name != self.name);
        let none_comes = others.filter(|name| !self.owns_nothing(name)).all(|name| {
            let applied = self.ledger.pairs.get(name).map_or(0, |pair| pair.applied);
            self.heard(name, RECENT, now).is_some_and(|message| {
                message.receiver_is_leaving
                    && message.sent == applied
                    && message.transfers.is_empty()
            })
        });
        let in_epoch = self.epoch.as_ref().is_some_and(|epoch| !epoch.closed);
        self.storing.is_none() && !in_epoch && owns_nothing && none_is_sent && none_comes
    }

    /// Sets the groups of the generation in force, each with the balancers that were alive when it was created.
    pub fn set_groups(&mut self, generation: u64, births: BTreeMap<GroupKey, BTreeSet<Name>>) {
        self.generation = generation;
        self.groups.retain(|group, _| births.contains_key(group));
        self.births = births;
    }

    /// Sets what reaches a group.
    pub fn set_demand(&mut self, group: &GroupKey, demand: Demand) {
        if self.births.contains_key(group) {
            self.groups.insert(group.clone(), demand);
        }
    }

    /// Decides what to take and to give. Returns a ledger that has to be stored; until [`Self::stored`] says that it was,
    /// nothing of it is in force, and no other round begins.
    pub fn round(&mut self, now: Duration) -> Option<&Ledger> {
        if now.saturating_sub(self.last_round) > INTERRUPTION {
            self.listening_since = now;
        }
        self.last_round = now;
        if let Some((awaited, until)) = &self.awaited
            && (awaited.is_empty() || now >= *until)
        {
            self.awaited = None;
        }
        if self.storing.is_some() {
            return None;
        }
        let mut next = self.ledger.clone();
        if self.known_incarnation > next.incarnation {
            // Peers know a later start. They take messages of this one for late, until it goes on from there.
            next.incarnation = self.known_incarnation.saturating_add(1);
            next.is_old_copy = true;
        } else if self.found_old && !next.is_old_copy {
            // Stored first, so that it is known after a restart too.
            next.is_old_copy = true;
        } else if !self.follow_epoch(&mut next) && next.frozen.is_none() {
            next.adopt(&self.name, self.generation, &self.births);
            // A balancer leaves once it has applied all that was sent to it, so what is not acknowledged has arrived.
            next.pairs.retain(|name, _| self.is_member(name));
            if !next.is_old_copy && !self.found_old && self.awaited.is_none() {
                self.take(&mut next);
                self.give(&mut next, now);
            }
        }
        if next != self.ledger || self.is_store_unknown {
            self.storing = Some(next);
        }
        self.storing.as_ref()
    }

    /// Takes note of how the write of the ledger went. If it failed, nothing moves.
    pub fn stored(&mut self, written: bool) {
        if let Some(next) = self.storing.take()
            && written
        {
            self.found_old &= !next.is_old_copy;
            self.ledger = next;
        }
        self.is_store_unknown = !written;
        self.see_incarnations();
    }

    fn take(&self, next: &mut Ledger) {
        // While the others think that it owns nothing, an epoch would not wait for what it takes.
        if self.owns_nothing(&self.name) {
            return;
        }
        for (name, peer) in &self.peers {
            if let Some((message, _)) = &peer.latest
                && message.epoch == next.epoch
                && !message.store_is_old
            {
                let is_gone = |group: &GroupKey| {
                    group.birth <= self.generation && !self.births.contains_key(group)
                };
                next.apply(name, &message.transfers, is_gone);
            }
        }
    }

    fn give(&mut self, next: &mut Ledger, now: Duration) {
        for (name, peer) in &mut self.peers {
            peer.note_oldest(next.pairs.get(name), now);
        }
        let reachable: Vec<(&Name, &Message)> = self
            .peers
            .keys()
            .filter_map(|name| Some((name, self.heard(name, RECENT, now)?)))
            .filter(|(name, message)| {
                self.is_member(name)
                    && self.confirms(name, now)
                    // It hears from this balancer too, since its last start.
                    && message.receiver_incarnation == self.ledger.incarnation
                    && message.epoch == next.epoch
                    && !message.store_is_old
                    && !message.is_leaving
            })
            .collect();
        let interval = GIFT_INTERVAL * (reachable.len() + 1) as u32;
        let may_give_later = self.last_gift.is_none_or(|last| now.saturating_sub(last) >= interval);
        let mut gives_later = false;
        // Groups are in the same order everywhere, so each list is gone through once.
        let mut reports: Vec<_> = reachable
            .iter()
            .map(|(name, message)| {
                let sent = next.pairs.get(*name).map(|pair| pair.unacknowledged.clone());
                (*name, message.groups.iter().peekable(), sent.unwrap_or_default())
            })
            .collect();
        let mut known: Vec<(&Name, &GroupReport, Parts)> = Vec::new();
        let mut holdings: Vec<Holding> = Vec::new();
        for (group, demand) in &self.groups {
            known.clear();
            for (name, reports, sent) in &mut reports {
                while reports.next_if(|(other, _)| *other < group).is_some() {}
                if let Some((_, report)) = reports.next_if(|(other, _)| *other == group) {
                    let on_its_way = sent.iter().filter(|transfer| transfer.group == *group);
                    known.push((*name, report, on_its_way.map(|it| it.parts).sum::<Parts>()));
                }
            }
            let own = Holding {
                demand: demand.per_second,
                parts: next.owned(group),
                capacity: demand.capacity,
                may_send: demand.may_send && !self.leaving,
            };
            let others = known.iter().map(|(_, report, on_its_way)| Holding {
                demand: report.demand,
                parts: report.owned + *on_its_way,
                capacity: report.capacity,
                may_send: report.may_send,
            });
            holdings.clear();
            holdings.extend([own].into_iter().chain(others));
            if let Some((urgency, gifts)) = target::gifts(&holdings, self.groups.len()) {
                if urgency == Urgency::Later && !self.leaving {
                    if !may_give_later {
                        continue;
                    }
                    gives_later = true;
                }
                for ((name, ..), parts) in known.iter().zip(gifts) {
                    next.give(name, group, parts);
                }
            } else if self.leaving
                && let Some((first, ..)) = known.first()
            {
                // No balancer needs it, so any of them keeps it.
                next.give(first, group, own.parts);
            }
        }
        if gives_later {
            self.last_gift = Some(now);
        }
    }

    /// What this balancer may enforce of each group. Once it knows that it was forgotten that is nothing, before it has
    /// stored this: others own its parts.
    pub fn enforced(&self) -> impl Iterator<Item = (&GroupKey, Parts)> {
        let owns_nothing = self.store_is_old() || self.awaited.is_some() || self.is_overtaken();
        let forgotten = self.epoch.as_ref().filter(|epoch| {
            epoch.number > self.ledger.epoch && epoch.forgotten.contains(&self.name)
        });
        let groups = self.births.keys();
        groups.map(move |group| {
            let is_lost = forgotten.is_some_and(|epoch| group.birth <= epoch.generation);
            (group, if owns_nothing || is_lost { Parts::NONE } else { self.ledger.owned(group) })
        })
    }
}
