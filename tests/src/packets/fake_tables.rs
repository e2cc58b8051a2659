//! The pure decision over the same fixtures: what the loaded programs must agree with.

use std::{collections::HashMap, net::IpAddr};

use lb_common::{
    abi::{
        arrays::Array,
        backend::{Backend, BackendStateWord, shared_key},
        clock::Coarse,
        counter::{Event, GroupCounter},
        flow_map::HEAD_LINES,
        limiter::{LimitWord, Limiter},
        member::{Accepts, MemberWord},
        next_hop::{InterfaceWord, NextHopEntry, NextHopWord},
        pod::{Pod, from_bytes},
        pool::{Descriptor, Group, PoolLine},
        service::{AddressWords, Service, ServiceKey, VipWord, address_of},
        slot::{SlotWord, StandbyWord, TableRef},
        verdict::Verdict,
        zone::Zone,
    },
    flow_hash::FlowHash,
    flow_table::{Bucket, Cell, FlowCells, FlowKey},
    path::{
        self, Head, Kind, Tables, Version, encapsulate,
        icmp_error::{self, IcmpError},
        icmp_reply, oversize,
    },
    receive::{self, AllowLists, DecapsulatedFrame},
    wire::vlan::Tags,
    word::Snapshot,
};

use lb_maps::clock;

use super::expected::Expected;

use super::{
    fixture::{FLOW_BUCKETS, FLOW_SECRET, MapFixture, STRANGER, TABLES},
    frames, layout,
    receiver::{ENDPOINTS, GUE_PORT, SOURCES, VIPS},
};

/// A fixture as `lb-common` reads it: the maps in plain memory.
#[derive(Debug, Default)]
pub struct FakeTables {
    services: HashMap<ServiceKey, Service>,
    words: HashMap<(Array, u32), u64>,
    pools: HashMap<u32, PoolLine>,
    limiters: HashMap<u32, Limiter>,
    descriptors: HashMap<u32, Descriptor>,
    groups: HashMap<u32, Group>,
    backends: HashMap<u32, Backend>,
    next_hops: HashMap<u32, NextHopEntry>,
    slots: HashMap<(u32, u32), u64>,
    /// Lines of the flow table, by number.
    lines: HashMap<u32, [u64; 8]>,
    zones: HashMap<u32, Zone>,
    shared_backends: HashMap<[u8; 8], u64>,
    devices: Vec<u32>,
    drops_unserved: bool,
}

/// A map value from its bytes.
fn value<T: Pod>(bytes: &[u8]) -> T {
    from_bytes(bytes).expect("a map value has its length")
}

impl FakeTables {
    /// The tables that a fixture describes.
    pub fn new(fixture: &MapFixture) -> Self {
        let mut fake = Self {
            devices: fixture.devices.iter().copied().collect(),
            drops_unserved: fixture.drops_unserved,
            ..Self::default()
        };
        for (key, service) in fixture.service_entries() {
            fake.services.insert(value(&key), value(&service));
        }
        for (map, index, bytes) in fixture.elements() {
            match map {
                Array::Pools => drop(fake.pools.insert(index, value(&bytes))),
                Array::Descriptors => drop(fake.descriptors.insert(index, value(&bytes))),
                Array::Groups => drop(fake.groups.insert(index, value(&bytes))),
                Array::Backends => drop(fake.backends.insert(index, value(&bytes))),
                Array::NextHops => drop(fake.next_hops.insert(index, value(&bytes))),
                Array::Limiters => drop(fake.limiters.insert(index, value(&bytes))),
                Array::Zones => drop(fake.zones.insert(index, value(&bytes))),
                _ => drop(fake.words.insert((map, index), value(&bytes))),
            }
        }
        for (line, first, bytes) in fixture.cells() {
            let line = fake.lines.entry(line).or_default();
            for (word, bytes) in line[first / 8..].iter_mut().zip(bytes.chunks_exact(8)) {
                *word = value(bytes);
            }
        }
        for (key, bytes) in fixture.shared_entries() {
            fake.shared_backends.insert(key, value(&bytes));
        }
        for (table, slot, bytes) in fixture.slots() {
            fake.slots.insert((table.reference, slot), value(&bytes));
        }
        fake
    }

    fn word(&self, map: Array, index: u32) -> Option<u64> {
        Some(self.words.get(&(map, index)).copied().unwrap_or(0))
    }

    /// What the pure decision makes of a frame.
    pub fn expects(&self, frame: &[u8]) -> Expected {
        let came_with = Tags::read(frame);
        let (expected, tags) = self.untagged(&untagged(frame, came_with), came_with);
        Expected { frame: expected.frame.map(|frame| with_tags(&frame, tags)), ..expected }
    }

    /// Whether a frame begins another connection of a flow that has a cell. The program remembers that too; these tables learn
    /// nothing.
    pub fn begins_anew(&self, frame: &[u8]) -> bool {
        let frame = &untagged(frame, Tags::read(frame))[..];
        path::parse_any(frame).is_ok_and(|parsed| {
            let key = FlowKey(FlowHash::new(&parsed.flow, &FLOW_SECRET).0);
            let now = Coarse::from_nanoseconds(self.now());
            parsed.kind == Kind::NewConnection
                && self.youngest(key, false, now, &mut { Cell::NONE })
        })
    }

    /// What it makes of a frame that its tags were taken off, and the tags to put on.
    fn untagged(&self, frame: &[u8], came_with: Tags) -> (Expected, Tags) {
        let forward = match path::decide(frame, self) {
            Ok(forward) => forward,
            Err(Verdict::OtherProtocol) => return (self.other_protocol(frame), came_with),
            Err(Verdict::HopLimitExceeded)
                if path::parse_any(frame).is_ok_and(|parsed| parsed.may_be_answered()) =>
            {
                let told = icmp_error::time_exceeded(frame, self);
                return (answered(told, Verdict::AnsweredTimeExceeded, frame), came_with);
            }
            Err(verdict) => return (refused(verdict, frame), came_with),
        };
        let form = forward.descriptor.form();
        let length = forward.parsed.ip_length as u16;
        let version = forward.parsed.flow.version;
        let (head, shim, own) = match encapsulate::head(self, &forward) {
            Ok((head, own)) => {
                (head, encapsulate::shim(form, forward.entropy, version, length), own)
            }
            Err(Verdict::TooLarge) if !forward.parsed.is_quoted => {
                let room = encapsulate::room(forward.backend, form);
                let told = oversize::too_large(frame, self, room);
                return (answered(told, Verdict::AnsweredTooLarge, frame), came_with);
            }
            Err(verdict) => return (refused(verdict, frame), came_with),
        };
        if form.is_direct() && frame[..6] == forward.choice.next_hop.mac() {
            return (refused(Verdict::NotOurs, frame), came_with);
        }
        let interface = u32::from(forward.choice.next_hop.interface());
        let verdict = match interface {
            1 => Verdict::Transmitted,
            _ if self.devices.contains(&interface) => Verdict::Redirected,
            _ => return (refused(Verdict::RedirectFailed, frame), came_with),
        };
        let head = match &head {
            Head::V4(head) => &head[..],
            Head::V6(head) => &head[..],
            Head::Link(head) => &head[..],
        };
        let shim = if form.is_gue() { &shim[..] } else { &[] };
        let inner = hopped(frame);
        let connections = u64::from(forward.parsed.kind == Kind::NewConnection);
        let expected = Expected {
            verdict: verdict.name(),
            frame: Some([head, shim, &inner[frames::ETHERNET..]].concat()),
            traffic: Some((forward.service, forward.choice.member.backend(), connections)),
        };
        let came_by_it = interface == 1 || self.word(Array::Bonds, 1) == Some(interface.into());
        (expected, encapsulate::tags(own, came_by_it, came_with))
    }

    /// What becomes of a frame that is of no flow.
    fn other_protocol(&self, frame: &[u8]) -> Expected {
        let mut turned = frame.to_vec();
        match icmp_reply::echo(frame, self) {
            Err(verdict) => return refused(verdict, frame),
            Ok(Version::V4) => icmp_reply::turn_v4(turned.first_chunk_mut().expect("a head")),
            Ok(Version::V6) => icmp_reply::turn_v6(turned.first_chunk_mut().expect("a head")),
        }
        .expect("a head");
        Expected { verdict: Verdict::AnsweredEcho.name(), frame: Some(turned), traffic: None }
    }
}

/// What becomes of a frame about which an ICMP error may be sent.
fn answered(told: Result<IcmpError, Verdict>, verdict: Verdict, frame: &[u8]) -> Expected {
    let error = match told {
        Err(verdict) => return refused(verdict, frame),
        Ok(error) => error,
    };
    let head = match &error.head {
        icmp_reply::Head::V4(head) => &head[..],
        icmp_reply::Head::V6(head) => &head[..],
    };
    let quote = &frame[frames::ETHERNET..][..error.quoted];
    Expected { verdict: verdict.name(), frame: Some([head, quote].concat()), traffic: None }
}

/// The frame without its tags.
fn untagged(frame: &[u8], tags: Tags) -> Vec<u8> {
    let macs = frame.len().min(12);
    [&frame[..macs], &frame[macs + tags.length()..]].concat()
}

/// The frame with tags.
fn with_tags(frame: &[u8], tags: Tags) -> Vec<u8> {
    let (macs, rest) = frame.split_at(12);
    [macs, &tags.bytes()[..tags.length()], rest].concat()
}

/// The frame after one hop. A header checksum that was wrong stays as wrong as it was, so it is not
/// computed anew: one less in the TTL is 0x0100 more in the sum, with the carry added at the end.
fn hopped(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    if frame[frames::ETHERNET] >> 4 == 4 {
        frame[22] -= 1;
        let sum = u32::from(u16::from_be_bytes([frame[24], frame[25]])) + 0x0100;
        let sum = (sum & 0xffff) + (sum >> 16);
        // Both are zero in ones' complement; a header never sums to the positive one.
        let sum = if sum == 0xffff { 0 } else { sum as u16 };
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
    } else {
        frame[21] -= 1;
    }
    frame
}

/// What becomes of a frame that stays as it is.
fn refused(verdict: Verdict, frame: &[u8]) -> Expected {
    use lb_common::abi::verdict::Action;
    let frame = (verdict.action() == Action::Pass).then(|| frame.to_vec());
    Expected { verdict: verdict.name(), frame, traffic: None }
}

/// A line of the flow table.
#[derive(Clone, Copy, Debug)]
pub struct FakeLine([u64; 8]);

impl Bucket for FakeLine {
    fn load(self, word: u32) -> u64 {
        self.0[word as usize]
    }
    fn exchange(self, _: u32, _: u64, _: u64) -> bool {
        true
    }
    fn store(self, _: u32, _: u64) {}
}

impl FlowCells for FakeTables {
    type Bucket<'c> = FakeLine;

    fn mask(&self) -> Option<u32> {
        Some(FLOW_BUCKETS - 1)
    }
    fn bucket(&self, number: u32) -> Option<FakeLine> {
        Some(FakeLine(self.lines.get(&(HEAD_LINES + number)).copied().unwrap_or_default()))
    }
}

/// Nothing is learnt: what is remembered is what the fixture says.
impl Tables for FakeTables {
    type Word<'t> = Snapshot;

    fn vip(&self, address: &AddressWords, version: u8) -> Option<VipWord> {
        let is_vip = |key: &ServiceKey| (key.address, key.version) == (*address, version);
        self.services.keys().any(is_vip).then(|| VipWord::new(self.drops_unserved))
    }
    fn answer_arrival(&self, index: u32) -> Option<Snapshot> {
        Some(Snapshot(self.word(Array::Answers, index).unwrap_or(0)))
    }
    fn now(&self) -> u64 {
        clock::now().expect("a clock")
    }
    fn limiter(&self, index: u32) -> Option<(LimitWord, u64)> {
        self.limiters.get(&index).map(|limiter| (LimitWord(limiter.limit), limiter.arrival))
    }
    fn arrival(&self, index: u32) -> Option<Snapshot> {
        self.limiters.get(&index).map(|limiter| Snapshot(limiter.arrival))
    }
    fn member_limiter(&self, _: u32) -> Option<u32> {
        None
    }
    fn backend_state(&self, backend: u32) -> Option<BackendStateWord> {
        self.word(Array::BackendStates, backend).map(BackendStateWord)
    }
    fn shared_backend(&self, pool: u32, backend: u32) -> Accepts {
        let state = self.shared_backends.get(&shared_key(pool, backend).to_le_bytes());
        Accepts::from_number(state.copied().unwrap_or(0) as u8)
    }
    fn set_last_displaced(&self, _: u32, _: Coarse) {}
    fn zone(&self, index: u32) -> Option<Zone> {
        Some(self.zones.get(&index).copied().unwrap_or_default())
    }
    fn set_zone_displaced(&self, _: u32, _: Coarse) {}
    fn flow_count(&self, _: u32) -> Option<Snapshot> {
        None
    }
    fn flow_secret(&self) -> [u64; 2] {
        FLOW_SECRET
    }
    fn count(&self, _: Event) {}
    fn count_group(&self, _: u32, _: impl FnOnce(&mut GroupCounter)) {}
    fn service(&self, key: &ServiceKey) -> Option<&Service> {
        self.services.get(key)
    }
    fn pool(&self, index: u32) -> Option<PoolLine> {
        Some(self.pools.get(&index).copied().unwrap_or_default())
    }
    fn descriptor(&self, index: u32) -> Option<&Descriptor> {
        self.descriptors.get(&index)
    }
    fn group(&self, index: u32) -> Option<&Group> {
        self.groups.get(&index)
    }
    fn slot(&self, table: TableRef, slot: u32) -> Option<SlotWord> {
        let there = TABLES.iter().find(|known| known.reference == table.0)?;
        let strangers = || u64::from_le_bytes(layout::slot([STRANGER; 4]));
        let word = || self.slots.get(&(table.0, slot)).copied().unwrap_or_else(strangers);
        (slot < there.slots).then(word).map(SlotWord)
    }
    fn standby(&self, index: u32) -> Option<StandbyWord> {
        self.word(Array::Standbys, index).map(StandbyWord)
    }
    fn member(&self, index: u32) -> Option<MemberWord> {
        self.word(Array::Members, index).map(MemberWord)
    }
    fn backend(&self, index: u32) -> Option<&Backend> {
        self.backends.get(&index)
    }
    fn next_hop(&self, index: u32) -> Option<NextHopWord> {
        Some(NextHopWord(self.next_hops.get(&index).map_or(0, |hop| hop.word)))
    }
    fn tunnel_source(&self, next_hop: u32) -> Option<AddressWords> {
        Some(self.next_hops.get(&next_hop).map_or([0; 4], |hop| hop.source))
    }
    fn interface(&self, index: u32) -> Option<InterfaceWord> {
        self.word(Array::Interfaces, index).map(InterfaceWord)
    }
}

/// The receiver's lists, as the pure decision reads them, with the addresses where tunnels end.
#[derive(Clone, Copy, Debug)]
pub struct Lists<'e>(pub &'e [IpAddr]);

impl Lists<'_> {
    /// Those of the loaded receiver.
    pub const LOADED: Self = Self(&ENDPOINTS);

    /// What the pure decision makes of a frame.
    pub fn expects(self, frame: &[u8]) -> Expected {
        let tags = Tags::read(frame);
        let expected = self.untagged(&untagged(frame, tags), receive::checksums);
        Expected { frame: expected.frame.map(|frame| with_tags(&frame, tags)), ..expected }
    }

    /// What it makes of a frame without tags at tc's hook, where nobody looks at inner checksums.
    pub fn expects_at_tc(self, frame: &[u8]) -> Expected {
        self.untagged(frame, |frame, _, _| receive::outer_checksum(frame))
    }

    fn untagged(
        self,
        frame: &[u8],
        checksums: fn(&[u8], usize, u8) -> Result<(), Verdict>,
    ) -> Expected {
        let decapsulation = match receive::decide(frame, &self) {
            Ok(decapsulation) => decapsulation,
            Err(verdict) => return refused(verdict, frame),
        };
        if decapsulation.is_udp {
            let (header, protocol) = (decapsulation.outer, decapsulation.protocol());
            if let Err(verdict) = checksums(frame, header, protocol) {
                return refused(verdict, frame);
            }
        }
        let mut inner = Inner(frame[frames::ETHERNET + decapsulation.outer..].to_vec());
        assert!(decapsulation.mark(&mut inner), "an inner packet is longer than its header");
        let after = [&frame[..12], &decapsulation.ether_type, &inner.0[..]].concat();
        let verdict = Verdict::Decapsulated.name();
        Expected { verdict, frame: Some(after), traffic: None }
    }
}

/// An inner packet.
struct Inner(Vec<u8>);

impl DecapsulatedFrame for Inner {
    fn change_inner<const N: usize>(&mut self, change: impl FnOnce(&mut [u8; N])) -> bool {
        self.0.first_chunk_mut().map(change).is_some()
    }
}

impl AllowLists for Lists<'_> {
    fn source(&self, address: &AddressWords) -> bool {
        let octets: Vec<u8> = address.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let number = u128::from_be_bytes(octets.try_into().expect("16 bytes"));
        SOURCES.iter().any(|&(prefix, bits)| {
            let (bits, prefix) = layout::source_prefix(prefix, bits);
            (number ^ u128::from_be_bytes(prefix)) >> (128 - bits) == 0
        })
    }

    fn vip(&self, address: &AddressWords, version: u8) -> bool {
        is_in(&VIPS, address, version)
    }

    fn endpoint(&self, address: &AddressWords, version: u8) -> bool {
        is_in(self.0, address, version)
    }

    fn gue_port(&self) -> u16 {
        GUE_PORT
    }
}

fn is_in(set: &[IpAddr], address: &AddressWords, version: u8) -> bool {
    let address: IpAddr = address_of(address, version);
    set.contains(&address) && layout::version(address) == version
}
