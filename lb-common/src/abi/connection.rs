//! What is remembered of connections and flows: handshake entries (what a SYN decided, for the time of its handshake),
//! displaced entries (open connections that are not at home, and where they are), and the keys of the latter.

use super::{
    clock::{Coarse, HANDSHAKE_LIFE},
    service::{IPV4, IPV6, V4_MAPPED},
};
use crate::flow_hash::FlowTuple;

/// Cells of a line.
pub const CELLS_PER_LINE: u32 = 4;

/// A line of cells, one cache line: the words of each [`HandshakeEntry`] one after the other.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandshakeLine {
    /// Words, two a cell.
    pub words: [u64; 2 * CELLS_PER_LINE as usize],
}

/// A handshake entry, in two words, of which the second one is stored first, by exchange with what was read there:
/// `{initial sequence number 32, flow tag 32}` and
/// `{backend 23, home 1, incarnation 8, time 16, check 16}` from the low end.
///
/// The check is over the first word: it tells a reader that the two words are of different SYNs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeEntry {
    /// The first word.
    pub syn: u64,
    /// The second word.
    pub decision: u64,
}

/// The bit of a decision that says home.
const HOME: u32 = 23;

impl HandshakeEntry {
    /// What a cell has that was never written.
    pub const NONE: Self = Self { syn: 0, decision: 0 };

    /// The entry of a SYN with sequence number `number`, of a flow with `tag`.
    #[inline(always)]
    pub const fn new(number: u32, tag: u32, placed: Placement, is_home: bool, now: Coarse) -> Self {
        let syn = number as u64 | (tag as u64) << 32;
        let decision = (placed.backend as u64 & 0x7f_ffff)
            | (is_home as u64) << HOME
            | (placed.incarnation as u64) << 24
            | (now.0 & 0xffff) << 32
            | check(syn) << 48;
        Self { syn, decision }
    }

    /// Whether it is of a flow with `tag`, whole, and young enough to count.
    #[inline(always)]
    pub const fn counts(self, tag: u32, now: Coarse) -> bool {
        (self.syn >> 32) as u32 == tag && self.is_whole() && !self.is_expired(now)
    }

    /// Whether both words are of one SYN. They are not while one is stored and the other is not yet.
    #[inline(always)]
    pub const fn is_whole(self) -> bool {
        self.decision >> 48 == check(self.syn)
    }

    /// Whether it is too old to count. A cell that was never written is as well.
    #[inline(always)]
    pub const fn is_expired(self, now: Coarse) -> bool {
        self.age(now) >= HANDSHAKE_LIFE || self.decision == 0
    }

    /// Coarse units since it was written, modulo 2^16. One that another CPU wrote in the unit after `now` is as old as one
    /// of `now`.
    #[inline(always)]
    pub const fn age(self, now: Coarse) -> u64 {
        let age = now.0.wrapping_sub(self.decision >> 32) & 0xffff;
        if age == 0xffff { 0 } else { age }
    }

    /// The SYN's sequence number.
    #[inline(always)]
    pub const fn number(self) -> u32 {
        self.syn as u32
    }

    /// Where the SYN went.
    #[inline(always)]
    pub const fn placement(self) -> Placement {
        Placement {
            backend: self.decision as u32 & 0x7f_ffff,
            incarnation: (self.decision >> 24) as u8,
        }
    }

    /// Whether that was home, or the connection has a displaced entry.
    #[inline(always)]
    pub const fn is_home(self) -> bool {
        self.decision >> HOME & 1 != 0
    }

    /// The same, expired.
    #[inline(always)]
    pub const fn dropped(self) -> Self {
        Self { decision: 0, ..self }
    }

    /// The same of a connection that has a displaced entry.
    #[inline(always)]
    pub const fn released(self) -> Self {
        Self { decision: self.decision | 1 << HOME, ..self }
    }
}

/// Where a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Index of the backend.
    pub backend: u32,
    /// Incarnation of that index.
    pub incarnation: u8,
}

/// 16 bits of both halves of a handshake entry's first word.
#[inline(always)]
const fn check(syn: u64) -> u64 {
    ((syn ^ syn >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)) >> 48
}

/// Where a displaced connection or a tracked flow is, in one word that is changed in place:
/// `{backend 24, incarnation 8, contested 8, last seen 24}` from the low end.
///
/// An entry is contested while a later SYN of the same flow was placed elsewhere: bit 7 of `contested`
/// is set, the others are the coarse time of that SYN, modulo 128.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisplacedWord(pub u64);

const CONTESTED_BITS: u64 = 0xff << 32;
const CONTESTED: u64 = 0x80 << 32;
const SEEN: u64 = 0xff_ffff << 40;

impl DisplacedWord {
    /// A connection at a backend, not contested, seen now.
    #[inline(always)]
    pub const fn new(placed: Placement, now: Coarse) -> Self {
        Self(
            (placed.backend as u64 & 0xff_ffff)
                | (placed.incarnation as u64) << 24
                | (now.0 << 40 & SEEN),
        )
    }

    /// Where the connection is.
    #[inline(always)]
    pub const fn placement(self) -> Placement {
        Placement { backend: self.0 as u32 & 0xff_ffff, incarnation: (self.0 >> 24) as u8 }
    }

    /// Coarse units since its last packet, modulo 2^24.
    #[inline(always)]
    pub const fn idle(self, now: Coarse) -> u64 {
        now.0.wrapping_sub(self.0 >> 40) & 0xff_ffff
    }

    /// The same connection, seen now.
    #[inline(always)]
    #[must_use]
    pub const fn seen(self, now: Coarse) -> Self {
        Self(self.0 & !SEEN | (now.0 << 40 & SEEN))
    }

    /// Whether the word says that it is contested, however long ago the SYN was.
    #[inline(always)]
    pub const fn was_contested(self) -> bool {
        self.0 & CONTESTED != 0
    }

    /// Whether a SYN of the last 64 s was placed elsewhere.
    #[inline(always)]
    pub const fn is_contested(self, now: Coarse) -> bool {
        self.was_contested() && (now.0.wrapping_sub(self.0 >> 32) & 0x7f) < HANDSHAKE_LIFE
    }

    /// The same connection, contested now.
    #[inline(always)]
    #[must_use]
    pub const fn contested(self, now: Coarse) -> Self {
        Self(self.0 & !CONTESTED_BITS | CONTESTED | (now.0 & 0x7f) << 32)
    }

    /// The same connection, not contested.
    #[inline(always)]
    #[must_use]
    pub const fn uncontested(self) -> Self {
        Self(self.0 & !CONTESTED_BITS)
    }
}

/// A flow of IPv4 in two words: `{client 32, VIP 32}`, `{client port 16, service port 16,
/// protocol 8, 0}` from the low end, addresses and ports as they stand in the packet.
pub type FlowKeyV4 = [u64; 2];
/// A flow of IPv6 in five words: client, VIP, then as the second word of [`FlowKeyV4`].
pub type FlowKeyV6 = [u64; 5];

/// The key of an IPv4 flow.
#[inline(always)]
pub const fn flow_key_v4(flow: &FlowTuple) -> FlowKeyV4 {
    [pair(flow.client[3], flow.vip[3]), ports(flow)]
}

/// The key of an IPv6 flow.
#[inline(always)]
pub const fn flow_key_v6(flow: &FlowTuple) -> FlowKeyV6 {
    let (client, vip) = (&flow.client, &flow.vip);
    [
        pair(client[0], client[1]),
        pair(client[2], client[3]),
        pair(vip[0], vip[1]),
        pair(vip[2], vip[3]),
        ports(flow),
    ]
}

/// The flow of a key.
pub const fn flow_of_v4(key: &FlowKeyV4) -> FlowTuple {
    FlowTuple {
        client: [0, 0, V4_MAPPED, key[0] as u32],
        vip: [0, 0, V4_MAPPED, (key[0] >> 32) as u32],
        client_port: key[1] as u16,
        service_port: (key[1] >> 16) as u16,
        protocol: (key[1] >> 32) as u8,
        version: IPV4,
    }
}

/// The flow of a key.
pub const fn flow_of_v6(key: &FlowKeyV6) -> FlowTuple {
    FlowTuple {
        client: [key[0] as u32, (key[0] >> 32) as u32, key[1] as u32, (key[1] >> 32) as u32],
        vip: [key[2] as u32, (key[2] >> 32) as u32, key[3] as u32, (key[3] >> 32) as u32],
        client_port: key[4] as u16,
        service_port: (key[4] >> 16) as u16,
        protocol: (key[4] >> 32) as u8,
        version: IPV6,
    }
}

#[inline(always)]
const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

#[inline(always)]
const fn ports(flow: &FlowTuple) -> u64 {
    flow.client_port as u64 | (flow.service_port as u64) << 16 | (flow.protocol as u64) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_key_holds_the_whole_flow(
            client: [u32; 4], vip: [u32; 4], client_port: u16, service_port: u16, protocol: u8,
        ) {
            let v6 = FlowTuple { client, vip, client_port, service_port, protocol, version: IPV6 };
            proptest::prop_assert_eq!(flow_of_v6(&flow_key_v6(&v6)), v6);
            let v4 = FlowTuple {
                client: [0, 0, V4_MAPPED, client[3]],
                vip: [0, 0, V4_MAPPED, vip[3]],
                version: IPV4,
                ..v6
            };
            proptest::prop_assert_eq!(flow_of_v4(&flow_key_v4(&v4)), v4);
        }
    }
}
