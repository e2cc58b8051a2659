//! Who names an object, and so needs it.

use spillway_proto::v1::{Configuration, Pool};

use crate::api::convert::Quoted;

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

/// Nobody names a service.
pub(super) fn of_service(_: &Configuration, _: &str) -> Vec<String> {
    Vec::new()
}
