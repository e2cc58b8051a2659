//! What a balancer says in etcd of the others. A balancer that is alive, and exchanges no messages with another one, could
//! otherwise keep the fleet from forgetting a third one for as long as it lives: nobody would know whether it hears that one.
//!
//! As what a message says, it may be a moment old when it counts. If the balancer has heard the third one again, both of them
//! contribute to the epoch, or learn of it from each other: no part is there twice.

use std::{collections::BTreeSet, time::Duration};

use lb_model::Name;

use super::{RECENT, SILENCE, Sharing};
use crate::epoch::Statement;

impl Sharing {
    /// What this balancer has to say in etcd now. `None`: as far as it knows, all that are alive hear each other.
    pub fn statement(&self, now: Duration) -> Option<Statement> {
        let is_needed = self.others_alive().any(|name| self.is_mute_with(name, now));
        is_needed.then(|| Statement { epoch: self.ledger.epoch, silent: self.silent_members(now) })
    }

    /// The last epoch that a member has, and whom it does not hear: by its messages, or by its statement in etcd.
    pub(super) fn last_report_of(
        &self,
        member: &Name,
        now: Duration,
    ) -> Option<(u64, &BTreeSet<Name>)> {
        if let Some(message) = self.heard(member, RECENT, now) {
            return Some((message.epoch, &message.silent));
        }
        let statement = self.membership.statements.get(member)?;
        Some((statement.epoch, &statement.silent))
    }

    /// Balancers on whose statements some were found gone: those that are alive, and of which [`Self::last_report_of`] takes the
    /// statement.
    pub(super) fn statements_on(&self, gone: &BTreeSet<Name>, now: Duration) -> BTreeSet<Name> {
        let is_believed = |name: &&Name| {
            !gone.is_empty()
                && self.heard(name, RECENT, now).is_none()
                && self.membership.statements.contains_key(*name)
        };
        self.others_alive().filter(is_believed).cloned().collect()
    }

    /// The members from which it has not heard for [`SILENCE`].
    pub(super) fn silent_members(&self, now: Duration) -> BTreeSet<Name> {
        let others = self.membership.members.keys().filter(|name| **name != self.name);
        others.filter(|name| self.is_silent(name, now)).cloned().collect()
    }

    /// Whether one of both does not hear the other one.
    fn is_mute_with(&self, other: &Name, now: Duration) -> bool {
        let heard = self.heard(other, SILENCE, now);
        self.is_silent(other, now) || heard.is_some_and(|it| it.silent.contains(&self.name))
    }

    fn others_alive(&self) -> impl Iterator<Item = &Name> {
        let Self { membership, name, .. } = self;
        let others = membership.alive.iter().filter(move |it| *it != name);
        others.filter(|it| membership.members.contains_key(*it))
    }
}
