//! Warnings: consequences of a change that its author may not have intended.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use super::{State, remaps::EndedRemap};
use crate::command::{Actor, MOST_OF_ONE_REASON, Warning, WarningReason, packet_path_behind};
use lb_base::background::Job;
use lb_config::slots_by_pool;
use lb_model::{
    Configuration, Encapsulation, Name, ObjectReference, Pool, Via,
    overrides::{Key, Kind, Override, Target},
    own_addresses::Takeover,
    remap::Settling,
    slots,
};
use lb_publish::publisher::MovedSlots;

/// How long a change waits for the followed file to be read.
const FILE_WAIT: Duration = Duration::from_secs(1);

/// That it would be refused because services get addresses of balancers.
pub(super) fn takeover_warnings(takeovers: &[Takeover]) -> impl Iterator<Item = Warning> {
    takeovers.iter().take(MOST_OF_ONE_REASON).map(|takeover| {
        let service = ObjectReference::Service(takeover.service.clone());
        let text = format!("{takeover}: this needs --force");
        Warning::about(service, WarningReason::ForceRequired, text)
    })
}

/// That remaps end before their settle time is over.
pub(super) fn remap_warnings<'a>(
    ended: impl Iterator<Item = &'a EndedRemap>,
) -> impl Iterator<Item = Warning> {
    ended.take(MOST_OF_ONE_REASON).map(|EndedRemap { pool, slots: MovedSlots { moved, of } }| {
        let text = format!(
            "pool {pool}: changes have kept a remap from its end for {} settle times, and this one ends it: open connections \
             of {moved} of {of} slots that have sent nothing since the last of them may be reset",
            Settling::LONGEST
        );
        Warning::about(ObjectReference::Pool(pool.clone()), WarningReason::RemapEnded, text)
    })
}

impl State {
    /// Pools with services that would lose their last backend for new connections, by what is known of backends now.
    /// This includes pools that a service is pointed at.
    fn emptied_pools<'a>(&self, next: &'a Configuration) -> BTreeSet<&'a Name> {
        let now = &self.current.configuration;
        let overrides = self.overrides.borrow();
        let serves = |configuration: &Configuration, name: &Name| {
            let pool = configuration.pools.get(name);
            pool.is_some_and(|pool| self.publishing.view.serves(&overrides, name, pool))
        };
        let used: BTreeSet<&Name> = next.services.values().map(|service| &service.pool).collect();
        let own = used.into_iter().filter(|name| serves(now, name));
        // A service that is pointed to another pool takes its clients there.
        let pointed = next.services.iter().filter_map(|(name, service)| {
            let before = now.services.get(name)?;
            serves(now, &before.pool).then_some(&service.pool)
        });
        own.chain(pointed).filter(|pool| !serves(next, pool)).collect()
    }

    /// Warnings about pools that lose their last backend for new connections, and about services of pools
    /// without backends. What does not change was reported before.
    pub(super) fn unserved_warnings(&self, next: &Configuration) -> Vec<Warning> {
        let now = &self.current.configuration;
        let emptied = self.emptied_pools(next);
        let mut services: BTreeMap<&Name, Vec<&Name>> = BTreeMap::new();
        for (name, service) in &next.services {
            let Some(pool) = next.pools.get(&service.pool) else { continue };
            let is_as_it_was = now.services.get(name) == Some(service)
                && now.pools.get(&service.pool).is_some_and(|pool| pool.backends.is_empty());
            if pool.backends.is_empty() && !is_as_it_was && !emptied.contains(&service.pool) {
                services.entry(&service.pool).or_default().push(name);
            }
        }
        let warning = |(pool, services): (&Name, Vec<&Name>)| {
            let services = listed(&services);
            let text =
                format!("pool {pool} has no backends, so all packets of {services} are dropped");
            Warning::about(ObjectReference::Pool(pool.clone()), WarningReason::PoolEmpty, text)
        };
        let left = |pool: &&Name| Warning::pool_unserved(pool);
        emptied.iter().map(left).chain(services.into_iter().map(warning)).collect()
    }

    /// Warnings about backends whose weight is too small for a slot of their table. What does not change was reported
    /// before, and is a condition.
    pub(super) fn slot_warnings(&self, next: &Configuration) -> Vec<Warning> {
        let now = &self.current.configuration.pools;
        let changed = next.pools.iter().filter(|(name, pool)| now.get(*name) != Some(*pool));
        let of_pool = |(name, pool): (&Name, &Arc<Pool>)| {
            let without = slots::without_slots(pool)?;
            let before = now.get(name).and_then(|pool| slots::without_slots(pool));
            let text = format!("pool {name}: {without}; {}", without.hint());
            let pool = ObjectReference::Pool(name.clone());
            let is_new = before.as_ref() != Some(&without);
            is_new.then(|| Warning::about(pool, WarningReason::WithoutSlots, text))
        };
        changed.filter_map(of_pool).take(MOST_OF_ONE_REASON).collect()
    }

    /// Warnings about pools whose checks all pass while clients get no answer: none goes through the tunnel. What does
    /// not change was reported before.
    pub(super) fn tunnel_warnings(&self, next: &Configuration) -> Vec<Warning> {
        let before = pools_without_tunnel_check(&self.current.configuration);
        let new =
            pools_without_tunnel_check(next).into_iter().filter(|pool| !before.contains(pool));
        let warning = |pool: &Name| {
            let text = format!(
                "pool {pool}: no health check goes through the tunnel, so a backend without the VIP or the receiver counts \
                 as up; set via = \"tunnel\" in a health check"
            );
            let pool = ObjectReference::Pool(pool.clone());
            Warning::about(pool, WarningReason::TunnelUnchecked, text)
        };
        new.take(MOST_OF_ONE_REASON).map(warning).collect()
    }

    /// Warnings about overrides of what a change sets. They stay in force beside it.
    pub(super) fn override_warnings(&self, next: &Configuration) -> Vec<Warning> {
        let overrides = Arc::clone(&self.overrides.borrow());
        let set = overrides.iter().filter(|(key, _)| self.sets(next, key));
        let warning = |(key, it): (&Key, &Override)| {
            let Override { action, who, .. } = it;
            let text = format!(
                "{}: the override {action} of {who} stays in force beside this change",
                key.target
            );
            Warning::about((&key.target).into(), WarningReason::Overridden, text)
        };
        let mut warnings: Vec<_> = set.take(MOST_OF_ONE_REASON + 1).map(warning).collect();
        if warnings.len() > MOST_OF_ONE_REASON {
            warnings.truncate(MOST_OF_ONE_REASON);
            let text = "more overrides stay in force beside this change: `spillway override list`";
            warnings.push(Warning::new(WarningReason::Overridden, text));
        }
        warnings
    }

    /// Whether a change sets what an override is about.
    fn sets(&self, next: &Configuration, Key { target, kind, .. }: &Key) -> bool {
        let pools = |name: &Name| {
            let (before, after) =
                (self.current.configuration.pools.get(name)?, next.pools.get(name)?);
            (before != after).then_some((before, after))
        };
        let sets_backend = |name: &Name, address: &IpAddr| {
            pools(name).is_some_and(|(before, after)| {
                let backends = before.backends.get(address).zip(after.backends.get(address));
                backends.is_some_and(|(before, after)| match kind {
                    Kind::Weight => before.weight != after.weight,
                    _ => before.admin_state != after.admin_state,
                })
            })
        };
        let sets_group = |name: &Name, region: Option<&Name>| {
            pools(name).is_some_and(|(before, after)| {
                let regions = before.groups.keys().chain(after.groups.keys());
                let mut regions = regions.filter(|it| region.is_none_or(|region| region == *it));
                regions.any(|region| {
                    let asked = |pool: &Pool| pool.group(region).effective_scaler();
                    asked(before) != asked(after)
                })
            })
        };
        match target {
            Target::Backend { address, pool: Some(pool) } => sets_backend(pool, address),
            Target::Backend { address, pool: None } => self
                .publishing
                .view
                .pools_of(address)
                .iter()
                .any(|pool| sets_backend(pool, address)),
            Target::Pool(pool) => sets_group(pool, None),
            Target::Group { pool, region } => sets_group(pool, Some(region)),
            Target::Region(region) => {
                self.current.configuration.pools.keys().any(|pool| sets_group(pool, Some(region)))
            }
        }
    }

    /// Warnings about backends that are behind a gateway and would get nothing with direct return.
    pub(super) fn gateway_warnings(&self, next: &Configuration) -> Vec<Warning> {
        let direct =
            next.pools.iter().filter(|(_, pool)| pool.encapsulation == Encapsulation::Direct);
        let of_pool = |(name, pool): (&Name, &Arc<Pool>)| {
            let by = |address: &IpAddr| match self.publishing.view.next_hop(address) {
                Some(Ok(hop)) if hop.gateway != *address => Some((*address, hop.gateway)),
                _ => None,
            };
            let behind: Vec<_> = pool.backends.keys().filter_map(by).collect();
            let (first, gateway) = behind.first()?;
            let text = format!(
                "pool {name} uses direct return, but {} of its {} backends are behind a gateway ({first} behind \
                 {gateway}) and get no packets",
                behind.len(),
                pool.backends.len()
            );
            let pool = ObjectReference::Pool(name.clone());
            Some(Warning::about(pool, WarningReason::BehindGateway, text))
        };
        direct.filter_map(of_pool).collect()
    }

    pub(super) fn behind_warning(&self) -> Option<Warning> {
        let (generation, why) = (self.storing.generation(), self.current.behind.as_ref()?);
        let text = format!("{}: {why}", packet_path_behind(generation));
        Some(Warning::new(WarningReason::PacketPathBehind, text))
    }

    /// Warns if the followed file would undo a change.
    pub(super) async fn file_warning(
        &mut self,
        next: &Configuration,
        actor: &Actor,
    ) -> Option<Warning> {
        // A member of a fleet reads no file.
        if matches!(actor, Actor::File(_) | Actor::Fleet { .. }) {
            return None;
        }
        let followed = self.settings.followed.clone();
        // A disk that hangs costs the warning, not the change.
        let read = Job::start(move || followed.read()).within(FILE_WAIT).await;
        let (path, requested) = read.ok()?.ok()??;
        let resolved = requested.and_then(|file| file.resolve(&slots_by_pool(next)).ok());
        let agrees = resolved.is_some_and(|mut configuration| {
            self.storing.leave_out_own_key(&mut configuration);
            configuration == *next
        });
        let path = path.display();
        (!agrees).then(|| {
            let text = format!(
                "the daemon reads {path} at its next start or reload, which reverts this change: \
                 change the file too"
            );
            Warning::new(WarningReason::FileDiffers, text)
        })
    }
}

/// Pools of services that have checks and a tunnel, but no check through it.
fn pools_without_tunnel_check(configuration: &Configuration) -> BTreeSet<&Name> {
    let is_tunnelled = |check: &Name| {
        let check = configuration.health_checks.get(check);
        check.is_some_and(|check| check.via == Via::Tunnel)
    };
    let lacks_check = |pool: &Pool| {
        let checks = &pool.health_checks;
        let has_tunnel = pool.encapsulation != Encapsulation::Direct;
        has_tunnel && !checks.is_empty() && !checks.iter().any(is_tunnelled)
    };
    let used = configuration.services.values().map(|service| &service.pool);
    used.filter(|name| configuration.pools.get(*name).is_some_and(|pool| lacks_check(pool)))
        .collect()
}

/// Like `service web` or `services api, web`, with a limit.
fn listed(services: &[&Name]) -> String {
    const MOST: usize = 5;
    let shown: Vec<_> = services.iter().take(MOST).map(ToString::to_string).collect();
    let more = services.len().saturating_sub(MOST);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let word = if services.len() == 1 { "service" } else { "services" };
    format!("{word} {}{more}", shown.join(", "))
}
