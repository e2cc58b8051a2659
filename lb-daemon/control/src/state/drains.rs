//! Which configurations differ from the one in force by drains alone.

use std::collections::BTreeMap;

use lb_model::{AdminState, Configuration, GroupSettings, Pool};

/// Whether two configurations differ, and only in what takes traffic away from backends and groups or gives it back:
/// `admin_state` of backends and `drained` of groups.
pub(super) fn only_drains(before: &Configuration, after: &Configuration) -> bool {
    let are_same_pools = before.pools.len() == after.pools.len();
    let mut is_different = false;
    let mut pools = before.pools.iter().zip(&after.pools);
    are_same_pools
        && pools.all(|((name, before), (other_name, after))| {
            let is_same = before == after;
            is_different |= !is_same;
            name == other_name && (is_same || without_drains(before) == without_drains(after))
        })
        && is_different
        && without_pools(before) == without_pools(after)
}

fn without_drains(pool: &Pool) -> Pool {
    let mut pool = pool.clone();
    for backend in pool.backends.values_mut() {
        backend.admin_state = AdminState::Active;
    }
    for group in pool.groups.values_mut() {
        group.drained = false;
    }
    // A group without settings is one with the defaults.
    pool.groups.retain(|_, group| *group != GroupSettings::default());
    pool
}

fn without_pools(configuration: &Configuration) -> Configuration {
    let Configuration { regions, health_checks, pools: _, services, hash_key, balancers } =
        configuration;
    Configuration {
        regions: regions.clone(),
        health_checks: health_checks.clone(),
        pools: BTreeMap::new(),
        services: services.clone(),
        hash_key: *hash_key,
        balancers: *balancers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lb_config::document::Document;
    use lb_fake::WEB;

    fn configuration(text: &str) -> Configuration {
        lb_config::validate_first(&Document::parse(text).unwrap().into()).unwrap()
    }

    fn with(change: impl FnOnce(&mut Configuration, &mut Pool)) -> Configuration {
        let mut configuration = configuration(WEB);
        let (name, pool) = configuration.pools.pop_first().unwrap();
        let mut pool = Pool::clone(&pool);
        change(&mut configuration, &mut pool);
        configuration.pools.insert(name, pool.into());
        configuration
    }

    #[test]
    fn drains_and_their_ends_are_told_from_all_else() {
        let active = with(|_, _| ());
        let backend =
            |state| with(|_, pool| pool.backends.values_mut().next().unwrap().admin_state = state);
        let group = |settings| {
            with(|_, pool| {
                let region = pool.backends.values().next().unwrap().region.clone();
                pool.groups.insert(region, settings);
            })
        };
        let drained = group(GroupSettings { drained: true, ..GroupSettings::default() });
        let states = [backend(AdminState::Drain), backend(AdminState::Disabled), drained];
        for drains in &states {
            assert!(only_drains(&active, drains) && only_drains(drains, &active));
            assert!(!only_drains(drains, drains), "nothing changes");
        }
        assert!(only_drains(&states[0], &states[1]));
        assert!(only_drains(&states[0], &states[2]), "one ends, another begins");

        let weight = with(|_, pool| pool.backends.values_mut().next().unwrap().weight += 1);
        let both = with(|_, pool| {
            let backend = pool.backends.values_mut().next().unwrap();
            (backend.admin_state, backend.weight) = (AdminState::Drain, 0);
        });
        let removed = with(|_, pool| drop(pool.backends.pop_first()));
        let scaled =
            group(GroupSettings { scaler: lb_model::Scaler::NONE, ..GroupSettings::default() });
        let service = with(|configuration, pool| {
            configuration.services.clear();
            pool.backends.values_mut().next().unwrap().admin_state = AdminState::Drain;
        });
        let key = with(|configuration, _| configuration.hash_key = Some([1, 2]));
        let no_pool = {
            let mut configuration = configuration(WEB);
            configuration.pools.clear();
            configuration
        };
        for other in [weight, both, removed, scaled, service, key, no_pool] {
            assert!(!only_drains(&active, &other) && !only_drains(&other, &active));
        }
        assert!(!only_drains(&Configuration::EMPTY, &active));
    }
}
