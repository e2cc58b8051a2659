//! Answers to questions.

use std::{
    collections::{BTreeMap, HashMap},
    time::Instant,
};

use lb_common::abi::member::FULL_RAMP;
use nix::net::if_::if_indextoname;

use super::{Key, PathReader, StatusLoop};
use crate::{
    command::{
        BackendHistory, BackendStatus, Event, Exported, Refusal, ServiceStatus, SettlingStatus,
        Status, Subscription,
    },
    members::{clock, wall_clock},
};
use lb_model::{MemberState, Name, Pool, next_hop::NextHop, remap::Phase};

impl<R: PathReader> StatusLoop<R> {
    pub(super) fn export(&self) -> Exported {
        let mut configuration = self.configuration().clone();
        configuration.hash_key.get_or_insert(self.in_force.hash_key);
        Exported {
            generation: self.in_force.generation,
            configuration,
            schema: self.settings.schema,
            unusable: self.in_force.unusable.as_deref().cloned(),
        }
    }

    pub(super) fn status(&mut self) -> Result<Status, Refusal> {
        let checksum = self.path.checksum().map_err(Refusal::Unreadable)?;
        let configuration = self.configuration();
        let pools = configuration.pools.iter();
        let keys = pools.flat_map(|(name, pool)| pool.backends.keys().map(|a| (name.clone(), *a)));
        let mut interfaces = InterfaceNames::default();
        let status = |key| self.backend_status(&key, &mut interfaces);
        let backends: Vec<_> = keys.filter_map(status).collect();
        // Counted once per pool, because a pool may have many services.
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
                slots: pool.slots,
            })
        });
        let services = services.collect();
        Ok(Status {
            version: env!("CARGO_PKG_VERSION"),
            region: self.settings.region.clone(),
            generation: self.in_force.generation,
            applied_at: self.in_force.applied_at,
            checksum,
            behind: self.in_force.behind.clone(),
            interfaces: self.path.interfaces(),
            services,
            backends,
            settling: self.settling(),
            conditions: self.settings.conditions.now(),
            waiting_settings: self.settings.waiting_settings.now(),
            uptime: self.started.elapsed(),
        })
    }

    /// What is wrong with the packet path, if anything.
    pub(super) fn condition(&self) -> Option<String> {
        let behind =
            self.in_force.behind.as_ref().map(|why| format!("the packet path is behind: {why}"));
        let unusable = self.in_force.unusable.as_ref().map(|unusable| {
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
        // No event can be missed in between: only this loop announces events.
        Ok(Subscription { events: self.events.subscribe(), snapshot: self.status()? })
    }

    pub(super) fn announce_backend(&self, key: &Key) {
        if let Some(status) = self.backend_status(key, &mut InterfaceNames::default()) {
            self.announce(Event::Backend(status));
        }
    }

    fn backend_status(&self, key: &Key, interfaces: &mut InterfaceNames) -> Option<BackendStatus> {
        let backend = self.configuration().pools.get(&key.0)?.backends.get(&key.1)?;
        let member = self.view.get(&key.0, &key.1)?;
        let (hold_left, hold_reason) = member.hold_left(clock()).unzip();
        Some(BackendStatus {
            pool: key.0.clone(),
            address: key.1,
            region: backend.region.clone(),
            state: member.state,
            admin_state: backend.admin_state,
            reason: hold_reason.unwrap_or_else(|| member.reason.clone()),
            next_hop: match self.view.next_hop(&key.1) {
                Some(Ok(hop)) => Ok(interfaces.format(hop)),
                Some(Err(why)) => Err(why.clone()),
                None => Err("not looked up yet".into()),
            },
            mtu: self.mtu_towards(key.1, backend.mtu),
            since: member.since,
            share: match member.state {
                MemberState::Up if backend.weight > 0 => ramp_share(member.ramp),
                _ => 0.0,
            },
            agent_report: member.agent_report.clone(),
            marked_out: self.in_force.mark_outs.is_out(&key.0, &key.1),
            hold_left,
        })
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

/// Names of interfaces, each asked of the kernel once.
#[derive(Default)]
struct InterfaceNames(HashMap<u32, String>);

impl InterfaceNames {
    /// Like `02:00:00:00:00:01 on eth0`.
    fn format(&mut self, hop: &NextHop) -> String {
        let index = hop.interface;
        let name = self.0.entry(index).or_insert_with(|| {
            let name = if_indextoname(index).ok().and_then(|name| name.into_string().ok());
            name.unwrap_or_else(|| format!("interface {index}"))
        });
        let [a, b, c, d, e, f] = hop.mac;
        format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x} on {name}")
    }
}

impl<R: PathReader> StatusLoop<R> {
    pub(super) fn history(
        &self,
        pool: &str,
        address: Option<&str>,
    ) -> Result<Vec<BackendHistory>, Refusal> {
        self.in_force.require_usable()?;
        let pools = &self.configuration().pools;
        let found = Name::new(pool).ok().and_then(|name| pools.get_key_value(&name));
        let (name, configured) = found.ok_or_else(|| Refusal::NoPool(pool.to_owned()))?;
        let selected = address.map(|text| text.parse().map_err(|_| text)).transpose();
        let unknown = |address: &str| Refusal::NoBackend(pool.to_owned(), address.to_owned());
        let selected = selected.map_err(unknown)?;
        if let Some(address) = selected.filter(|address| !configured.backends.contains_key(address))
        {
            return Err(unknown(&address.to_string()));
        }
        let backends =
            configured.backends.keys().filter(|each| selected.is_none_or(|one| **each == one));
        let histories = backends.filter_map(|address| {
            let member = self.view.get(name, address)?;
            let changes = member.history.changes().cloned().collect();
            Some(BackendHistory { pool: name.clone(), address: *address, changes })
        });
        Ok(histories.collect())
    }

    /// Pools in a remap, by name.
    pub(super) fn settling(&self) -> Vec<SettlingStatus> {
        let (now, wall) = (clock(), wall_clock());
        let at = |moment: Instant| match moment.checked_duration_since(now) {
            Some(ahead) => wall + ahead,
            None => wall - now.duration_since(moment),
        };
        let pools = self.configuration().pools.iter().filter_map(|(name, pool)| {
            let settling = self.in_force.settling.get(&self.in_force.ids.pool(name)?)?;
            Some(SettlingStatus {
                pool: name.clone(),
                since: at(settling.since()),
                adopts_at: at(settling.adopts_at(pool.settle_time)),
                ends_at: at(settling.ends_at(pool.settle_time)),
                adopting: settling.phase(pool.settle_time, now) > Phase::Settling,
            })
        });
        pools.collect()
    }
}
