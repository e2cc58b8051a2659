//! Statuses of backends. There may be many and few change, so those of a pool are made once and shared until one of them
//! changes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use lb_common::abi::member::FULL_RAMP;
use nix::net::if_::if_indextoname;

use super::{InForce, Key, Known, StatusLoop};
use crate::{
    command::{BackendStatus, BackendsEvent, Event, PoolBackends},
    members::clock,
};
use lb_model::{Configuration, Encapsulation, MemberState, Name, Pool, next_hop::NextHop};
use lb_publish::reconcile::PathReader;

/// Most backends of an event: the log of events keeps none that is much larger, and neither do the queues of watchers.
const MAX_ANNOUNCED: usize = 5_000;

/// The statuses that were made, until something of them changes.
#[derive(Debug, Default)]
pub(super) struct BackendStatuses {
    by_pool: BTreeMap<Name, Arc<PoolBackends>>,
    interfaces: InterfaceNames,
}

impl BackendStatuses {
    /// The backends of all pools, by name.
    pub(super) fn pools(&mut self, known: &Known) -> Vec<Arc<PoolBackends>> {
        if self.interfaces.refresh() {
            self.by_pool.clear();
        }
        let pools = known.configuration().pools.iter();
        pools.map(|(name, pool)| self.pool_backends(name, pool, known)).collect()
    }

    fn pool_backends(&mut self, name: &Name, pool: &Pool, known: &Known) -> Arc<PoolBackends> {
        if let Some(backends) = self.by_pool.get(name) {
            return Arc::clone(backends);
        }
        let keys: Vec<Key> = pool.backends.keys().map(|it| (name.clone(), *it)).collect();
        let backends: Vec<_> = keys.iter().filter_map(|key| self.status(key, known)).collect();
        let serving = backends.iter().filter(|backend| serves(pool, backend)).count();
        let backends = Arc::new(PoolBackends::new(name.clone(), backends, serving));
        // The time that is left of a hold changes by itself.
        if backends.backends.iter().all(|backend| backend.hold_left.is_none()) {
            self.by_pool.insert(name.clone(), Arc::clone(&backends));
        }
        backends
    }

    /// Forgets statuses that may be others now.
    pub(super) fn forget_changed(&mut self, before: &InForce, now: &InForce) {
        if before.mark_outs.out() != now.mark_outs.out() {
            self.by_pool.clear();
        }
        let (before, now) = (&before.configuration, &now.configuration);
        if !Arc::ptr_eq(before, now) {
            let is_same = |name: &Name| before.pools.get(name) == now.pools.get(name);
            self.by_pool.retain(|name, _| is_same(name));
        }
    }

    pub(super) fn status(&mut self, key: &Key, known: &Known) -> Option<BackendStatus> {
        let in_force = &known.in_force;
        let backend = in_force.configuration.pools.get(&key.0)?.backends.get(&key.1)?;
        let member = known.view.get(&key.0, &key.1)?;
        let (hold_left, hold_reason) = member.hold_left(clock()).unzip();
        Some(BackendStatus {
            pool: key.0.clone(),
            address: key.1,
            region: backend.region.clone(),
            state: member.state,
            admin_state: backend.admin_state,
            reason: hold_reason.unwrap_or_else(|| member.reason.clone()),
            next_hop: match known.view.next_hop(&key.1) {
                Some(Ok(hop)) => Ok(self.interfaces.format(hop)),
                Some(Err(why)) => Err(why.to_string()),
                None => Err("not looked up yet".into()),
            },
            mtu: known.mtu_towards(key.1, backend.mtu),
            tunnel_source: known.tunnel_source(key),
            since: member.since,
            weight: backend.weight,
            share: match member.state {
                MemberState::Up if backend.weight > 0 => ramp_share(member.ramp),
                _ => 0.0,
            },
            agent_report: member.agent_report.clone(),
            marked_out: in_force.mark_outs.is_out(&key.0, &key.1),
            hold_left,
            overrides: known
                .overrides
                .overrides
                .of_member(&key.0, &key.1, &backend.region)
                .map(|(key, _)| key)
                .collect(),
        })
    }

    pub(super) fn forget(&mut self, pool: &Name) {
        self.by_pool.remove(pool);
    }

    pub(super) fn forget_all(&mut self, pools: &[Name]) {
        pools.iter().for_each(|pool| self.forget(pool));
    }
}

impl<R: PathReader> StatusLoop<R> {
    /// Announces backends that changed, in one event unless there are very many.
    pub(super) fn announce_backends(&mut self, keys: &BTreeSet<Key>) {
        let changed: Vec<_> =
            keys.iter().filter_map(|key| self.backends.status(key, &self.known)).collect();
        for part in changed.chunks(MAX_ANNOUNCED) {
            let (changed, removed) = (part.to_vec(), Vec::new());
            self.announcements.announce(Event::Backends(BackendsEvent { changed, removed }));
        }
    }

    /// Announces the backends of which something changed that no member tells of: their region, their MTU, or whether they
    /// are marked out.
    pub(super) fn announce_reconfigured(&mut self, before: &InForce) {
        let now = Arc::clone(&self.known.in_force);
        let mut changed = BTreeSet::new();
        let (out_before, out_now) = (before.mark_outs.out(), now.mark_outs.out());
        for (name, pool) in &now.configuration.pools {
            let Some(old) = before.configuration.pools.get(name) else { continue };
            if !Arc::ptr_eq(old, pool) {
                let moved = pool.backends.iter().filter(|(address, new)| {
                    let old = old.backends.get(address);
                    old.is_some_and(|old| (&old.region, old.mtu) != (&new.region, new.mtu))
                });
                changed.extend(moved.map(|(address, _)| (name.clone(), *address)));
            }
            let out = [&out_before, &out_now].map(|out| out.get(name).map(|it| &it.members));
            if out[0] != out[1] {
                let members = out.into_iter().flatten().flatten();
                let differs = members.filter(|address| {
                    before.mark_outs.is_out(name, address) != now.mark_outs.is_out(name, address)
                });
                changed.extend(differs.map(|address| (name.clone(), *address)));
            }
        }
        self.announce_backends(&changed);
    }

    /// Announces the backends that the configuration before had, and the one in force has not.
    pub(super) fn announce_removed(&mut self, before: &Configuration) {
        let now = Arc::clone(&self.known.in_force.configuration);
        let mut removed = Vec::new();
        for (name, pool) in &before.pools {
            let kept = now.pools.get(name);
            if kept.is_some_and(|kept| Arc::ptr_eq(kept, pool)) {
                continue;
            }
            let is_kept = |address| kept.is_some_and(|pool| pool.backends.contains_key(address));
            let gone = pool.backends.keys().filter(|address| !is_kept(address));
            removed.extend(gone.map(|address| (name.clone(), *address)));
        }
        for part in removed.chunks(MAX_ANNOUNCED) {
            let (changed, removed) = (Vec::new(), part.to_vec());
            self.announcements.announce(Event::Backends(BackendsEvent { changed, removed }));
        }
    }
}

impl Known {
    fn tunnel_source(&self, (pool, address): &Key) -> Option<String> {
        let hop = self.view.next_hop(address)?.as_ref().ok()?;
        let pool = self.configuration().pools.get(pool)?;
        if pool.encapsulation == Encapsulation::Direct {
            return None;
        }
        let prefix = self.source_prefix.filter(|_| address.is_ipv4());
        let prefix = prefix.map(|prefix| prefix.to_string());
        prefix.or_else(|| Some(hop.source?.to_string()))
    }
}

fn serves(pool: &Pool, status: &BackendStatus) -> bool {
    let weight = pool.backends.get(&status.address).map_or(0, |backend| backend.weight);
    status.state == MemberState::Up && weight > 0 && status.next_hop.is_ok()
}

/// A backend without a ramp gets its full share.
fn ramp_share(ramp: Option<u8>) -> f64 {
    ramp.map_or(1.0, |ramp| f64::from(ramp) / f64::from(FULL_RAMP))
}

/// Names of interfaces that were shown.
#[derive(Debug, Default)]
struct InterfaceNames(BTreeMap<u32, String>);

impl InterfaceNames {
    /// Asks the kernel again. Returns whether a name is another.
    fn refresh(&mut self) -> bool {
        let known = std::mem::take(&mut self.0);
        self.0 = known.keys().map(|index| (*index, interface_name(*index))).collect();
        self.0 != known
    }

    /// Like `02:00:00:00:00:01 on eth0`.
    fn format(&mut self, hop: &NextHop) -> String {
        let index = hop.interface;
        let name = self.0.entry(index).or_insert_with(|| interface_name(index));
        let [a, b, c, d, e, f] = hop.mac;
        format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x} on {name}")
    }
}

fn interface_name(index: u32) -> String {
    let name = if_indextoname(index).ok().and_then(|name| name.into_string().ok());
    name.unwrap_or_else(|| format!("interface {index}"))
}
