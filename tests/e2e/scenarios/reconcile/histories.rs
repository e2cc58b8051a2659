//! After any history of changes and restarts the maps are what the model says, and equal configurations give equal
//! maps.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
};

use anyhow::{Context as _, Result, ensure};
use fastrand::Rng;
use lb_common::{
    abi::{
        member::Accepts,
        service::{ServiceKey, address_of},
        slot::TableRef,
    },
    path,
};
use lb_maps::{PinnedMaps, TableName};
use lb_model::{Configuration, Name};
use lb_publish::reconcile::{ApplySummary, MemberPath as _, TableChecksums, checksum};
use lb_tests::{
    packets::frames::{Flow, Packet},
    sample::Sample,
    sandbox::Sandbox,
};

use crate::reconcile::{
    bulk::many,
    fake_daemon::{FakeDaemon, hop, interfaces},
    model,
    random::{self, host, name},
};

/// Where everything is run; a sample has one of them, and one of its own.
const SEEDS: [u64; 4] = [1, 20_000, 0xfeed, 0xdead_beef];
const STEPS: u32 = 60;

/// One random thing that can happen.
///
/// What is about VIPs alone is drawn from `vips`: it changes nothing of what else happens.
fn step(
    daemon: &mut FakeDaemon,
    (rng, vips): (&mut Rng, &mut Rng),
    interfaces: [u32; 2],
) -> Result<&'static str> {
    if vips.u8(..8) == 0 {
        daemon.local_host = random::local_host(vips);
        daemon.follow_host()?;
    }
    Ok(match rng.u8(..10) {
        0..=3 => {
            for _ in 0..rng.u8(1..4) {
                random::mutate(rng, &mut daemon.configuration);
            }
            if vips.bool() {
                random::vip_range(vips, &mut daemon.configuration);
            }
            daemon.apply()?;
            "apply"
        }
        4..=6 => {
            let pool = name(&format!("pool{}", rng.u8(..5)));
            let host = host(rng.u8(1..30));
            if rng.u8(..4) == 0 {
                daemon.set_last_resort(&pool, host, rng.bool());
            } else {
                daemon.set_state(&pool, host, *rng.choice(&random::STATES).unwrap());
            }
            "state"
        }
        7 | 8 => {
            let known: Vec<_> = daemon.mtus.keys().copied().collect();
            for _ in 0..rng.u8(1..8) {
                let Some(address) = rng.choice(&known) else { break };
                let interface = *rng.choice(&interfaces).unwrap();
                // A gateway has the same MAC for all who are behind it.
                match rng.u8(..6) {
                    0 => daemon.set_next_hop(*address, None)?,
                    1 => daemon.lose_next_hop(*address)?,
                    _ => {
                        let to = hop(interface, rng.u8(1..3), 0);
                        daemon.set_next_hop(*address, Some(to))?;
                    }
                }
            }
            "next hops"
        }
        _ => {
            daemon.restart()?;
            "restart"
        }
    })
}

pub(crate) fn maps_equal_the_model(sandbox: &Sandbox) -> Result<()> {
    let interfaces = interfaces("m")?;
    let sample = Sample::from_environment();
    let of_these = SEEDS.into_iter().zip(0..).filter(|(_, place)| sample.has(*place, 4));
    let own = (!sample.is_everything()).then_some(sample.seed());
    for seed in of_these.map(|(seed, _)| seed).chain(own) {
        let (mut rng, mut vips) = (Rng::with_seed(seed), Rng::with_seed(!seed));
        let mut daemon = FakeDaemon::new(sandbox, &format!("model-{seed}"))?;
        daemon.configuration = random::start(&mut rng);
        daemon.own = rng.bool().then(|| name("region2"));
        daemon.apply()?;
        for n in 0..STEPS {
            let what = step(&mut daemon, (&mut rng, &mut vips), interfaces);
            let what = what.with_context(|| format!("seed {seed}, step {n}"))?;
            model::check(&daemon).with_context(|| format!("seed {seed}, step {n}: {what}"))?;
            // Some group names a table in each chunk but the first: none is left over.
            let tables = tables(&daemon.read()?)?;
            let named: BTreeSet<u32> =
                tables.keys().map(|table| table.word(0).0).chain([0]).collect();
            let present = daemon.reconciler().maps().chunks();
            ensure!(*present == named, "seed {seed}, step {n}: {present:?}, named {named:?}");
        }
    }
    Ok(())
}

/// The tables that groups name, with what they were built from.
pub(crate) fn tables(maps: &PinnedMaps) -> Result<BTreeMap<TableRef, Option<TableName>>> {
    let mut found = BTreeMap::new();
    for index in 0..maps.pool_count() {
        let tables = maps.pool_view(index)?.into_iter().flat_map(|pool| pool.tables);
        found.extend(tables.map(|(at, table)| (at, table.name())));
    }
    Ok(found)
}

pub(crate) fn equal_checksums(sandbox: &Sandbox) -> Result<()> {
    let interfaces = interfaces("c")?;
    let (mut rng, mut vips) = (Rng::with_seed(7), Rng::with_seed(8));
    let mut lived = FakeDaemon::new(sandbox, "lived")?;
    lived.configuration = random::start(&mut rng);
    let mut seen = BTreeMap::new();
    for round in 0..6 {
        for _ in 0..15 {
            step(&mut lived, (&mut rng, &mut vips), interfaces)?;
        }
        lived.apply()?;
        let checksum_here = lived.checksum()?;
        // The command line's way to it, without anything cached.
        let read = checksum(&lived.read()?, &mut TableChecksums::default())?;
        ensure!(read == checksum_here);

        let mut fresh = FakeDaemon::new(sandbox, &format!("fresh-{round}"))?;
        fresh.configuration = lived.configuration.clone();
        fresh.apply()?;
        ensure!(fresh.checksum()? == checksum_here, "round {round}");
        // What of VIPs is left to the host is the host's own.
        let decided = Configuration { vips: BTreeMap::new(), ..lived.configuration.clone() };
        if let Some(other) = seen.insert(checksum_here, decided.clone()) {
            ensure!(other == decided, "two configurations, one checksum");
        }
    }
    ensure!(seen.len() > 3, "the rounds were too much alike to tell");
    Ok(())
}

/// A daemon with three pools, one of them without services, all members up.
/// Two daemons that were told other things before, so that their numbers differ, have one configuration and the same
/// ramps now: each new connection goes to the same backend by the maps of either.
pub(crate) fn equal_ramps(sandbox: &Sandbox) -> Result<()> {
    const CONNECTIONS: usize = 100_000;
    let [interface, _] = interfaces("r")?;
    let pool = name("pool0");
    let mut worlds = [FakeDaemon::new(sandbox, "one")?, FakeDaemon::new(sandbox, "other")?];
    worlds[1].configuration = many(1, 20, 251, 100);
    worlds[1].apply()?;
    for daemon in &mut worlds {
        daemon.configuration = many(1, 5, 251, 1);
        daemon.apply()?;
        for (n, ramp) in [(1, 25), (2, 255), (3, 128), (4, 60), (5, 200)] {
            let member = IpAddr::from([10, 1, 0, n]);
            daemon.set_next_hop(member, Some(hop(interface, 1, 0)))?;
            daemon.set_state(&pool, member, Accepts::All);
            ensure!(daemon.words().set_ramps(&pool, &[(member, ramp)]));
        }
    }
    let numbers = worlds.each_ref().map(|daemon| daemon.ids.backend(&[10, 1, 0, 1].into()));
    ensure!(numbers[0] != numbers[1], "both have given the number {numbers:?}");

    let maps = [worlds[0].read()?, worlds[1].read()?];
    let key = ServiceKey::new("192.0.2.1".parse()?, 1000, 6);
    let mut views = Vec::new();
    for maps in &maps {
        let service = maps.service(&key)?.context("no service")?;
        views.push(maps.service_view(service)?.context("no pool")?);
    }
    let mut given_away = 0;
    for n in 0..CONNECTIONS {
        let [_, host, high, low] = (n as u32).to_be_bytes();
        let client = SocketAddr::from(([198, 51, 100, 7 + host], u16::from_be_bytes([high, low])));
        let flow = Flow { client, vip: "192.0.2.1:1000".parse()? };
        let goes = |flags: &str| -> Result<[IpAddr; 2]> {
            let frame = Packet::new(flow).tcp(flags);
            let mut to = Vec::new();
            for view in &views {
                let forward = path::decide(frame.as_slice(), view);
                let forward =
                    forward.map_err(|verdict| anyhow::anyhow!("{flow:?}: {verdict:?}"))?;
                to.push(address_of(&forward.backend.address, forward.backend.version));
            }
            Ok([to[0], to[1]])
        };
        let [one, other] = goes("S")?;
        ensure!(one == other, "{client} goes to {one} and to {other}");
        given_away += usize::from(goes("A")?[0] != one);
    }
    // By the ramps half of all, some of which are given back and forth.
    let share = given_away as f64 / CONNECTIONS as f64;
    ensure!((0.3..0.6).contains(&share), "{share} of the connections are away from home");
    Ok(())
}

fn three_pools(sandbox: &Sandbox, directory: &str) -> Result<FakeDaemon> {
    let mut rng = Rng::with_seed(3);
    let mut daemon = FakeDaemon::new(sandbox, directory)?;
    daemon.configuration = random::start(&mut rng);
    while daemon.configuration.pools.len() < 3
        || daemon.configuration.services.len() < 4
        || daemon.configuration.pools.values().any(|pool| pool.backends.len() < 4)
    {
        random::mutate(&mut rng, &mut daemon.configuration);
    }
    daemon.apply()?;
    for (pool, address) in daemon.states.keys().cloned().collect::<Vec<_>>() {
        daemon.set_state(&pool, address, Accepts::All);
    }
    Ok(daemon)
}

/// Names of tables, by where they are.
type Tables = BTreeMap<TableRef, Option<TableName>>;

/// Words of all pools, and all tables.
fn published(daemon: &FakeDaemon) -> Result<(Vec<u64>, Tables)> {
    let maps = daemon.read()?;
    let words = (0..maps.pool_count()).map(|index| maps.pool(index).0).collect();
    Ok((words, tables(&maps)?))
}

pub(crate) fn untouched(sandbox: &Sandbox) -> Result<()> {
    let mut daemon = three_pools(sandbox, "untouched")?;
    let before = published(&daemon)?;
    ensure!(daemon.apply()? == ApplySummary::default());
    ensure!(published(&daemon)? == before);

    // One backend more in one pool: the others keep their words, and it keeps its other groups.
    let changed = daemon.configuration.pools.keys().next().unwrap().clone();
    let index = daemon.ids.pool(&changed).unwrap() as usize;
    let view = daemon.read()?.pool_view(index as u32)?.unwrap();
    let region = daemon.configuration.regions.keys().next().unwrap().clone();
    let mut rng = Rng::with_seed(9);
    let backend =
        lb_model::Backend { region: region.clone(), weight: 1, ..random::backend(&mut rng, 4) };
    daemon.configuration.pool_mut(&changed).unwrap().backends.insert([10, 9, 9, 9].into(), backend);
    let applied = daemon.apply()?;
    let expected = ApplySummary { pools: 1, groups: 1, tables: 1, ..ApplySummary::default() };
    ensure!(applied == expected, "{applied:?}");
    let after = published(&daemon)?;
    for (at, (before, after)) in before.0.iter().zip(&after.0).enumerate() {
        ensure!((before == after) == (at != index), "pool {at}");
    }
    let now = daemon.read()?.pool_view(index as u32)?.unwrap();
    let region = daemon.ids.region(&region).unwrap();
    for (at, group) in view.groups.iter().filter(|(_, group)| group.region != region) {
        ensure!(now.groups.contains(&(*at, *group)), "group {at} was written anew");
    }
    // Those that were up still are: the naive model remembers.
    model::check(&daemon)
}

pub(crate) fn health_is_one_word(sandbox: &Sandbox) -> Result<()> {
    let [interface, _] = interfaces("h")?;
    let mut daemon = three_pools(sandbox, "health")?;
    for address in daemon.mtus.keys().copied().collect::<Vec<_>>() {
        daemon.set_next_hop(address, Some(hop(interface, 1, 0)))?;
    }
    let members = |daemon: &FakeDaemon| -> Result<Vec<u64>> {
        let maps = daemon.read()?;
        Ok((0..4096).map_while(|at| maps.member(at)).map(|word| word.0).collect())
    };
    let before = (published(&daemon)?, members(&daemon)?);
    // One that some region's group has.
    let maps = daemon.read()?;
    let is_grouped = |(pool, address): &&(Name, IpAddr)| {
        let view = daemon.ids.pool(pool).and_then(|index| maps.pool_view(index).ok().flatten());
        let backends = view.map(|view| view.backends).unwrap_or_default();
        backends.values().any(|there| address_of(&there.address, there.version) == *address)
    };
    let (pool, address) = daemon.states.keys().find(is_grouped).unwrap().clone();
    daemon.set_state(&pool, address, Accepts::Nothing);
    let after = (published(&daemon)?, members(&daemon)?);
    ensure!(before.0 == after.0);
    let differing = before.1.iter().zip(&after.1).filter(|(before, after)| before != after).count();
    ensure!(differing == 1, "{differing} member words differ");
    model::check(&daemon)?;
    daemon.set_state(&pool, address, Accepts::All);
    ensure!(members(&daemon)? == before.1);
    model::check(&daemon)
}
