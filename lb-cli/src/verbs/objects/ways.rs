//! The commands that take away what keeps an object from being deleted.

use spillway_proto::v1::{Configuration, Pool, PoolRegion};

use super::calls::Id;

/// Commands that are named; of more it says how many.
const NAMED: usize = 3;

/// What to do before an object of this verb can be deleted, if anything is known.
pub(super) fn first(verb: &str, id: &Id, configuration: &Configuration) -> Option<String> {
    let commands = match verb {
        "region" => of_region(&id.name, configuration),
        "health" => of_health_check(&id.name, configuration),
        "pool" => of_pool(&id.name, configuration),
        "backend" => of_backend(id, configuration),
        _ => Vec::new(),
    };
    let (named, others) = commands.split_at(commands.len().min(NAMED));
    let named: Vec<_> = named.iter().map(|command| format!("`spillway {command}`")).collect();
    let more = match others.len() {
        0 => String::new(),
        others => format!(", and {others} more"),
    };
    let (last, before) = named.split_last()?;
    let and = if more.is_empty() { " and " } else { ", " };
    let before = before.join(", ");
    let and = if before.is_empty() { "" } else { and };
    Some(format!("nothing was changed; first {before}{and}{last}{more}"))
}

fn of_region(name: &str, configuration: &Configuration) -> Vec<String> {
    let mut commands = Vec::new();
    for pool in &configuration.pools {
        // Settings go first: the last backend of a region is not deleted while there are some.
        commands
            .extend(pool.groups.iter().filter(|g| g.region == name).filter_map(|g| unset(pool, g)));
        if pool.preferred_regions.iter().any(|region| region == name) {
            let others = without(&pool.preferred_regions, name);
            commands.push(format!("pool update {} --preferred-regions {others}", pool.name));
        }
        let backends = pool.backends.iter().filter(|backend| backend.region == name);
        commands
            .extend(backends.map(|b| format!("backend delete {} --pool {}", b.address, pool.name)));
    }
    let regions = configuration.regions.iter();
    let regions = regions.filter(|region| region.overflow_to.iter().any(|to| to == name));
    commands.extend(regions.map(|region| {
        let others = without(&region.overflow_to, name);
        format!("region update {} --overflow-to {others}", region.name)
    }));
    commands
}

fn of_health_check(name: &str, configuration: &Configuration) -> Vec<String> {
    let pools = configuration.pools.iter();
    let pools = pools.filter(|pool| pool.health_checks.iter().any(|check| check == name));
    pools
        .map(|pool| {
            let others = without(&pool.health_checks, name);
            format!("pool update {} --health-checks {others}", pool.name)
        })
        .collect()
}

fn of_pool(name: &str, configuration: &Configuration) -> Vec<String> {
    let services = configuration.services.iter().filter(|service| service.pool == name);
    services.map(|service| format!("service delete {}", service.name)).collect()
}

fn of_backend(id: &Id, configuration: &Configuration) -> Vec<String> {
    let Some(pool) = configuration.pools.iter().find(|pool| pool.name == id.pool) else {
        return Vec::new();
    };
    let region = pool.backends.iter().find(|b| b.address == id.name).map(|b| &b.region);
    let groups = pool.groups.iter().filter(|group| Some(&group.region) == region);
    groups.filter_map(|group| unset(pool, group)).collect()
}

/// Takes a pool's settings for a region away; that it is drained goes by itself.
fn unset(pool: &Pool, group: &PoolRegion) -> Option<String> {
    let region = &group.region;
    let capacity = group.capacity_per_second.map(|_| format!(" --capacity {region}="));
    let scaled = group.scaler.filter(|scaler| *scaler != 1.0);
    let scaler = scaled.map(|_| format!(" --scaler {region}="));
    let flags = capacity.into_iter().chain(scaler).collect::<String>();
    (!flags.is_empty()).then(|| format!("pool update {}{flags}", pool.name))
}

/// A list as its flag has it, without one of them.
fn without(names: &[String], name: &str) -> String {
    let others: Vec<_> = names.iter().filter(|other| *other != name).cloned().collect();
    if others.is_empty() { "\"\"".into() } else { others.join(",") }
}

#[cfg(test)]
mod tests {
    use spillway_proto::v1::{Backend, Region, Service};

    use super::*;

    fn scene() -> Configuration {
        let region = |name: &str, to: &[&str]| Region {
            name: name.into(),
            overflow_to: to.iter().map(ToString::to_string).collect(),
        };
        let backend = |address: &str, region: &str| Backend {
            address: address.into(),
            region: region.into(),
            ..Backend::default()
        };
        let group = |region: &str, capacity, scaler| PoolRegion {
            region: region.into(),
            capacity_per_second: capacity,
            scaler,
            drained: true,
        };
        let service =
            |name: &str| Service { name: name.into(), pool: "web".into(), ..Service::default() };
        let web = Pool {
            name: "web".into(),
            health_checks: vec!["page".into(), "tls".into()],
            preferred_regions: vec!["us".into(), "eu".into()],
            groups: vec![group("us", Some(5.0), Some(0.5)), group("eu", None, Some(1.0))],
            backends: vec![backend("10.1.0.11", "eu"), backend("10.2.0.11", "us")],
            ..Pool::default()
        };
        Configuration {
            regions: vec![region("eu", &["us"]), region("us", &[])],
            pools: vec![web],
            services: ["a", "b", "c", "d", "e"].map(service).to_vec(),
            ..Configuration::default()
        }
    }

    fn of(verb: &str, pool: &str, name: &str) -> Option<String> {
        first(verb, &Id { pool: pool.into(), name: name.into() }, &scene())
    }

    #[test]
    fn each_user_has_its_command() {
        assert_eq!(
            of("region", "", "us").unwrap(),
            "nothing was changed; first `spillway pool update web --capacity us= --scaler us=`, \
             `spillway pool update web --preferred-regions eu`, \
             `spillway backend delete 10.2.0.11 --pool web`, and 1 more"
        );
        assert_eq!(
            of("health", "", "tls").unwrap(),
            "nothing was changed; first `spillway pool update web --health-checks page`"
        );
        assert_eq!(
            of("pool", "", "web").unwrap(),
            "nothing was changed; first `spillway service delete a`, `spillway service delete b`, \
             `spillway service delete c`, and 2 more"
        );
        assert_eq!(
            of("backend", "web", "10.2.0.11").unwrap(),
            "nothing was changed; first `spillway pool update web --capacity us= --scaler us=`"
        );
        // That it is drained is nothing that has to go first.
        assert_eq!(of("backend", "web", "10.1.0.11"), None);
        assert_eq!(without(&["us".into()], "us"), "\"\"");
    }
}
