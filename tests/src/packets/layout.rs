//! Map values, byte for byte, written out by hand from the documents of the map ABI. Integers stand
//! little-endian, addresses and ports as in a packet.

use std::{collections::BTreeMap, net::IpAddr};

/// 16 bytes of an address, IPv4 v4-mapped.
pub fn address(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// 4 or 6.
pub const fn version(address: IpAddr) -> u8 {
    if address.is_ipv4() { 4 } else { 6 }
}

/// Key of a service: `{address 16, port 2, protocol 1, version 1}`.
pub fn service_key(vip: IpAddr, port: u16, protocol: u8) -> [u8; 20] {
    let [p0, p1] = port.to_be_bytes();
    concat(&[&address(vip), &[p0, p1, protocol, version(vip)]])
}

/// Value of `SERVICES`: `{key 20, index 4, pool 4, flags 4}`.
pub fn service(key: &[u8; 20], index: u32, pool: u32, flags: u32) -> [u8; 32] {
    concat(&[key, &index.to_le_bytes(), &pool.to_le_bytes(), &flags.to_le_bytes()])
}

/// Words of `SERVICE_INDEX`, by position, that lead from each of these keys to its record. The head is at 0: the area
/// begins at word 8, has 2^10 entries, and the seed is any.
pub fn service_index(keys: &[([u8; 20], u32)]) -> BTreeMap<u32, u64> {
    const SEED: u64 = 0x5_eed1;
    let mut words = BTreeMap::from([(0, 8 | SEED << 32 | 22 << 56)]);
    for (key, record) in keys {
        let tag = service_tag(key, SEED);
        let mut at = 8 + (tag >> 22);
        while words.contains_key(&at) {
            at += 1;
        }
        words.insert(at, u64::from(tag) << 32 | u64::from(*record));
    }
    words
}

/// Tag of a key: of IPv6 the first eight bytes of the address, then the next four; of both the last eight bytes of the
/// key. Each is joined to what came before by exclusive or, multiplied by one constant and folded. The last one is
/// multiplied by another, and the tag is the high half.
fn service_tag(key: &[u8; 20], seed: u64) -> u32 {
    let number =
        |bytes: &[u8]| bytes.iter().rev().fold(0_u128, |all, byte| all << 8 | u128::from(*byte));
    let product = |a: u128, b: u128| (a * b) % (1_u128 << 64);
    let parts: &[&[u8]] = match key[19] {
        4 => &[&key[12..]],
        _ => &[&key[..8], &key[8..12], &key[12..]],
    };
    let mixed = parts.iter().fold(u128::from(seed), |before, part| {
        let mixed = product(before ^ number(part), 0xbf58_476d_1ce4_e5b9);
        mixed ^ mixed >> 32
    });
    (product(mixed, 0x94d0_49bb_1331_11eb) >> 32) as u32
}

/// Key of the fragments of an address and protocol: that of port 0, 128 added to the protocol.
pub fn fragments_key(vip: IpAddr, protocol: u8) -> [u8; 20] {
    service_key(vip, 0, protocol + 128)
}

/// Where `ANY_PORTS` has a bit for an address: index and place. The words of the address, little-endian,
/// by exclusive or, times 2^32 over the golden ratio; the first six bits of that, and the next six.
pub fn any_port(vip: IpAddr) -> (u32, u32) {
    let address = address(vip);
    let words = address.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
    let product = u64::from(words.fold(0, |all, word| all ^ word)) * 0x9e37_79b9;
    let bits = format!("{:032b}", product & 0xffff_ffff);
    let number = |bits: &str| u32::from_str_radix(bits, 2).expect("bits");
    (number(&bits[..6]), number(&bits[6..12]))
}

/// Value of `POOLS`: `{now 4, next 4, cleared 8, last displaced 8, first zone 4, zones 4}`. The displaced check is on where the
/// two in the middle differ.
pub fn pool((now, next): (u32, u32), has_displaced: bool, (first, zones): (u32, u32)) -> [u8; 32] {
    let last_displaced = u64::from(has_displaced).to_le_bytes();
    let [now, next, first, zones] = [now, next, first, zones].map(u32::to_le_bytes);
    concat(&[&now, &next, &[0; 8], &last_displaced, &first, &zones])
}

/// Value of `ZONES`: `{cleared 8, last displaced 8}`.
pub fn zone(has_displaced: bool) -> [u8; 16] {
    concat(&[&[0; 8], &u64::from(has_displaced).to_le_bytes()])
}

/// `{table 4, slots 4, members 4, member count 4}`.
pub fn group_head(table: u32, slots: u32, members: u32, count: u32) -> [u8; 16] {
    concat(&[
        &table.to_le_bytes(),
        &slots.to_le_bytes(),
        &members.to_le_bytes(),
        &count.to_le_bytes(),
    ])
}

/// Value of `GROUPS`: `{head 16, region 4, limiter 4, zero 8}`.
pub fn group(head: &[u8; 16], region: u32, limiter: u32) -> [u8; 32] {
    concat(&[head, &region.to_le_bytes(), &limiter.to_le_bytes(), &[0; 8]])
}

/// Value of `LIMITERS`: `{interval 5, burst 3, arrival 8, zero 48}`, in sixteenths of a nanosecond and
/// of a connection.
pub fn limiter(interval: u64, burst: u32, arrival: u64) -> [u8; 64] {
    let limit = interval | u64::from(burst) << 40;
    concat(&[&limit.to_le_bytes(), &arrival.to_le_bytes(), &[0; 48]])
}

/// Value of `DESCRIPTORS`: `{key 16, home 16, prefix of IPv4 sources 4, its host mask 4, flags 4, home limiter 4, groups
/// 8 × 4, group count 4, zero 44}`.
pub fn descriptor(
    hash_key: [u64; 2],
    home: &[u8; 16],
    (source_v4, hosts_v4): ([u8; 4], [u8; 4]),
    (flags, home_limiter): (u32, u32),
    groups: &[u32],
) -> [u8; 128] {
    let mut order = [0; 32];
    for (place, group) in order.chunks_exact_mut(4).zip(groups) {
        place.copy_from_slice(&group.to_le_bytes());
    }
    concat(&[
        &hash_key[0].to_le_bytes(),
        &hash_key[1].to_le_bytes(),
        home,
        &source_v4,
        &hosts_v4,
        &flags.to_le_bytes(),
        &home_limiter.to_le_bytes(),
        &order,
        &(groups.len() as u32).to_le_bytes(),
        &[0; 44],
    ])
}

/// Value of `BACKENDS`: `{address 16, version 1, incarnation 1, MTU 2, is on the link 2, zero 10}`.
pub fn backend(to: IpAddr, incarnation: u8, mtu: u16, on_link: bool) -> [u8; 32] {
    let (mtu, on_link) = (mtu.to_le_bytes(), u16::from(on_link).to_le_bytes());
    concat(&[&address(to), &[version(to), incarnation], &mtu, &on_link, &[0; 10]])
}

/// Value of `MEMBERS`: `{backend 3, incarnation 1, state 1, ramp 1, next hop 2}`.
pub const fn member(backend: u32, incarnation: u8, state: u8, ramp: u8, next_hop: u16) -> [u8; 8] {
    let ([b0, b1, b2, _], [n0, n1]) = (backend.to_le_bytes(), next_hop.to_le_bytes());
    [b0, b1, b2, incarnation, state, ramp, n0, n1]
}

/// Value of `BACKEND_STATES`: `{incarnation 1, state 1, next hop 2, pool 4}`.
pub const fn backend_state(incarnation: u8, state: u8, next_hop: u16, pool: u32) -> [u8; 8] {
    let ([n0, n1], [p0, p1, p2, p3]) = (next_hop.to_le_bytes(), pool.to_le_bytes());
    [incarnation, state, n0, n1, p0, p1, p2, p3]
}

/// Key and value of `SHARED_BACKENDS`: `{backend 4, pool 4}` and `{state 1, zero 7}`.
pub fn shared_backend(pool: u32, backend: u32, state: u8) -> ([u8; 8], [u8; 8]) {
    (concat(&[&backend.to_le_bytes(), &pool.to_le_bytes()]), [state, 0, 0, 0, 0, 0, 0, 0])
}

/// Line 0 of `FLOWS`: `{version 8, mask 8, secret 16, zero 32}`.
pub fn flow_head(buckets: u32, secret: [u64; 2]) -> [u8; 64] {
    let words = [1, u64::from(buckets) - 1, secret[0], secret[1]];
    concat(&[&words.map(u64::to_le_bytes).concat(), &[0; 32]])
}

/// A cell of `FLOWS`, by a flow's hash under the secret: `{until 2 bytes, then bits: state 3, zone 16, datagrams 1, tag 28}`
/// and `{backend 3, incarnation 1, sequence 4}`. The tag is the hash's high 28 bits, the last of which is set.
pub fn flow_cell(
    hash: u64,
    (datagrams, zone, until): (bool, u16, u16),
    (backend, incarnation, sequence): (u32, u8, u32),
) -> [u8; 16] {
    const OPEN: u64 = 0;
    let bits = [(OPEN, 3), (zone.into(), 16), (datagrams.into(), 1), (hash >> 36 | 1, 28)];
    let (known, _) =
        bits.iter().fold((0, 0), |(all, at), (value, length)| (all | value << at, at + length));
    let first = u64::from(until) | known << 16;
    let [b0, b1, b2, _] = backend.to_le_bytes();
    concat(&[&first.to_le_bytes(), &[b0, b1, b2, incarnation], &sequence.to_le_bytes()])
}

/// The line of `FLOWS` with the first bucket of a flow, by its hash under the secret.
pub const fn flow_line(hash: u64, buckets: u32) -> u32 {
    64 + (hash % buckets as u64) as u32
}

/// Value of `NEXT_HOPS`: `{MAC 6, interface 2, zero 8, source of tunnels 16}`.
pub fn next_hop(mac: [u8; 6], interface: u16, source: IpAddr) -> [u8; 32] {
    let source = if source.is_unspecified() { [0; 16] } else { address(source) };
    concat(&[&mac, &interface.to_le_bytes(), &[0; 8], &source])
}

/// Value of `INTERFACES`: `{MAC 6, VLAN 2}`.
pub const fn interface(mac: [u8; 6], vlan: u16) -> [u8; 8] {
    let ([a, b, c, d, e, f], [v0, v1]) = (mac, vlan.to_le_bytes());
    [a, b, c, d, e, f, v0, v1]
}

/// Value of a slot table: four ranks.
pub fn slot(ranks: [u16; 4]) -> [u8; 8] {
    let [a, b, c, d] = ranks.map(u16::to_le_bytes);
    concat(&[&a, &b, &c, &d])
}

/// Value of `STANDBYS`: a rank plus one, or zero.
pub const fn standby(rank: Option<u16>) -> [u8; 8] {
    match rank {
        Some(rank) => (rank as u64 + 1).to_le_bytes(),
        None => [0; 8],
    }
}

/// Key of the receiver's `SOURCES`: `{bits 4, address 16}`; IPv4 prefixes count 96 more bits.
pub fn source_prefix(prefix: IpAddr, bits: u32) -> (u32, [u8; 16]) {
    (if prefix.is_ipv4() { 96 + bits } else { bits }, address(prefix))
}

/// Key of the receiver's `VIPS` and `ENDPOINTS`: `{address 16, version 4}`.
pub fn vip_key(vip: IpAddr) -> [u8; 20] {
    concat(&[&address(vip), &u32::from(version(vip)).to_le_bytes()])
}

/// The parts one after the other.
///
/// # Panics
/// When they are not `N` bytes together.
fn concat<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    parts.concat().try_into().expect("the parts of a map value fill it")
}
