//! Who names an object, and so needs it.

use spillway_proto::v1::{Configuration, Group, Pool};

use lb_base::Quoted;

/// Pools that have backends or settings in a region or prefer it, and regions that overflow to it.
pub(super) fn of_region(configuration: &Configuration, name: &str) -> Vec<String> {
    let pools = configuration.pools.iter().flat_map(|pool| {
        let backends = pool.backends.iter().filter(|backend| backend.region == name).count();
        let uses = [
            (backends == 1, "has a backend there"),
            (backends > 1, "has backends there"),
            (pool.groups.iter().any(|group| group.region == name), "has settings for it"),
            (pool.preferred_regions.iter().any(|region| region == name), "prefers it"),
        ];
        let uses = uses.into_iter().filter(|(is, _)| *is);
        uses.map(|(_, how)| format!("pool {} {how}", Quoted(&pool.name)))
    });
    let regions = configuration.regions.iter();
    let regions = regions.filter(|region| region.overflow_to.iter().any(|to| to == name));
    pools.chain(regions.map(|r| format!("region {} overflows to it", Quoted(&r.name)))).collect()
}

/// Pools that are checked by a health check.
pub(super) fn of_health_check(configuration: &Configuration, name: &str) -> Vec<String> {
    let checked = |pool: &&Pool| pool.health_checks.iter().any(|check| check == name);
    let pools = configuration.pools.iter().filter(checked);
    pools.map(|pool| format!("pool {} is checked by it", Quoted(&pool.name))).collect()
}

/// Services of a pool.
pub(super) fn of_pool(configuration: &Configuration, name: &str) -> Vec<String> {
    let services = configuration.services.iter().filter(|service| service.pool == name);
    services.map(|service| format!("service {} is served by it", Quoted(&service.name))).collect()
}

/// The pool of a backend, where it has settings for the region of which this is the last one. That the
/// region is drained is none: it goes with the backend.
pub(super) fn of_backend(pool: &Pool, address: &str) -> Vec<String> {
    let Some(gone) = pool.backends.iter().find(|backend| backend.address == address) else {
        return Vec::new();
    };
    let there = pool.backends.iter().filter(|backend| backend.region == gone.region).count();
    let sets = |group: &&Group| {
        let scaled = group.scaler.is_some_and(|scaler| scaler != 1.0);
        group.region == gone.region && (group.capacity_per_second.is_some() || scaled)
    };
    let settings = pool.groups.iter().filter(|group| there == 1 && sets(group));
    let of = |group: &Group| {
        let (pool, region) = (Quoted(&pool.name), Quoted(&group.region));
        format!(
            "pool {pool} has a capacity or scaler for region {region}, and no other backend there"
        )
    };
    settings.map(of).collect()
}

/// Nobody names a service.
pub(super) fn of_service(_: &Configuration, _: &str) -> Vec<String> {
    Vec::new()
}
