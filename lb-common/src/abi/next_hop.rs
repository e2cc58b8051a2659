//! Next hops: where a frame goes on the wire.

use super::service::AddressWords;

/// Index of a next hop that was lost a moment ago and may come back: meanwhile packets of open connections are dropped, and
/// new connections go elsewhere. Its entry is unresolved.
pub const AWAITED: u16 = u16::MAX;

/// A next hop with the source of the tunnels that go there, half a cache line: the word that each packet reads, and the
/// source behind it, cost one line.
#[repr(C, align(32))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHopEntry {
    /// A [`NextHopWord`], changed in place.
    pub word: u64,
    /// Zero.
    pub reserved: u64,
    /// Outer source of tunnels, as in the packet and of the backends' IP version; zero: this host has none. Immutable
    /// once something names the next hop: another source is another next hop.
    pub source: AddressWords,
}

impl NextHopEntry {
    /// No address is known.
    pub const UNRESOLVED: Self = Self { word: 0, reserved: 0, source: [0; 4] };

    /// Place of `word` among the words of the element.
    pub const WORD: usize = 0;
    /// Places of `source` among them.
    pub const SOURCE: [usize; 2] = [2, 3];

    /// A source from the two words of an element.
    #[inline(always)]
    pub const fn source_from(words: [u64; 2]) -> AddressWords {
        let [first, second] = words;
        [first as u32, (first >> 32) as u32, second as u32, (second >> 32) as u32]
    }
}

/// `{MAC 48, interface index 16}`, the MAC's first byte lowest. Zero: unresolved. Changed in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHopWord(pub u64);

impl NextHopWord {
    /// No address is known: members behind it are not usable.
    pub const UNRESOLVED: Self = Self(0);

    /// A resolved next hop; `interface` is not 0.
    pub const fn new(mac: [u8; 6], interface: u16) -> Self {
        Self(mac_word(mac) | (interface as u64) << 48)
    }

    /// Whether packets can be sent to it.
    #[inline(always)]
    pub const fn is_resolved(self) -> bool {
        self.interface() != 0
    }

    /// Destination MAC, its first byte lowest.
    #[inline(always)]
    pub const fn mac_word(self) -> u64 {
        self.0 & MAC
    }

    /// Destination MAC.
    #[inline(always)]
    pub const fn mac(self) -> [u8; 6] {
        mac_of(self.0)
    }

    /// Index of the interface it is reached over.
    #[inline(always)]
    pub const fn interface(self) -> u16 {
        (self.0 >> 48) as u16
    }
}

/// An interface's own MAC (low 48 bits), and the id of the VLAN whose tag frames get that leave by it (0: none). Zero:
/// the programs do not send out of it. Changed in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceWord(pub u64);

impl InterfaceWord {
    /// A word of an interface's MAC.
    pub const fn new(mac: [u8; 6]) -> Self {
        Self(mac_word(mac))
    }

    /// The same with a VLAN set: an id of 1 to 4094, or 0 for none.
    #[must_use]
    pub const fn with_vlan(self, id: u16) -> Self {
        Self(self.0 & MAC | (id as u64) << 48)
    }

    /// Whether frames can be sent out of it.
    #[inline(always)]
    pub const fn is_known(self) -> bool {
        self.0 & MAC != 0
    }

    /// Id of the VLAN that is set for what leaves by it; 0: none is.
    #[inline(always)]
    pub const fn vlan(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// Source MAC of frames sent out of it.
    #[inline(always)]
    pub const fn mac(self) -> [u8; 6] {
        mac_of(self.0)
    }
}

/// The bits of a MAC.
const MAC: u64 = 0xffff_ffff_ffff;

const fn mac_word(mac: [u8; 6]) -> u64 {
    u64::from_le_bytes([mac[0], mac[1], mac[2], mac[3], mac[4], mac[5], 0, 0])
}

#[inline(always)]
const fn mac_of(word: u64) -> [u8; 6] {
    let [a, b, c, d, e, f, _, _] = word.to_le_bytes();
    [a, b, c, d, e, f]
}
