//! Services: keys and values of the look-up by a packet's destination, and sets of addresses.

use core::net::IpAddr;

/// An address as four words in the byte order of the packet; IPv4 is v4-mapped (RFC 4291, 2.5.5.2).
pub type AddressWords = [u32; 4];

/// The second-to-last word of a v4-mapped address, in the byte order of the packet.
pub const V4_MAPPED: u32 = 0xffff_u32.to_be();

/// IP version 4, as keys and backends name it.
pub const IPV4: u8 = 4;
/// IP version 6, as keys and backends name it.
pub const IPV6: u8 = 6;

/// [`AddressWords`] of an address.
pub const fn address_words(address: IpAddr) -> AddressWords {
    let octets = match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    };
    let mut words = [0; 4];
    let mut i = 0;
    while i < 4 {
        words[i] = u32::from_ne_bytes([
            octets[4 * i],
            octets[4 * i + 1],
            octets[4 * i + 2],
            octets[4 * i + 3],
        ]);
        i += 1;
    }
    words
}

/// The address that [`address_words`] made words of; `version` is [`IPV4`] or [`IPV6`].
pub fn address_of(words: &AddressWords, version: u8) -> IpAddr {
    let mut octets = [0; 16];
    for (chunk, word) in octets.chunks_exact_mut(4).zip(words) {
        chunk.copy_from_slice(&word.to_ne_bytes());
    }
    if version == IPV4 {
        IpAddr::from([octets[12], octets[13], octets[14], octets[15]])
    } else {
        IpAddr::from(octets)
    }
}

/// Key of a service.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceKey {
    /// The VIP.
    pub address: AddressWords,
    /// Destination port in the byte order of the packet; 0: any port that no other service of the address has.
    pub port: u16,
    /// IP protocol number: 6 (TCP) or 17 (UDP), of the key of fragments with 128 added.
    pub protocol: u8,
    /// [`IPV4`] or [`IPV6`], so that a v4-mapped IPv6 destination never meets an IPv4 service.
    pub version: u8,
}

impl ServiceKey {
    /// The key of a VIP; `port` in host order.
    pub const fn new(address: IpAddr, port: u16, protocol: u8) -> Self {
        let version = if address.is_ipv4() { IPV4 } else { IPV6 };
        Self { address: address_words(address), port: port.to_be(), protocol, version }
    }

    /// `{last word of the address 32, port 16, protocol 8, version 8}` from the low end, which is all that IPv4 keys
    /// differ in.
    #[inline(always)]
    pub const fn low_half(&self) -> u64 {
        self.address[3] as u64
            | (self.port as u64) << 32
            | (self.protocol as u64) << 48
            | (self.version as u64) << 56
    }

    /// `{first word of the address 32, second word 32}` from the low end.
    #[inline(always)]
    pub const fn high_half(&self) -> u64 {
        self.address[0] as u64 | (self.address[1] as u64) << 32
    }

    /// The key with these halves, and with `third` as the third word of its address.
    #[inline(always)]
    pub const fn from_halves(high: u64, third: u32, low: u64) -> Self {
        Self {
            address: [high as u32, (high >> 32) as u32, third, low as u32],
            port: (low >> 32) as u16,
            protocol: (low >> 48) as u8,
            version: (low >> 56) as u8,
        }
    }

    /// Whether it is the same key. Of IPv4 keys it compares only what they differ in.
    #[inline(always)]
    pub const fn is(&self, other: &Self) -> bool {
        let ([a, b, c, _], [d, e, f, _]) = (self.address, other.address);
        self.low_half() == other.low_half()
            && (other.version == IPV4 || (a == d && b == e && c == f))
    }

    /// The key of the service that has all ports of the address which no other has.
    #[inline(always)]
    pub const fn any_port(&self) -> Self {
        Self { port: 0, ..*self }
    }

    /// The key of the service that has the fragments of the address which bear no ports.
    #[inline(always)]
    pub const fn fragments(&self) -> Self {
        Self { port: 0, protocol: self.protocol | FRAGMENTS, ..*self }
    }

    /// Whether it is the key of an any-port service.
    pub const fn is_any_port(&self) -> bool {
        self.port == 0 && !self.is_of_fragments()
    }

    /// Whether it is a key of fragments: its service has another one besides.
    pub const fn is_of_fragments(&self) -> bool {
        self.protocol & FRAGMENTS != 0
    }

    /// The VIP's address.
    pub fn ip(&self) -> IpAddr {
        address_of(&self.address, self.version)
    }
}

/// Added to the protocol in a key of fragments. No packet has such a protocol.
const FRAGMENTS: u8 = 128;

/// Words of the map of addresses that may have an any-port service.
pub const ANY_PORT_WORDS: u32 = 64;

/// The word and the bit in it that are set if an address has an any-port service. Other addresses may share the bit, which
/// only costs their packets one more look-up.
#[inline(always)]
pub const fn any_port_bit(address: &AddressWords) -> (u32, u64) {
    let folded = address[0] ^ address[1] ^ address[2] ^ address[3];
    let mixed = folded.wrapping_mul(0x9e37_79b9);
    (mixed >> 26, 1 << (mixed >> 20 & 63))
}

/// Record of a service. Immutable while the index names it ([`crate::service_index`]).
#[repr(C, align(32))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// The key: an entry of the index has only a hash of it.
    pub key: ServiceKey,
    /// Index of this service's counters.
    pub index: u32,
    /// Index of its pool's word.
    pub pool: u32,
    /// [`SERVICE_BY_ADDRESS`] and the like; bits 16 to 31 are the idle time of tracked flows in coarse
    /// units ([`super::clock::Coarse`]); other bits are 0.
    pub flags: u32,
}

/// The flow hash leaves both ports out (affinity by client address).
pub const SERVICE_BY_ADDRESS: u32 = 1;
/// The backend of each UDP flow is remembered until the flow is idle for too long ([`Service::flags`]).
pub const SERVICE_TRACKED: u32 = 2;
/// A new connection is dropped if every group is full. Without the flag the nearest group serves it.
pub const SERVICE_REJECTS: u32 = 4;
/// The flow hash is of the service's port alone, whatever the address and the protocol (affinity by
/// port).
pub const SERVICE_BY_PORT: u32 = 8;
/// Fragments are forwarded, those without ports too; with [`SERVICE_BY_ADDRESS`] alone.
pub const SERVICE_FRAGMENTS: u32 = 16;

/// Key of the source trie: a prefix of allowed balancer addresses.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourcePrefix {
    /// Significant bits of the 128; an IPv4 prefix of n bits has 96 + n.
    pub bits: u32,
    /// The address, as in the packet, IPv4 v4-mapped.
    pub address: AddressWords,
}

/// Key of the sets of addresses: VIPs at receiver and balancer, tunnel endpoints at the receiver.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VipKey {
    /// The address, as in the packet, IPv4 v4-mapped.
    pub address: AddressWords,
    /// [`IPV4`] or [`IPV6`].
    pub version: u32,
}

impl VipKey {
    /// The key of an address.
    pub const fn of(address: IpAddr) -> Self {
        let version = if address.is_ipv4() { IPV4 } else { IPV6 };
        Self { address: address_words(address), version: version as u32 }
    }
}

/// Value of a VIP in the balancer's set of addresses ([`super::names::ADDRESSES`]): bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VipWord(pub u32);

impl VipWord {
    /// Set in every word, so that none is zero.
    const PRESENT: u32 = 1;
    const DROPS_UNSERVED: u32 = 2;

    /// The word of a VIP; `drops_unserved`: packets for it that no service takes are dropped, not left to the host.
    pub const fn new(drops_unserved: bool) -> Self {
        Self(Self::PRESENT | if drops_unserved { Self::DROPS_UNSERVED } else { 0 })
    }

    /// Whether packets that no service takes are dropped.
    #[inline(always)]
    pub const fn drops_unserved(self) -> bool {
        self.0 & Self::DROPS_UNSERVED != 0
    }
}
