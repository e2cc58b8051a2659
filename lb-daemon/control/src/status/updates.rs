//! What the other loops tell is logged, announced and shown here, where that may wait.

use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use super::{InForce, Key, StatusLoop, StatusUpdate, log_lines::log_applied};
use crate::{
    command::Event,
    members::{Cause, Member, MemberUpdate},
};
use lb_model::next_hop::{NextHop, NoNextHop};
use lb_publish::reconcile::PathReader;

impl<R: PathReader> StatusLoop<R> {
    pub(super) fn take(&mut self, update: StatusUpdate) {
        match update {
            StatusUpdate::Begun => self.known.has_begun = true,
            StatusUpdate::InForce(in_force) => self.take_in_force(in_force),
            StatusUpdate::Applied(applied) => {
                log_applied(self.known.configuration(), applied.generation, &applied.changes);
                self.announcements.announce(Event::Generation(applied));
            }
            StatusUpdate::Overrides(overrides) => self.take_overrides(overrides),
            StatusUpdate::Portions(portions) => self.known.portions = portions,
            StatusUpdate::JudgeOverrides([before, next], pools, reply) => {
                drop(reply.send(self.judge_overrides(&before, &next, &pools)));
            }
            StatusUpdate::Backends(backends) => self.known.view.keep_next_hops(&backends),
            StatusUpdate::Members(updates) => {
                let mut changed = BTreeSet::new();
                for update in updates {
                    match update {
                        MemberUpdate::Member { pool, address, member, cause } => {
                            changed.extend(self.take_member((pool, address), member, cause));
                        }
                        MemberUpdate::NextHop { address, hop } => {
                            changed.extend(self.take_next_hop(address, hop));
                        }
                    }
                }
                self.announce_backends(&changed);
            }
        }
    }

    /// Shows which hold-downs a restart must not forget, once a second if a member changed.
    pub(super) fn show_hold_downs(&mut self) {
        if std::mem::take(&mut self.known.has_member_news) {
            self.settings.hold_downs.show(self.known.view.hold_downs());
        }
    }

    fn take_in_force(&mut self, in_force: Arc<InForce>) {
        let before = std::mem::replace(&mut self.known.in_force, in_force);
        self.backends.forget_changed(&before, &self.known.in_force);
        let configuration = Arc::clone(&self.known.in_force.configuration);
        if Arc::ptr_eq(&before.configuration, &configuration) {
            self.announce_reconfigured(&before);
            return;
        }
        self.announce_removed(&before.configuration);
        self.known.view.configure(&configuration);
        self.announce_reconfigured(&before);
        self.known.has_member_news = true;
        self.conditions.check(&self.known);
    }

    /// Returns what is to be announced.
    fn take_member(&mut self, key: Key, member: Arc<Member>, cause: Cause) -> Option<Key> {
        let (before, member) = self.known.view.set(&key, member)?;
        self.known.has_member_news = true;
        self.backends.forget(&key.0);
        let (from, to) = (before.map_or("unknown", |it| it.state.name()), member.state.name());
        if cause == Cause::Checks && from != to {
            self.known.log_backend((&key.0, key.1), from, to, &member.reason.text);
        }
        (cause != Cause::Share).then_some(key)
    }

    /// Returns what is to be announced.
    fn take_next_hop(&mut self, address: IpAddr, hop: Result<NextHop, NoNextHop>) -> Vec<Key> {
        match &hop {
            Ok(hop) => tracing::debug!(backend = %address, ?hop, "next hop"),
            Err(why) => {
                let why = why.to_string();
                tracing::warn!(backend = %address, why, "backend {address}: no next hop: {why}");
            }
        }
        self.known.view.set_next_hop(address, hop);
        self.backends.forget_all(self.known.view.pools_of(&address));
        self.conditions.check_path(address, &self.known);
        self.known.view.pools_of(&address).iter().map(|pool| (pool.clone(), address)).collect()
    }
}
