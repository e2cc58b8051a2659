//! Answers to questions.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use super::{Known, StatusLoop};
use crate::{
    command::{
        BackendHistory, BackendStatus, Exported, Refusal, ServiceStatus, SettlingStatus, Status,
        Subscription, WatchPosition,
    },
    members::{clock, wall_clock},
};
use lb_model::{Name, Pool};
use lb_publish::reconcile::PathReader;

impl<R: PathReader> StatusLoop<R> {
    pub(super) fn export(&self) -> Exported {
        let mut configuration = self.known.configuration().clone();
        configuration.hash_key.get_or_insert(self.known.in_force.hash_key);
        Exported {
            overrides: self.known.overrides.clone(),
            generation: self.known.in_force.generation,
            configuration,
            schema: self.settings.schema,
            unusable: self.known.in_force.unusable.as_deref().cloned(),
        }
    }

    pub(super) fn status(&mut self) -> Result<Status, Refusal> {
        let checksum = self.path.checksum().map_err(Refusal::Unreadable)?;
        let pools = self.backends.pools(&self.known);
        let configuration = self.known.configuration();
        let services = configuration.services.iter().filter_map(|(name, service)| {
            let pool = configuration.pools.get(&service.pool)?;
            let backends = pools.binary_search_by(|backends| backends.pool.cmp(&service.pool));
            Some(ServiceStatus {
                name: name.clone(),
                endpoint: service.endpoint(),
                protocol: service.protocol,
                pool: service.pool.clone(),
                backends_up: backends.map_or(0, |at| pools[at].serving),
                backends: pool.backends.len(),
                encapsulation: pool.encapsulation,
                slots: pool.slots,
            })
        });
        let services = services.collect();
        Ok(Status {
            version: env!("CARGO_PKG_VERSION"),
            region: self.settings.region.clone(),
            generation: self.known.in_force.generation,
            applied_at: self.known.in_force.applied_at,
            checksum,
            behind: self.known.in_force.behind.clone(),
            interfaces: self.path.interfaces(),
            services,
            pools,
            settling: self.known.settling(),
            conditions: self.settings.conditions.now(),
            overrides: self.known.overrides.clone(),
            unusable: self.known.in_force.unusable.as_ref().map(|it| it.cause.clone()),
            waiting_settings: self.settings.waiting_settings.now(),
            uptime: self.started.elapsed(),
        })
    }

    /// Digests over what packets of each pool are decided by, equal at balancers that decide alike.
    pub(super) fn table_digests(&mut self) -> Result<BTreeMap<Name, u64>, Refusal> {
        let digests = self.path.pool_checksums().map_err(Refusal::Unreadable)?;
        let named = self.known.in_force.ids.pools();
        Ok(named.filter_map(|(name, at)| Some((name.clone(), *digests.get(&at)?))).collect())
    }

    /// What is wrong with the packet path, if anything.
    pub(super) fn condition(&self) -> Option<String> {
        let behind = self
            .known
            .in_force
            .behind
            .as_ref()
            .map(|why| format!("the packet path is behind: {why}"));
        let unusable = self.known.in_force.unusable.as_ref().map(|unusable| {
            let (number, cause) = (unusable.number, &unusable.cause);
            format!("the stored generation {number} cannot be used: {cause}")
        });
        behind.or(unusable).or_else(|| {
            let interfaces = self.path.interfaces();
            let gone = interfaces.into_iter().find(|interface| interface.mode.is_none())?;
            Some(format!("interface {}: the packet program is not attached", gone.name))
        })
    }

    pub(super) fn watch(&mut self, from: Option<WatchPosition>) -> Result<Subscription, Refusal> {
        // No event can be missed in between: only this loop announces events.
        if let Some(subscription) = from.and_then(|from| self.announcements.resume(from)) {
            return Ok(subscription);
        }
        let snapshot = Arc::new(self.status()?);
        Ok(self.announcements.begin(snapshot))
    }

    pub(super) fn watch_again(&mut self) -> Result<Subscription, Refusal> {
        if let Some(subscription) = self.announcements.begin_shared(clock()) {
            return Ok(subscription);
        }
        let snapshot = Arc::new(self.status()?);
        self.announcements.share(Arc::clone(&snapshot), clock());
        Ok(self.announcements.begin(snapshot))
    }

    pub(super) fn one_backend(
        &mut self,
        pool: &str,
        address: &str,
    ) -> Result<BackendStatus, Refusal> {
        let name = self.known.configured_pool(pool)?.0.clone();
        let status = address
            .parse()
            .ok()
            .and_then(|address| self.backends.status(&(name, address), &self.known));
        status.ok_or_else(|| Refusal::NoBackend(pool.to_owned(), address.to_owned()))
    }
}

impl Known {
    /// A pool by its name.
    ///
    /// # Errors
    /// There is none, or the stored configuration cannot be used.
    pub(super) fn configured_pool(&self, name: &str) -> Result<(&Name, &Arc<Pool>), Refusal> {
        self.in_force.require_usable()?;
        let pools = &self.configuration().pools;
        let found = Name::new(name).ok().and_then(|name| pools.get_key_value(&name));
        found.ok_or_else(|| Refusal::NoPool(name.to_owned()))
    }

    pub(super) fn history(
        &self,
        pool: &str,
        address: Option<&str>,
    ) -> Result<Vec<BackendHistory>, Refusal> {
        let (name, configured) = self.configured_pool(pool)?;
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
                ends_at: at(settling.ends_at(pool.settle_time)),
                overdue: settling.is_overdue(pool.settle_time, now),
            })
        });
        pools.collect()
    }
}
