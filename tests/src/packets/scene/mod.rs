//! What rows of the balancer are about: one pool of a few regions, in plain numbers.
//!
//! Indices are far apart on purpose, so that one taken for another finds nothing. Every slot that a
//! row says nothing about holds [`STRANGER`], who is up: a wrong slot shows as a wrong backend.

mod maps;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::frames::{self, Flow};
use super::mx2;

/// Key of the flow hash.
pub const HASH_KEY: [u64; 2] = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210];
/// Member states.
pub const DEAD: u8 = 0;
/// Keeps what is open.
pub const UNFIT: u8 = 1;
/// Takes all.
pub const UP: u8 = 2;
/// Out of home, added to a state.
pub const OUT: u8 = 0x20;
/// Index of a version of the pool that asks its regions the other way round.
pub const FORMER: u32 = 51;
/// No rank.
pub const NONE: u16 = 0xffff;
/// Members of a region: ranks 0 to 8.
pub const MEMBERS: u16 = 9;
/// The rank in every slot that nobody set.
pub const STRANGER: u16 = 8;
/// MAC of next hop 30.
pub const GATEWAY: [u8; 6] = [0x02, 0, 0, 0, 0, 0xfe];
/// The interface that test runs come in on: `lo`.
pub const INGRESS: u16 = 1;
/// Index of the next hop that everybody is behind.
pub const NEXT_HOP: u16 = 30;
/// Outer IPv4 source.
pub const SOURCE_V4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// Outer IPv6 source.
pub const SOURCE_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);

const POOL: u32 = 40;
const ANOTHER_POOL: u32 = 41;
const DESCRIPTOR: u32 = 50;
const GROUPS: [u32; 8] = [60, 63, 66, 69, 72, 75, 78, 81];
const FIRST_MEMBER: u32 = 1_000;
const MEMBER_INCARNATION: u8 = 7;

/// A slot table of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Table {
    /// Index, with the top bit for tables of a size of their own.
    pub reference: u32,
    /// Slots.
    pub slots: u32,
}

/// Tables that stand ready, full of strangers: default sizes first.
pub const TABLES: [Table; 5] = [
    Table { reference: 3, slots: 65_537 },
    Table { reference: 9, slots: 65_537 },
    Table { reference: 1 << 31 | 2, slots: 251 },
    Table { reference: 1 << 31 | 5, slots: 2 },
    Table { reference: 1 << 31 | 6, slots: 131_071 },
];

/// Meter of the balancer's own ICMP errors.
const ERRORS: u32 = 5;
/// Meter of its answers to pings.
const ECHOES: u32 = 6;
/// Meter of the first region; the others' follow.
const METER: u32 = 20;

/// A service on the pool.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// Its VIP.
    pub vip: IpAddr,
    /// Its port; 0: any.
    pub port: u16,
    /// Its protocol number.
    pub protocol: u8,
    /// Index of its counters.
    pub index: u32,
    /// 1: by address; 4: rejects; 8: by port; 16: fragments.
    pub flags: u32,
}

/// A member of a region.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Index of its backend, and of that one's counters.
    pub backend: u32,
    /// Where its tunnel ends.
    pub address: IpAddr,
    /// [`DEAD`], [`UNFIT`] or [`UP`], with [`OUT`] or without.
    pub state: u8,
    /// 255: all of its share.
    pub ramp: u8,
    /// Index of its next hop.
    pub next_hop: u16,
    /// Largest outer packet.
    pub mtu: u16,
    /// Largest packet of the link it is reached by.
    pub link: u16,
    /// Whether it is on that link.
    pub on_link: bool,
    /// Incarnation that the backend has; members say 7.
    pub incarnation: u8,
}

/// A region's group.
#[derive(Clone, Debug)]
pub struct Region {
    /// Its members by rank.
    pub members: Vec<Member>,
    /// Its table.
    pub table: Table,
    /// Slots that hold something else than strangers.
    pub lists: BTreeMap<u32, [u16; 4]>,
    /// Its standbys.
    pub standbys: [Option<u16>; 8],
    /// How much room its capacity leaves.
    pub room: Room,
}

/// How much room a region's capacity leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// It has no limit.
    Unlimited,
    /// Its limit is reached, for the next half minute.
    Full,
    /// It takes no new connection at all.
    Closed,
}

/// How packets get to backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// In IP alone.
    IpInIp,
    /// In GUE to this UDP port.
    Gue(u16),
    /// As they are, to the backend's MAC.
    Direct,
}

/// A flow that is remembered at a member, wherever its hash leads.
#[derive(Clone, Copy, Debug)]
pub struct Remembered {
    /// The flow.
    pub flow: Flow,
    /// 6: a connection away from home; 17: a tracked flow.
    pub protocol: u8,
    /// Region and rank.
    pub member: (usize, u16),
    /// Incarnation of the backend's index that it was placed at.
    pub incarnation: u8,
}

/// Which pools have the backends where flows are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owners {
    /// This pool alone.
    This,
    /// Another pool alone, in the states of these.
    Another,
    /// Several: in another pool they are up, in this one so; [`DEAD`]: or not in it at all.
    Several(u8),
}

/// What stands in the maps.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Services.
    pub services: Vec<Service>,
    /// Regions, nearest first.
    pub regions: Vec<Region>,
    /// Outer sources; unspecified: none.
    pub sources: (Ipv4Addr, Ipv6Addr),
    /// Next hops by index: MAC and interface.
    pub next_hops: BTreeMap<u16, ([u8; 6], u16)>,
    /// MACs of interfaces.
    pub interfaces: BTreeMap<u16, [u8; 6]>,
    /// VLANs that are set for interfaces.
    pub vlans: BTreeMap<u16, u16>,
    /// The bond that the interface of test runs is a port of.
    pub bond: Option<u16>,
    /// Interfaces that packets can be redirected to.
    pub devices: BTreeSet<u32>,
    /// The word of the pool: current and former descriptor.
    pub pool_word: (u32, u32),
    /// How packets get to backends.
    pub form: Form,
    /// Flows that are remembered one by one.
    pub remembered: Vec<Remembered>,
    /// Whose backends those flows are at.
    pub owners: Owners,
    /// Whether connections away from home are looked for.
    pub gate_is_open: bool,
    /// How much room there is for ICMP errors of the balancer's own.
    pub errors: Room,
    /// How much room there is for answers to pings.
    pub echoes: Room,
}

impl Scene {
    /// One region of nine members that are up, tunnels of the given IP version, and the usual
    /// services: TCP 80 and UDP 53 on both VIPs, TCP 81 and UDP 54 by address. Other VIPs: .3 has any port
    /// of TCP, by port, but 443 of IPv4; and any of UDP over IPv6. .4 takes fragments, on TCP 81 and UDP 53
    /// of IPv4 and on any port of UDP over IPv6.
    pub fn new(version: u8) -> Self {
        let v4 = IpAddr::from([198, 51, 100, 1]);
        let v6 = IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 0x80, 0, 0, 0, 0, 1));
        let any_v4 = IpAddr::from([198, 51, 100, 3]);
        let any_v6 = IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 0x80, 0, 0, 0, 0, 3));
        let fragments_v4 = IpAddr::from([198, 51, 100, 4]);
        let fragments_v6 = IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 0x80, 0, 0, 0, 0, 4));
        let service =
            |vip, port, protocol, index, flags| Service { vip, port, protocol, index, flags };
        Self {
            services: vec![
                service(v4, 80, 6, 11, 0),
                service(v4, 53, 17, 12, 0),
                service(v6, 80, 6, 13, 0),
                service(v6, 53, 17, 14, 0),
                service(v4, 81, 6, 15, 1),
                service(v4, 54, 17, 16, 1),
                service(v6, 81, 6, 17, 1),
                service(any_v4, 0, 6, 18, 8),
                service(any_v4, 443, 6, 19, 0),
                service(any_v6, 0, 6, 21, 8),
                service(any_v6, 0, 17, 22, 0),
                service(fragments_v4, 53, 17, 23, 17),
                service(fragments_v4, 81, 6, 24, 17),
                service(fragments_v6, 0, 17, 25, 17),
            ],
            regions: vec![Region::new(0, version)],
            sources: (SOURCE_V4, SOURCE_V6),
            next_hops: [(NEXT_HOP, (GATEWAY, INGRESS))].into(),
            interfaces: [(INGRESS, frames::HOST)].into(),
            vlans: BTreeMap::new(),
            bond: None,
            devices: BTreeSet::new(),
            pool_word: (DESCRIPTOR, 0),
            form: Form::IpInIp,
            remembered: Vec::new(),
            owners: Owners::This,
            gate_is_open: false,
            errors: Room::Unlimited,
            echoes: Room::Unlimited,
        }
    }

    /// Adds the next region of the order.
    #[must_use]
    pub fn and_region(mut self, version: u8) -> Self {
        self.regions.push(Region::new(self.regions.len(), version));
        self
    }

    /// Sets the list of the slot that a flow hashes to in a region.
    #[must_use]
    pub fn list(mut self, region: usize, hash: mx2::Hash, ranks: [u16; 4]) -> Self {
        let region = &mut self.regions[region];
        region.lists.insert(hash.slot(region.table.slots), ranks);
        self
    }

    /// Sets the room that a region's capacity leaves.
    #[must_use]
    pub fn room(mut self, region: usize, room: Room) -> Self {
        self.regions[region].room = room;
        self
    }

    /// Sets the flags of all services.
    #[must_use]
    pub fn flags(mut self, flags: u32) -> Self {
        for service in &mut self.services {
            service.flags |= flags;
        }
        self
    }

    /// Remembers a flow at a member; of a connection the gate is opened.
    #[must_use]
    pub fn remembering(mut self, flow: Flow, protocol: u8, member: (usize, u16)) -> Self {
        let incarnation = MEMBER_INCARNATION;
        self.remembered.push(Remembered { flow, protocol, member, incarnation });
        self.gate_is_open |= protocol == 6;
        self
    }

    /// Says which pools have the backends where flows are remembered.
    #[must_use]
    pub fn owned_by(mut self, owners: Owners) -> Self {
        self.owners = owners;
        self
    }

    /// Changes a member.
    #[must_use]
    pub fn member(mut self, region: usize, rank: u16, change: impl FnOnce(&mut Member)) -> Self {
        change(&mut self.regions[region].members[usize::from(rank)]);
        self
    }

    /// Sets the states of members of a region.
    #[must_use]
    pub fn states(mut self, region: usize, state: u8, ranks: &[u16]) -> Self {
        for &rank in ranks {
            self.regions[region].members[usize::from(rank)].state = state;
        }
        self
    }

    /// Changes anything.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The service of a flow: that of its port, else that of any.
    pub fn service(&self, flow: &Flow, protocol: u8) -> Option<Service> {
        let of_port = |port| {
            let is_it = |service: &&Service| {
                (service.vip, service.port, service.protocol) == (flow.vip.ip(), port, protocol)
            };
            self.services.iter().find(is_it).copied()
        };
        of_port(flow.vip.port()).or_else(|| of_port(0))
    }
}

impl Region {
    fn new(number: usize, version: u8) -> Self {
        let tables = [0, 1, 2, 4];
        let member = |rank: u16| Member {
            backend: 10 * (number as u32 + 1) + u32::from(rank),
            address: backend_address(number as u8, rank as u8, version),
            state: UP,
            ramp: 255,
            next_hop: NEXT_HOP,
            mtu: 1_500,
            link: 1_500,
            on_link: true,
            incarnation: MEMBER_INCARNATION,
        };
        Self {
            members: (0..MEMBERS).map(member).collect(),
            table: TABLES[tables[number % tables.len()]],
            lists: BTreeMap::new(),
            standbys: [None; 8],
            room: Room::Unlimited,
        }
    }
}

/// 10.(1 + region).0.(1 + rank) or fd00:(1 + region)::(1 + rank).
fn backend_address(region: u8, rank: u8, version: u8) -> IpAddr {
    let (region, rank) = (1 + region, 1 + rank);
    match version {
        4 => IpAddr::from([10, region, 0, rank]),
        _ => IpAddr::from([0xfd00, region.into(), 0, 0, 0, 0, 0, rank.into()]),
    }
}
