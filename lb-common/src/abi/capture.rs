//! Captures: which packets are captured, and what a sample of one holds.

use super::{
    clock::Nanoseconds,
    service::{AddressWords, IPV4, IPV6, address_words},
};

/// The section of the balancer's object that holds the [`Capture`]: a map of one entry, whose memory the
/// program reads without a look-up.
pub const SECTION: &str = ".data.capture";

/// Most bytes of a frame that a sample holds, as it came and as it left each.
pub const MAX_SNAP: u32 = 2_000;
/// Bytes of the ring that samples wait in.
pub const RING_BYTES: u32 = 2 << 20;

/// What to capture. All of it is zero while no capture runs.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// Its deadline by the exact monotonic clock; 0: no capture runs. The daemon renews it every second, so a capture ends
    /// when its daemon is gone.
    pub until: Nanoseconds,
    /// Number of the capture; each has its own.
    pub number: u64,
    /// Verdicts to capture: a bit each, by number.
    pub verdicts: u64,
    /// Sources to capture.
    pub client: Prefix,
    /// Destinations to capture.
    pub vip: Prefix,
    /// Chosen backends to capture.
    pub backend: Prefix,
    /// Packets between these ends are left out. They are those of the caller's own connection, on which each sample would
    /// cause more. Version 0: none.
    pub except: Ends,
    /// Destination port as in the packet; 0: any, and none.
    pub port: u16,
    /// IP version, [`IPV4`] or [`IPV6`]; 0: any, and none.
    pub version: u8,
    /// Zero.
    pub reserved: u8,
    /// Bytes of a frame to capture, 1 to [`MAX_SNAP`].
    pub snap: u32,
}

/// A packet's source and destination, as far as it has them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// Source address.
    pub source: AddressWords,
    /// Destination address.
    pub destination: AddressWords,
    /// Source port as in the packet; 0: it has none, or is cut short before.
    pub source_port: u16,
    /// Destination port, likewise.
    pub port: u16,
    /// [`IPV4`] or [`IPV6`]; 0: it is not of IP, and all else is 0 too.
    pub version: u8,
    /// IP protocol number; of IPv6 the next header.
    pub protocol: u8,
    /// Zero.
    pub reserved: u16,
}

/// Addresses that have some bits in common.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prefix {
    /// These bits, the others 0.
    pub address: AddressWords,
    /// Which bits they are.
    pub mask: AddressWords,
}

impl Ends {
    /// Those of a frame that is not of IP.
    pub const NONE: Self = Self {
        source: [0; 4],
        destination: [0; 4],
        source_port: 0,
        port: 0,
        version: 0,
        protocol: 0,
        reserved: 0,
    };
}

impl Prefix {
    /// Any address, or none.
    pub const ANY: Self = Self { address: [0; 4], mask: [0; 4] };

    /// The first `bits` bits of an address (of its 32 or 128).
    pub fn new(address: core::net::IpAddr, bits: u8) -> Self {
        let bits = if address.is_ipv4() { 96 + bits.min(32) } else { bits.min(128) };
        let mask = (u128::MAX).checked_shl(128 - u32::from(bits)).unwrap_or(0).to_be_bytes();
        let word =
            |at: usize| u32::from_ne_bytes([mask[at], mask[at + 1], mask[at + 2], mask[at + 3]]);
        let mask = [word(0), word(4), word(8), word(12)];
        let mut address = address_words(address);
        for (word, mask) in address.iter_mut().zip(mask) {
            *word &= mask;
        }
        Self { address, mask }
    }

    /// Whether all addresses are among them, and none too.
    #[inline(always)]
    pub const fn is_any(&self) -> bool {
        let mask = &self.mask;
        mask[0] | mask[1] | mask[2] | mask[3] == 0
    }

    /// Whether an address is among them; all zeros are no address.
    #[inline(always)]
    pub const fn has(&self, address: &AddressWords) -> bool {
        let (prefix, mask) = (&self.address, &self.mask);
        let differs = (address[0] & mask[0] ^ prefix[0])
            | (address[1] & mask[1] ^ prefix[1])
            | (address[2] & mask[2] ^ prefix[2])
            | (address[3] & mask[3] ^ prefix[3]);
        differs == 0
    }
}

/// What is known of a captured packet; in a sample its bytes follow: as it came, then as it left.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleHead {
    /// When it came, by the exact monotonic clock.
    pub time: Nanoseconds,
    /// Number of the capture it is of.
    pub number: u64,
    /// Address of its backend; all zeros: none was chosen.
    pub backend: AddressWords,
    /// [`IPV4`] or [`IPV6`]; 0: no backend was chosen.
    pub backend_version: u32,
    /// Number of its verdict.
    pub verdict: u32,
    /// Index of the interface it came in on.
    pub interface: u32,
    /// Length of the frame as it came, bytes.
    pub length: u32,
    /// How many of them follow.
    pub captured: u32,
    /// Length of the frame as it left, bytes; 0: it did not, or as it came.
    pub left_length: u32,
    /// How many of them follow those.
    pub left_captured: u32,
    /// Index of the interface that it was to leave by; 0: none, or back by the one it came in on.
    pub left_by: u32,
}

/// Room for the bytes of both frames; the second one begins below 2,048.
pub const SAMPLE_BYTES: usize = 4_096;

/// A CPU's buffer for its sample, and its counters.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CaptureBuffer {
    /// Its counters, over all captures.
    pub counted: Captured,
    /// Index of the frame's backend, which the head gets the address of.
    pub backend: u64,
    /// The sample's head.
    pub head: SampleHead,
    /// The sample's frames.
    pub bytes: [u8; SAMPLE_BYTES],
}

/// Packets that matched a capture.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// All of them.
    pub matched: u64,
    /// Those that were left out because the capture's rate was reached.
    pub left_out: u64,
    /// Those for which the ring had no room.
    pub lost: u64,
}

/// The version of an address that [`Prefix::new`] takes.
pub const fn version_of(address: core::net::IpAddr) -> u8 {
    if address.is_ipv4() { IPV4 } else { IPV6 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::IpAddr;

    #[test]
    fn a_prefix_has_its_addresses_and_no_others() {
        let has = |prefix: &str, bits, address: &str| {
            let words = address_words(address.parse::<IpAddr>().unwrap());
            Prefix::new(prefix.parse().unwrap(), bits).has(&words)
        };
        assert!(has("198.51.100.77", 24, "198.51.100.1"));
        assert!(!has("198.51.100.77", 24, "198.51.101.77"));
        assert!(has("198.51.100.7", 32, "198.51.100.7"));
        assert!(!has("198.51.100.7", 32, "198.51.100.6"));
        assert!(has("198.51.100.7", 31, "198.51.100.6"));
        assert!(has("0.0.0.0", 0, "203.0.113.1"));
        assert!(!has("0.0.0.0", 0, "2001:db8::1"));
        assert!(has("2001:db8::", 33, "2001:db8:7fff::1"));
        assert!(!has("2001:db8::", 33, "2001:db8:8000::1"));
        assert!(has("2001:db8::7", 128, "2001:db8::7"));
        assert!(!has("2001:db8::7", 128, "2001:db8::8"));
        assert!(!has("2001:db8::", 128, "::"));
        assert!(has("::", 0, "203.0.113.1"));
        assert!(Prefix::ANY.has(&[0; 4]));
        assert!(!Prefix::new("10.1.0.11".parse().unwrap(), 32).has(&[0; 4]), "no backend is none");
    }
}
