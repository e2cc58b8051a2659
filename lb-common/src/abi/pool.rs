//! Pools: the line whose one store publishes a pool, its versions (descriptors), and their groups, a pool's members in
//! one region.

use super::{form::Form, limits::MAX_REGIONS_PER_POOL, slot::TableShape, zone::ZoneRange};
use crate::flow_hash::FlowHash;

/// A pool, half a cache line. Each word has one writer and is changed in place.
#[repr(C, align(32))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolLine {
    /// A [`PoolWord`], written by the daemon.
    pub word: u64,
    /// The value of `last_displaced` when the daemon last found that the pool has no displaced connection. Written
    /// by the daemon.
    pub cleared: u64,
    /// Coarse time at which a connection was last displaced ([`super::clock::Coarse`]). Written by the packet path.
    pub last_displaced: u64,
    /// The [`ZoneRange`] of the pool's zones, written by the daemon.
    pub zones: u64,
}

impl PoolLine {
    /// Word of `word` in the line.
    pub const WORD: usize = 0;
    /// Word of `cleared` in the line.
    pub const CLEARED: usize = 1;
    /// Word of `last_displaced` in the line.
    pub const LAST_DISPLACED: usize = 2;
    /// Word of `zones` in the line.
    pub const ZONES: usize = 3;

    /// Whether the pool may have displaced connections: then the displaced check is on, and packets look them up.
    #[inline(always)]
    pub const fn has_displaced(&self) -> bool {
        self.cleared != self.last_displaced
    }

    /// The pool's zones.
    #[inline(always)]
    pub const fn zones(&self) -> ZoneRange {
        ZoneRange(self.zones)
    }

    /// The published versions.
    #[inline(always)]
    pub const fn versions(&self) -> PoolWord {
        PoolWord(self.word)
    }
}

/// Index of the descriptor by which open connections are at home now (low half), and of the one by which new connections
/// are placed already (high half, 0: the same).
///
/// Descriptor 0 is never published, so an all-zero word is a pool without descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolWord(pub u64);

impl PoolWord {
    /// A word from its halves.
    pub const fn new(now: u32, next: u32) -> Self {
        Self(now as u64 | (next as u64) << 32)
    }

    /// Index of the descriptor by which open connections are at home; 0: none.
    #[inline(always)]
    pub const fn now(self) -> u32 {
        self.0 as u32
    }

    /// Index of the descriptor by which new connections are placed; 0: none.
    #[inline(always)]
    pub const fn latest(self) -> u32 {
        if self.next() == 0 { self.now() } else { self.next() }
    }

    /// Index of the descriptor that is next, during a remap; 0: none.
    #[inline(always)]
    pub const fn next(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// One version of a pool. Immutable once published; the first 64 bytes serve the fast path.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Key of the flow hash.
    pub hash_key: [u64; 2],
    /// The first group of the order, where open connections are at home; no slots: the pool has no members at all.
    pub home: GroupHead,
    /// First address of the prefix that the outer sources of IPv4 tunnels are from, as in the packet; zero: there is no
    /// prefix, and the next hop has the source.
    pub source_v4: u32,
    /// The bits of the outer source that differ between flows, as in the packet: the host part of the prefix, at most
    /// 24 bits.
    pub source_hosts_v4: u32,
    /// [`LIMITED`] and the like, and the bits of a [`Form`]; other bits are 0.
    pub flags: u32,
    /// Limiter of the first group.
    pub home_limiter: u32,
    /// Group indices, nearest region first; `groups[0]` is the home group.
    pub groups: [u32; MAX_REGIONS_PER_POOL],
    /// Groups in `groups`.
    pub group_count: u32,
    /// Zero.
    pub spare: [u32; 11],
}

impl Descriptor {
    /// How packets get to the backends.
    #[inline(always)]
    pub const fn form(&self) -> Form {
        Form::from_flags(self.flags)
    }

    /// Outer source of a flow's packets in IPv4 tunnels, as in the packet: always the same, and one of the prefix.
    #[inline(always)]
    pub const fn flow_source_v4(&self, flow: FlowHash) -> u32 {
        self.source_v4 | flow.source_bits() & self.source_hosts_v4
    }
}

/// Some group or member of the pool has a limit: every SYN gets a cell.
pub const LIMITED: u32 = 1;
/// A new connection leaves a region only if no member there may have it, not if the region is full.
pub const ISOLATED: u32 = 2;
/// Too few members are healthy: if no other member may have a new connection, members that are marked as last
/// resort get it whatever their state ([`super::member::MemberWord::is_last_resort`]).
pub const PANIC: u32 = 4;

/// What a look-up in a group needs, 16 bytes. A descriptor holds a copy of its first group's.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupHead {
    /// [`super::slot::TableRef`] of the slot table.
    pub table: u32,
    /// Slots of that table (a prime).
    pub slots: u32,
    /// Index of the first word of the member block.
    pub members: u32,
    /// Members in the block; ranks count from 0.
    pub member_count: u32,
}

impl GroupHead {
    /// How its table is laid out.
    #[inline(always)]
    pub const fn shape(&self) -> TableShape {
        TableShape { slots: self.slots, members: self.member_count }
    }
}

/// A group. Immutable once published.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Table and members.
    pub head: GroupHead,
    /// Index of the region in the store, for people.
    pub region: u32,
    /// Index of its [`super::limiter::Limiter`] and [`super::counter::GroupCounter`]; 0: none.
    pub limiter: u32,
    /// Zero.
    pub reserved: [u32; 2],
}
