//! Fills the balancer's maps with a fleet of a realistic size: 100 services that share a pool of 100 members in each of
//! two regions, and as many services with a pool of their own as a case asks for.
//!
//! A change of the maps is a change of one of its parts: what publishes a service ([`service::publish`]), what makes a
//! table ([`table::Chunks`]), and what a pool says of both ([`pool::publish`]).

mod pool;
mod service;
mod table;

use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Context as _, Result, ensure};
use aya::{
    Ebpf,
    maps::{self, Map, xdp::DevMapHash},
};
use lb_common::abi::{
    arrays::Array,
    capture::{Capture, SECTION},
    form::Form,
    limiter::{LimitWord, Limiter},
    member::Accepts,
    names,
    next_hop::{InterfaceWord, NextHopEntry, NextHopWord},
    pod::bytes_of,
    pool::LIMITED,
    service::{SERVICE_REJECTS, SERVICE_TRACKED, Service, VipKey, VipWord, address_words},
    sizes::MapSizes,
    zone::{Zone, ZoneRange},
};
use lb_maps::clock;

use super::frame::{VIP4, VIP6};
use crate::packets::objects::{arrays, flows};
use pool::{GroupPlan, PoolPlan};
use table::Chunks;

/// Members of each region.
pub const MEMBERS: u32 = 100;
/// Services besides the ones that are sent to.
const OTHER_SERVICES: u32 = 98;
/// The pool that services share. No pool is 0; those of services that have their own follow it.
const SHARED_POOL: u32 = 1;
/// Zones of the pool that services share.
const SHARED_ZONES: u32 = 4_096;
/// For how long a tracked flow is remembered, in units of 1.07 s.
const IDLE_UNITS: u32 = 60;
/// Members of the pool of a service that has one of its own.
const OWN_MEMBERS: u32 = 10;

/// The address of the n-th service that has a pool of its own; those of the others follow it. From 198.18.0.0/15, which
/// is there for benchmarks (RFC 2544).
pub const fn own_vip(n: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0xc612_0000 + n)
}

/// How the two regions are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Situation {
    /// No limits, and every connection at home.
    Steady,
    /// The near region has a limit that is never reached.
    Limited,
    /// There is one region, which is full, and the services reject.
    Full,
    /// The near region is full, the far one has no limit.
    Spilling,
    /// As limited, and a connection of each zone is not at home.
    Open,
    /// As limited, and a connection of one zone of a hundred is not at home.
    OneAway,
    /// A remap that moves none of the flows.
    RemapStays,
    /// A remap that moves all of them.
    RemapMoves,
    /// As steady, and flows of datagrams are tracked.
    Tracked,
    /// As limited, and no member takes any packet.
    Unreachable,
    /// As steady, and packets for VIPs that no service takes are dropped.
    Unserved,
}

/// Limiters of the two groups, near and far.
pub const LIMITERS: [u32; 2] = [10, 11];

/// All that the balancer's maps say while something is measured. Each measurement sets all of it, whatever the one
/// before left.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Packets leave by it.
    pub interface: u16,
    /// Backends are IPv6.
    pub v6: bool,
    /// How the regions are.
    pub situation: Situation,
    /// How packets get to backends.
    pub form: Form,
    /// What is captured.
    pub capture: Capture,
    /// Services with a pool of ten backends and a table of its own each, at [`own_vip`]. They stay in the maps until
    /// the object is loaded anew.
    pub own_pools: u32,
}

impl State {
    /// A state with IPv4 backends, in IP in IP, of which nothing is captured.
    pub fn new(interface: u16, situation: Situation) -> Self {
        let (form, capture) = (Form::IP_IN_IP, Capture::default());
        Self { interface, v6: false, situation, form, capture, own_pools: 0 }
    }
}

/// Fills the maps.
///
/// # Errors
/// A map that is missing or does not take a value, or a capture that is not what it should be.
pub fn fill(balancer: &mut Ebpf, state: &State) -> Result<()> {
    let State { interface, v6, situation, form, capture, own_pools } = *state;
    set_capture(balancer, &capture)?;
    let arrays = &arrays(balancer)?;
    let word = NextHopWord::new([2, 0, 0, 0, 0, 9], interface).0;
    let source = if v6 { "fd00::1".parse()? } else { IpAddr::from([10, 0, 0, 1]) };
    let hop = NextHopEntry { word, reserved: 0, source: address_words(source) };
    arrays.view(Array::NextHops).set(1, &hop);
    let own = InterfaceWord::new([2, 0, 0, 0, 0, 1]).0;
    arrays.view(Array::Interfaces).set(u32::from(interface), &own);
    let limited = !matches!(
        situation,
        Situation::Steady
            | Situation::RemapStays
            | Situation::RemapMoves
            | Situation::Tracked
            | Situation::Unserved
    );
    let accepts = if situation == Situation::Unreachable { Accepts::Nothing } else { Accepts::All };
    let full = matches!(situation, Situation::Full | Situation::Spilling);
    arrays.view(Array::Limiters).set(LIMITERS[0], &near_limiter(limited, full)?);
    let flags = form.flags() | if limited { LIMITED } else { 0 };
    let shared = PoolPlan {
        pool: SHARED_POOL,
        groups: groups(v6, if situation == Situation::Full { 1 } else { 2 }),
        next: match situation {
            Situation::RemapStays => groups(v6, 2),
            // The same regions in the other order.
            Situation::RemapMoves => groups(v6, 2).into_iter().rev().collect(),
            _ => Vec::new(),
        },
        flags,
        accepts,
        zones: ZoneRange::new(0, SHARED_ZONES),
        last_displaced: u64::from(matches!(situation, Situation::Open | Situation::OneAway)),
    };
    let away = match situation {
        Situation::Open => 1,
        Situation::OneAway => 100,
        _ => u32::MAX,
    };
    for zone in 0..SHARED_ZONES {
        let last_displaced = u64::from(zone % away == away - 1);
        arrays.view(Array::Zones).set(zone, &Zone { cleared: 0, last_displaced });
    }
    let flows = flows(balancer, MapSizes::DEFAULT.flow_lines())?;
    flows.set_up([0x5ec2_e700, 0x0f1a_0ce2]);
    for (at, owner, _) in flows.cells(0, flows.buckets()) {
        flows.erase(at, owner);
    }
    for counted in 0..=SHARED_POOL {
        arrays.view(Array::FlowCounts).set(counted, &0_u64);
    }
    let mut chunks = Chunks::default();
    pool::publish(arrays, &mut chunks, &shared)?;
    let mut services = services(match situation {
        Situation::Full => SERVICE_REJECTS,
        Situation::Tracked => SERVICE_TRACKED | IDLE_UNITS << 16,
        _ => 0,
    });
    for n in 0..own_pools {
        pool::publish(arrays, &mut chunks, &own_pool(n, form.flags()))?;
        services.extend(service::both(
            own_vip(n).into(),
            2 + OTHER_SERVICES + n,
            SHARED_POOL + 1 + n,
            0,
        ));
    }
    chunks.publish(balancer)?;
    service::publish(arrays, &services)?;
    let word = VipWord::new(situation == Situation::Unserved);
    let mut vips: maps::HashMap<_, [u8; size_of::<VipKey>()], u32> =
        map_mut(balancer, names::ADDRESSES)?.try_into()?;
    for address in [VIP4.into(), VIP6.into()] {
        vips.insert(
            <[u8; size_of::<VipKey>()]>::try_from(bytes_of(&VipKey::of(address)))?,
            word.0,
            0,
        )?;
    }
    ensure!(is_captured(balancer)? == (capture.until != 0), "what is captured was not set");
    Ok(())
}

/// Gives the services of the shared pool other flags. Nothing that is remembered of flows changes.
///
/// # Errors
/// A map that is missing.
pub fn set_service_flags(balancer: &mut Ebpf, flags: u32) -> Result<()> {
    service::publish(&arrays(balancer)?, &services(flags))
}

/// The groups of the shared pool. Both regions have the table of the first: it differs from a table of the second only
/// in which member is where.
fn groups(v6: bool, regions: u32) -> Vec<GroupPlan> {
    let group = |region: u32| GroupPlan {
        group: region,
        table: 0,
        limiter: LIMITERS[region as usize],
        members: region * MEMBERS,
        backends: region * MEMBERS + 1,
        addresses: (1..=MEMBERS as u16).map(|host| address(v6, region as u16 + 1, host)).collect(),
    };
    (0..regions).map(group).collect()
}

fn address(v6: bool, region: u16, host: u16) -> IpAddr {
    if v6 {
        IpAddr::from([0xfd00, 0, 0, 0, 0, 0, region, host])
    } else {
        IpAddr::from([10, 0, region as u8, host as u8])
    }
}

/// The pool of the n-th service that has one of its own.
fn own_pool(n: u32, flags: u32) -> PoolPlan {
    let members = 2 * MEMBERS + n * OWN_MEMBERS;
    let address = |host| Ipv4Addr::from_bits(0x0a10_0000 + n * OWN_MEMBERS + host).into();
    let group = GroupPlan {
        group: 2 + n,
        table: 1 + n,
        limiter: 0,
        members,
        backends: members + 1,
        addresses: (0..OWN_MEMBERS).map(address).collect(),
    };
    let zones = ZoneRange::new(SHARED_ZONES + n, 1);
    let (groups, next) = (vec![group], Vec::new());
    PoolPlan {
        pool: SHARED_POOL + 1 + n,
        groups,
        next,
        flags,
        accepts: Accepts::All,
        zones,
        last_displaced: 0,
    }
}

/// The services of the shared pool.
fn services(flags: u32) -> Vec<Service> {
    let ours = [VIP4.into(), VIP6.into()];
    let others = (0..OTHER_SERVICES).map(|n| [203, 0, 113, n as u8].into());
    let addresses = (0..).zip(ours.into_iter().chain(others));
    addresses
        .flat_map(|(index, address)| service::both(address, index, SHARED_POOL, flags))
        .collect()
}

/// Lets the balancer redirect frames to an interface.
///
/// # Errors
/// An interface that is not there.
pub fn allow_redirect(balancer: &mut Ebpf, interface: u32) -> Result<()> {
    let mut devices = DevMapHash::try_from(map_mut(balancer, names::DEVICES)?)?;
    Ok(devices.insert(interface, interface, None, 0)?)
}

/// Whether something is captured.
///
/// # Errors
/// An object that cannot capture.
pub fn is_captured(balancer: &mut Ebpf) -> Result<bool> {
    let map = map_mut(balancer, SECTION)?;
    let map: maps::Array<_, [u8; size_of::<Capture>()]> = map.try_into()?;
    Ok(map.get(&0, 0)?.iter().any(|&byte| byte != 0))
}

/// Changes a limiter's limit, as if nothing had come so far.
///
/// # Errors
/// A map that is missing or does not take a value.
pub fn limit(balancer: &mut Ebpf, limiter: u32, limit: LimitWord) -> Result<()> {
    let limiter_value = Limiter { limit: limit.0, ..Limiter::default() };
    arrays(balancer)?.view(Array::Limiters).set(limiter, &limiter_value);
    Ok(())
}

/// A limiter without limit, with one that is never reached, or with one that is reached until long
/// after the bench.
fn near_limiter(limited: bool, full: bool) -> Result<Limiter> {
    let limit = match (limited, full) {
        (false, _) => LimitWord::UNLIMITED,
        (true, false) => LimitWord::new(1, LimitWord::MAX_BURST),
        (true, true) => LimitWord::new(LimitWord::MAX_INTERVAL, 100),
    };
    // Half an interval short of the burst: the next one is refused for half a minute.
    let ahead = limit.allowance().saturating_sub(limit.interval() / 2);
    let arrival = if full { clock::now()? * LimitWord::PER_NANOSECOND + ahead } else { 0 };
    Ok(Limiter { limit: limit.0, arrival, ..Limiter::default() })
}

fn set_capture(balancer: &mut Ebpf, capture: &Capture) -> Result<()> {
    let bytes: [u8; size_of::<Capture>()] = bytes_of(capture).try_into()?;
    let mut map: maps::Array<_, [u8; size_of::<Capture>()]> =
        map_mut(balancer, SECTION)?.try_into()?;
    Ok(map.set(0, bytes, 0)?)
}

fn map_mut<'b>(balancer: &'b mut Ebpf, name: &str) -> Result<&'b mut Map> {
    balancer.map_mut(name).with_context(|| format!("the object has no map {name}"))
}
