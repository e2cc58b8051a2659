//! Probes: checks that go to a backend the way that clients' packets go.

use super::service::AddressWords;

/// The marks (`SO_MARK`) of sockets whose packets go such a way; their other bits are a way's number.
pub const MARK: u32 = 0x5b00_0000;
/// The bits of a mark that tell it from other programs' marks.
pub const MARK_MASK: u32 = 0xff00_0000;
/// Most ways.
pub const MAX_WAYS: usize = 65_536;

/// How the packets of a mark get to their backend.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeWay {
    /// The backend, as in the packet, IPv4 v4-mapped.
    pub backend: AddressWords,
    /// The balancer's address on the tunnel, of the same version; without a tunnel zero.
    pub source: AddressWords,
    /// Version of these two, [`super::service::IPV4`] or [`super::service::IPV6`].
    pub version: u32,
    /// The pool's form, as in its descriptor's flags.
    pub form: u32,
    /// Index of the interface that the backend's packets leave by.
    pub interface: u32,
    /// Zero.
    pub reserved: u32,
}
