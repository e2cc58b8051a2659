//! The part of a balancer in epochs: which members may be forgotten, and what an epoch makes of the ledger.

use std::{collections::BTreeSet, time::Duration};

use lb_model::Name;

use super::{INTERRUPTION, RECENT, SILENCE, Sharing};
use crate::{
    Ledger,
    epoch::{Epoch, EpochStep, Forgotten, Membership},
};

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
        if !self.membership.members.contains_key(&self.name) || self.was_interrupted(now) {
            return None;
        }
        if let Some(epoch) = self.epoch.as_ref().filter(|epoch| !epoch.closed) {
            return self.step_of_open(now, epoch);
        }
        let current = self.ledger.epoch;
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
        forgotten.stated_by = self.statements_on(&forgotten.gone, now);
        let number = self.highest_epoch() + 1;
        // A balancer that has not entered the last epoch yet could not tell what became of its parts.
        let all_follow = self.all_have(current, &forgotten.names(), now);
        all_follow.then_some(EpochStep::Open { number, forgotten })
    }

    fn step_of_open(&self, now: Duration, epoch: &Epoch) -> Option<EpochStep> {
        let has_contributed = epoch.contributions.contains_key(&self.name);
        if !has_contributed && self.ledger.frozen == Some(epoch.number) {
            return Some(EpochStep::Contribute(self.ledger.contribution()));
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
        forgotten.stated_by = self.statements_on(&forgotten.gone, now);
        (!forgotten.is_empty()).then_some(EpochStep::Forget(forgotten))
    }

    /// Members whose parts may be created again: their lease is gone, and neither this balancer nor any other one that is
    /// alive, or that it hears, has heard from them for [`SILENCE`]. Also those whose store is an old copy, which may be this one.
    fn forgettable(&self, now: Duration) -> Forgotten {
        let Membership { members, alive, .. } = &self.membership;
        let others = || members.keys().filter(|name| **name != self.name);
        let reports: Option<Vec<_>> = others()
            .filter(|name| alive.contains(*name))
            .map(|name| self.last_report_of(name, now).map(|(_, silent)| silent))
            .collect();
        // The last message of one whose later ones were lost counts too.
        let heard: Vec<_> = others().filter_map(|name| self.heard(name, SILENCE, now)).collect();
        let is_gone = |name: &&Name| {
            reports
                .as_ref()
                .is_some_and(|reports| reports.iter().all(|silent| silent.contains(*name)))
                && !alive.contains(*name)
                && !self.owns_nothing(name)
                && self.is_silent(name, now)
                && heard.iter().all(|message| message.silent.contains(*name))
        };
        let is_old = |name: &&Name| !self.owns_nothing(name) && self.lost_its_store(name, now);
        let own = self.ledger.is_old_copy.then_some(&self.name);
        Forgotten {
            gone: others().filter(is_gone).cloned().collect(),
            old_copies: others().filter(is_old).chain(own).cloned().collect(),
            ..Forgotten::default()
        }
    }

    /// Whether a member was forgotten in the last epoch, and has neither come back since nor taken part in a later group.
    pub(super) fn owns_nothing(&self, name: &Name) -> bool {
        self.epoch.as_ref().is_some_and(|epoch| {
            epoch.forgotten.contains(name)
                && self.came_back(name, epoch) == Some(false)
                && !epoch.contributions.contains_key(name)
                && !self.has_later_portion(name, epoch)
        })
    }

    /// Whether the fleet knows that a balancer has given up what an epoch forgot of it. `None`: it is no member.
    fn came_back(&self, name: &Name, epoch: &Epoch) -> Option<bool> {
        self.membership.members.get(name).map(|since| *since >= epoch.number)
    }

    /// Brings a ledger to the last epoch. Returns whether it changed it, or must not.
    pub(super) fn follow_epoch(&mut self, next: &mut Ledger) -> bool {
        let Some(epoch) = self.epoch.as_ref().filter(|epoch| epoch.number > next.epoch) else {
            return false;
        };
        let is_forgotten = epoch.forgotten.contains(&self.name);
        let is_frozen = next.frozen == Some(epoch.number);
        let has_contributed = epoch.contributions.contains_key(&self.name);
        let is_settled = epoch.closed && is_frozen && has_contributed;
        if is_settled && (is_forgotten || !next.is_old_copy) {
            next.enter(&self.name, epoch);
            return true;
        }
        if is_forgotten {
            let before = next.clone();
            next.give_up(epoch);
            if epoch.closed {
                (next.epoch, next.frozen) = (epoch.number, None);
                // It came back, and may have been given parts since. This store does not know.
                next.is_old_copy =
                    has_contributed || self.came_back(&self.name, epoch) == Some(true);
            } else if self.generation >= epoch.generation {
                // It has to name all groups, also those that no other balancer is left to name.
                next.adopt(&self.name, self.generation, &self.births);
                next.frozen = Some(epoch.number);
            }
            return *next != before || next.frozen.is_some();
        }
        if next.is_old_copy {
            return false;
        }
        let missed_it = !is_frozen && (epoch.closed || has_contributed);
        if missed_it || epoch.number > next.epoch + 1 {
            // It contributed, as all do before an epoch is closed. If its store does not know that, it is an old copy.
            self.found_old = true;
            return false;
        }
        if is_frozen || self.awaited.is_some() || self.generation < epoch.generation {
            return false;
        }
        next.adopt(&self.name, self.generation, &self.births);
        next.frozen = Some(epoch.number);
        true
    }

    /// Whether the groups that are known have one with a later birth than an epoch, of which a balancer had a portion.
    fn has_later_portion(&self, name: &Name, epoch: &Epoch) -> bool {
        let later = self.births.iter().filter(|(group, _)| group.birth > epoch.generation);
        later.into_iter().any(|(_, owners)| owners.contains(name))
    }

    /// Whether all members but these have the result of an epoch, by what they say just now.
    fn all_have(&self, epoch: u64, except: &BTreeSet<Name>, now: Duration) -> bool {
        let others = self.membership.members.keys().filter(|name| **name != self.name);
        others
            .filter(|name| !except.contains(*name))
            .all(|name| self.last_report_of(name, now).is_some_and(|(of, _)| of == epoch))
    }

    /// Whether a peer has the result of an epoch to which this balancer said nothing. An epoch is closed when all said what
    /// they own, but those that it forgets: the others own this one's parts, whatever it knows of etcd.
    pub fn is_overtaken(&self) -> bool {
        let last = self.ledger.frozen.unwrap_or(0).max(self.ledger.epoch);
        let latest = self.peers.values().filter_map(|peer| peer.latest.as_ref());
        latest.map(|(message, _)| message.epoch).any(|epoch| epoch > last)
    }

    /// The highest epoch that it heard of.
    fn highest_epoch(&self) -> u64 {
        let heard = self.peers.values().filter_map(|peer| peer.latest.as_ref());
        let heard = heard.map(|(message, _)| message.epoch).max().unwrap_or(0);
        let seen = self.epoch.as_ref().map_or(0, |epoch| epoch.number);
        heard.max(seen).max(self.ledger.epoch)
    }

    /// Whether its last round is so long ago that messages may wait to be taken.
    fn was_interrupted(&self, now: Duration) -> bool {
        now.saturating_sub(self.last_round) > INTERRUPTION
    }

    /// Whether a peer that is there says that its store is an old copy, and was not forgotten since it said so.
    fn lost_its_store(&self, peer: &Name, now: Duration) -> bool {
        let forgotten = self.epoch.as_ref().filter(|epoch| epoch.forgotten.contains(peer));
        let since = forgotten.map_or(0, |epoch| epoch.number);
        self.heard(peer, RECENT, now)
            .is_some_and(|message| message.store_is_old && message.epoch >= since)
    }
}
