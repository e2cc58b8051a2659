//! Forms: how the packets of a pool get to its backends.

use super::service::AddressWords;
use crate::wire::{gue, ipv4, ipv6, udp};

/// The part of a descriptor's flags that holds the form: the bits of [`GUE`], with its UDP port in the upper half, and
/// of [`DIRECT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form(u32);

/// Packets are in GUE; without it in IP alone.
const GUE: u32 = 8;
/// Packets go as they are, to the MAC of the backend.
const DIRECT: u32 = 16;
const PORT: u32 = 16;
/// The bits of flags that are a form.
const BITS: u32 = GUE | DIRECT | 0xffff << PORT;

impl Form {
    /// IP in IP, the default.
    pub const IP_IN_IP: Self = Self(0);

    /// Direct return: no tunnel.
    pub const DIRECT: Self = Self(DIRECT);

    /// GUE to a UDP port.
    pub const fn gue(port: u16) -> Self {
        Self(GUE | (port as u32) << PORT)
    }

    /// The form in a descriptor's flags.
    #[inline(always)]
    pub const fn from_flags(flags: u32) -> Self {
        Self(flags & BITS)
    }

    /// Its bits of a descriptor's flags.
    #[inline(always)]
    pub const fn flags(self) -> u32 {
        self.0
    }

    /// Whether packets are in GUE.
    #[inline(always)]
    pub const fn is_gue(self) -> bool {
        self.0 & GUE != 0
    }

    /// Whether packets go as they are.
    #[inline(always)]
    pub const fn is_direct(self) -> bool {
        self.0 & DIRECT != 0
    }

    /// The UDP port that GUE goes to.
    #[inline(always)]
    pub const fn port(self) -> u16 {
        (self.0 >> PORT) as u16
    }

    /// Length of the headers between the outer IP header and the packet, bytes: 0, or 12 of UDP and GUE.
    #[inline(always)]
    pub const fn shim(self) -> u16 {
        // Without a branch: the verifier would walk the rest of the program once for each side of it.
        const { assert!(udp::LENGTH + gue::LENGTH == (GUE + GUE / 2) as usize) };
        let gue = self.0 & GUE;
        (gue + gue / 2) as u16
    }

    /// Bytes that encapsulation adds to a packet, for an IPv4 backend or an IPv6 one.
    #[inline(always)]
    pub const fn overhead(self, to_v4: bool) -> u16 {
        if self.is_direct() {
            return 0;
        }
        let outer = if to_v4 { ipv4::LENGTH } else { ipv6::LENGTH };
        outer as u16 + self.shim()
    }
}

/// Mark (`SO_MARK`) of sockets whose packets take a [`ProbeRoute`]; the other bits are the route's number.
pub const PROBE_MARK: u32 = 0x5b00_0000;
/// The bits of a mark that distinguish it from other programs' marks.
pub const PROBE_MARK_MASK: u32 = 0xff00_0000;
/// Most probe routes at a time.
pub const MAX_PROBE_ROUTES: usize = 65_536;
/// Most VIPs that are addresses of the balancer and whose answers to probes are handed to the probes' link.
pub const MAX_PROBE_VIPS: usize = 4_096;
/// MAC of the probes' link, of the locally administered ones (IEEE 802, 8.4): nothing else is on that link.
pub const PROBE_LINK_MAC: [u8; 6] = [0x02, 0x5b, 0, 0, 0, 0x01];

/// How probes with a mark get to their backend.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeRoute {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_from_flags_as_it_was_put_there() {
        for (form, is_gue, port, overheads) in [
            (Form::IP_IN_IP, false, 0, [20, 40]),
            (Form::gue(6_080), true, 6_080, [32, 52]),
            (Form::gue(1), true, 1, [32, 52]),
            (Form::gue(65_535), true, 65_535, [32, 52]),
            (Form::DIRECT, false, 0, [0, 0]),
        ] {
            assert_eq!(form.flags() & 7, 0, "other flags have these bits");
            let read = Form::from_flags(form.flags() | 7);
            assert_eq!(read, form);
            assert_eq!((read.is_gue(), read.port()), (is_gue, port));
            assert_eq!(read.is_direct(), overheads == [0, 0]);
            assert_eq!([true, false].map(|v4| read.overhead(v4)), overheads);
        }
    }
}
