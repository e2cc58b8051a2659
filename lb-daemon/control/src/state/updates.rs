//! What the member loop tells: it is logged, announced and shown here, where that may wait.

use std::{net::IpAddr, sync::Arc};

use super::{PacketPath, State, view::Key};
use crate::members::{Cause, Member, MemberUpdate};
use lb_model::next_hop::NextHop;

impl<P: PacketPath> State<P> {
    /// Takes all updates that there are, so that what follows sees what the member loop has written.
    pub(super) fn take_waiting_updates(&mut self) {
        while let Ok(updates) = self.updates.try_recv() {
            self.take_updates(updates);
        }
    }

    pub(super) fn take_updates(&mut self, updates: Vec<MemberUpdate>) {
        for update in updates {
            match update {
                MemberUpdate::Member { pool, address, member, cause } => {
                    self.take_member((pool, address), member, cause);
                }
                MemberUpdate::NextHop { address, hop } => self.take_next_hop(address, hop),
            }
        }
    }

    fn take_member(&mut self, key: Key, member: Arc<Member>, cause: Cause) {
        let pool = self.configuration().pools.get(&key.0);
        if pool.is_none_or(|pool| !pool.backends.contains_key(&key.1)) {
            return;
        }
        let before = self.view.set(key.clone(), Arc::clone(&member));
        let (from, to) = (before.map_or("unknown", |it| it.state.name()), member.state.name());
        if cause == Cause::Checks && from != to {
            self.log_backend((&key.0, key.1), from, to, &member.reason);
        }
        if cause != Cause::Share {
            self.announce_backend(&key);
        }
    }

    fn take_next_hop(&mut self, address: IpAddr, hop: Result<NextHop, String>) {
        match &hop {
            Ok(hop) => tracing::debug!(backend = %address, ?hop, "next hop"),
            Err(why) => {
                tracing::warn!(backend = %address, why, "backend {address}: no next hop: {why}");
            }
        }
        self.view.next_hops.insert(address, hop);
        self.check_path(address);
        for pool in self.view.pools_of(&address) {
            self.announce_backend(&(pool.clone(), address));
        }
    }
}
