//! Limits that change alone, meters that stay, and a daemon that dies while capacity comes and goes.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, Result, ensure};
use aya::maps::{Array, Map, MapData};
use fastrand::Rng;
use lb_common::abi::{
    host::HostWord,
    member::MemberState,
    meter::{FIRST_METER, LimitWord, Meter},
    names,
    pool::PoolWord,
};
use lb_daemon::{
    dataplane::{PinnedMaps, Pins, Role},
    model::{GroupSettings, Rate, Scaler},
    reconcile::Applied,
};
use lb_tests::sandbox::Sandbox;

use crate::reconcile::{
    bulk::many,
    generate::{self, name},
    model,
    world::{World, hop, interfaces},
};

/// Two pools of three backends in one region, all with a limit of 10/s and up behind one gateway.
fn two_pools(world: &mut World, interface: u32) -> Result<()> {
    world.configuration = many(2, 3, 7, 0);
    for pool in world.configuration.pools.values_mut() {
        for backend in pool.backends.values_mut() {
            backend.max_connection_rate = Rate::new(10.0);
        }
    }
    world.apply()?;
    for (pool, address) in world.states.keys().cloned().collect::<Vec<_>>() {
        world.set_next_hop(address, Some(hop(interface, 1, 0)))?;
        world.set_state(&pool, address, MemberState::Up);
    }
    Ok(())
}

/// All that packets are decided by, but for limits.
fn decided(world: &World) -> Result<(Vec<PoolWord>, Vec<u64>, Vec<HostWord>)> {
    let maps = world.read()?;
    let pools = (0..maps.pool_count()).map(|index| maps.pool(index)).collect();
    let members = (0..4096).map_while(|at| maps.member(at)).map(|word| word.0).collect();
    Ok((pools, members, (0..4096).map(|index| maps.host(index)).collect()))
}

/// All limits of groups and members that are set.
fn limits(world: &World) -> Result<BTreeMap<u32, LimitWord>> {
    let maps = world.read()?;
    let limits = (FIRST_METER..4096).map(|meter| (meter, maps.limit(meter)));
    Ok(limits.filter(|(_, limit)| !limit.is_unlimited()).collect())
}

pub(crate) fn a_limit_alone(sandbox: &Sandbox) -> Result<()> {
    let [interface, _] = interfaces("l")?;
    let mut world = World::new(sandbox, "limit")?;
    two_pools(&mut world, interface)?;
    let before = decided(&world)?;
    let mut last = limits(&world)?;
    ensure!(last.len() == 2 + 6, "{last:?}");
    for (capacity, scaler) in
        [(Some(5.0), 1.0), (Some(500.0), 1.0), (Some(500.0), 0.5), (None, 0.0)]
    {
        let capacity = capacity.and_then(Rate::new);
        let scaler = Scaler::new(scaler).unwrap();
        let settings = GroupSettings { capacity, scaler, drained: false };
        let pool = world.configuration.pools.get_mut(&name("pool1")).unwrap();
        pool.groups.insert(name("eu"), settings);
        let applied = world.apply()?;
        ensure!(applied == Applied { limits: 1, ..Applied::default() }, "{applied:?}");
        model::check(&world)?;
        ensure!(decided(&world)? == before, "{settings:?} moved something");
        let now = limits(&world)?;
        let differing = now.iter().filter(|(meter, limit)| last.get(meter) != Some(limit)).count();
        ensure!(differing == 1 && now.len() == last.len(), "{last:?} to {now:?}");
        last = now;
    }
    // More balancers: all of them but the one that is closed.
    world.configuration.balancers = 4.try_into()?;
    ensure!(world.apply()? == Applied { limits: 7, ..Applied::default() });
    model::check(&world)?;
    ensure!(decided(&world)? == before, "the number of balancers moved something");
    Ok(())
}

/// Says in a meter that connections came, as packets do.
fn arrive(bpffs: &Path, meter: u32, arrival: u64) -> Result<()> {
    let pin = Pins::new(bpffs, Role::Balancer).map(names::METERS);
    let mut meters: Array<_, [u64; size_of::<Meter>() / 8]> =
        Array::try_from(Map::from_map_data(MapData::from_pin(pin)?)?)?;
    let mut words = meters.get(&meter, 0)?;
    words[1] = arrival;
    Ok(meters.set(meter, words, 0)?)
}

/// Meters of a pool's one group and of its members, by the members' numbers.
fn meters(world: &World, pool: &str) -> Result<(u32, BTreeMap<u32, u32>)> {
    let maps = world.read()?;
    let view = maps.pool_view(world.ids.pool(&name(pool)).unwrap())?.context("no pool")?;
    let (_, group) = view.groups.first().context("no group")?;
    let words = group.head.members..group.head.members + group.head.member_count;
    let members = words.filter_map(|at| Some((at, maps.member(at)?)));
    let limited = members.filter(|(_, word)| word.is_limited());
    let meters = limited.map(|(at, word)| (word.backend(), maps.member_meter(at))).collect();
    Ok((group.meter, meters))
}

pub(crate) fn meters_stay(sandbox: &Sandbox) -> Result<()> {
    let [interface, _] = interfaces("y")?;
    let mut world = World::new(sandbox, "stay")?;
    two_pools(&mut world, interface)?;
    let (group, members) = meters(&world, "pool0")?;
    for meter in members.values().chain([&group]) {
        arrive(world.bpffs(), *meter, 1000 + u64::from(*meter))?;
    }
    // One backend more: the group is written anew, with its members.
    let more = many(1, 4, 7, 0).pools[&name("pool0")].clone();
    let new = *more.backends.keys().next_back().unwrap();
    let pool = world.configuration.pools.get_mut(&name("pool0")).unwrap();
    pool.backends.insert(new, more.backends[&new].clone());
    let applied = world.apply()?;
    ensure!((applied.groups, applied.limits) == (1, 1), "{applied:?}");
    model::check(&world)?;
    let after = meters(&world, "pool0")?;
    ensure!(after == (group, members.clone()), "{after:?}, expected {:?}", (group, members));
    world.restart()?;
    ensure!(meters(&world, "pool0")? == (group, members.clone()));
    let maps = world.read()?;
    for meter in members.values().chain([&group]) {
        let arrival = maps.meter(*meter).unwrap().arrival;
        ensure!(arrival == 1000 + u64::from(*meter), "meter {meter} began anew: {arrival}");
    }

    // What was given back begins anew with whoever has it next.
    world.configuration.pools.remove(&name("pool0"));
    world.configuration.services.remove(&name("service0"));
    world.apply()?;
    model::check(&world)?;
    let limited = many(1, 3, 7, 100).pools[&name("pool0")].clone();
    world.configuration.pools.insert(name("pool0"), limited);
    let pool = world.configuration.pools.get_mut(&name("pool0")).unwrap();
    for backend in pool.backends.values_mut() {
        backend.max_connection_rate = Rate::new(20.0);
    }
    world.apply()?;
    model::check(&world)?;
    let (again, of_members) = meters(&world, "pool0")?;
    let used: Vec<u32> = of_members.into_values().chain([again]).collect();
    ensure!(used.contains(&group), "{used:?} were never used before");
    let maps = world.read()?;
    for meter in used {
        ensure!(meter >= FIRST_METER && maps.meter(meter).unwrap().arrival == 0, "meter {meter}");
    }
    Ok(())
}

/// A daemon in whose two pools members go and come back all the time.
pub(crate) fn come_and_go(bpffs: &Path, interface: u32, ready: impl FnOnce()) -> Result<()> {
    let mut rng = Rng::new();
    let mut world = World::without_store(bpffs)?;
    two_pools(&mut world, interface)?;
    ready();
    let members: Vec<_> = world.states.keys().cloned().collect();
    loop {
        let (pool, address) = rng.choice(&members).unwrap();
        if rng.u8(..4) > 0 {
            world.set_state(pool, *address, *rng.choice(&generate::STATES).unwrap());
        } else {
            let there = rng.bool().then(|| hop(interface, 1, 0));
            world.set_next_hop(*address, there)?;
        }
    }
}

/// What holds whenever such a daemon is killed: no group has a limit above what its healthy members
/// bring, and no host is worse than one of its members.
pub(crate) fn capacity_is_there(maps: &PinnedMaps) -> Result<()> {
    for pool in 0..maps.pool_count() {
        for (_, group) in maps.pool_view(pool)?.into_iter().flat_map(|view| view.groups) {
            let mut healthy = 0;
            for at in group.head.members..group.head.members + group.head.member_count {
                let word = maps.member(at).context("no word")?;
                let up = word.state() == MemberState::Up && word.next_hop() != 0;
                healthy += u64::from(up);
                let host = maps.host(word.backend());
                let state = maps.state_in(pool, word.backend())?;
                ensure!(
                    host.incarnation() == word.incarnation()
                        && state as u8 >= word.state() as u8
                        && (host.next_hop() != 0 || word.next_hop() == 0),
                    "pool {pool}: {host:?}, {state:?} there, is the host of {word:?}"
                );
            }
            let limit = maps.limit(group.meter);
            let most = LimitWord::new(1_600_000_000_u64.checked_div(healthy).unwrap_or(0), 9);
            ensure!(
                limit.is_closed() || (healthy > 0 && limit.interval() >= most.interval()),
                "pool {pool}: {limit:?} for {healthy} healthy members"
            );
        }
    }
    Ok(())
}
