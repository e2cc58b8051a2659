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

/// What an epoch needs of this balancer. The caller writes it in a transaction, which fails if the record is not the one
/// that was seen. The transaction of [`EpochStep::Open`] and [`EpochStep::Forget`] also checks that no lease of those to
/// be forgotten is there; the one of [`EpochStep::Close`] that the members are the same.
#[derive(Clone, Debug, PartialEq)]
pub enum EpochStep {
    /// Open an epoch that forgets these.
    Open(BTreeSet<Name>),
    /// Forget these in the open epoch too: they are gone before they said what they own.
    Forget(BTreeSet<Name>),
    /// Say what this balancer owns.
    Contribute(Contribution),
    /// All have said what they own.
    Close,
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
        self.membership = membership;
        self.epoch = last_epoch;
    }

    /// What the epoch needs of this balancer now, if anything.
    pub fn epoch_step(&self, now: Duration) -> Option<EpochStep> {
        if let Some(epoch) = self.epoch.as_ref().filter(|epoch| !epoch.closed) {
            return self.step_of_open(now, epoch);
        }
        if self.epoch.as_ref().map_or(0, |epoch| epoch.number) != self.ledger().epoch {
            return None;
        }
        let mut forgotten = self.forgettable(now);
        if forgotten.is_empty() {
            return None;
        }
        // Those that are still gone since the last epoch cannot contribute to this one either.
        let members = self.membership.members.keys();
        forgotten.extend(members.filter(|name| self.owns_nothing(name)).cloned());
        Some(EpochStep::Open(forgotten))
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
        let forgotten = &self.forgettable(now) & &awaited;
        (!forgotten.is_empty()).then_some(EpochStep::Forget(forgotten))
    }

    /// Members whose parts may be created again: their lease is gone, and neither this balancer nor any other one that is
    /// alive has heard from them for [`SILENCE`]. Also those that say that they lost what they owned, which may be this one.
    fn forgettable(&self, now: Duration) -> BTreeSet<Name> {
        let Membership { members, alive } = &self.membership;
        let others = || members.keys().filter(|name| *name != self.name());
        let alive: Vec<_> = others().filter(|name| alive.contains(*name)).collect();
        let all_alive_are_heard = alive.iter().all(|name| self.hears_within(name, RECENT, now));
        let is_gone = |name: &Name| {
            all_alive_are_heard
                && !alive.contains(&name)
                && self.has_watched(name, SILENCE, now)
                && !self.hears_within(name, SILENCE, now)
                && !alive.iter().any(|other| self.says_it_hears(other, name))
        };
        let may_be = |name: &&Name| {
            !self.owns_nothing(name) && (is_gone(name) || self.lost_its_store(name, now))
        };
        let own = self.store_is_old().then_some(self.name());
        others().filter(may_be).chain(own).cloned().collect()
    }

    /// Whether a member was forgotten in the last epoch and has not come back since.
    fn owns_nothing(&self, name: &Name) -> bool {
        self.epoch.as_ref().is_some_and(|epoch| {
            let since = self.membership.members.get(name);
            epoch.forgotten.contains(name) && since.is_some_and(|since| *since < epoch.number)
        })
    }
}
