//! A naive model of what the maps must say.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use anyhow::{Context as _, Result, ensure};
use lb_common::abi::{
    limits::STANDBYS_PER_GROUP,
    member::{Accepts, FULL_RAMP, MemberWord},
    next_hop::NextHopWord,
    service::{
        IPV4, SERVICE_BY_ADDRESS, SERVICE_BY_PORT, SERVICE_FRAGMENTS, SERVICE_REJECTS,
        SERVICE_TRACKED, ServiceKey, address_of,
    },
    slot::{SlotWord, TableRef},
};
use lb_maps::{PinnedMaps, PoolView};
use lb_model::{
    Affinity, Backend, Fragments, Isolation, Name, Pool, Ports, Service, Unserved, WhenFull, maglev,
};
use lb_tests::packets::layout;

use crate::reconcile::{
    fake_daemon::{FakeDaemon, OWN_KEY, SOURCE},
    limits,
};

/// Compares all that the maps say with what they must.
pub(crate) fn check(daemon: &FakeDaemon) -> Result<()> {
    let maps = daemon.read()?;
    services(daemon, &maps)?;
    let pools: BTreeMap<u32, &Name> =
        daemon.ids.pools().map(|(name, index)| (index, name)).collect();
    for index in 0..maps.pool_count() {
        let view = maps.pool_view(index)?;
        match (pools.get(&index), view) {
            (None, None) => {}
            (Some(name), Some(view)) => {
                pool(daemon, &maps, name, &view).with_context(|| format!("pool {name}"))?;
            }
            (name, view) => {
                ensure!(false, "pool {index} {name:?}: published: {}", view.is_some());
            }
        }
    }
    limits::limiters(&maps)?;
    limits::hosts(daemon, &maps)
}

fn services(daemon: &FakeDaemon, maps: &PinnedMaps) -> Result<()> {
    let found = maps.services()?;
    let mut entries = 0;
    for (name, service) in &daemon.configuration.services {
        for key in keys(service) {
            let found = maps.service(&key)?;
            let found = found.with_context(|| format!("service {name}, {key:?}: missing"))?;
            ensure!(found.key == key);
            ensure!(Some(found.index) == daemon.ids.service(name));
            ensure!(Some(found.pool) == daemon.ids.pool(&service.pool), "service {name}");
            ensure!(found.flags == flags(service), "service {name}: {:x}", found.flags);
            entries += 1;
        }
    }
    ensure!(found.len() == entries, "{} entries, expected {entries}", found.len());
    let mut bits = vec![0_u64; 64];
    let any = daemon.configuration.services.values().filter(|service| service.ports == Ports::Any);
    for (word, bit) in any.map(|service| layout::any_port(service.address)) {
        bits[word as usize] |= 1 << bit;
    }
    ensure!(maps.any_ports() == bits, "addresses with any port: {:x?}", maps.any_ports());
    let addresses: BTreeSet<IpAddr> =
        daemon.configuration.services.values().map(|service| service.address).collect();
    let vips = maps.vips()?;
    let found: BTreeMap<_, _> = vips
        .iter()
        .map(|(vip, word)| (address_of(&vip.address, vip.version as u8), word.drops_unserved()))
        .collect();
    let expected = addresses.into_iter().map(|vip| (vip, drops_unserved(daemon, vip))).collect();
    ensure!(found == expected, "VIPs, and whether they drop: {found:?}, expected {expected:?}");
    ensure!(vips.len() == found.len(), "a VIP has two keys: {vips:?}");
    Ok(())
}

/// Whether packets for a VIP are dropped that no service takes.
fn drops_unserved(daemon: &FakeDaemon, vip: IpAddr) -> bool {
    let ranges = daemon.configuration.vips.iter().filter(|(prefix, _)| prefix.contains(vip));
    let longest = ranges.max_by_key(|(prefix, _)| prefix.bits());
    match longest.map_or(Unserved::Auto, |(_, unserved)| *unserved) {
        Unserved::Drop => true,
        Unserved::Pass => false,
        Unserved::Auto => {
            let host = &daemon.local_host;
            let forwards = if vip.is_ipv4() { host.forwards_v4 } else { host.forwards_v6 };
            !forwards && !host.addresses.contains(&vip)
        }
    }
}

/// What packets of a service are looked up as.
pub(crate) fn keys(service: &Service) -> BTreeSet<ServiceKey> {
    let key = |port, protocol| ServiceKey::new(service.address, port, protocol);
    let protocol = service.protocol.number();
    let mut keys = BTreeSet::new();
    match &service.ports {
        Ports::Any => drop(keys.insert(key(0, protocol))),
        Ports::Listed(list) => keys.extend(list.each().map(|port| key(port, protocol))),
    }
    if service.fragments == Fragments::Served {
        keys.insert(key(0, protocol + 128));
    }
    keys
}

fn flags(service: &Service) -> u32 {
    let mut flags = 0;
    if service.affinity == Affinity::Port {
        flags |= SERVICE_BY_PORT;
    }
    if service.fragments == Fragments::Served {
        flags |= SERVICE_FRAGMENTS;
    }
    if service.affinity == Affinity::Client {
        flags |= SERVICE_BY_ADDRESS;
    }
    if service.when_full == WhenFull::Reject {
        flags |= SERVICE_REJECTS;
    }
    if let Some(idle) = service.idle_timeout {
        let units = (idle.as_secs() as f64 / 1.073_741_824).ceil() as u32;
        flags |= SERVICE_TRACKED | units << 16;
    }
    flags
}

/// Regions of a pool that have a weight, in the order that the documents state.
fn order(daemon: &FakeDaemon, pool: &Pool) -> Vec<Name> {
    let regions = &daemon.configuration.regions;
    let mut order: Vec<Name> = Vec::new();
    let mut wave: Vec<Name> = daemon.own.iter().cloned().collect();
    while !wave.is_empty() {
        wave.retain(|region| !order.contains(region));
        order.extend(wave.iter().cloned());
        wave = wave.iter().flat_map(|region| regions[region].overflow_to.clone()).collect();
    }
    let mut all = pool.preferred_regions.clone();
    all.extend(order);
    all.extend(regions.keys().cloned());
    let mut order: Vec<Name> = Vec::new();
    for region in all {
        let has_weight = pool.backends.values().any(|b| b.region == region && b.weight > 0);
        if has_weight && !order.contains(&region) {
            order.push(region);
        }
    }
    if pool.isolation == Isolation::Strict {
        order.truncate(1);
    }
    order
}

fn pool(daemon: &FakeDaemon, maps: &PinnedMaps, name: &Name, view: &PoolView) -> Result<()> {
    let configured = &daemon.configuration.pools[name];
    let descriptor = &view.descriptor;
    ensure!(descriptor.hash_key == daemon.configuration.hash_key.unwrap_or(OWN_KEY));
    ensure!((descriptor.source_v4, descriptor.source_hosts_v4) == (0, 0), "there is no prefix");
    let order = order(daemon, configured);
    limits::descriptor(configured, &order, view)?;
    ensure!(view.groups.len() == order.len(), "{} groups for {order:?}", view.groups.len());
    ensure!(descriptor.group_count as usize == order.len());
    if let Some((_, home)) = view.groups.first() {
        ensure!(descriptor.home == home.head);
    }
    for ((at, group), region) in view.groups.iter().zip(&order) {
        ensure!(Some(group.region) == daemon.ids.region(region));
        let mut members: Vec<(&IpAddr, &Backend)> =
            configured.backends.iter().filter(|(_, backend)| backend.region == *region).collect();
        members.sort_by_key(|(address, _)| match address {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => *v6,
        });
        ensure!(group.head.member_count as usize == members.len());
        let mut live = Vec::new();
        for (rank, (address, backend)) in members.iter().enumerate() {
            let is_up =
                member(daemon, maps, name, view, (group.head.members + rank as u32, **address))
                    .with_context(|| format!("member {address}"))?;
            live.extend((is_up && backend.weight > 0).then_some(rank as u16));
        }
        limits::group(daemon, maps, name, region, group).context("limit")?;
        standbys(maps, *at, &live)?;
        table(view, group.head.table, configured.slots, &members)?;
    }
    pool_accepts(daemon, maps, name, view)
}

/// The words say of the pool what its best member accepts. During a remap more than that is said where members of before
/// accept more.
fn pool_accepts(
    daemon: &FakeDaemon,
    maps: &PinnedMaps,
    name: &Name,
    view: &PoolView,
) -> Result<()> {
    let mut words = Vec::new();
    for (_, group) in &view.groups {
        let block = (group.head.members..).take(group.head.member_count as usize);
        words.extend(block.filter_map(|at| maps.member(at)));
    }
    let address = |word: MemberWord| {
        let backend = view.backends.get(&word.backend()).context("no backend")?;
        anyhow::Ok(address_of(&backend.address, backend.version))
    };
    let mut best = 0;
    for word in &words {
        let member = (name.clone(), address(*word)?);
        let is_last = daemon.last_resorts.contains(&member);
        best = best.max(if is_last { 2 } else { daemon.states[&member] as u8 });
    }
    for word in words {
        let said = word.pool_accepts() as u8;
        let is_right = said == best || said > best && view.previous.is_some();
        ensure!(is_right, "the pool is said to accept {said}, expected {best}");
    }
    Ok(())
}

/// Checks a member; true where new connections can go to it.
fn member(
    daemon: &FakeDaemon,
    maps: &PinnedMaps,
    pool: &Name,
    view: &PoolView,
    (at, address): (u32, IpAddr),
) -> Result<bool> {
    let word = maps.member(at).context("no word")?;
    let id = daemon.ids.backend(&address).context("no number")?;
    ensure!((word.backend(), word.incarnation()) == (id.index, id.incarnation));
    let state = daemon.states[&(pool.clone(), address)];
    let last_resort = daemon.last_resorts.contains(&(pool.clone(), address));
    ensure!(word.is_last_resort() == last_resort);
    let kept = last_resort && state == Accepts::Nothing;
    let said = if kept { Accepts::OpenOnly } else { state };
    ensure!(word.accepts() == said, "is {:?}, expected {said:?}", word.accepts());
    ensure!(word.ramp() == FULL_RAMP);
    let rate = daemon.configuration.pools[pool].backends[&address].max_connection_rate;
    limits::member(daemon, maps, (at, word), rate)?;
    ensure!(word.awaits_next_hop() == daemon.awaited.contains(&address), "{word:?}");
    let there = maps.next_hop_entry(u32::from(word.next_hop()));
    let hop = NextHopWord(there.word);
    let expected = daemon.hops.get(&address);
    let resolved = expected.map(|hop| NextHopWord::new(hop.mac, hop.interface as u16));
    ensure!(hop == resolved.unwrap_or(NextHopWord::UNRESOLVED), "next hop {hop:?}");
    if let Some(expected) = expected {
        ensure!(address_of(&there.source, IPV4) == SOURCE, "source {:?}", there.source);
        ensure!(maps.interface(expected.interface).mac() == expected.interface_mac);
        ensure!(maps.is_device(expected.interface)?);
    }
    let backend = view.backends.get(&word.backend()).context("no backend")?;
    if let Some(expected) = expected {
        let on_link = u16::from(expected.gateway == address);
        ensure!(backend.on_link == on_link, "on the link: {}, expected {on_link}", backend.on_link);
    }
    ensure!(address_of(&backend.address, backend.version) == address);
    ensure!(backend.incarnation == id.incarnation);
    let mtu = daemon.mtus[&address];
    ensure!(backend.mtu == mtu, "MTU {}, expected {mtu}", backend.mtu);
    Ok(state == Accepts::All && expected.is_some())
}

fn standbys(maps: &PinnedMaps, group: u32, live: &[u16]) -> Result<()> {
    for place in 0..STANDBYS_PER_GROUP {
        let rank = maps.standby(group, place).rank();
        match rank {
            None => ensure!(live.is_empty(), "standby {place}: none, though {live:?} are live"),
            Some(rank) => ensure!(live.contains(&rank), "standby {place}: {rank} is not live"),
        }
    }
    Ok(())
}

fn table(view: &PoolView, table: u32, slots: u32, members: &[(&IpAddr, &Backend)]) -> Result<()> {
    let members: Vec<_> = members
        .iter()
        .map(|(address, backend)| maglev::Member {
            key: (**address).into(),
            weight: backend.weight,
        })
        .collect();
    let built = maglev::build(&members, slots)?;
    let published = view.tables.get(&TableRef(table)).context("no table")?;
    let words = published.slots().map(|SlotWord(word)| word);
    ensure!(words.eq(built.words().iter().copied()), "the table is another");
    let owners = (0..slots).map(|slot| published.owner(slot));
    let first = built.words().iter().map(|&word| Some(SlotWord(word).rank(0)));
    ensure!(owners.eq(first), "the owners are not those of the lists");
    Ok(())
}
