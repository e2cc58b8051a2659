//! Configurations of any size, as messages of the API.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::Result;
use spillway_proto::v1::{
    Backend, Configuration, HealthCheck, HttpCheck, Pool, Protocol, Region, Service, TcpCheck,
    health_check::Kind,
};

/// The one region.
pub(crate) const REGION: &str = "eu";
/// The VIP of all services; the `n`th has port `n + 1`.
pub(crate) const VIP: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
/// What all backends are in.
pub(crate) const BACKENDS: &str = "10.64.0.0/10";
/// The first of these that is a backend.
const FIRST: u32 = 0x0a40_0001;
/// Hosts that backends of fleets are taken from, so that most are in several pools. No limit of the daemon's default
/// settings is reached, and no two pools have the same backends: they would share a table.
const HOSTS: u32 = 16_000;
/// From the first host of a pool to that of the next; with no common divisor with the above.
const STEP: u32 = 7;

/// How a fleet differs from the plain one, in every pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    /// Not at all.
    Nothing,
    /// A backend more.
    OneMore,
    /// Another weight of one backend.
    OneWeight,
}

/// Pools of as many backends each, a service for each, without checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fleet {
    /// Pools.
    pub(crate) pools: u32,
    /// Backends of each.
    pub(crate) backends: u32,
}

impl Fleet {
    /// Backends, each counted for each pool.
    pub(crate) const fn size(self) -> u32 {
        self.pools * self.backends
    }

    /// All of it.
    pub(crate) fn configuration(self, edit: Edit) -> Configuration {
        let more = u32::from(edit == Edit::OneMore);
        let pool = |number: u32| {
            let hosts = (0..self.backends + more).map(|n| host((number * STEP + n) % HOSTS));
            let mut backends: Vec<_> = hosts.map(backend).collect();
            if let (Edit::OneWeight, Some(first)) = (edit, backends.first_mut()) {
                first.weight = Some(2);
            }
            Pool { name: pool_name(number), backends, ..Pool::default() }
        };
        configuration((0..self.pools).map(pool).collect())
    }
}

/// Pools of up to `per_pool` of so many backends, each backend in one pool, all with the same check.
pub(crate) fn checked(backends: u32, per_pool: u32, check: HealthCheck) -> Configuration {
    let pool = |number: u32| {
        let first = number * per_pool;
        Pool {
            name: pool_name(number),
            backends: (first..backends.min(first + per_pool)).map(host).map(backend).collect(),
            health_checks: vec![check.name.clone()],
            // Backends fail again and again, and must come back at once.
            hold_down: Some(Default::default()),
            ..Pool::default()
        }
    };
    let mut all = configuration((0..backends.div_ceil(per_pool)).map(pool).collect());
    all.health_checks = vec![check];
    all
}

/// A check that decides by each of its results, by HTTP or a TCP connection, exactly so often.
///
/// # Errors
/// An interval that is no duration of the API.
pub(crate) fn check(is_http: bool, port: u16, interval: Duration) -> Result<HealthCheck> {
    Ok(HealthCheck {
        name: "check".into(),
        port: port.into(),
        interval: Some(interval.try_into()?),
        rise: 1,
        fall: 1,
        jitter_percent: Some(0),
        kind: Some(match is_http {
            true => Kind::Http(HttpCheck::default()),
            false => Kind::Tcp(TcpCheck {}),
        }),
        ..HealthCheck::default()
    })
}

/// Adds a pool with a check of its own, and its service.
pub(crate) fn add_pool(
    all: &mut Configuration,
    name: &str,
    backends: &[Ipv4Addr],
    check: HealthCheck,
) {
    all.pools.push(Pool {
        name: name.into(),
        backends: backends.iter().copied().map(backend).collect(),
        health_checks: vec![check.name.clone()],
        // Its backends fail again and again.
        hold_down: Some(Default::default()),
        ..Pool::default()
    });
    all.services.push(service(all.services.len(), name));
    all.health_checks.push(check);
}

/// The name of a pool by its number.
pub(crate) fn pool_name(number: u32) -> String {
    format!("pool{number}")
}

/// The address of a host by its number.
pub(crate) fn host(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(FIRST + number)
}

fn backend(address: Ipv4Addr) -> Backend {
    Backend {
        address: address.to_string(),
        region: REGION.into(),
        weight: Some(1),
        ..Backend::default()
    }
}

fn service(number: usize, pool: &str) -> Service {
    Service {
        name: format!("service{number}"),
        address: VIP.to_string(),
        port: number as u32 + 1,
        protocol: Protocol::Tcp.into(),
        pool: pool.into(),
        ..Service::default()
    }
}

fn configuration(pools: Vec<Pool>) -> Configuration {
    Configuration {
        regions: vec![Region { name: REGION.into(), ..Region::default() }],
        services: pools.iter().enumerate().map(|(n, pool)| service(n, &pool.name)).collect(),
        pools,
        hash_key: "000102030405060708090a0b0c0d0e0f".into(),
        ..Configuration::default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn addresses(pool: &Pool) -> Vec<&str> {
        pool.backends.iter().map(|backend| backend.address.as_str()).collect()
    }

    #[test]
    fn no_two_pools_of_a_fleet_have_the_same_backends() {
        let fleet = Fleet { pools: 10_000, backends: 10 };
        let all = fleet.configuration(Edit::Nothing);
        let sets: HashSet<Vec<&str>> = all
            .pools
            .iter()
            .map(|pool| {
                let mut set = addresses(pool);
                set.sort_unstable();
                set.dedup();
                assert_eq!(set.len(), 10);
                set
            })
            .collect();
        assert_eq!(sets.len(), 10_000);
        assert_eq!(all.services.len(), 10_000);
        assert_eq!(fleet.size(), 100_000);
    }

    #[test]
    fn an_edit_changes_every_pool_by_one_thing() {
        let fleet = Fleet { pools: 3, backends: 4 };
        let plain = fleet.configuration(Edit::Nothing);
        let more = fleet.configuration(Edit::OneMore);
        let weight = fleet.configuration(Edit::OneWeight);
        for (number, plain) in plain.pools.iter().enumerate() {
            assert_eq!(addresses(&more.pools[number])[..4], addresses(plain)[..]);
            assert_eq!(more.pools[number].backends.len(), 5);
            let changed = plain.backends.iter().zip(&weight.pools[number].backends);
            assert_eq!(changed.filter(|(before, after)| before != after).count(), 1);
        }
    }

    #[test]
    fn checked_backends_are_in_one_pool_each() {
        let check = check(false, 80, Duration::from_secs(1)).unwrap();
        let all = checked(250, 100, check);
        let sizes: Vec<_> = all.pools.iter().map(|pool| pool.backends.len()).collect();
        assert_eq!(sizes, [100, 100, 50]);
        let distinct: HashSet<_> = all.pools.iter().flat_map(addresses).collect();
        assert_eq!(distinct.len(), 250);
        assert!(all.pools.iter().all(|pool| pool.health_checks == ["check"]));
    }
}
