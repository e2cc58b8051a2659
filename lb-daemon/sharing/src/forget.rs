//! When a balancer may be forgotten, and what the epoch of it needs next.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use lb_model::Name;

use crate::{
    Sharing,
    epoch::{Contribution, Epoch},
};

/// A balancer that no other one has heard from for so long may be forgotten.
pub const SILENCE: Duration = Duration::from_secs(30);
/// A balancer that was heard from within this time is there: it counts, and may be given parts.
pub const RECENT: Duration = Duration::from_secs(1);
/// A longer gap between two rounds is an interruption: what was said meanwhile may have been missed.
pub(crate) const INTERRUPTION: Duration = Duration::from_secs(2);

/// Who belongs to a fleet, as the store that all see says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    /// Each member, with the epoch in which it joined, or of which it said that it gave up what it owned.
    pub members: BTreeMap<Name, u64>,
    /// Those whose lease is there.
    pub alive: BTreeSet<Name>,
}

/// What an epoch needs of this balancer. The caller writes it in a transaction, which fails if the epoch is not the one
/// that was seen, as far as its number, who is forgotten, and whether it is closed.
#[derive(Clone, Debug, PartialEq)]
pub enum EpochStep {
    /// Open the epoch with this number.
    Open { number: u64, forgotten: Forgotten },
    /// Forget these in the open epoch too: they are gone before they said what they own.
    Forget(Forgotten),
    /// Say what this balancer owns. A contribution needs a key of its own: together they may be larger than a value of
    /// etcd.
    Contribute(Contribution),
    /// All have said what they own. The transaction checks that the members are the same.
    Close,
}

/// Members that an epoch forgets, and what the transaction checks of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// They are gone: their leases are not there.
    pub gone: BTreeSet<Name>,
    /// They say that their store is an old copy. Their leases may be there.
    pub old_copies: BTreeSet<Name>,
    /// They were forgotten before and own nothing since: the epoch in [`Membership::members`] is the one that was seen.
    pub still_forgotten: BTreeSet<Name>,
}

impl Forgotten {
    /// All of them.
    pub fn names(&self) -> BTreeSet<Name> {
        &(&self.gone | &self.old_copies) | &self.still_forgotten
    }

    fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.old_copies.is_empty()
    }
}

impl Sharing {
    /// Sets who belongs to the fleet, and the epoch with the highest number, as of now.
    pub fn set_membership(
        &mut self,
        now: Duration,
        membership: Membership,
        last_epoch: Option<Epoch>,
    ) {
        self.member_since.retain(|name, _| membership.members.contains_key(name));
        for name in membership.members.keys() {
            self.member_since.entry(name.clone()).or_insert(now);
        }
        // One that joins again begins anew.
        self.peers.retain(|name, _| membership.members.contains_key(name));
        self.membership = membership;
        self.epoch = last_epoch;
    }

    /// What the epoch needs of this balancer now, if anything.
    pub fn epoch_step(&self, now: Duration) -> Option<EpochStep> {
        if !self.membership.members.contains_key(self.name()) || self.was_interrupted(now) {
            return None;
        }
        if let Some(epoch) = self.epoch.as_ref().filter(|epoch| !epoch.closed) {
            return self.step_of_open(now, epoch);
        }
        let current = self.ledger().epoch;
        if self.epoch.as_ref().map_or(0, |epoch| epoch.number) > current {
            return None;
        }
        let mut forgotten = self.forgettable(now);
        if forgotten.is_empty() {
            return None;
        }
        // Those that are still gone since the last epoch cannot contribute to this one either.
        let members = self.membership.members.keys();
        forgotten.still_forgotten =
            members.filter(|name| self.owns_nothing(name)).cloned().collect();
        let number = self.highest_epoch() + 1;
        // A balancer that has not entered the last epoch yet could not tell what became of its parts.
        let all_follow = self.all_have(current, &forgotten.names(), now);
        all_follow.then_some(EpochStep::Open { number, forgotten })
    }

    fn step_of_open(&self, now: Duration, epoch: &Epoch) -> Option<EpochStep> {
        let has_contributed = epoch.contributions.contains_key(self.name());
        if !has_contributed && self.ledger().frozen == Some(epoch.number) {
            return Some(EpochStep::Contribute(self.ledger().contribution()));
        }
        if !has_contributed && !self.store_is_old() {
            return None;
        }
        let members: BTreeSet<Name> = self.membership.members.keys().cloned().collect();
        let awaited: BTreeSet<_> = epoch.awaited(&members).cloned().collect();
        if awaited.is_empty() {
            return has_contributed.then_some(EpochStep::Close);
        }
        let mut forgotten = self.forgettable(now);
        forgotten.gone.retain(|name| awaited.contains(name));
        forgotten.old_copies.retain(|name| awaited.contains(name));
        (!forgotten.is_empty()).then_some(EpochStep::Forget(forgotten))
    }

    /// Members whose parts may be created again: their lease is gone, and neither this balancer nor any other one that it
    /// hears has heard from them for [`SILENCE`]. Also those whose store is an old copy, which may be this one.
    fn forgettable(&self, now: Duration) -> Forgotten {
        let Membership { members, alive } = &self.membership;
        let others = || members.keys().filter(|name| *name != self.name());
        let all_alive_are_heard = others()
            .filter(|name| alive.contains(*name))
            .all(|name| self.hears_within(name, RECENT, now));
        let heard: Vec<_> = others().filter(|name| self.hears_within(name, RECENT, now)).collect();
        let is_gone = |name: &&Name| {
            all_alive_are_heard
                && !alive.contains(*name)
                && !self.owns_nothing(name)
                && self.has_watched(name, SILENCE, now)
                && !self.hears_within(name, SILENCE, now)
                && !heard.iter().any(|other| self.says_it_hears(other, name))
        };
        let is_old = |name: &&Name| !self.owns_nothing(name) && self.lost_its_store(name, now);
        let own = self.ledger().is_old_copy.then_some(self.name());
        Forgotten {
            gone: others().filter(is_gone).cloned().collect(),
            old_copies: others().filter(is_old).chain(own).cloned().collect(),
            still_forgotten: BTreeSet::new(),
        }
    }

    /// Whether a member was forgotten in the last epoch, and has neither come back since nor taken part in a later group.
    pub(crate) fn owns_nothing(&self, name: &Name) -> bool {
        self.epoch.as_ref().is_some_and(|epoch| {
            let since = self.membership.members.get(name);
            epoch.forgotten.contains(name)
                && since.is_some_and(|since| *since < epoch.number)
                && !epoch.contributions.contains_key(name)
                && !self.has_later_portion(name, epoch)
        })
    }
}
