//! Fills the balancer's maps with a fleet of a realistic size: 100 services, one pool, 100 members.

use anyhow::{Context as _, Result};
use aya::{
    Ebpf,
    maps::{Array, ArrayOfMaps, HashMap, Map, MapData},
};
use lb_common::abi::{
    backend::Backend,
    descriptor::Descriptor,
    group::{Group, GroupHead},
    limits::DEFAULT_SLOTS,
    member::{FULL_RAMP, MemberState, MemberWord},
    names,
    next_hop::{InterfaceWord, NextHopWord},
    pod::bytes_of,
    pool::{PoolLine, PoolWord},
    service::{IPV4, Service, ServiceKey, address_words},
    slot::{OwnersWord, table_words},
};
use lb_daemon::maglev;

use super::frame::{VIP4, VIP6};

/// Members of the pool.
pub const MEMBERS: u32 = 100;
/// Services besides the ones that are sent to.
const OTHER_SERVICES: u32 = 98;
/// `BPF_F_MMAPABLE`, which the inner arrays of `TABLES` have.
const MMAPABLE: u32 = 1 << 10;

/// Fills the maps; packets leave by `interface`. Backends are IPv6 where `v6` is set.
///
/// # Errors
/// A map that is missing or does not take a value.
pub fn fill(balancer: &mut Ebpf, interface: u16, v6: bool) -> Result<()> {
    let head = GroupHead { table: 0, slots: DEFAULT_SLOTS, members: 0, member_count: MEMBERS };
    set(
        balancer,
        names::GROUPS,
        0,
        bytes::<32>(&Group { head, region: 0, meter: 0, reserved: [0; 2] }),
    )?;
    let descriptor = Descriptor {
        hash_key: [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210],
        home: head,
        source_v6: address_words("fd00::1".parse()?),
        source_v4: u32::from_ne_bytes([10, 0, 0, 1]),
        group_count: 1,
        flags: 0,
        home_meter: 0,
        groups: [0; 8],
        spare: [0; 8],
    };
    set(balancer, names::DESCRIPTORS, 1, bytes::<128>(&descriptor))?;
    let line = PoolLine { word: PoolWord::new(1, 0).0, ..PoolLine::default() };
    set(balancer, names::POOLS, 0, bytes::<32>(&line))?;
    set(balancer, names::NEXT_HOPS, 1, NextHopWord::new([2, 0, 0, 0, 0, 9], interface).0)?;
    let own = InterfaceWord::new([2, 0, 0, 0, 0, 1]).0;
    set(balancer, names::INTERFACES, u32::from(interface), own)?;
    members(balancer, v6)?;
    services(balancer)
}

fn members(balancer: &mut Ebpf, v6: bool) -> Result<()> {
    let mut keys = Vec::new();
    for n in 0..MEMBERS {
        let address = if v6 {
            std::net::IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 1, n as u16 + 1])
        } else {
            std::net::IpAddr::from([10, 0, 1, n as u8 + 1])
        };
        let backend = Backend {
            address: address_words(address),
            version: if v6 { 6 } else { 4 },
            incarnation: 0,
            mtu: 1500,
            reserved: [0; 3],
        };
        set(balancer, names::BACKENDS, n + 1, bytes::<32>(&backend))?;
        let word = MemberWord::new(n + 1, 0, MemberState::Up, FULL_RAMP, 1);
        set(balancer, names::MEMBERS, n, word.0)?;
        keys.push(maglev::Member { key: address.into(), weight: 1 });
    }
    let table = maglev::build(&keys, DEFAULT_SLOTS)?;
    let mut inner = Array::<MapData, u64>::create(table_words(DEFAULT_SLOTS), MMAPABLE)?;
    let words = table.words().iter().copied().chain(OwnersWord::of(table.words()));
    for (index, word) in (0..).zip(words) {
        inner.set(index, word, 0)?;
    }
    let mut tables: ArrayOfMaps<_, Array<MapData, u64>> =
        ArrayOfMaps::try_from(map_mut(balancer, names::TABLES)?)?;
    Ok(tables.set(0, &inner, 0)?)
}

fn services(balancer: &mut Ebpf) -> Result<()> {
    let ours = [VIP4.into(), VIP6.into()];
    let others = (0..OTHER_SERVICES).map(|n| [203, 0, 113, n as u8].into());
    for (index, address) in ours.into_iter().chain(others).enumerate() {
        for protocol in [6, 17] {
            let key = ServiceKey::new(address, 80, protocol);
            let service = Service { key, index: index as u32, pool: 0, flags: 0 };
            if key.version == IPV4 {
                let mut map: HashMap<_, u64, [u8; 32]> =
                    HashMap::try_from(map_mut(balancer, names::SERVICES_V4)?)?;
                map.insert(key.short(), bytes::<32>(&service), 0)?;
            } else {
                let mut map: HashMap<_, [u8; 20], [u8; 32]> =
                    HashMap::try_from(map_mut(balancer, names::SERVICES_V6)?)?;
                map.insert(bytes::<20>(&key), bytes::<32>(&service), 0)?;
            }
        }
    }
    Ok(())
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
