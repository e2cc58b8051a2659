//! The state of one balancer.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use lb_model::Name;

use crate::{
    GroupKey, GroupReport, Ledger, Message, Parts, ReportedCapacity,
    epoch::Epoch,
    forget::{INTERRUPTION, Membership, RECENT, SILENCE},
    message::MessageError,
    target::{self, Holding, Urgency},
};

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

/// Why a message is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SharingError {
    #[error("{from}: {source}")]
    Malformed { from: Name, source: MessageError },
    #[error("{0}: a message of this balancer itself")]
    OwnName(Name),
    #[error("{0} is not a member of the fleet")]
    NotAMember(Name),
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
    pub(crate) peers: BTreeMap<Name, Peer>,
    pub(crate) membership: Membership,
    /// Since when each member has been known to be one.
    pub(crate) member_since: BTreeMap<Name, Duration>,
    /// The epoch with the highest number.
    pub(crate) epoch: Option<Epoch>,
    /// Since when it has listened without an interruption.
    watching_since: Duration,
    last_round: Duration,
    /// The store was found to be an old copy, and does not say so yet.
    found_old: bool,
    /// The highest incarnation of this balancer that a peer knows.
    known_incarnation: u64,
    /// Peers that have to be heard before anything is enforced, and until when at most.
    awaited: Option<(BTreeSet<Name>, Duration)>,
    leaving: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Peer {
    /// Its latest message, and when it came.
    latest: Option<(Message, Duration)>,
    /// Number of the last message to it.
    sequence: u64,
    /// Its last start since which nothing of earlier ones was applied any more.
    incarnation: u64,
}

impl Sharing {
    /// A balancer that starts with the ledger of its store. `lost_maps`: the limits of earlier are gone, as after a boot;
    /// it then enforces nothing until it heard from all these peers, or for ten seconds, because its store may be an old
    /// copy. Only balancers that parts moved to or from since can tell.
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
            watching_since: now,
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

    /// Whether it owns nothing, everything that it gave away has arrived, and all members know that it leaves, so nothing is
    /// on its way to it. The transaction that removes it from the members has to compare the
    /// generation with the one of [`Ledger::adopted`]: a later one may have given it portions of new groups.
    pub fn has_left(&self, now: Duration) -> bool {
        let owns_nothing = self.ledger.owned.values().all(|parts| *parts == Parts::NONE);
        let none_is_sent = self.ledger.pairs.values().all(|pair| pair.unacknowledged.is_empty());
        let others = self.membership.members.keys().filter(|name| **name != self.name);
        let none_comes = others.filter(|name| !self.owns_nothing(name)).all(|name| {
            let latest = self.peers.get(name).and_then(|peer| peer.latest.as_ref());
            let applied = self.ledger.pairs.get(name).map_or(0, |pair| pair.applied);
            latest.is_some_and(|(message, at)| {
                now.saturating_sub(*at) <= RECENT
                    && message.receiver_is_leaving
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

    /// Takes a message, whose sender the caller has authenticated. One that came late is ignored.
    ///
    /// # Errors
    /// [`SharingError`]: the message makes no sense.
    pub fn receive(&mut self, now: Duration, message: Message) -> Result<(), SharingError> {
        if message.from == self.name {
            return Err(SharingError::OwnName(message.from));
        }
        if !self.is_member(&message.from) {
            return Err(SharingError::NotAMember(message.from));
        }
        message
            .check()
            .map_err(|source| SharingError::Malformed { from: message.from.clone(), source })?;
        self.known_incarnation = self.known_incarnation.max(message.receiver_incarnation);
        let peer = self.peers.entry(message.from.clone()).or_default();
        let order = |message: &Message| (message.incarnation, message.sequence);
        if peer.latest.as_ref().is_some_and(|(last, _)| order(&message) <= order(last)) {
            return Ok(());
        }
        // One that was sent before this start, or of another epoch, does not have the last numbers.
        if message.receiver_incarnation == self.ledger.incarnation
            && message.epoch == self.ledger.epoch
            && let Some((awaited, _)) = &mut self.awaited
        {
            awaited.remove(&message.from);
        }
        if !message.store_is_old {
            self.compare_numbers(&message);
            for ledger in [&mut self.ledger].into_iter().chain(&mut self.storing) {
                if ledger.epoch == message.epoch {
                    ledger.acknowledge(&message.from, message.applied);
                }
            }
        }
        let peer = self.peers.entry(message.from.clone()).or_default();
        peer.latest = Some((message, now));
        self.see_incarnations();
        Ok(())
    }

    /// Whether a peer knows more of this balancer's transfers than its own store does.
    fn compare_numbers(&mut self, message: &Message) {
        let newest = self.storing.iter().chain([&self.ledger]);
        let Some(ledger) = newest.into_iter().find(|ledger| ledger.epoch == message.epoch) else {
            return;
        };
        // What it contributed to an epoch has no numbers any more, if it was forgotten.
        if ledger.frozen.is_some() || ledger.is_old_copy {
            return;
        }
        let pair = ledger.pairs.get(&message.from).cloned().unwrap_or_default();
        let has_applied_what_was_not_sent = message.applied > pair.sent;
        let has_forgotten_what_was_not_applied =
            message.sent - message.transfers.len() as u64 > pair.applied;
        if has_applied_what_was_not_sent || has_forgotten_what_was_not_applied {
            self.found_old = true;
        }
    }

    /// Decides what to take and to give. Returns a ledger that has to be stored; until [`Self::stored`] says that it was,
    /// nothing of it is in force, and no other round begins.
    pub fn round(&mut self, now: Duration) -> Option<&Ledger> {
        if now.saturating_sub(self.last_round) > INTERRUPTION {
            self.watching_since = now;
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

    /// Takes note of peers that started again. Those whose store is an old copy must hear of everything that this balancer
    /// applied of their earlier life, so none of it may be on its way to the store.
    fn see_incarnations(&mut self) {
        if self.storing.is_some() || self.is_store_unknown {
            return;
        }
        for peer in self.peers.values_mut() {
            peer.incarnation = peer.latest.as_ref().map_or(0, |(last, _)| last.incarnation);
        }
    }

    /// Brings a ledger to the last epoch. Returns whether it changed it, or must not.
    fn follow_epoch(&mut self, next: &mut Ledger) -> bool {
        let Some(epoch) = self.epoch.as_ref().filter(|epoch| epoch.number > next.epoch) else {
            return false;
        };
        let is_forgotten = epoch.forgotten.contains(&self.name);
        let is_frozen = next.frozen == Some(epoch.number);
        let has_contributed = epoch.contributions.contains_key(&self.name);
        let is_settled = epoch.closed && is_frozen && has_contributed;
        if is_settled && (is_forgotten || !next.is_old_copy) {
            next.enter(&self.name, epoch);
        } else if is_forgotten {
            let before = next.clone();
            next.give_up(epoch);
            if epoch.closed {
                (next.epoch, next.frozen) = (epoch.number, None);
            } else if self.generation >= epoch.generation {
                // It has to name all groups, also those that no other balancer is left to name.
                next.adopt(&self.name, self.generation, &self.births);
                next.frozen = Some(epoch.number);
            }
            return *next != before || next.frozen.is_some();
        } else if next.is_old_copy {
            return false;
        } else if (!is_frozen && (epoch.closed || has_contributed)) || epoch.number > next.epoch + 1
        {
            // It contributed, as all do before an epoch is closed. If its store does not know that, it is an old copy.
            self.found_old = true;
            return false;
        } else if is_frozen || self.awaited.is_some() || self.generation < epoch.generation {
            return false;
        } else {
            next.adopt(&self.name, self.generation, &self.births);
            next.frozen = Some(epoch.number);
        }
        true
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
        let reachable: Vec<(&Name, &Message)> = self
            .peers
            .iter()
            .filter_map(|(name, peer)| Some((name, peer.latest.as_ref()?)))
            .filter(|(name, (message, at))| {
                self.is_member(name)
                    && message.epoch == next.epoch
                    && !message.store_is_old
                    && !message.is_leaving
                    && now.saturating_sub(*at) <= RECENT
            })
            .map(|(name, (message, _))| (name, message))
            .collect();
        let interval = GIFT_INTERVAL * (reachable.len() + 1) as u32;
        let may_give_later = self.last_gift.is_none_or(|last| now.saturating_sub(last) >= interval);
        for (group, demand) in &self.groups {
            let known: Vec<_> = reachable
                .iter()
                .filter_map(|(name, message)| Some((*name, message.groups.get(group)?)))
                .collect();
            let own = Holding {
                demand: demand.per_second,
                parts: next.owned(group),
                capacity: demand.capacity,
                may_send: demand.may_send && !self.leaving,
            };
            let others = known.iter().map(|(name, report)| Holding {
                demand: report.demand,
                parts: report.owned + next.on_its_way(name, group),
                capacity: report.capacity,
                may_send: report.may_send,
            });
            let holdings: Vec<_> = [own].into_iter().chain(others).collect();
            if let Some((urgency, gifts)) = target::gifts(&holdings) {
                if urgency == Urgency::Later && !self.leaving {
                    if !may_give_later {
                        continue;
                    }
                    self.last_gift = Some(now);
                }
                for ((name, _), parts) in known.iter().zip(gifts) {
                    next.give(name, group, parts);
                }
            } else if self.leaving
                && let Some((first, _)) = known.first()
            {
                // No balancer needs it, so any of them keeps it.
                next.give(first, group, own.parts);
            }
        }
    }

    /// What this balancer may enforce of each group. Once it knows that it was forgotten that is nothing, before it has
    /// stored this: others own its parts.
    pub fn enforced(&self) -> impl Iterator<Item = (&GroupKey, Parts)> {
        let owns_nothing = self.store_is_old() || self.awaited.is_some();
        let forgotten = self.epoch.as_ref().filter(|epoch| {
            epoch.number > self.ledger.epoch && epoch.forgotten.contains(&self.name)
        });
        let groups = self.births.keys();
        groups.map(move |group| {
            let is_lost = forgotten.is_some_and(|epoch| group.birth <= epoch.generation);
            (group, if owns_nothing || is_lost { Parts::NONE } else { self.ledger.owned(group) })
        })
    }

    /// The messages to other balancers.
    pub fn messages<'n>(
        &mut self,
        now: Duration,
        to: impl IntoIterator<Item = &'n Name>,
    ) -> Vec<(Name, Message)> {
        let has_listened = now.saturating_sub(self.watching_since) >= SILENCE;
        let others = self.membership.members.keys().chain(self.peers.keys());
        let hears: BTreeSet<Name> = others
            .filter(|name| !has_listened || self.hears_within(name, SILENCE, now))
            .cloned()
            .collect();
        let store_is_old = self.store_is_old();
        let report = |(group, demand): (&GroupKey, &Demand)| {
            let report = GroupReport {
                demand: demand.per_second,
                owned: self.ledger.owned(group),
                capacity: demand.capacity,
                may_send: demand.may_send && !self.leaving,
            };
            (group.clone(), report)
        };
        let groups: BTreeMap<_, _> = self.groups.iter().map(report).collect();
        let others: Vec<Name> =
            to.into_iter().filter(|name| **name != self.name).cloned().collect();
        let message = |to: Name| {
            let peer = self.peers.entry(to.clone()).or_default();
            peer.sequence += 1;
            let pair = self.ledger.pairs.get(&to).cloned().unwrap_or_default();
            let message = Message {
                from: self.name.clone(),
                incarnation: self.ledger.incarnation,
                receiver_incarnation: peer.incarnation,
                sequence: peer.sequence,
                epoch: self.ledger.epoch,
                sent: pair.sent,
                applied: pair.applied,
                transfers: pair.unacknowledged,
                groups: groups.clone(),
                hears: hears.clone(),
                store_is_old,
                is_leaving: self.leaving,
                // A gift that was decided before is on its way to the store.
                receiver_is_leaving: self.storing.is_none()
                    && peer.latest.as_ref().is_some_and(|(last, _)| last.is_leaving),
            };
            (to, message)
        };
        others.into_iter().map(message).collect()
    }

    /// Whether a balancer belongs to the fleet, as far as the members are known.
    fn is_member(&self, name: &Name) -> bool {
        let members = &self.membership.members;
        members.is_empty() || members.contains_key(name)
    }

    /// Whether the groups that are known have one with a later birth than an epoch, of which a balancer had a portion.
    pub(crate) fn has_later_portion(&self, name: &Name, epoch: &Epoch) -> bool {
        let later = self.births.iter().filter(|(group, _)| group.birth > epoch.generation);
        later.into_iter().any(|(_, owners)| owners.contains(name))
    }

    /// Whether all members but these were just heard from, and have the result of an epoch.
    pub(crate) fn all_have(&self, epoch: u64, except: &BTreeSet<Name>, now: Duration) -> bool {
        let others = self.membership.members.keys().filter(|name| **name != self.name);
        others.filter(|name| !except.contains(*name)).all(|name| {
            let latest = self.peers.get(name).and_then(|peer| peer.latest.as_ref());
            latest.is_some_and(|(message, at)| {
                message.epoch == epoch && now.saturating_sub(*at) <= RECENT
            })
        })
    }

    /// The highest epoch that it heard of.
    pub(crate) fn highest_epoch(&self) -> u64 {
        let heard = self.peers.values().filter_map(|peer| peer.latest.as_ref());
        let heard = heard.map(|(message, _)| message.epoch).max().unwrap_or(0);
        let seen = self.epoch.as_ref().map_or(0, |epoch| epoch.number);
        heard.max(seen).max(self.ledger.epoch)
    }

    /// Whether its last round is so long ago that messages may wait to be taken.
    pub(crate) fn was_interrupted(&self, now: Duration) -> bool {
        now.saturating_sub(self.last_round) > INTERRUPTION
    }

    /// Whether it heard from a peer within a time.
    pub(crate) fn hears_within(&self, peer: &Name, time: Duration, now: Duration) -> bool {
        let latest = self.peers.get(peer).and_then(|peer| peer.latest.as_ref());
        latest.is_some_and(|(_, at)| now.saturating_sub(*at) <= time)
    }

    /// Whether it has listened to a member for a time without an interruption.
    pub(crate) fn has_watched(&self, member: &Name, time: Duration, now: Duration) -> bool {
        let known = self.member_since.get(member).copied().unwrap_or(now);
        now.saturating_sub(self.watching_since.max(known)) >= time
    }

    /// Whether a peer says that it heard from another one.
    pub(crate) fn says_it_hears(&self, peer: &Name, other: &Name) -> bool {
        let latest = self.peers.get(peer).and_then(|peer| peer.latest.as_ref());
        latest.is_some_and(|(message, _)| message.hears.contains(other))
    }

    /// Whether a peer that is there says that its store is an old copy, and was not forgotten since it said so.
    pub(crate) fn lost_its_store(&self, peer: &Name, now: Duration) -> bool {
        let forgotten = self.epoch.as_ref().filter(|epoch| epoch.forgotten.contains(peer));
        let since = forgotten.map_or(0, |epoch| epoch.number);
        let latest = self.peers.get(peer).and_then(|peer| peer.latest.as_ref());
        latest.is_some_and(|(message, at)| {
            message.store_is_old && message.epoch >= since && now.saturating_sub(*at) <= RECENT
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Transfer;

    const SECOND: Duration = Duration::from_secs(1);

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn group() -> GroupKey {
        GroupKey { pool: name("web"), region: name("eu"), birth: 1 }
    }

    /// One of two balancers, with half of a group.
    fn balancer(own: &str, lost_maps: bool) -> Sharing {
        let owners: BTreeSet<Name> = [name("a"), name("b")].into();
        let awaited = lost_maps.then(|| [name(if own == "a" { "b" } else { "a" })].into());
        let ledger = Ledger { incarnation: 1, ..Ledger::default() };
        let mut sharing = Sharing::start(name(own), ledger, SECOND, awaited);
        sharing.set_groups(1, [(group(), owners)].into());
        assert!(sharing.round(SECOND).is_some());
        sharing.stored(true);
        sharing
    }

    fn demand(per_second: f64) -> Demand {
        let capacity = ReportedCapacity::PerSecond(1_000.0);
        Demand { per_second, capacity, may_send: true }
    }

    fn enforced(sharing: &Sharing) -> Parts {
        sharing.enforced().map(|(_, parts)| parts).sum()
    }

    fn tell(from: &mut Sharing, to: &mut Sharing) {
        let name = to.name().clone();
        for (_, message) in from.messages(SECOND, [&name]) {
            to.receive(SECOND, message).unwrap();
        }
    }

    const HALF: Parts = Parts(Parts::WHOLE.0 / 2);

    #[test]
    fn nothing_moves_before_it_is_stored() {
        let (mut a, mut b) = (balancer("a", false), balancer("b", false));
        a.set_demand(&group(), demand(0.0));
        b.set_demand(&group(), demand(900.0));
        tell(&mut b, &mut a);
        assert!(a.round(SECOND).is_some());
        assert_eq!(enforced(&a), HALF);
        tell(&mut a, &mut b);
        assert_eq!(b.round(SECOND), None, "nothing was sent yet");
        a.stored(false);
        assert_eq!(enforced(&a), HALF, "the write failed");
        assert!(a.round(SECOND).is_some());
        a.stored(true);
        let given = HALF - enforced(&a);
        assert!(given > Parts::NONE);
        tell(&mut a, &mut b);
        assert!(b.round(SECOND).is_some());
        assert_eq!(enforced(&b), HALF);
        tell(&mut b, &mut a);
        assert_eq!(a.ledger().on_its_way(&name("b"), &group()), given, "it may still be lost");
        b.stored(true);
        assert_eq!(enforced(&b), HALF + given);
        tell(&mut b, &mut a);
        assert_eq!(a.ledger().on_its_way(&name("b"), &group()), Parts::NONE);
    }

    #[test]
    fn one_that_was_forgotten_enforces_nothing_before_it_has_stored_that() {
        let mut a = balancer("a", false);
        let forgotten = [name("a")].into();
        let epoch = Epoch { number: 1, generation: 1, forgotten, ..Epoch::default() };
        a.set_membership(SECOND, Membership::default(), Some(epoch));
        assert_eq!(enforced(&a), Parts::NONE);
        assert!(a.round(SECOND).is_some());
        a.stored(false);
        assert_eq!(enforced(&a), Parts::NONE);
    }

    #[test]
    fn one_that_was_forgotten_contributes_once_it_knows_all_groups() {
        let mut a = balancer("a", false);
        let forgotten = [name("a")].into();
        let epoch = Epoch { number: 1, generation: 2, forgotten, ..Epoch::default() };
        a.set_membership(SECOND, Membership::default(), Some(epoch));
        assert!(a.round(SECOND).is_some());
        a.stored(true);
        assert_eq!(a.ledger().frozen, None);
        let later = GroupKey { birth: 2, ..group() };
        let owners: BTreeSet<Name> = [name("b")].into();
        a.set_groups(2, [(later.clone(), owners)].into());
        assert!(a.round(SECOND).is_some());
        a.stored(true);
        assert_eq!(a.ledger().frozen, Some(1));
        assert_eq!(a.ledger().owned.get(&later), Some(&Parts::NONE));
    }

    #[test]
    fn after_a_boot_it_waits_for_an_answer_or_ten_seconds() {
        let (mut a, mut b) = (balancer("a", true), balancer("b", false));
        tell(&mut b, &mut a);
        a.round(2 * SECOND);
        assert_eq!(enforced(&a), Parts::NONE, "the message is older than the start");
        tell(&mut a, &mut b);
        tell(&mut b, &mut a);
        a.round(2 * SECOND);
        assert_eq!(enforced(&a), HALF);
        let mut alone = balancer("a", true);
        alone.round(10 * SECOND);
        assert_eq!(enforced(&alone), Parts::NONE);
        alone.round(11 * SECOND);
        assert_eq!(enforced(&alone), HALF);
    }

    #[test]
    fn messages_of_others_or_of_itself_are_refused() {
        let (mut a, mut b) = (balancer("a", false), balancer("b", false));
        let (_, message) = b.messages(SECOND, [&name("a")]).remove(0);
        let own = Message { from: name("a"), ..message.clone() };
        assert_eq!(a.receive(SECOND, own), Err(SharingError::OwnName(name("a"))));
        let transfers = vec![Transfer { number: 2, group: group(), parts: HALF }];
        let wrong = Message { sent: 1, transfers, ..message };
        let refused = a.receive(SECOND, wrong).unwrap_err().to_string();
        assert_eq!(refused, "b: transfers to this balancer are numbered 2 to 2, but 1 were sent");
    }
}
