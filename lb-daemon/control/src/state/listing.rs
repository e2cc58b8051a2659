//! What the state says of itself.

use std::collections::BTreeMap;

use lb_common::abi::member::{Accepts, FULL_RAMP};
use nix::net::if_::if_indextoname;

use super::{PacketPath, State, members::Key};
use crate::command::{
    BackendStatus, Event, Exported, Refusal, ServiceStatus, Status, Subscription,
};
use lb_model::{Name, Pool, next_hop::NextHop};

impl<P: PacketPath> State<P> {
    pub(super) fn export(&self) -> Exported {
        let mut configuration = self.configuration().clone();
        configuration.hash_key.get_or_insert(self.store.hash_key());
        Exported {
            generation: self.generation(),
            configuration,
            schema: self.settings.schema,
            unusable: self.store.unusable().cloned(),
        }
    }

    pub(super) fn status(&mut self) -> Result<Status, Refusal> {
        let checksum = self.path.checksum().map_err(Refusal::Unreadable)?;
        let configuration = self.configuration();
        let pools = configuration.pools.iter();
        let keys = pools.flat_map(|(name, pool)| pool.backends.keys().map(|a| (name.clone(), *a)));
        let backends: Vec<_> = keys.filter_map(|key| self.backend_status(&key)).collect();
        // Once a pool, whose services may be many.
        let mut up: BTreeMap<&Name, usize> = BTreeMap::new();
        for backend in &backends {
            let pool = configuration.pools.get(&backend.pool);
            let serves = pool.is_some_and(|pool| serves(pool, backend));
            *up.entry(&backend.pool).or_default() += usize::from(serves);
        }
        let services = configuration.services.iter().filter_map(|(name, service)| {
            let pool = configuration.pools.get(&service.pool)?;
            Some(ServiceStatus {
                name: name.clone(),
                endpoint: service.endpoint(),
                protocol: service.protocol,
                pool: service.pool.clone(),
                backends_up: up.get(&service.pool).copied().unwrap_or_default(),
                backends: pool.backends.len(),
                encapsulation: pool.encapsulation,
            })
        });
        let services = services.collect();
        Ok(Status {
            version: env!("CARGO_PKG_VERSION"),
            region: self.settings.region.clone(),
            generation: self.generation(),
            applied_at: self.store.applied_at(),
            checksum,
            behind: self.behind.clone(),
            interfaces: self.path.interfaces(),
            services,
            backends,
            settling: self.settling(),
            conditions: self.settings.conditions.now(),
            waiting_settings: self.settings.waiting_settings.now(),
            uptime: self.started.elapsed(),
        })
    }

    /// What keeps the packet path from being as it should.
    pub(super) fn condition(&self) -> Option<String> {
        let behind = self.behind.as_ref().map(|why| format!("the packet path is behind: {why}"));
        let unusable = self.store.unusable().map(|unusable| {
            let (number, cause) = (unusable.number, &unusable.cause);
            format!("the stored generation {number} cannot be used: {cause}")
        });
        behind.or(unusable).or_else(|| {
            let interfaces = self.path.interfaces();
            let gone = interfaces.into_iter().find(|interface| interface.mode.is_none())?;
            Some(format!("interface {}: the packet program is not attached", gone.name))
        })
    }

    pub(super) fn watch(&mut self) -> Result<Subscription, Refusal> {
        // Nothing can happen in between: this loop is the only one that announces.
        Ok(Subscription { events: self.events.subscribe(), snapshot: self.status()? })
    }

    pub(super) fn announce_backend(&self, key: &Key) {
        if let Some(status) = self.backend_status(key) {
            self.announce(Event::Backend(status));
        }
    }

    fn backend_status(&self, key: &Key) -> Option<BackendStatus> {
        let backend = self.configuration().pools.get(&key.0)?.backends.get(&key.1)?;
        let member = self.members.get(key)?;
        Some(BackendStatus {
            pool: key.0.clone(),
            address: key.1,
            region: backend.region.clone(),
            state: member.state,
            wanted: backend.wanted,
            reason: member.reason.clone(),
            next_hop: match self.hops.get(&key.1) {
                Some(Ok(hop)) => Ok(spell(hop)),
                Some(Err(why)) => Err(why.clone()),
                None => Err("not looked up yet".into()),
            },
            mtu: self.mtu_towards(key.1, backend.mtu),
            since: member.since,
            share: match member.state {
                Accepts::All if backend.weight > 0 => ramp_share(member.ramp),
                _ => 0.0,
            },
            report: member.report.clone(),
            marked_out: self.homes.mark_outs.is_out(&key.0, &key.1),
        })
    }
}

/// Whether a backend can have new connections.
fn serves(pool: &Pool, status: &BackendStatus) -> bool {
    let weight = pool.backends.get(&status.address).map_or(0, |backend| backend.weight);
    status.state == Accepts::All && weight > 0 && status.next_hop.is_ok()
}

/// The share that a ramp gives; who was told of none has all.
fn ramp_share(ramp: Option<u8>) -> f64 {
    ramp.map_or(1.0, |ramp| f64::from(ramp) / f64::from(FULL_RAMP))
}

/// `02:00:00:00:00:01 on eth0`
fn spell(hop: &NextHop) -> String {
    let mac: Vec<_> = hop.mac.iter().map(|byte| format!("{byte:02x}")).collect();
    let name = if_indextoname(hop.interface).ok().and_then(|name| name.into_string().ok());
    let name = name.unwrap_or_else(|| format!("interface {}", hop.interface));
    format!("{} on {name}", mac.join(":"))
}
