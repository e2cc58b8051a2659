//! During a remap packets of open connections stay where they were, as the kernel's own code decides by the maps.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
};

use anyhow::{Context as _, Result, ensure};
use aya::maps::{Array, Map, MapData};
use lb_common::{
    abi::{
        backend::BackendStateWord,
        clock::Coarse,
        connection::Placement,
        flow_map::HEAD_LINES,
        member::Accepts,
        names::FLOWS,
        service::{ServiceKey, address_of},
        sizes::MapSizes,
        sizes::Size,
    },
    flow_table::{FlowKey, Owner, Place, State},
    path,
};
use lb_maps::{Component, FlowMaps, Pins, SizeSettings, clock};
use lb_model::{Backend, Configuration, Encapsulation, ids::Named, plan::MarkedOut};
use lb_publish::{
    publisher::PacketPath as _,
    reconcile::{ApplySummary, MemberPath as _, PoolHomes, ReconcileError},
};
use lb_tests::{
    packets::{
        flow_hash,
        frames::{Flow, Packet, SEQUENCE},
    },
    sandbox::Sandbox,
};

use crate::reconcile::{
    bulk::many,
    fake_daemon::{FakeDaemon, hop, interfaces},
    histories::tables,
    model,
    random::name,
};

const VIP: &str = "192.0.2.1:1000";

fn member(n: u8) -> IpAddr {
    [10, 1, 0, n].into()
}

/// A pool of five, all up behind one gateway.
fn five(sandbox: &Sandbox, directory: &str) -> Result<(FakeDaemon, u32)> {
    let [interface, _] = interfaces(&directory[..1])?;
    let mut daemon = FakeDaemon::new(sandbox, directory)?;
    daemon.configuration = many(1, 5, 251, 1);
    daemon.change()?;
    rise(&mut daemon, interface)?;
    Ok((daemon, interface))
}

/// Brings all members up.
fn rise(daemon: &mut FakeDaemon, interface: u32) -> Result<()> {
    for (pool, address) in daemon.states.keys().cloned().collect::<Vec<_>>() {
        daemon.set_state(&pool, address, Accepts::All);
        daemon.set_next_hop(address, Some(hop(interface, 1, 0)))?;
    }
    Ok(())
}

/// Where each of many flows goes with a packet of some flags: backend and MAC of the next hop.
fn places(daemon: &FakeDaemon, flags: &str) -> Result<BTreeMap<u16, (IpAddr, [u8; 6])>> {
    let maps = daemon.read()?;
    let key = ServiceKey::new("192.0.2.1".parse()?, 1000, 6);
    let service = maps.service(&key)?.context("no service")?;
    let view = maps.service_view(service)?.context("no pool")?;
    let place = |port: u16| {
        let frame = Packet::new(Flow::new(&format!("198.51.100.7:{port}"), VIP)).tcp(flags);
        let forward = path::decide(frame.as_slice(), &view);
        let forward = forward.map_err(|verdict| anyhow::anyhow!("port {port}: {verdict:?}"))?;
        let backend = address_of(&forward.backend.address, forward.backend.version);
        Ok((port, (backend, forward.choice.next_hop.mac())))
    };
    (2_000..2_400).map(place).collect()
}

fn open(daemon: &FakeDaemon) -> Result<BTreeMap<u16, IpAddr>> {
    Ok(places(daemon, "A")?.into_iter().map(|(port, (backend, _))| (port, backend)).collect())
}

fn new(daemon: &FakeDaemon) -> Result<BTreeMap<u16, IpAddr>> {
    Ok(places(daemon, "S")?.into_iter().map(|(port, (backend, _))| (port, backend)).collect())
}

fn backends(daemon: &mut FakeDaemon) -> &mut BTreeMap<IpAddr, Backend> {
    &mut daemon.configuration.pool_mut(&name("pool0")).unwrap().backends
}

fn homes(daemon: &mut FakeDaemon) -> PoolHomes {
    daemon.reconciler().homes().into_values().next().unwrap()
}

/// Takes one away, adds one, and gives one more weight.
fn other_members(daemon: &mut FakeDaemon, gone: u8, come: u8, heavy: u8) {
    let backend = backends(daemon).remove(&member(gone)).unwrap();
    backends(daemon).insert(member(come), backend);
    backends(daemon).get_mut(&member(heavy)).unwrap().weight = 3;
}

/// Half a million connections that are remembered at a backend leave it with their next packet, once it is dead in their
/// pool, though another pool has it up; and those of the other pool stay.
pub(crate) fn half_a_million_leave(sandbox: &Sandbox) -> Result<()> {
    const CONNECTIONS: u32 = 500_000;
    let [interface, _] = interfaces("h")?;
    let mut daemon = FakeDaemon::with_sizes(
        sandbox,
        "half",
        SizeSettings::default().with(Size::Flows, 1 << 21),
    )?;
    daemon.configuration = many(2, 5, 251, 1);
    daemon.apply()?;
    rise(&mut daemon, interface)?;
    // Both pools have it, as the second's backends begin one later.
    let at = daemon.ids.backend(&member(3)).context("no number")?;
    let at = Placement { backend: at.index, incarnation: at.incarnation };
    let flows = FlowMaps::open(daemon.bpffs())?;
    let client = |n: u32| {
        let [_, host, high, low] = n.to_be_bytes();
        SocketAddr::from(([198, 51, 100, host], u16::from_be_bytes([high, low])))
    };
    let flow = |n, port: u16| Flow { client: client(n), vip: ([192, 0, 2, 1], port).into() };
    let until = Coarse(Coarse::from_nanoseconds(clock::now()?).0 + 600);
    let mask = flows.table().buckets() - 1;
    let mut lines = vec![[0; 8]; mask as usize + 1];
    for (pool, port, connections) in [("pool0", 1000, CONNECTIONS), ("pool1", 1001, 1_000)] {
        let pool = daemon.ids.pool(&name(pool)).context("no pool")?;
        let line = daemon.read()?.pool_line(pool);
        flows.clear(pool, 1);
        let zones = line.zones();
        (zones.first()..zones.first() + zones.count()).for_each(|zone| flows.clear_zone(zone, 1));
        for n in 0..connections {
            let hash = flow_hash::hash(&flow(n, port), 6, false, flows.table().secret()).bits();
            let (key, zone) = (FlowKey(hash), zones.first() as u16);
            let owner = Owner::new(key, false, zone, State::Open, until);
            let free =
                |bucket: u32| lines[bucket as usize].iter().step_by(2).position(|it| *it == 0);
            let sides = [0, 1].map(|side| key.bucket(side, mask));
            let (bucket, cell) = sides
                .into_iter()
                .filter_map(|bucket| Some((bucket, free(bucket)?)))
                .min_by_key(|(_, cell)| *cell)
                .with_context(|| format!("no cell for connection {n}"))?;
            let words = [owner.0, Place::new(at, SEQUENCE).0];
            lines[bucket as usize][2 * cell..][..2].copy_from_slice(&words);
        }
    }
    let pin = Pins::new(daemon.bpffs(), Component::Balancer).map(FLOWS);
    let mut table: Array<_, [u64; 8]> = Map::from_map_data(MapData::from_pin(pin)?)?.try_into()?;
    for (line, words) in (HEAD_LINES..).zip(lines) {
        table.set(line, words, 0)?;
    }
    let there = |daemon: &FakeDaemon, port: u16, connections| -> Result<usize> {
        let maps = daemon.read()?;
        let key = ServiceKey::new("192.0.2.1".parse()?, port, 6);
        let service = maps.service(&key)?.context("no service")?;
        let view = maps.service_view(service)?.context("no pool")?;
        let mut there = 0;
        for n in 0..connections {
            let frame = Packet::new(flow(n, port)).tcp("A");
            let forward = path::decide(frame.as_slice(), &view);
            let forward = forward.map_err(|verdict| anyhow::anyhow!("{n}: {verdict:?}"))?;
            let address = address_of(&forward.backend.address, forward.backend.version);
            there += usize::from(address == member(3));
        }
        Ok(there)
    };
    ensure!(there(&daemon, 1000, 1_000)? == 1_000 && there(&daemon, 1001, 1_000)? == 1_000);
    daemon.set_state(&name("pool0"), member(3), Accepts::Nothing);
    ensure!(there(&daemon, 1000, CONNECTIONS)? == 0, "some are still there");
    ensure!(there(&daemon, 1001, 1_000)? == 1_000, "those of the other pool left");
    Ok(())
}

/// How packets get to backends is the pool's affair: a new descriptor, whatever else is under way.
pub(crate) fn another_tunnel_form_moves_no_connection(sandbox: &Sandbox) -> Result<()> {
    let (mut daemon, interface) = five(sandbox, "gue")?;
    let (at_home, ids) = (open(&daemon)?, daemon.ids.clone());
    let in_form = |daemon: &mut FakeDaemon, encapsulation: Encapsulation| {
        let pool = daemon.configuration.pool_mut(&name("pool0")).unwrap();
        pool.encapsulation = encapsulation;
        daemon.change()
    };
    let nothing_else = ApplySummary { pools: 1, ..ApplySummary::default() };
    // 6080 in the upper half, and the bit of GUE.
    for (encapsulation, flags) in [
        (Encapsulation::Gue(6080), 0x17c0_0008),
        (Encapsulation::Gue(1), 0x0001_0008),
        (Encapsulation::IpInIp, 0),
    ] {
        let applied = in_form(&mut daemon, encapsulation)?;
        ensure!(applied == nothing_else, "{encapsulation}: {applied:?}");
        ensure!(!homes(&mut daemon).has_previous, "{encapsulation}: home is what it was");
        ensure!(open(&daemon)? == at_home && new(&daemon)? == at_home, "{encapsulation}: moved");
        ensure!(daemon.ids == ids, "{encapsulation}: other numbers");
        let view = daemon.read()?.pool_view(daemon.ids.pool(&name("pool0")).unwrap())?;
        let found = view.context("no pool")?.descriptor.flags;
        ensure!(found == flags, "{encapsulation}: flags {found:x}");
    }
    // In the middle of a remap, what that keeps is kept.
    other_members(&mut daemon, 2, 9, 3);
    daemon.change()?;
    rise(&mut daemon, interface)?;
    let applied = in_form(&mut daemon, Encapsulation::Gue(6080))?;
    ensure!(applied == nothing_else, "{applied:?}");
    ensure!(homes(&mut daemon).has_previous, "the previous home goes on");
    ensure!(open(&daemon)? == at_home, "the change moved open connections");
    Ok(())
}

pub(crate) fn connections_stay(sandbox: &Sandbox) -> Result<()> {
    let (mut daemon, interface) = five(sandbox, "uphold")?;
    let before = open(&daemon)?;
    ensure!(new(&daemon)? == before, "in steady state everybody is at home");
    let left = daemon.ids.backend(&member(2)).unwrap();
    other_members(&mut daemon, 2, 9, 3);
    let applied = daemon.change()?;
    let expected = ApplySummary { pools: 1, groups: 1, tables: 1, ..ApplySummary::default() };
    ensure!(applied == expected, "{applied:?}");
    rise(&mut daemon, interface)?;
    ensure!(open(&daemon)? == before, "a change moved open connections");
    let after = new(&daemon)?;
    ensure!(after.values().all(|backend| *backend != member(2)), "new ones at who is gone");
    ensure!(after.values().any(|backend| *backend == member(9)), "no new ones at who came");
    ensure!(daemon.reconciler().leaving() == [member(2)].into());

    // A new gateway reaches the connections of all, also of who is gone.
    for n in [1, 2, 3, 4, 5] {
        daemon.words().set_next_hop(member(n), Some(hop(interface, 2, 0)))?;
    }
    let by_gateway = places(&daemon, "A")?;
    ensure!(
        by_gateway
            .iter()
            .all(|(port, (at, mac))| { before[port] == *at && *mac == hop(interface, 2, 0).mac })
    );
    let host = daemon.read()?.backend_state(left.index);
    let state = daemon.read()?.state_in(host.pool(), left.index)?;
    ensure!((host.incarnation(), state) == (left.incarnation, Accepts::All), "{host:?}");

    // Who dies is left at once, by his connections alone.
    daemon.set_state(&name("pool0"), member(1), Accepts::Nothing);
    for (port, backend) in open(&daemon)? {
        let was = before[&port];
        ensure!(if was == member(1) { backend != was } else { backend == was }, "port {port}");
    }
    daemon.set_state(&name("pool0"), member(1), Accepts::All);
    ensure!(open(&daemon)? == before);

    // Nobody asks who is gone any more: he is as he was.
    ensure!(daemon.words().state(&name("pool0"), member(2)).is_none());
    daemon.words().set_states(&name("pool0"), &[(member(2), Accepts::Nothing)]);
    ensure!(open(&daemon)? == before);
    daemon.forget()?;
    ensure!(open(&daemon)? == after, "what home meant before counts still");
    ensure!(daemon.read()?.backend_state(left.index) == BackendStateWord::GONE);
    ensure!(daemon.reconciler().leaving().is_empty());
    ensure!(!daemon.reconciler().named().backends.contains_key(&left.index));
    ensure!(tables(&daemon.read()?)?.len() == 1);
    Ok(())
}

pub(crate) fn first_of_several(sandbox: &Sandbox) -> Result<()> {
    let (mut daemon, interface) = five(sandbox, "first")?;
    let (before, at_first) = (open(&daemon)?, daemon.configuration.clone());
    ensure!(!homes(&mut daemon).has_previous);
    for (gone, come, heavy) in [(2, 9, 3), (9, 10, 4), (1, 11, 10)] {
        let home = homes(&mut daemon).current;
        other_members(&mut daemon, gone, come, heavy);
        daemon.change()?;
        rise(&mut daemon, interface)?;
        let now = homes(&mut daemon);
        ensure!(now.has_previous && now.current != home);
        ensure!(open(&daemon)? == before, "a change moved open connections");
    }
    // Two versions, not four.
    ensure!(tables(&daemon.read()?)?.len() == 2);

    // A change of limits moves nobody, and says nothing else of homes.
    let home = homes(&mut daemon);
    let pool = daemon.configuration.pool_mut(&name("pool0")).unwrap();
    pool.panic_threshold_percent = 50;
    let applied = daemon.change()?;
    ensure!(applied == ApplySummary { pools: 1, ..ApplySummary::default() }, "{applied:?}");
    ensure!(homes(&mut daemon) == home, "{:?}", homes(&mut daemon));
    ensure!(open(&daemon)? == before);

    other_members(&mut daemon, 4, 12, 5);
    daemon.change()?;
    ensure!(homes(&mut daemon).has_previous);

    // Home means again what it meant at first, by the same table and words. Who was gone in between is
    // whom the previous version names.
    daemon.configuration = at_first;
    daemon.change()?;
    let homes = homes(&mut daemon);
    ensure!(homes.has_previous, "numbers of who was gone are others now");
    ensure!(open(&daemon)? == before);
    daemon.forget()?;

    // Weights alone: nobody was gone.
    backends(&mut daemon).get_mut(&member(1)).unwrap().weight = 5;
    daemon.change()?;
    backends(&mut daemon).get_mut(&member(1)).unwrap().weight = 1;
    let applied = daemon.change()?;
    ensure!(applied == ApplySummary { pools: 1, ..ApplySummary::default() }, "{applied:?}");
    let now = daemon.reconciler().homes().into_values().next().unwrap();
    ensure!(!now.has_previous, "what home meant before is what it means");
    Ok(())
}

pub(crate) fn found_again(sandbox: &Sandbox) -> Result<()> {
    let (mut daemon, interface) = five(sandbox, "again")?;
    let before = open(&daemon)?;
    other_members(&mut daemon, 2, 9, 3);
    daemon.change()?;
    rise(&mut daemon, interface)?;
    for _ in 0..2 {
        let found = homes(&mut daemon);
        daemon.restart()?;
        ensure!(homes(&mut daemon) == found && found.has_previous);
        ensure!(open(&daemon)? == before, "a restart moved open connections");
        ensure!(daemon.reconciler().leaving() == [member(2)].into());
        // Sensors reach who is gone, and those that stay, as before.
        daemon.words().set_next_hop(member(2), Some(hop(interface, 2, 0)))?;
        let gone = places(&daemon, "A")?.into_values().filter(|(at, _)| *at == member(2));
        let macs: Vec<_> = gone.map(|(_, mac)| mac).collect();
        ensure!(!macs.is_empty() && macs.iter().all(|mac| *mac == hop(interface, 2, 0).mac));
        daemon.words().set_next_hop(member(2), Some(hop(interface, 1, 0)))?;
    }
    // Who comes back gets another number; the old one's connections stay all the same.
    let backend = backends(&mut daemon)[&member(3)].clone();
    backends(&mut daemon).insert(member(2), backend);
    daemon.change()?;
    ensure!(open(&daemon)? == before);
    daemon.restart()?;
    ensure!(open(&daemon)? == before);
    // It kept its state: it was never away.
    ensure!(daemon.words().state(&name("pool0"), member(2)) == Some(Accepts::All));
    daemon.words().set_states(&name("pool0"), &[(member(2), Accepts::Nothing)]);
    ensure!(open(&daemon)?.values().all(|backend| *backend != member(2)));
    daemon.configuration = Configuration::default();
    daemon.change()?;
    ensure!(daemon.reconciler().named() == Named::default());
    ensure!(*daemon.reconciler().maps().chunks() == BTreeSet::from([0]));
    Ok(())
}

pub(crate) fn marked_out(sandbox: &Sandbox) -> Result<()> {
    let (mut daemon, _) = five(sandbox, "out")?;
    let before = open(&daemon)?;
    let pool = name("pool0");
    let members = [member(2), member(4)].into();
    daemon.out = [(pool.clone(), MarkedOut { members, ..MarkedOut::default() })].into();
    let applied = daemon.change()?;
    // The same table, and other words.
    ensure!(
        applied == ApplySummary { pools: 1, groups: 1, ..ApplySummary::default() },
        "{applied:?}"
    );
    ensure!(homes(&mut daemon).out == [member(2), member(4)].into());
    ensure!(open(&daemon)? == before);
    let bits = |daemon: &FakeDaemon| -> Result<Vec<bool>> {
        let maps = daemon.read()?;
        let view = maps.pool_view(daemon.ids.pool(&pool).unwrap())?.context("no pool")?;
        let head = view.groups[0].1.head;
        let words = (head.members..head.members + head.member_count).map(|at| maps.member(at));
        Ok(words.flatten().map(|word| word.is_marked_out()).collect())
    };
    ensure!(bits(&daemon)? == [false, true, false, true, false]);
    // What is news of a member leaves its bit alone.
    daemon.set_state(&pool, member(2), Accepts::OpenOnly);
    daemon.set_last_resort(&pool, member(2), true);
    daemon.set_last_resort(&pool, member(2), false);
    daemon.set_state(&pool, member(2), Accepts::All);
    ensure!(bits(&daemon)? == [false, true, false, true, false]);
    let found = homes(&mut daemon);
    daemon.restart()?;
    ensure!(homes(&mut daemon) == found);
    daemon.out = BTreeMap::new();
    daemon.change()?;
    ensure!(bits(&daemon)? == [false; 5] && !homes(&mut daemon).has_previous);
    ensure!(open(&daemon)? == before);
    model::check(&daemon)
}

/// Each round takes a quarter of the members, and less than a third of the first chunk of tables, and forgets only now
/// and then: what is not given back fills them.
pub(crate) fn churn(sandbox: &Sandbox) -> Result<()> {
    let pools = 1_024;
    let members = (MapSizes::DEFAULT.members() / 4 / u32::from(pools)) as u16;
    let mut daemon = FakeDaemon::new(sandbox, "churn-formers")?;
    for round in 0..7_u16 {
        daemon.configuration = many(pools, members, 131, 3 * (round % 3));
        daemon.change()?;
        match round {
            2 => daemon.restart()?,
            4 => daemon.forget()?,
            _ => {}
        }
    }
    daemon.forget()?;
    model::check(&daemon)?;
    ensure!(tables(&daemon.read()?)?.len() == usize::from(pools));
    ensure!(*daemon.reconciler().maps().chunks() == BTreeSet::from([0]));
    daemon.configuration = Configuration::default();
    daemon.change()?;
    ensure!(daemon.reconciler().named() == Named::default());
    ensure!(*daemon.reconciler().maps().chunks() == BTreeSet::from([0]));
    Ok(())
}

pub(crate) fn full(sandbox: &Sandbox) -> Result<()> {
    let mut daemon = FakeDaemon::new(sandbox, "full-formers")?;
    // 511 pools of 64 are a little less than half of all members.
    let of_members = |first| many(511, 64, 131, first);
    for first in [0, 5_000] {
        daemon.configuration = of_members(first);
        daemon.change()?;
    }
    daemon.configuration = of_members(10_000);
    let ids = daemon.ids.clone();
    let plan = daemon.plan()?;
    let refused = daemon.reconciler().check(&plan).unwrap_err();
    ensure!(matches!(refused, ReconcileError::Settling { pools: 511, .. }), "{refused}");
    let said = "backends in pools: 64 contiguous entries are needed, the largest free range has 0; \
                the setting `pool-backends` sizes the map; 511 pools are still in a remap and free entries when their settle time is over";
    ensure!(refused.to_string() == said, "{refused}");
    daemon.ids = ids;
    daemon.forget()?;
    daemon.apply()?;
    model::check(&daemon)
}
