//! Recovery from what goes wrong on the way: a kernel that refuses, a crash between two stores, a device that
//! returns, a port that leaves its bond.

use std::{net::IpAddr, process, process::Command};

use anyhow::{Context as _, Result, ensure};
use aya::maps::{HashMap, Map, MapData};
use lb_common::abi::{
    arrays::Array,
    member::{Accepts, MemberWord},
    names,
    service::{VipKey, VipWord},
    sizes::MapSizes,
};
use lb_maps::{Arrays, Component, Mapping, Pins};
use lb_model::unserved::LocalHost;
use lb_publish::reconcile::MemberPath as _;
use lb_tests::sandbox::Sandbox;
use nix::net::if_::if_nametoindex;

use crate::reconcile::{
    bulk::many,
    fake_daemon::{FakeDaemon, hop, interfaces},
    model,
    random::name,
};

/// In both pools of `many(2, 3, …)`.
const SHARED: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 1, 0, 1));

/// Two pools that share two of their three backends, all up behind one gateway.
fn two_pools(sandbox: &Sandbox, directory: &str, interface: u32) -> Result<FakeDaemon> {
    let mut daemon = FakeDaemon::new(sandbox, directory)?;
    daemon.configuration = many(2, 3, 7, 0);
    daemon.apply()?;
    for (pool, address) in daemon.states.keys().cloned().collect::<Vec<_>>() {
        daemon.set_state(&pool, address, Accepts::All);
        daemon.set_next_hop(address, Some(hop(interface, 1, 0)))?;
    }
    Ok(daemon)
}

/// Where a pool's member has its word, and the word.
fn word(daemon: &FakeDaemon, pool: &str, address: IpAddr) -> Result<(u32, MemberWord)> {
    let maps = daemon.read()?;
    let pool = daemon.ids.pool(&name(pool)).context("no such pool")?;
    let id = daemon.ids.backend(&address).context("no such backend")?;
    let view = maps.pool_view(pool)?.context("not published")?;
    let heads = view.groups.iter().map(|(_, group)| group.head);
    let mut places = heads.flat_map(|head| head.members..head.members + head.member_count);
    let found =
        places.find_map(|at| Some((at, maps.member(at)?)).filter(|(_, w)| w.backend() == id.index));
    found.context("no such member")
}

/// Takes all room for addresses of services.
struct Strangers(HashMap<MapData, [u8; size_of::<VipKey>()], u32>);

impl Strangers {
    fn new(bpffs: &std::path::Path) -> Result<Self> {
        let pin = Pins::new(bpffs, Component::Balancer).map(names::ADDRESSES);
        let mut addresses = HashMap::try_from(Map::from_map_data(MapData::from_pin(pin)?)?)?;
        let mut refused = false;
        for n in 0..=room() {
            refused = addresses.insert(stranger(n), 1, 0).is_err();
        }
        ensure!(refused, "there is room left");
        Ok(Self(addresses))
    }

    fn leave(mut self) {
        for n in 0..=room() {
            let _never_came_in = self.0.remove(&stranger(n));
        }
    }
}

/// A key that no service has.
fn room() -> u32 {
    MapSizes::DEFAULT.entries(names::ADDRESSES).unwrap_or_default()
}

fn stranger(n: u32) -> [u8; size_of::<VipKey>()] {
    std::array::from_fn(|at| if at < 4 { n.to_ne_bytes()[at] } else { 0xff })
}

pub(crate) fn refused_half_way(sandbox: &Sandbox) -> Result<()> {
    let [interface, other] = interfaces("r")?;
    let mut daemon = two_pools(sandbox, "refused", interface)?;
    // Another backend in the first pool, and a service whose address has no room.
    let strangers = Strangers::new(daemon.bpffs())?;
    let more = many(3, 4, 7, 0);
    let pool = more.pools[&name("pool0")].clone();
    daemon.configuration.pools.insert(name("pool0"), pool);
    let service = more.services[&name("service2")].clone();
    let address = [192, 0, 2, 2].into();
    let service = lb_model::Service { pool: name("pool0"), address, ..service };
    daemon.configuration.services.insert(name("service2"), service);
    ensure!(daemon.apply().is_err(), "there was room");

    // News must reach what packets read now, which is the new version of the pool.
    daemon.set_state(&name("pool0"), SHARED, Accepts::Nothing);
    let moved: IpAddr = [10, 1, 0, 2].into();
    daemon.set_next_hop(moved, Some(hop(other, 2, 0)))?;
    ensure!(word(&daemon, "pool0", [10, 1, 0, 3].into()).is_ok(), "the pool is not published yet");
    ensure!(word(&daemon, "pool0", SHARED)?.1.accepts() == Accepts::Nothing);
    let words = [word(&daemon, "pool0", moved)?.1, word(&daemon, "pool1", moved)?.1];
    ensure!(words[0].next_hop() == words[1].next_hop(), "{words:?}");
    // So must a change of the host reach the VIPs.
    daemon.local_host = LocalHost { forwards_v4: false, ..LocalHost::default() };
    daemon.follow_host()?;
    let vip = VipKey::of(daemon.configuration.services[&name("service0")].address);
    let word = daemon.read()?.vip(&vip)?;
    ensure!(word.is_some_and(VipWord::drops_unserved), "{word:?}");

    strangers.leave();
    daemon.apply()?;
    model::check(&daemon)
}

pub(crate) fn died_between_two_words(sandbox: &Sandbox) -> Result<()> {
    let [interface, _] = interfaces("d")?;
    let mut daemon = two_pools(sandbox, "between", interface)?;
    for pool in ["pool0", "pool1"] {
        let (at, word) = word(&daemon, pool, SHARED)?;
        daemon.words().maps().set_member(at, word.with_next_hop(0));
        daemon.restart()?;
        model::check(&daemon).with_context(|| format!("{pool} had not been told"))?;
    }
    Ok(())
}

pub(crate) fn device_came_back(sandbox: &Sandbox) -> Result<()> {
    let [interface, _] = interfaces("v")?;
    let mut daemon = two_pools(sandbox, "device", interface)?;
    model::check(&daemon)?;
    let backends: Vec<IpAddr> = daemon.mtus.keys().copied().collect();
    for address in &backends {
        daemon.set_next_hop(*address, None)?;
    }
    let here = process::id().to_string();
    for command in [
        ["netns", "add", "away"].as_slice(),
        &["link", "set", "v0", "netns", "away"],
        &["-netns", "away", "link", "set", "v0", "netns", &here],
    ] {
        ensure!(Command::new("ip").args(command).status()?.success(), "ip {command:?}");
    }
    ensure!(if_nametoindex("v0")? == interface, "it came back as another");
    ensure!(!daemon.read()?.is_device(interface)?, "the kernel kept it");
    for address in &backends {
        daemon.set_next_hop(*address, Some(hop(interface, 1, 0)))?;
    }
    model::check(&daemon)
}

pub(crate) fn port_left(sandbox: &Sandbox) -> Result<()> {
    let mut daemon = FakeDaemon::new(sandbox, "port")?;
    // What no map has room for is left out.
    daemon.words().set_bonds(&[(3, 9), (4, 9), (65_535, 10), (65_536, 10)].into());
    let known = [(3, 9), (4, 9), (65_535, 10)];
    ensure!(ports(&daemon)? == known, "{:?}", ports(&daemon)?);
    daemon.restart()?;
    ensure!(ports(&daemon)? == known, "forgotten with the daemon: {:?}", ports(&daemon)?);
    // One left, one is another bond's, one joined.
    daemon.words().set_bonds(&[(4, 10), (5, 9), (65_535, 10)].into());
    let known = [(4, 10), (5, 9), (65_535, 10)];
    ensure!(ports(&daemon)? == known, "{:?}", ports(&daemon)?);
    Ok(())
}

/// Ports and the bonds that the maps say they are of.
fn ports(daemon: &FakeDaemon) -> Result<Vec<(u32, u64)>> {
    let bonds = Arrays::<Mapping>::open(daemon.bpffs())?.view::<u64>(Array::Bonds);
    let ports = (0..bonds.entries()).filter_map(|port| Some((port, bonds.get(port)?)));
    Ok(ports.filter(|(_, bond)| *bond != 0).collect())
}
