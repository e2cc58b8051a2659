//! What the receiver lets through.

use super::service::AddressWords;

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
    /// [`super::service::IPV4`] or [`super::service::IPV6`].
    pub version: u32,
}
