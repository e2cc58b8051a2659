//! Changes of home: where packets of open connections go by the maps, decided by the code that runs in
//! the kernel.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};

use anyhow::{Context as _, Result, ensure};
use lb_common::{
    abi::{
        clock::Coarse,
        exception::ExceptionWord,
        host::HostWord,
        limits,
        member::MemberState,
        record::Placed,
        service::{ServiceKey, address_of},
    },
    path,
};
use lb_daemon::{
    dataplane::{Gates, clock},
    ids::Named,
    model::{Backend, Configuration, Encapsulation},
    plan::OutOfHome,
    reconcile::{Applied, Homes, ReconcileError},
};
use lb_tests::{
    packets::{
        frames::{Flow, Packet},
        layout,
    },
    sandbox::Sandbox,
};

use crate::reconcile::{
    bulk::many,
    generate::name,
    model,
    world::{World, hop, interfaces},
};

const VIP: &str = "192.0.2.1:1000";

fn member(n: u8) -> IpAddr {
    [10, 1, 0, n].into()
}

/// A pool of five, all up behind one gateway.
fn five(sandbox: &Sandbox, directory: &str) -> Result<(World, u32)> {
    let [interface, _] = interfaces(&directory[..1])?;
    let mut world = World::new(sandbox, directory)?;
    world.configuration = many(1, 5, 251, 1);
    world.change()?;
    rise(&mut world, interface)?;
    Ok((world, interface))
}

/// Brings all members up.
fn rise(world: &mut World, interface: u32) -> Result<()> {
    for (pool, address) in world.states.keys().cloned().collect::<Vec<_>>() {
        world.set_state(&pool, address, MemberState::Up);
        world.set_next_hop(address, Some(hop(interface, 1, 0)))?;
    }
    Ok(())
}

/// Where each of many flows goes with a packet of some flags: backend and MAC of the next hop.
fn places(world: &World, flags: &str) -> Result<BTreeMap<u16, (IpAddr, [u8; 6])>> {
    let maps = world.read()?;
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

fn open(world: &World) -> Result<BTreeMap<u16, IpAddr>> {
    Ok(places(world, "A")?.into_iter().map(|(port, (backend, _))| (port, backend)).collect())
}

fn new(world: &World) -> Result<BTreeMap<u16, IpAddr>> {
    Ok(places(world, "S")?.into_iter().map(|(port, (backend, _))| (port, backend)).collect())
}

fn backends(world: &mut World) -> &mut BTreeMap<IpAddr, Backend> {
    &mut world.configuration.pools.get_mut(&name("pool0")).unwrap().backends
}

fn homes(world: &mut World) -> Homes {
    world.reconciler().homes().into_values().next().unwrap()
}

fn adopt(world: &mut World, adopting: bool) {
    let pool = world.ids.pool(&name("pool0")).unwrap();
    world.reconciler().set_adopting(pool, adopting);
}

/// Takes one away, adds one, and gives one more weight.
fn other_members(world: &mut World, gone: u8, come: u8, heavy: u8) {
    let backend = backends(world).remove(&member(gone)).unwrap();
    backends(world).insert(member(come), backend);
    backends(world).get_mut(&member(heavy)).unwrap().weight = 3;
}

/// Half a million connections that are remembered at a backend leave it with their next packet, once it is dead in their
/// pool, though another pool has it up; and those of the other pool stay.
pub(crate) fn half_a_million_leave(sandbox: &Sandbox) -> Result<()> {
    const CONNECTIONS: u32 = 500_000;
    let [interface, _] = interfaces("h")?;
    let mut world = World::new(sandbox, "half")?;
    world.configuration = many(2, 5, 251, 1);
    world.apply()?;
    rise(&mut world, interface)?;
    // Both pools have it, as the second's backends begin one later.
    let at = world.ids.backend(&member(3)).context("no number")?;
    let now = Coarse::of(clock::now()?);
    let word = ExceptionWord::new(Placed { backend: at.index, incarnation: at.incarnation }, now);
    let mut gates = Gates::open(world.bpffs())?;
    for pool in ["pool0", "pool1"] {
        gates.clear(world.ids.pool(&name(pool)).context("no pool")?, 1);
    }
    let client = |n: u32| {
        let [_, host, high, low] = n.to_be_bytes();
        SocketAddr::from(([198, 51, 100, host], u16::from_be_bytes([high, low])))
    };
    let flow = |n, port: u16| Flow { client: client(n), vip: ([192, 0, 2, 1], port).into() };
    for (port, connections) in [(1000, CONNECTIONS), (1001, 1_000)] {
        for n in 0..connections {
            let Flow { client, vip } = flow(n, port);
            let key = layout::flow_key(client, vip, 6);
            let (low, high) = key.split_at(8);
            let key = [u64::from_le_bytes(low.try_into()?), u64::from_le_bytes(high.try_into()?)];
            gates.tables.exceptions_v4.set(&key, word.0)?;
        }
    }
    let there = |world: &World, port: u16, connections| -> Result<usize> {
        let maps = world.read()?;
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
    ensure!(there(&world, 1000, 1_000)? == 1_000 && there(&world, 1001, 1_000)? == 1_000);
    world.set_state(&name("pool0"), member(3), MemberState::Dead);
    ensure!(there(&world, 1000, CONNECTIONS)? == 0, "some are still there");
    ensure!(there(&world, 1001, 1_000)? == 1_000, "those of the other pool left");
    Ok(())
}

/// How packets get to backends is the pool's affair: a new descriptor, whatever else is under way.
pub(crate) fn another_form_moves_nobody(sandbox: &Sandbox) -> Result<()> {
    let (mut world, interface) = five(sandbox, "gue")?;
    let (at_home, ids) = (open(&world)?, world.ids.clone());
    let in_form = |world: &mut World, encapsulation: Encapsulation| {
        let pools = &mut world.configuration.pools;
        pools.get_mut(&name("pool0")).unwrap().encapsulation = encapsulation;
        world.change()
    };
    let nothing_else = Applied { pools: 1, ..Applied::default() };
    // 6080 in the upper half, and the bit of GUE.
    for (encapsulation, flags) in [
        (Encapsulation::Gue(6080), 0x17c0_0008),
        (Encapsulation::Gue(1), 0x0001_0008),
        (Encapsulation::IpInIp, 0),
    ] {
        let applied = in_form(&mut world, encapsulation)?;
        ensure!(applied == nothing_else, "{encapsulation}: {applied:?}");
        ensure!(!homes(&mut world).has_former, "{encapsulation}: home is what it was");
        ensure!(open(&world)? == at_home && new(&world)? == at_home, "{encapsulation}: moved");
        ensure!(world.ids == ids, "{encapsulation}: other numbers");
        let view = world.read()?.pool_view(world.ids.pool(&name("pool0")).unwrap())?;
        let found = view.context("no pool")?.descriptor.flags;
        ensure!(found == flags, "{encapsulation}: flags {found:x}");
    }
    // In the middle of a change of home, what that keeps is kept.
    other_members(&mut world, 2, 9, 3);
    world.change()?;
    rise(&mut world, interface)?;
    let applied = in_form(&mut world, Encapsulation::Gue(6080))?;
    ensure!(applied == nothing_else, "{applied:?}");
    ensure!(homes(&mut world).has_former, "the former home goes on");
    ensure!(open(&world)? == at_home, "the change moved open connections");
    Ok(())
}

pub(crate) fn connections_stay(sandbox: &Sandbox) -> Result<()> {
    let (mut world, interface) = five(sandbox, "uphold")?;
    let before = open(&world)?;
    ensure!(new(&world)? == before, "in steady state everybody is at home");
    let left = world.ids.backend(&member(2)).unwrap();
    other_members(&mut world, 2, 9, 3);
    let applied = world.change()?;
    let expected = Applied { pools: 1, groups: 1, tables: 1, ..Applied::default() };
    ensure!(applied == expected, "{applied:?}");
    rise(&mut world, interface)?;
    ensure!(open(&world)? == before, "a change moved open connections");
    let after = new(&world)?;
    ensure!(after.values().all(|backend| *backend != member(2)), "new ones at who is gone");
    ensure!(after.values().any(|backend| *backend == member(9)), "no new ones at who came");
    ensure!(world.reconciler().leaving() == [member(2)].into());

    // A new gateway reaches the connections of all, also of who is gone.
    for n in [1, 2, 3, 4, 5] {
        world.reconciler().set_next_hop(member(n), Some(hop(interface, 2, 0)))?;
    }
    let by_gateway = places(&world, "A")?;
    ensure!(
        by_gateway
            .iter()
            .all(|(port, (at, mac))| { before[port] == *at && *mac == hop(interface, 2, 0).mac })
    );
    let host = world.read()?.host(left.index);
    let state = world.read()?.state_in(host.pool(), left.index)?;
    ensure!((host.incarnation(), state) == (left.incarnation, MemberState::Up), "{host:?}");

    // Who dies is left at once, by his connections alone.
    world.set_state(&name("pool0"), member(1), MemberState::Dead);
    for (port, backend) in open(&world)? {
        let was = before[&port];
        ensure!(if was == member(1) { backend != was } else { backend == was }, "port {port}");
    }
    world.set_state(&name("pool0"), member(1), MemberState::Up);
    ensure!(open(&world)? == before);

    // Nobody asks who is gone any more: he is as he was.
    ensure!(!world.reconciler().set_state(&name("pool0"), member(2), MemberState::Dead));
    ensure!(open(&world)? == before);
    world.forget()?;
    ensure!(open(&world)? == after, "what home meant before counts still");
    ensure!(world.read()?.host(left.index) == HostWord::GONE);
    ensure!(world.reconciler().leaving().is_empty());
    ensure!(!world.reconciler().named().backends.contains_key(&left.index));
    ensure!(world.reconciler().maps().present_tables()?.len() == 1);
    Ok(())
}

pub(crate) fn first_of_several(sandbox: &Sandbox) -> Result<()> {
    let (mut world, interface) = five(sandbox, "first")?;
    let (before, at_first) = (open(&world)?, world.configuration.clone());
    ensure!(!homes(&mut world).has_former);
    for (gone, come, heavy) in [(2, 9, 3), (9, 10, 4), (1, 11, 10)] {
        let home = homes(&mut world).current;
        other_members(&mut world, gone, come, heavy);
        world.change()?;
        rise(&mut world, interface)?;
        let now = homes(&mut world);
        ensure!(now.has_former && now.current != home);
        ensure!(open(&world)? == before, "a change moved open connections");
    }
    // Two versions, not four.
    ensure!(world.reconciler().maps().present_tables()?.len() == 2);
    adopt(&mut world, true);
    ensure!(homes(&mut world).adopting);

    // A change of limits moves nobody, and says nothing else of homes.
    let home = homes(&mut world);
    let pool = world.configuration.pools.get_mut(&name("pool0")).unwrap();
    pool.panic_threshold_percent = 50;
    let applied = world.change()?;
    ensure!(applied == Applied { pools: 1, ..Applied::default() }, "{applied:?}");
    ensure!(homes(&mut world) == home, "{:?}", homes(&mut world));
    ensure!(open(&world)? == before);

    // Another change of home, and those that are adopted wait for its settle time.
    other_members(&mut world, 4, 12, 5);
    world.change()?;
    ensure!(!homes(&mut world).adopting && homes(&mut world).has_former);

    // Home means again what it meant at first, by the same table and words. Who was gone in between is
    // whom the former version names.
    world.configuration = at_first;
    world.change()?;
    let homes = homes(&mut world);
    ensure!(homes.has_former, "numbers of who was gone are others now");
    ensure!(open(&world)? == before);
    world.forget()?;

    // Weights alone: nobody was gone.
    backends(&mut world).get_mut(&member(1)).unwrap().weight = 5;
    world.change()?;
    backends(&mut world).get_mut(&member(1)).unwrap().weight = 1;
    let applied = world.change()?;
    ensure!(applied == Applied { pools: 1, ..Applied::default() }, "{applied:?}");
    let now = world.reconciler().homes().into_values().next().unwrap();
    ensure!(!now.has_former, "what home meant before is what it means");
    Ok(())
}

pub(crate) fn found_again(sandbox: &Sandbox) -> Result<()> {
    let (mut world, interface) = five(sandbox, "again")?;
    let before = open(&world)?;
    other_members(&mut world, 2, 9, 3);
    world.change()?;
    rise(&mut world, interface)?;
    for adopting in [false, true] {
        adopt(&mut world, adopting);
        let found = homes(&mut world);
        world.restart()?;
        ensure!(homes(&mut world) == found && found.has_former && found.adopting == adopting);
        ensure!(open(&world)? == before, "a restart moved open connections");
        ensure!(world.reconciler().leaving() == [member(2)].into());
        // Sensors reach who is gone, and those that stay, as before.
        world.reconciler().set_next_hop(member(2), Some(hop(interface, 2, 0)))?;
        let gone = places(&world, "A")?.into_values().filter(|(at, _)| *at == member(2));
        let macs: Vec<_> = gone.map(|(_, mac)| mac).collect();
        ensure!(!macs.is_empty() && macs.iter().all(|mac| *mac == hop(interface, 2, 0).mac));
        world.reconciler().set_next_hop(member(2), Some(hop(interface, 1, 0)))?;
    }
    // Who comes back gets another number; the old one's connections stay all the same.
    let backend = backends(&mut world)[&member(3)].clone();
    backends(&mut world).insert(member(2), backend);
    world.change()?;
    ensure!(open(&world)? == before);
    world.restart()?;
    ensure!(open(&world)? == before);
    // It kept its state: it was never away.
    ensure!(world.reconciler().state(&name("pool0"), member(2)) == Some(MemberState::Up));
    world.reconciler().set_state(&name("pool0"), member(2), MemberState::Dead);
    ensure!(open(&world)?.values().all(|backend| *backend != member(2)));
    world.configuration = Configuration::default();
    world.change()?;
    ensure!(world.reconciler().named() == Named::default());
    ensure!(world.reconciler().maps().present_tables()?.is_empty());
    Ok(())
}

pub(crate) fn out_of_home(sandbox: &Sandbox) -> Result<()> {
    let (mut world, _) = five(sandbox, "out")?;
    let before = open(&world)?;
    let pool = name("pool0");
    let members = [member(2), member(4)].into();
    world.out = [(pool.clone(), OutOfHome { members, ..OutOfHome::default() })].into();
    let applied = world.change()?;
    // The same table, and other words.
    ensure!(applied == Applied { pools: 1, groups: 1, ..Applied::default() }, "{applied:?}");
    ensure!(homes(&mut world).out == [member(2), member(4)].into());
    ensure!(open(&world)? == before);
    let bits = |world: &World| -> Result<Vec<bool>> {
        let maps = world.read()?;
        let view = maps.pool_view(world.ids.pool(&pool).unwrap())?.context("no pool")?;
        let head = view.groups[0].1.head;
        let words = (head.members..head.members + head.member_count).map(|at| maps.member(at));
        Ok(words.flatten().map(|word| word.is_out_of_home()).collect())
    };
    ensure!(bits(&world)? == [false, true, false, true, false]);
    // What is news of a member leaves its bit alone.
    world.set_state(&pool, member(2), MemberState::Unfit);
    world.set_last_resort(&pool, member(2), true);
    world.set_last_resort(&pool, member(2), false);
    world.set_state(&pool, member(2), MemberState::Up);
    ensure!(bits(&world)? == [false, true, false, true, false]);
    let found = homes(&mut world);
    world.restart()?;
    ensure!(homes(&mut world) == found);
    world.out = BTreeMap::new();
    world.change()?;
    ensure!(bits(&world)? == [false; 5] && !homes(&mut world).has_former);
    ensure!(open(&world)? == before);
    model::check(&world)
}

/// Each round takes a quarter of every map that three versions share, and forgets only now and then:
/// what is not given back fills them.
pub(crate) fn churn(sandbox: &Sandbox) -> Result<()> {
    let pools = limits::MAX_TABLES as u16 / 4;
    let members = (limits::MAX_MEMBERS / 4 / u32::from(pools)) as u16;
    let mut world = World::new(sandbox, "churn-formers")?;
    for round in 0..7_u16 {
        world.configuration = many(pools, members, 131, 3 * (round % 3));
        world.change()?;
        match round {
            2 => world.restart()?,
            4 => world.forget()?,
            _ => {}
        }
    }
    world.forget()?;
    model::check(&world)?;
    ensure!(world.reconciler().maps().present_tables()?.len() == usize::from(pools));
    world.configuration = Configuration::default();
    world.change()?;
    ensure!(world.reconciler().named() == Named::default());
    ensure!(world.reconciler().maps().present_tables()?.is_empty());
    Ok(())
}

pub(crate) fn full(sandbox: &Sandbox) -> Result<()> {
    let mut world = World::new(sandbox, "full-formers")?;
    let pools = limits::MAX_TABLES as u16 / 2 - 1;
    for first in [0, 100] {
        world.configuration = many(pools, 1, 7, first * 50);
        world.change()?;
    }
    world.configuration = many(pools, 1, 7, 10_000);
    let ids = world.ids.clone();
    let plan = world.plan()?;
    let refused = world.reconciler().check(&plan).unwrap_err();
    ensure!(matches!(refused, ReconcileError::Settling { pools: 2047, .. }), "{refused}");
    let said = "tables of other sizes: 1 more are needed in one piece, the largest free one has 0; \
                2047 pools are still settling after a change of home, and give back what they needed \
                before when their settle time is over";
    ensure!(refused.to_string() == said, "{refused}");
    world.ids = ids;
    world.forget()?;
    world.apply()?;
    model::check(&world)
}
