//! What an ICMP error says of a tunnel packet that did not fit.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A packet of a tunnel did not fit somewhere on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooBig {
    /// Where the packet came from.
    pub(super) source: IpAddr,
    /// Where it was to go.
    pub(super) destination: IpAddr,
    /// Packets of so many bytes fit, says whoever it was.
    pub(super) mtu: u16,
}

const IP_IN_IP: u8 = 4;
const IPV6_IN_IP: u8 = 41;
const UDP: u8 = 17;
/// Tunnels in UDP come from these ports.
const FROM: std::ops::RangeInclusive<u16> = 49_152..=65_535;
/// The least that is believed of the way of IPv4 in IPv4: what every host takes (RFC 791, 3.1).
const LEAST_V4: u32 = 576;
/// The least that is believed where IPv6 is inside or outside (RFC 8200, 5).
const LEAST_V6: u32 = 1280;

/// Reads an ICMP packet with its IPv4 header: "fragmentation needed" about a tunnel packet (RFC 1191, 4).
pub(super) fn v4(packet: &[u8]) -> Option<TooBig> {
    let header = usize::from(packet.first()? & 15) * 4;
    let error = packet.get(header..)?;
    let [kind, code, _, _, _, _, high, low] = *error.first_chunk::<8>()?;
    let quoted = error.get(8..)?.first_chunk::<20>()?;
    // The tunnel's header has no options; who quotes others quotes another's packet.
    if (kind, code, quoted[0]) != (3, 4, 0x45) {
        return None;
    }
    let least = match inside(quoted[9], error.get(28..)?)? {
        IP_IN_IP => LEAST_V4,
        _ => LEAST_V6,
    };
    let address = |at: usize| {
        let octets: [u8; 4] = quoted.get(at..at + 4)?.try_into().ok()?;
        Some(IpAddr::from(Ipv4Addr::from(octets)))
    };
    let (source, destination) = (address(12)?, address(16)?);
    // An error goes to whom the packet came from.
    let told: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
    let mtu = within(u16::from_be_bytes([high, low]).into(), least)?;
    (source == IpAddr::from(told)).then_some(TooBig { source, destination, mtu })
}

/// Reads an ICMPv6 message: "packet too big" about a tunnel packet (RFC 4443, 3.2).
pub(super) fn v6(message: &[u8]) -> Option<TooBig> {
    let [kind, code, _, _, a, b, c, d] = *message.first_chunk::<8>()?;
    let quoted = message.get(8..)?.first_chunk::<40>()?;
    inside(quoted[6], message.get(48..)?)?;
    if (kind, code, quoted[0] >> 4) != (2, 0, 6) {
        return None;
    }
    let address = |at: usize| {
        let octets: [u8; 16] = quoted.get(at..at + 16)?.try_into().ok()?;
        Some(IpAddr::from(Ipv6Addr::from(octets)))
    };
    let mtu = within(u32::from_be_bytes([a, b, c, d]), LEAST_V6)?;
    Some(TooBig { source: address(8)?, destination: address(24)?, mtu })
}

/// The protocol of what is in a tunnel, by that of its outer header and what is quoted behind it. `None`: it is
/// no tunnel. Where no more of one in GUE is quoted than its ports (RFC 792), the answer is IPv6, of which less
/// is believed.
fn inside(outer: u8, behind: &[u8]) -> Option<u8> {
    match outer {
        IP_IN_IP | IPV6_IN_IP => Some(outer),
        UDP => {
            let &[high, low, ..] = behind.first_chunk::<8>()?;
            if !FROM.contains(&u16::from_be_bytes([high, low])) {
                return None;
            }
            match behind.get(8..12) {
                None => Some(IPV6_IN_IP),
                // Variant 0 without optional fields, as balancers send it.
                Some(&[0, protocol @ (IP_IN_IP | IPV6_IN_IP), 0, 0]) => Some(protocol),
                Some(_) => None,
            }
        }
        _ => None,
    }
}

/// A size that can be.
fn within(mtu: u32, least: u32) -> Option<u16> {
    u16::try_from(mtu).ok().filter(|_| mtu >= least)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A router at 192.0.2.1 tells 10.0.0.1 that 1400 bytes of its packet to 10.1.0.11 fit.
    fn error_v4() -> Vec<u8> {
        let mut packet =
            vec![0x45, 0xc0, 0, 56, 0, 0, 0, 0, 64, 1, 0, 0, 192, 0, 2, 1, 10, 0, 0, 1];
        packet.extend([3, 4, 0, 0, 0, 0, 0x05, 0x78]);
        packet.extend([0x45, 0, 0x05, 0xdc, 0, 0, 0x40, 0, 60, 4, 0, 0, 10, 0, 0, 1, 10, 1, 0, 11]);
        packet.extend([0x45, 0, 0x05, 0xc8, 0, 1, 0x40, 0]);
        packet
    }

    fn error_v6() -> Vec<u8> {
        let mut message = vec![2, 0, 0, 0, 0, 0, 0x05, 0x78];
        message.extend([0x60, 0, 0, 0, 0x05, 0xb4, 41, 60]);
        for address in ["fd00::2", "fd00:1::11"] {
            message.extend(address.parse::<Ipv6Addr>().unwrap().octets());
        }
        message
    }

    fn told(source: &str, destination: &str, mtu: u16) -> Option<TooBig> {
        let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
        Some(TooBig { source, destination, mtu })
    }

    #[test]
    fn what_does_not_fit_is_told() {
        assert_eq!(v4(&error_v4()), told("10.0.0.1", "10.1.0.11", 1400));
        assert_eq!(v6(&error_v6()), told("fd00::2", "fd00:1::11", 1400));
        let mut options = error_v4();
        options[0] = 0x46;
        options.splice(20..20, [1, 1, 1, 1]);
        assert_eq!(v4(&options), told("10.0.0.1", "10.1.0.11", 1400));
    }

    #[test]
    fn what_is_no_such_error_tells_nothing() {
        let change = |at: usize, to: u8| {
            let mut packet = error_v4();
            packet[at] = to;
            v4(&packet)
        };
        for (at, to) in [
            (20, 11),   // Time exceeded.
            (21, 1),    // Host unreachable.
            (28, 0x46), // Options in the quoted header.
            (28, 0x65), // IPv6 quoted.
            (37, 6),    // No tunnel.
            (43, 2),    // Another's packet.
        ] {
            assert_eq!(change(at, to), None, "byte {at} is {to:#x}");
        }
        let change = |at: usize, to: u8| {
            let mut message = error_v6();
            message[at] = to;
            v6(&message)
        };
        for (at, to) in [(0, 1), (0, 3), (1, 1), (8, 0x45), (14, 6), (14, 44)] {
            assert_eq!(change(at, to), None, "byte {at} is {to:#x}");
        }
    }

    /// The same of GUE from port 49153 to 6080, with IPv4 in it.
    const SHIM: [u8; 12] = [0xc0, 1, 0x17, 0xc0, 0x05, 0xbc, 0, 0, 0, 4, 0, 0];

    fn in_gue(shim: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let (mut v4, mut v6) = (error_v4(), error_v6());
        (v4[37], v6[14]) = (17, 17);
        v4.truncate(48);
        v4.extend(shim);
        v6.extend(shim);
        (v4, v6)
    }

    #[test]
    fn what_does_not_fit_in_gue_is_told() {
        for quoted in [8, 12] {
            let (in_v4, in_v6) = in_gue(&SHIM[..quoted]);
            assert_eq!(v4(&in_v4), told("10.0.0.1", "10.1.0.11", 1400), "{quoted} bytes");
            assert_eq!(v6(&in_v6), told("fd00::2", "fd00:1::11", 1400), "{quoted} bytes");
        }
        for quoted in 0..8 {
            let (in_v4, in_v6) = in_gue(&SHIM[..quoted]);
            assert_eq!((v4(&in_v4), v6(&in_v6)), (None, None), "{quoted} bytes");
        }
        // Not from a port of tunnels; variant 1; a control message; ICMP inside; flags.
        for (at, to) in [(0, 0xbf), (8, 0x40), (8, 0x20), (9, 1), (10, 0x80), (11, 1)] {
            let mut shim = SHIM;
            shim[at] = to;
            let (in_v4, in_v6) = in_gue(&shim);
            assert_eq!((v4(&in_v4), v6(&in_v6)), (None, None), "byte {at} is {to:#x}");
        }
    }

    #[test]
    fn of_gue_less_is_believed_while_ipv6_may_be_inside() {
        let sized = |shim: &[u8], mtu: u16| {
            let (mut packet, _) = in_gue(shim);
            packet[26..28].copy_from_slice(&mtu.to_be_bytes());
            v4(&packet).map(|told| told.mtu)
        };
        assert_eq!((sized(&SHIM, 575), sized(&SHIM, 576)), (None, Some(576)));
        let mut six = SHIM;
        six[9] = 41;
        assert_eq!((sized(&six, 1279), sized(&six, 1280)), (None, Some(1280)));
        assert_eq!((sized(&SHIM[..8], 1279), sized(&SHIM[..8], 1280)), (None, Some(1280)));
    }

    #[test]
    fn a_size_that_no_network_has_is_not_believed() {
        let sized = |inside: u8, mtu: u16| {
            let mut packet = error_v4();
            packet[26..28].copy_from_slice(&mtu.to_be_bytes());
            packet[37] = inside;
            v4(&packet).map(|told| told.mtu)
        };
        assert_eq!((sized(4, 575), sized(4, 576), sized(4, 0)), (None, Some(576), None));
        assert_eq!((sized(41, 1279), sized(41, 1280)), (None, Some(1280)));
        let sized = |mtu: u32| {
            let mut message = error_v6();
            message[4..8].copy_from_slice(&mtu.to_be_bytes());
            v6(&message).map(|told| told.mtu)
        };
        assert_eq!((sized(1279), sized(1280)), (None, Some(1280)));
        assert_eq!((sized(65_535), sized(65_536)), (Some(65_535), None));
    }

    #[test]
    fn an_error_that_is_cut_short_tells_nothing() {
        let whole = error_v4();
        for length in 0..48 {
            assert_eq!(v4(&whole[..length]), None, "{length} bytes");
        }
        let whole = error_v6();
        for length in 0..whole.len() {
            assert_eq!(v6(&whole[..length]), None, "{length} bytes");
        }
    }
}
