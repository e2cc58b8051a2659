//! The model's limits, limiters and backend states.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use lb_common::abi::{
    backend::BackendStateWord,
    limiter::{FIRST_LIMITER, LimitWord, NO_LIMITER},
    member::{Accepts, MemberWord},
    next_hop::NextHopWord,
    pool::{Group, ISOLATED, LIMITED, PANIC},
};
use lb_maps::{PinnedMaps, PoolView, SharedBackend, clock};
use lb_model::{Backend, GroupSettings, Isolation, Name, Pool, Rate};

use crate::reconcile::fake_daemon::FakeDaemon;

/// One of the balancers' part of so many a second.
fn share(daemon: &FakeDaemon, per_second: f64) -> LimitWord {
    let own = per_second * (1.0 / f64::from(daemon.configuration.balancers.get()));
    let burst = f64::max(10.0, own / 10.0) - own * clock::tick().unwrap() as f64 / 1e9;
    LimitWord::in_parts((16e9 / own).ceil() as u64, (burst * 16.0) as u32)
}

pub(crate) fn descriptor(pool: &Pool, order: &[Name], view: &PoolView) -> Result<()> {
    let asked = |region: &Name| order.contains(region);
    let limited = pool.groups.keys().any(asked)
        || pool.backends.values().any(|b| asked(&b.region) && b.max_connection_rate.is_some());
    let mut flags = 0;
    for (set, flag) in [
        (limited, LIMITED),
        (pool.isolation == Isolation::OnFailure, ISOLATED),
        (pool.panic_threshold_percent != 0, PANIC),
    ] {
        flags |= if set { flag } else { 0 };
    }
    ensure!(view.descriptor.flags == flags, "flags {}", view.descriptor.flags);
    let home = view.groups.first().map_or(NO_LIMITER, |(_, home)| home.limiter);
    ensure!(view.descriptor.home_limiter == home);
    Ok(())
}

pub(crate) fn group(
    daemon: &FakeDaemon,
    maps: &PinnedMaps,
    pool: &Name,
    region: &Name,
    group: &Group,
) -> Result<()> {
    let configured = &daemon.configuration.pools[pool];
    let settings = configured.groups.get(region).copied().unwrap_or_default();
    let members = configured.backends.iter().filter(|(_, b)| b.region == *region && b.weight > 0);
    let (mut healthy, mut last_resort, mut unlimited) = (0.0, 0.0, false);
    for (address, Backend { max_connection_rate, .. }) in members {
        let rate = max_connection_rate.map_or(0.0, Rate::per_second);
        unlimited |= rate == 0.0;
        let member = (pool.clone(), *address);
        if !daemon.hops.contains_key(address) {
            continue;
        }
        if daemon.states[&member] == Accepts::All {
            healthy += rate;
        } else if daemon.last_resorts.contains(&member) {
            last_resort += rate;
        }
    }
    let sum = if healthy == 0.0 { last_resort } else { healthy };
    let GroupSettings { capacity, scaler, drained } = settings;
    let expected = match capacity {
        _ if drained || scaler.share() == 0.0 => LimitWord::CLOSED,
        Some(capacity) => share(daemon, capacity.per_second() * scaler.share()),
        None if unlimited => LimitWord::UNLIMITED,
        None if sum == 0.0 => LimitWord::CLOSED,
        None => share(daemon, sum * scaler.share()),
    };
    let found = maps.limit(group.limiter);
    ensure!(found == expected, "{found:?}, expected {expected:?}");
    Ok(())
}

pub(crate) fn member(
    daemon: &FakeDaemon,
    maps: &PinnedMaps,
    (at, word): (u32, MemberWord),
    rate: Option<Rate>,
) -> Result<()> {
    ensure!(word.is_limited() == rate.is_some());
    if let Some(rate) = rate {
        let found = maps.limit(maps.member_limiter(at));
        let expected = share(daemon, rate.per_second());
        ensure!(found == expected, "{found:?}, expected {expected:?}");
    }
    Ok(())
}

/// Nobody shares a limiter, and nobody has one of the packet path's own.
pub(crate) fn limiters(maps: &PinnedMaps) -> Result<()> {
    let mut seen = BTreeSet::new();
    for pool in 0..maps.pool_count() {
        for (_, group) in maps.pool_view(pool)?.into_iter().flat_map(|view| view.groups) {
            let words = group.head.members..group.head.members + group.head.member_count;
            let limited = words.filter(|at| maps.member(*at).is_some_and(MemberWord::is_limited));
            for limiter in limited.map(|at| maps.member_limiter(at)).chain([group.limiter]) {
                ensure!(limiter >= FIRST_LIMITER && seen.insert(limiter), "limiter {limiter}");
            }
        }
    }
    Ok(())
}

/// Each backend's host has its incarnation, its next hop, and in each pool the state that it has there; in a pool that
/// does not have it, it is dead. There are no others.
pub(crate) fn hosts(daemon: &FakeDaemon, maps: &PinnedMaps) -> Result<()> {
    let mut expected = BTreeSet::new();
    let pools: Vec<(&Name, u32)> = daemon.ids.pools().collect();
    for address in daemon.mtus.keys() {
        let id = daemon.ids.backend(address).context("no number")?;
        let host = maps.backend_state(id.index);
        let has_it = pools
            .iter()
            .filter(|(name, _)| daemon.states.contains_key(&((*name).clone(), *address)));
        let several = has_it.count() > 1;
        ensure!(host.is_shared() || !several, "host {address}: {host:?}, of several pools");
        for (name, pool) in &pools {
            let (found, state) = (maps.state_in(*pool, id.index)?, daemon.host(name, *address));
            ensure!(found == state, "host {address} in {name}: {found:?}, expected {state:?}");
        }
        ensure!(host == BackendStateWord::GONE || host.incarnation() == id.incarnation);
        ensure!(host.awaits_next_hop() == daemon.awaited.contains(address), "host {address}");
        let hop = daemon.hops.get(address);
        let hop = hop.map(|hop| NextHopWord::new(hop.mac, hop.interface as u16));
        let found = maps.next_hop(u32::from(host.next_hop()));
        ensure!(found == hop.unwrap_or(NextHopWord::UNRESOLVED), "host {address}: {found:?}");
        expected.insert(id.index);
    }
    let others: Vec<_> =
        maps.backend_states().filter(|(index, _)| !expected.contains(index)).collect();
    ensure!(others.is_empty(), "hosts of nobody: {others:?}");
    let numbers: BTreeSet<u32> = pools.iter().map(|(_, pool)| *pool).collect();
    for SharedBackend { pool, backend, state } in maps.shared_backends()? {
        let known = numbers.contains(&pool) && expected.contains(&backend);
        let shared = maps.backend_state(backend).is_shared();
        ensure!(known && shared, "pool {pool}, backend {backend}: {state:?}, of nobody");
    }
    Ok(())
}
