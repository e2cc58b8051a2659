//! Descriptors: all that a pool's packets need to know, in two cache lines.

use super::{form::Form, group::GroupHead, limits::MAX_REGIONS_PER_POOL, service::AddressWords};

/// One version of a pool. Immutable once published; the first 64 bytes serve the fast path.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Key of the flow hash.
    pub hash_key: [u64; 2],
    /// The first group of the order, where open connections are at home.
    pub home: GroupHead,
    /// Outer source of IPv6 tunnels, as in the packet; zero: the daemon has none.
    pub source_v6: AddressWords,
    /// Outer source of IPv4 tunnels, as in the packet; zero: the daemon has none.
    pub source_v4: u32,
    /// Groups in `groups`; 0: the pool has no members at all.
    pub group_count: u32,
    /// [`LIMITED`] and the like, and the bits of a [`Form`]; other bits are 0.
    pub flags: u32,
    /// Limiter of the first group.
    pub home_limiter: u32,
    /// Group indices, nearest region first; `groups[0]` is the home group.
    pub groups: [u32; MAX_REGIONS_PER_POOL],
    /// Zero.
    pub spare: [u32; 8],
}

impl Descriptor {
    /// How packets get to the backends.
    #[inline(always)]
    pub const fn form(&self) -> Form {
        Form::from_flags(self.flags)
    }
}

/// Some group or member of the pool has a limit: every SYN gets a handshake entry.
pub const LIMITED: u32 = 1;
/// A new connection leaves a region only if no member there may have it, not if the region is full.
pub const ISOLATED: u32 = 2;
/// Too few members are healthy: if no other member may have a new connection, members that are marked as last
/// resort get it whatever their state ([`super::member::MemberWord::is_last_resort`]).
pub const PANIC: u32 = 4;
