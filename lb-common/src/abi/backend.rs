//! Backends: where a tunnel ends.

use super::service::AddressWords;

/// A backend. Immutable once published; a change is another index or another incarnation.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backend {
    /// Outer destination, as in the packet.
    pub address: AddressWords,
    /// [`super::service::IPV4`] or [`super::service::IPV6`].
    pub version: u8,
    /// Incarnation of this index.
    pub incarnation: u8,
    /// Largest outer IP packet towards it, bytes.
    pub mtu: u16,
    /// 1: it is on a link of this host, so a frame can have its MAC; 0: behind a gateway, or not known.
    pub on_link: u16,
    /// Zero.
    pub reserved: [u16; 5],
}
