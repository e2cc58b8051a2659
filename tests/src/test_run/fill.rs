//! Fills the balancer's maps with a fleet of a realistic size: 100 services, one pool, 100 members in
//! each of two regions.

use anyhow::{Context as _, Result, ensure};
use aya::{
    Ebpf,
    maps::{Array, ArrayOfMaps, Map, MapData},
};
use lb_common::abi::{
    backend::{Backend, BackendStateWord},
    capture::{Capture, SECTION},
    form::Form,
    limiter::{LimitWord, Limiter},
    limits::{CHUNK_WORDS, DEFAULT_SLOTS},
    member::{Accepts, FULL_RAMP, MemberWord},
    names,
    next_hop::{InterfaceWord, NextHopWord},
    pod::bytes_of,
    pool::{Descriptor, Group, GroupHead, LIMITED, PoolLine, PoolWord},
    service::{SERVICE_REJECTS, Service, ServiceKey, address_words},
    slot::{SlotWord, TABLE_HEAD, TableShape},
};
use lb_common::service_index::{self, HEAD, IndexEntry, IndexHead, area_bits, area_words};
use lb_maps::clock;
use lb_model::maglev;

use super::frame::{VIP4, VIP6};

/// Members of each region.
pub const MEMBERS: u32 = 100;
/// Services besides the ones that are sent to.
const OTHER_SERVICES: u32 = 98;
/// Where the table is: behind the first word of the first chunk.
const TABLE: u32 = 1 + TABLE_HEAD;
const SHAPE: TableShape = TableShape { slots: DEFAULT_SLOTS, members: MEMBERS };
/// `BPF_F_MMAPABLE`, which chunks have.
const MMAPABLE: u32 = 1 << 10;

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
    /// As limited, and some connection is not at home.
    Open,
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
}

impl State {
    /// A state with IPv4 backends, in IP in IP, of which nothing is captured.
    pub fn new(interface: u16, situation: Situation) -> Self {
        Self { interface, v6: false, situation, form: Form::IP_IN_IP, capture: Capture::default() }
    }
}

/// Fills the maps.
///
/// # Errors
/// A map that is missing or does not take a value, or a capture that is not what it should be.
pub fn fill(balancer: &mut Ebpf, state: &State) -> Result<()> {
    let State { interface, v6, situation, form, capture } = *state;
    set(balancer, SECTION, 0, bytes::<{ size_of::<Capture>() }>(&capture))?;
    let mut heads = Vec::new();
    for (region, limiter) in (0..).zip(LIMITERS) {
        let (TableShape { slots, members: member_count }, members) = (SHAPE, region * MEMBERS);
        let head = GroupHead { table: TABLE, slots, members, member_count };
        let group = Group { head, region, limiter, reserved: [0; 2] };
        set(balancer, names::GROUPS, region, bytes::<32>(&group))?;
        heads.push(head);
    }
    let limited = !matches!(situation, Situation::Steady);
    let full = matches!(situation, Situation::Full | Situation::Spilling);
    let descriptor = Descriptor {
        hash_key: [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210],
        home: heads[0],
        source_v6: address_words("fd00::1".parse()?),
        source_v4: u32::from_ne_bytes([10, 0, 0, 1]),
        source_hosts_v4: 0,
        flags: form.flags() | if limited { LIMITED } else { 0 },
        home_limiter: LIMITERS[0],
        groups: [0, 1, 0, 0, 0, 0, 0, 0],
        group_count: if situation == Situation::Full { 1 } else { 2 },
        spare: [0; 7],
    };
    set(balancer, names::DESCRIPTORS, 1, bytes::<128>(&descriptor))?;
    let last_displaced = u64::from(situation == Situation::Open);
    let line = PoolLine { word: PoolWord::new(1, 0).0, last_displaced, ..PoolLine::default() };
    set(balancer, names::POOLS, 0, bytes::<32>(&line))?;
    set(balancer, names::LIMITERS, LIMITERS[0], bytes::<64>(&near_limiter(limited, full)?))?;
    set(balancer, names::NEXT_HOPS, 1, NextHopWord::new([2, 0, 0, 0, 0, 9], interface).0)?;
    let own = InterfaceWord::new([2, 0, 0, 0, 0, 1]).0;
    set(balancer, names::INTERFACES, u32::from(interface), own)?;
    members(balancer, v6)?;
    services(balancer, if situation == Situation::Full { SERVICE_REJECTS } else { 0 })?;
    ensure!(is_captured(balancer)? == (capture.until != 0), "what is captured was not set");
    Ok(())
}

/// Whether something is captured.
///
/// # Errors
/// An object that cannot capture.
pub fn is_captured(balancer: &mut Ebpf) -> Result<bool> {
    let map: Array<_, [u8; size_of::<Capture>()]> = Array::try_from(map_mut(balancer, SECTION)?)?;
    Ok(map.get(&0, 0)?.iter().any(|&byte| byte != 0))
}

/// Changes a limiter's limit, as if nothing had come so far.
///
/// # Errors
/// A map that is missing or does not take a value.
pub fn limit(balancer: &mut Ebpf, limiter: u32, limit: LimitWord) -> Result<()> {
    let limiter_value = Limiter { limit: limit.0, ..Limiter::default() };
    set(balancer, names::LIMITERS, limiter, bytes::<64>(&limiter_value))
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

fn members(balancer: &mut Ebpf, v6: bool) -> Result<()> {
    let mut keys = Vec::new();
    for n in 0..2 * MEMBERS {
        let (region, host) = (n / MEMBERS + 1, n % MEMBERS + 1);
        let address = if v6 {
            std::net::IpAddr::from([0xfd00, 0, 0, 0, 0, 0, region as u16, host as u16])
        } else {
            std::net::IpAddr::from([10, 0, region as u8, host as u8])
        };
        let backend = Backend {
            address: address_words(address),
            version: if v6 { 6 } else { 4 },
            incarnation: 0,
            mtu: 1500,
            on_link: 1,
            reserved: [0; 5],
        };
        set(balancer, names::BACKENDS, n + 1, bytes::<32>(&backend))?;
        let word = MemberWord::new(n + 1, 0, Accepts::All, FULL_RAMP, 1);
        set(balancer, names::MEMBERS, n, word.0)?;
        set(
            balancer,
            names::BACKEND_STATES,
            n + 1,
            BackendStateWord::new(0, Accepts::All, 1, 0).0,
        )?;
        if region == 1 {
            keys.push(maglev::Member { key: address.into(), weight: 1 });
        }
    }
    let table = maglev::build(&keys, SHAPE.slots)?;
    let mut chunk = Array::<MapData, u64>::create(CHUNK_WORDS, MMAPABLE)?;
    let list = |slot| SlotWord(table.words()[slot as usize]);
    let words = table.words().iter().copied().chain(SHAPE.owners(list));
    for (index, word) in (TABLE..).zip(words) {
        chunk.set(index, word, 0)?;
    }
    let mut chunks: ArrayOfMaps<_, Array<MapData, u64>> =
        ArrayOfMaps::try_from(map_mut(balancer, names::TABLES)?)?;
    Ok(chunks.set(0, &chunk, 0)?)
}

fn services(balancer: &mut Ebpf, flags: u32) -> Result<()> {
    let ours = [VIP4.into(), VIP6.into()];
    let others = (0..OTHER_SERVICES).map(|n| [203, 0, 113, n as u8].into());
    let addresses = (0..).zip(ours.into_iter().chain(others));
    let services = addresses.flat_map(|(index, address)| {
        [6, 17].map(|protocol| {
            let key = ServiceKey::new(address, 80, protocol);
            Service { key, index, pool: 0, flags }
        })
    });
    publish_services(balancer, &services.collect::<Vec<_>>())
}

/// Publishes services, and no others.
fn publish_services(balancer: &mut Ebpf, services: &[Service]) -> Result<()> {
    let head = IndexHead::new(8, area_bits(services.len() as u32), 0);
    let mut words = vec![0; area_words(head.bits()) as usize];
    for (record, service) in (1..).zip(services) {
        set(balancer, names::SERVICES, record, bytes::<32>(service))?;
        let tag = service_index::tag(&service.key, head.seed());
        let first = (head.first(tag) - head.start()) as usize;
        let free = words[first..].iter().position(|word| *word == 0).context("no entry is free")?;
        words[first + free] = IndexEntry::new(tag, record).0;
    }
    for (at, word) in (head.start()..).zip(words) {
        set(balancer, names::SERVICE_INDEX, at, word)?;
    }
    set(balancer, names::SERVICE_INDEX, HEAD, head.0)
}

fn set<V: aya::Pod>(balancer: &mut Ebpf, map: &str, index: u32, value: V) -> Result<()> {
    Ok(Array::try_from(map_mut(balancer, map)?)?.set(index, value, 0)?)
}

fn map_mut<'b>(balancer: &'b mut Ebpf, name: &str) -> Result<&'b mut Map> {
    balancer.map_mut(name).with_context(|| format!("the object has no map {name}"))
}

#[expect(clippy::expect_used, reason = "both sizes are constants of the ABI")]
fn bytes<const N: usize>(value: &impl lb_common::abi::pod::Pod) -> [u8; N] {
    bytes_of(value).try_into().expect("the size stands in the ABI")
}
