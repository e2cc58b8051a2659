//! A changed limit changes a limiter alone, limiters keep their counts, and a killed daemon leaves no limit too high.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use fastrand::Rng;
use lb_common::abi::{
    arrays::Array,
    backend::BackendStateWord,
    clock::ticks_at_start,
    limiter::{FIRST_LIMITER, LimitWord, Limiter},
    member::Accepts,
    pool::PoolWord,
};
use lb_maps::{Arrays, MappingMut, PinnedMaps, clock};
use lb_model::{
    GroupSettings, Rate, Scaler,
    capacity::{GroupName, Portion, Portions},
};
use lb_publish::reconcile::{ApplySummary, MemberPath as _, MemberWords};
use lb_tests::sandbox::Sandbox;

use crate::reconcile::{
    bulk::many,
    fake_daemon::{FakeDaemon, hop, interfaces},
    model,
    random::{self, name},
};

/// Two pools of three backends in one region, all with a limit of 10/s and up behind one gateway.
fn two_pools(daemon: &mut FakeDaemon, interface: u32) -> Result<()> {
    daemon.configuration = many(2, 3, 7, 0);
    for pool in daemon.configuration.pools.values_mut() {
        for backend in Arc::make_mut(pool).backends.values_mut() {
            backend.max_connection_rate = Rate::new(10.0);
        }
    }
    daemon.apply()?;
    for (pool, address) in daemon.states.keys().cloned().collect::<Vec<_>>() {
        daemon.set_next_hop(address, Some(hop(interface, 1, 0)))?;
        daemon.set_state(&pool, address, Accepts::All);
    }
    Ok(())
}

/// All that packets are decided by, but for limits.
fn decided(daemon: &FakeDaemon) -> Result<(Vec<PoolWord>, Vec<u64>, Vec<BackendStateWord>)> {
    let maps = daemon.read()?;
    let pools = (0..maps.pool_count()).map(|index| maps.pool(index)).collect();
    let members = (0..4096).map_while(|at| maps.member(at)).map(|word| word.0).collect();
    Ok((pools, members, (0..4096).map(|index| maps.backend_state(index)).collect()))
}

/// All limits of groups and members that are set.
fn limits(daemon: &FakeDaemon) -> Result<BTreeMap<u32, LimitWord>> {
    let maps = daemon.read()?;
    let limits = (FIRST_LIMITER..65_536).map(|limiter| (limiter, maps.limit(limiter)));
    Ok(limits.filter(|(_, limit)| !limit.is_unlimited()).collect())
}

pub(crate) fn a_limit_alone(sandbox: &Sandbox) -> Result<()> {
    let [interface, _] = interfaces("l")?;
    let mut daemon = FakeDaemon::new(sandbox, "limit")?;
    two_pools(&mut daemon, interface)?;
    let before = decided(&daemon)?;
    let mut last = limits(&daemon)?;
    ensure!(last.len() == 2 + 6, "{last:?}");
    for (capacity, scaler) in
        [(Some(5.0), 1.0), (Some(500.0), 1.0), (Some(500.0), 0.5), (None, 0.0)]
    {
        let capacity = capacity.and_then(Rate::new);
        let scaler = Scaler::new(scaler).unwrap();
        let settings = GroupSettings { capacity, scaler, drained: false };
        let pool = daemon.configuration.pool_mut(&name("pool1")).unwrap();
        pool.groups.insert(name("eu"), settings);
        let applied = daemon.apply()?;
        ensure!(applied == ApplySummary { limits: 1, ..ApplySummary::default() }, "{applied:?}");
        model::check(&daemon)?;
        ensure!(decided(&daemon)? == before, "{settings:?} moved something");
        let now = limits(&daemon)?;
        let differing =
            now.iter().filter(|(limiter, limit)| last.get(limiter) != Some(limit)).count();
        ensure!(differing == 1 && now.len() == last.len(), "{last:?} to {now:?}");
        last = now;
    }
    // More balancers: all of them but the one that is closed.
    daemon.configuration.balancers = 4.try_into()?;
    ensure!(daemon.apply()? == ApplySummary { limits: 7, ..ApplySummary::default() });
    model::check(&daemon)?;
    ensure!(decided(&daemon)? == before, "the number of balancers moved something");
    Ok(())
}

/// Puts portions of the pools' groups in force.
fn own(words: &mut MemberWords, portions: [f64; 2]) {
    let groups: [GroupName; 2] = ["pool0", "pool1"].map(|pool| (name(pool), name("eu")));
    let portions = portions.map(|fraction| Portion::new(fraction).unwrap());
    let portions = groups.iter().cloned().zip(portions).collect();
    words.set_portions(Portions::Fleet(Arc::new(portions)).into());
    assert_eq!(words.update_group_limits(&groups), groups.len());
}

/// Groups and members keep to the portions, whatever becomes of health and settings. While settings change, the lower
/// capacity counts.
pub(crate) fn portions(sandbox: &Sandbox) -> Result<()> {
    let [interface, _] = interfaces("o")?;
    let mut daemon = FakeDaemon::new(sandbox, "portions")?;
    two_pools(&mut daemon, interface)?;
    let (group, members) = limiters(&daemon, "pool0")?;
    let (other, _) = limiters(&daemon, "pool1")?;
    let every = |seconds: f64| (16e9 * seconds).ceil() as u64;
    let interval = |daemon: &FakeDaemon, limiter: u32| -> Result<u64> {
        Ok(daemon.read()?.limit(limiter).interval())
    };
    ensure!(daemon.words().is_described());
    ensure!(daemon.words().groups().len() == 2);

    own(daemon.words(), [0.5, 0.0]);
    ensure!(interval(&daemon, group)? == every(1.0 / 15.0), "half of 30 a second");
    for limiter in members.values() {
        ensure!(interval(&daemon, *limiter)? == every(1.0 / 5.0), "half of 10 a second");
    }
    ensure!(daemon.read()?.limit(other).is_closed());
    let ((pool, address), _) = daemon.states.first_key_value().context("no member")?;
    let (pool, address) = (pool.clone(), *address);
    ensure!(pool == name("pool0"));
    daemon.set_state(&pool, address, Accepts::Nothing);
    ensure!(interval(&daemon, group)? == every(1.0 / 10.0), "half of 20 a second");
    daemon.set_state(&pool, address, Accepts::All);
    own(daemon.words(), [0.1, 1.0]);
    ensure!(interval(&daemon, group)? == every(1.0 / 3.0));
    ensure!(interval(&daemon, other)? == every(1.0 / 30.0));

    // Ten times the capacity, and in the middle of it ever less of it: until the new settings alone are in force, it is
    // that part of the capacity before.
    let capacity = Rate::new(300.0);
    let settings = GroupSettings { capacity, ..GroupSettings::default() };
    daemon.configuration.pool_mut(&pool).unwrap().groups.insert(name("eu"), settings);
    let (plan, mut steps, mut portion) = (daemon.plan()?, Vec::new(), 0.1);
    daemon.publish_beside(&plan, |words| {
        portion *= 0.8;
        own(words, [portion, 1.0]);
        steps.push((portion, words.maps().limit(group).interval()));
    })?;
    let is_of = |capacity: f64, (portion, found): &(f64, u64)| {
        found.abs_diff(every(1.0 / (capacity * portion))) <= 1
    };
    let settled = steps.iter().position(|step| is_of(300.0, step)).unwrap_or(steps.len());
    ensure!(settled > 1, "{steps:?}");
    ensure!(steps[..settled].iter().all(|step| is_of(30.0, step)), "{steps:?}");
    ensure!(steps[settled..].iter().all(|step| is_of(300.0, step)), "{steps:?}");
    ensure!(is_of(300.0, &(portion, interval(&daemon, group)?)), "{steps:?}");

    // A group that has no portion yet is closed.
    daemon.configuration = many(3, 3, 7, 0);
    let settings = GroupSettings { capacity: Rate::new(10.0), ..GroupSettings::default() };
    daemon.configuration.pool_mut(&name("pool2")).unwrap().groups.insert(name("eu"), settings);
    daemon.apply()?;
    let (new, _) = limiters(&daemon, "pool2")?;
    ensure!(daemon.read()?.limit(new).is_closed());
    Ok(())
}

/// Says in a limiter that connections came, as packets do.
fn arrive(bpffs: &Path, limiter: u32, arrival: u64) -> Result<()> {
    let limiters = Arrays::<MappingMut>::open(bpffs)?.view::<Limiter>(Array::Limiters);
    let before = limiters.get(limiter).context("no such limiter")?;
    limiters.set(limiter, &Limiter { arrival, ..before });
    Ok(())
}

/// Limiters of a pool's one group and of its members, by the members' numbers.
fn limiters(daemon: &FakeDaemon, pool: &str) -> Result<(u32, BTreeMap<u32, u32>)> {
    let maps = daemon.read()?;
    let view = maps.pool_view(daemon.ids.pool(&name(pool)).unwrap())?.context("no pool")?;
    let (_, group) = view.groups.first().context("no group")?;
    let words = group.head.members..group.head.members + group.head.member_count;
    let members = words.filter_map(|at| Some((at, maps.member(at)?)));
    let limited = members.filter(|(_, word)| word.is_limited());
    let limiters = limited.map(|(at, word)| (word.backend(), maps.member_limiter(at))).collect();
    Ok((group.limiter, limiters))
}

/// The number of the kernel's ticks, from where only root can read it (kernel/time/timer_list.c).
fn ticks() -> Result<u64> {
    let timers = fs::read_to_string("/proc/timer_list")?;
    let ticks = timers.lines().find_map(|line| line.strip_prefix("jiffies: "));
    Ok(ticks.context("no number of ticks")?.trim().parse()?)
}

/// What the loader measured is the packet path's clock: to the tick, and after a restart too.
pub(crate) fn clock_is_known(sandbox: &Sandbox) -> Result<()> {
    let tick = clock::tick()?;
    let since_start = |ticks: u64| (ticks - ticks_at_start(tick)) * tick;
    let mut daemon = FakeDaemon::new(sandbox, "clock")?;
    for _ in 0..2 {
        let maps = daemon.read()?;
        for _ in 0..100 {
            let (before, now, after) = (ticks()?, maps.now(), ticks()?);
            let expected = since_start(before) - tick..=since_start(after) + tick;
            ensure!(expected.contains(&now), "{now} is not in {expected:?}");
        }
        daemon.restart()?;
    }
    Ok(())
}

/// Debt in connections, in tenths.
fn debt(maps: &PinnedMaps, limiter: u32, now: u64) -> Result<u64> {
    let Limiter { limit, arrival, .. } = maps.limiter(limiter).context("no such limiter")?;
    let ahead = arrival.saturating_sub(now * LimitWord::PER_NANOSECOND);
    Ok(10 * ahead / LimitWord(limit).interval())
}

/// Debt stays the same number of connections while the limit is another one, and through a restart.
pub(crate) fn debt_stays(sandbox: &Sandbox) -> Result<()> {
    const CONNECTIONS: u64 = 8;
    let [interface, _] = interfaces("d")?;
    let mut daemon = FakeDaemon::new(sandbox, "debt")?;
    two_pools(&mut daemon, interface)?;
    let (group, _) = limiters(&daemon, "pool0")?;
    let maps = daemon.read()?;
    // A tenth a second: none of them is over while this runs.
    let set = |daemon: &mut FakeDaemon, capacity: f64| -> Result<()> {
        let settings = GroupSettings {
            capacity: Rate::new(capacity),
            scaler: Scaler::new(1.0).unwrap(),
            drained: false,
        };
        daemon.configuration.pool_mut(&name("pool0")).unwrap().groups.insert(name("eu"), settings);
        daemon.apply()?;
        ensure!(maps.limit(group).interval() == (16e9 / capacity).ceil() as u64);
        Ok(())
    };
    set(&mut daemon, 0.1)?;
    let (now, interval) = (maps.now(), maps.limit(group).interval());
    arrive(daemon.bpffs(), group, now * LimitWord::PER_NANOSECOND + CONNECTIONS * interval)?;
    for capacity in [0.2, 0.1, 0.5, 0.4, 0.1] {
        set(&mut daemon, capacity)?;
        let owed = debt(&maps, group, maps.now())?;
        let seconds = (maps.now() - now) as f64 / 1e9;
        let least = 10 * CONNECTIONS - 1 - (10.0 * 0.5 * seconds).ceil() as u64;
        ensure!((least..=10 * CONNECTIONS).contains(&owed), "{owed} tenths at {capacity}/s");
    }
    let before = debt(&maps, group, maps.now())?;
    daemon.restart()?;
    let after = debt(&maps, group, maps.now())?;
    ensure!(after <= before && after + 20 > before, "{before} tenths, {after} after a restart");
    Ok(())
}

pub(crate) fn limiters_stay(sandbox: &Sandbox) -> Result<()> {
    let [interface, _] = interfaces("y")?;
    let mut daemon = FakeDaemon::new(sandbox, "stay")?;
    two_pools(&mut daemon, interface)?;
    let (group, members) = limiters(&daemon, "pool0")?;
    for limiter in members.values() {
        arrive(daemon.bpffs(), *limiter, 1000 + u64::from(*limiter))?;
    }
    // The group's limit changes, which keeps the debt, in connections; there is none in the past.
    arrive(daemon.bpffs(), group, 1000)?;
    // One backend more: the group is written anew, with its members.
    let more = many(1, 4, 7, 0).pools[&name("pool0")].clone();
    let new = *more.backends.keys().next_back().unwrap();
    let pool = daemon.configuration.pool_mut(&name("pool0")).unwrap();
    pool.backends.insert(new, more.backends[&new].clone());
    let applied = daemon.apply()?;
    ensure!((applied.groups, applied.limits) == (1, 1), "{applied:?}");
    model::check(&daemon)?;
    let after = limiters(&daemon, "pool0")?;
    ensure!(after == (group, members.clone()), "{after:?}, expected {:?}", (group, members));
    daemon.restart()?;
    ensure!(limiters(&daemon, "pool0")? == (group, members.clone()));
    let maps = daemon.read()?;
    for limiter in members.values() {
        let arrival = maps.limiter(*limiter).unwrap().arrival;
        ensure!(arrival == 1000 + u64::from(*limiter), "limiter {limiter} began anew: {arrival}");
    }
    let arrival = maps.limiter(group).unwrap().arrival;
    ensure!((1000..1100).contains(&arrival), "the group's limiter began anew: {arrival}");

    // What was given back begins anew with whoever has it next.
    daemon.configuration.pools.remove(&name("pool0"));
    daemon.configuration.services.remove(&name("service0"));
    daemon.apply()?;
    model::check(&daemon)?;
    let limited = many(1, 3, 7, 100).pools[&name("pool0")].clone();
    daemon.configuration.pools.insert(name("pool0"), limited);
    let pool = daemon.configuration.pool_mut(&name("pool0")).unwrap();
    for backend in pool.backends.values_mut() {
        backend.max_connection_rate = Rate::new(20.0);
    }
    daemon.apply()?;
    model::check(&daemon)?;
    let (again, of_members) = limiters(&daemon, "pool0")?;
    let used: Vec<u32> = of_members.into_values().chain([again]).collect();
    ensure!(used.contains(&group), "{used:?} were never used before");
    let maps = daemon.read()?;
    for limiter in used {
        ensure!(
            limiter >= FIRST_LIMITER && maps.limiter(limiter).unwrap().arrival == 0,
            "limiter {limiter}"
        );
    }
    Ok(())
}

/// A daemon in whose two pools members go and come back all the time.
pub(crate) fn come_and_go(bpffs: &Path, interface: u32, ready: impl FnOnce()) -> Result<()> {
    let mut rng = Rng::new();
    let mut daemon = FakeDaemon::without_store(bpffs)?;
    two_pools(&mut daemon, interface)?;
    ready();
    let members: Vec<_> = daemon.states.keys().cloned().collect();
    loop {
        let (pool, address) = rng.choice(&members).unwrap();
        if rng.u8(..4) > 0 {
            daemon.set_state(pool, *address, *rng.choice(&random::STATES).unwrap());
        } else {
            let there = rng.bool().then(|| hop(interface, 1, 0));
            daemon.set_next_hop(*address, there)?;
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
                let up = word.accepts() == Accepts::All && word.has_next_hop();
                healthy += u64::from(up);
                let host = maps.backend_state(word.backend());
                let state = maps.state_in(pool, word.backend())?;
                ensure!(
                    host.incarnation() == word.incarnation()
                        && state as u8 >= word.accepts() as u8
                        && (host.next_hop() != 0 || word.next_hop() == 0),
                    "pool {pool}: {host:?}, {state:?} there, is the host of {word:?}"
                );
            }
            let limit = maps.limit(group.limiter);
            let most = LimitWord::new(1_600_000_000_u64.checked_div(healthy).unwrap_or(0), 9);
            ensure!(
                limit.is_closed() || (healthy > 0 && limit.interval() >= most.interval()),
                "pool {pool}: {limit:?} for {healthy} healthy members"
            );
        }
    }
    Ok(())
}
