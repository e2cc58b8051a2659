//! Random configurations that share objects with each other, and random changes of them.

use std::{net::IpAddr, num::NonZeroU32, time::Duration};

use crate::reconcile::model;
use fastrand::Rng;
use lb_base::Prefix;
use lb_common::abi::member::Accepts;
use lb_model::{
    AdminState, Affinity, Backend, Configuration, Fragments, GroupSettings, Isolation, Name,
    NamedValue as _, Pool, PortList, Ports, Protocol, Rate, Region, Scaler, Service, Unserved,
    WhenFull, unserved::LocalHost,
};

/// States to choose from, up more often.
pub(crate) const STATES: [Accepts; 4] =
    [Accepts::All, Accepts::All, Accepts::OpenOnly, Accepts::Nothing];

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// A host: its region follows from its number.
pub(crate) fn host(n: u8) -> IpAddr {
    if n.is_multiple_of(5) {
        IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 1, u16::from(n)])
    } else {
        IpAddr::from([10, 0, 0, n])
    }
}

fn region(n: u8) -> Name {
    name(&format!("region{}", n % 4))
}

pub(crate) fn backend(rng: &mut Rng, n: u8) -> Backend {
    let weight = if rng.u8(..6) == 0 { 0 } else { rng.u32(1..5) };
    let mtu = n.is_multiple_of(7).then_some(1400);
    let (region, admin_state) = (region(n), AdminState::Active);
    let max_connection_rate = (rng.u8(..4) > 0).then(|| rate(rng));
    Backend { region, weight, admin_state, mtu, max_connection_rate }
}

/// A whole number, so that sums are exact in any order.
fn rate(rng: &mut Rng) -> Rate {
    Rate::new(f64::from(rng.u32(1..10_000))).unwrap()
}

fn pool(rng: &mut Rng) -> Pool {
    // Seven of the largest fit a chunk, so chunks come and go.
    let slots = *rng.choice(&[31, 251, 251, 65_537]).unwrap();
    let mut pool = Pool { slots, ..Pool::default() };
    for _ in 0..rng.u8(..7) {
        let n = rng.u8(1..30);
        pool.backends.insert(host(n), backend(rng, n));
    }
    for _ in 0..2 {
        order(rng, &mut pool);
    }
    pool
}

/// Changes something of which regions a pool's packets ask, and how far.
fn order(rng: &mut Rng, pool: &mut Pool) {
    match rng.u8(..4) {
        0 => {
            let isolations = [Isolation::None, Isolation::OnFailure, Isolation::Strict];
            pool.isolation = *rng.choice(&isolations).unwrap();
        }
        1 => {
            let mut regions: Vec<_> = (0..4).map(region).collect();
            rng.shuffle(&mut regions);
            regions.truncate(rng.usize(..3));
            pool.preferred_regions = regions;
        }
        2 => pool.panic_threshold_percent = *rng.choice(&[0, 50]).unwrap(),
        _ => limit(rng, pool),
    }
}

/// Changes a limit of a pool.
pub(crate) fn limit(rng: &mut Rng, pool: &mut Pool) {
    if rng.bool() {
        let addresses: Vec<_> = pool.backends.keys().copied().collect();
        let Some(address) = rng.choice(addresses) else { return };
        let backend = pool.backends.get_mut(&address).unwrap();
        backend.max_connection_rate = rng.bool().then(|| rate(rng));
        return;
    }
    let capacity = rng.bool().then(|| rate(rng));
    let scaler = Scaler::new(*rng.choice(&[0.0, 0.5, 1.0, 1.0]).unwrap()).unwrap();
    let settings = GroupSettings { capacity, scaler, drained: rng.u8(..5) == 0 };
    let region = region(rng.u8(..4));
    pool.groups.remove(&region);
    if settings != GroupSettings::default() {
        pool.groups.insert(region, settings);
    }
}

/// Regions, each of which overflows to some that come after it in some order.
pub(crate) fn start(rng: &mut Rng) -> Configuration {
    let mut configuration = Configuration::default();
    let mut regions: Vec<_> = (0..4).map(region).collect();
    rng.shuffle(&mut regions);
    while let Some(region) = regions.pop() {
        let mut overflow_to = regions.clone();
        rng.shuffle(&mut overflow_to);
        overflow_to.truncate(rng.usize(..4));
        configuration.regions.insert(region, Region { overflow_to });
    }
    configuration
}

/// One random change.
pub(crate) fn mutate(rng: &mut Rng, configuration: &mut Configuration) {
    let some_pool = name(&format!("pool{}", rng.u8(..5)));
    match rng.u8(..14) {
        0 | 1 => {
            let pool = pool(rng);
            configuration.pools.insert(some_pool, pool.into());
        }
        2 => {
            configuration.services.retain(|_, service| service.pool != some_pool);
            configuration.pools.remove(&some_pool);
        }
        3..=5 => {
            let n = rng.u8(1..30);
            let backend = backend(rng, n);
            if let Some(pool) = configuration.pool_mut(&some_pool)
                && pool.backends.remove(&host(n)).is_none()
            {
                pool.backends.insert(host(n), backend);
            }
        }
        6 => configuration.hash_key = rng.bool().then(|| [rng.u64(..), rng.u64(..)]),
        10 | 11 => {
            if let Some(pool) = configuration.pool_mut(&some_pool) {
                limit(rng, pool);
            }
        }
        12 => {
            if let Some(pool) = configuration.pool_mut(&some_pool) {
                order(rng, pool);
            }
        }
        13 => configuration.balancers = NonZeroU32::new(rng.u32(1..5)).unwrap(),
        7 => {
            configuration.services.remove(&name(&format!("service{}", rng.u8(..8))));
        }
        _ => service(rng, configuration),
    }
}

/// Adds a range of VIPs, or removes it.
pub(crate) fn vip_range(rng: &mut Rng, configuration: &mut Configuration) {
    let prefix = Prefix::containing(vip(rng), rng.u8(20..=128));
    if configuration.vips.remove(&prefix).is_none() {
        let unserved = *rng.choice(Unserved::ALL).unwrap();
        configuration.vips.insert(prefix, unserved);
    }
}

pub(crate) fn vip(rng: &mut Rng) -> IpAddr {
    match rng.u8(..3) {
        0 => IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]),
        n => IpAddr::from([192, 0, 2, n]),
    }
}

/// What a host is to VIPs.
pub(crate) fn local_host(rng: &mut Rng) -> LocalHost {
    let addresses = (0..rng.u8(..3)).map(|_| vip(rng)).collect();
    LocalHost { addresses, forwards_v4: rng.bool(), forwards_v6: rng.bool() }
}

/// One port, a range, or any.
fn ports(rng: &mut Rng) -> Ports {
    let first = rng.u16(80..90);
    match rng.u8(..4) {
        0 => Ports::Any,
        1 => Ports::Listed(PortList::new([(first, first + rng.u16(..300))]).unwrap()),
        _ => Ports::one(first),
    }
}

fn service(rng: &mut Rng, configuration: &mut Configuration) {
    let pools: Vec<_> = configuration.pools.keys().cloned().collect();
    let Some(pool) = rng.choice(pools) else { return };
    let address = vip(rng);
    let protocol = if rng.bool() { Protocol::Tcp } else { Protocol::Udp };
    let tracked = protocol == Protocol::Udp && rng.bool();
    let rejects = (protocol == Protocol::Tcp || tracked) && rng.bool();
    let affinity = *rng.choice(&[Affinity::Connection, Affinity::Client, Affinity::Port]).unwrap();
    let served = affinity == Affinity::Client && rng.bool();
    let service = Service {
        address,
        ports: ports(rng),
        protocol,
        pool,
        affinity,
        when_full: if rejects { WhenFull::Reject } else { WhenFull::Nearest },
        idle_timeout: tracked.then(|| Duration::from_secs(rng.u64(1..=64_800))),
        fragments: if served { Fragments::Served } else { Fragments::Dropped },
    };
    configuration
        .services
        .retain(|_, other| model::keys(other).is_disjoint(&model::keys(&service)));
    configuration.services.insert(name(&format!("service{}", rng.u8(..8))), service);
}
