//! Whether a frame matches a capture, by its source and destination. Unlike the decision this validates nothing: a capture
//! must also show packets that are malformed or of no service.

use crate::{
    abi::{
        capture::{Capture, Ends, Prefix},
        service::{IPV4, IPV6, V4_MAPPED},
    },
    wire::{
        self, Packet, ethernet,
        ipv4::{self, Ipv4},
        ipv6::{self, Ipv6},
        vlan::Tags,
    },
};

/// What a capture asks of addresses and ports. In a packet program each is read from the map when it is asked for.
pub trait Filter {
    /// [`Capture::version`].
    fn version(&self) -> u8;
    /// [`Capture::client`].
    fn client(&self) -> Prefix;
    /// [`Capture::vip`].
    fn vip(&self) -> Prefix;
    /// [`Capture::port`].
    fn port(&self) -> u16;
    /// [`Capture::except`].
    fn except(&self) -> Ends;
}

impl Filter for Capture {
    fn version(&self) -> u8 {
        self.version
    }
    fn client(&self) -> Prefix {
        self.client
    }
    fn vip(&self) -> Prefix {
        self.vip
    }
    fn port(&self) -> u16 {
        self.port
    }
    fn except(&self) -> Ends {
        self.except
    }
}

/// Evaluates an expression with a frame's [`ends`]: once for each kind of frame, because the ends are then in registers. An
/// answer common to all kinds would keep them on the stack.
macro_rules! with_ends {
    ($packet:ident, $ends:ident => $answer:expr) => {{
        let at = ethernet::LENGTH + Tags::read($packet).length();
        match $packet.bytes::<2>(at - 2).copied().unwrap_or_default() {
            ethernet::IPV4 if let Some(header) = $packet.bytes::<{ ipv4::LENGTH }>(at) => {
                let $ends = ends_of_ipv4($packet, at, header);
                $answer
            }
            ethernet::IPV6 if let Some(header) = $packet.bytes::<{ ipv6::LENGTH }>(at) => {
                let $ends = ends_of_ipv6($packet, at, header);
                $answer
            }
            _ => {
                let $ends = Ends::NONE;
                $answer
            }
        }
    }};
}

/// Whether a frame matches a capture's addresses and ports.
#[inline(always)]
pub fn matches<F: Filter + ?Sized, P: Packet + ?Sized>(filter: &F, packet: &P) -> bool {
    with_ends!(packet, ends => has(filter, &ends))
}

/// Source and destination of a frame, even if it is cut short or tagged (802.1Q).
#[inline(always)]
pub fn ends<P: Packet + ?Sized>(packet: &P) -> Ends {
    with_ends!(packet, ends => ends)
}

/// Whether a packet between some ends matches.
#[inline(always)]
fn has<F: Filter + ?Sized>(filter: &F, ends: &Ends) -> bool {
    let version = filter.version();
    if version != 0 && version != ends.version || !filter.vip().has(&ends.destination) {
        return false;
    }
    let port = filter.port();
    if port != 0 && port != ends.port || !filter.client().has(&ends.source) {
        return false;
    }
    let except = filter.except();
    except.version == 0 || except != *ends
}

#[inline(always)]
fn ends_of_ipv4<P: Packet + ?Sized>(packet: &P, at: usize, header: &[u8; ipv4::LENGTH]) -> Ends {
    let ip = Ipv4(header);
    let (source_port, port) = if ip.is_later_fragment() {
        (0, 0)
    } else {
        ports(packet, ip.protocol(), at + ip.header_length())
    };
    Ends {
        source: [0, 0, V4_MAPPED, ip.source()],
        destination: [0, 0, V4_MAPPED, ip.destination()],
        source_port,
        port,
        version: IPV4,
        protocol: ip.protocol(),
        reserved: 0,
    }
}

#[inline(always)]
fn ends_of_ipv6<P: Packet + ?Sized>(packet: &P, at: usize, header: &[u8; ipv6::LENGTH]) -> Ends {
    let ip = Ipv6(header);
    let (source_port, port) = ports(packet, ip.next_header(), at + ipv6::LENGTH);
    Ends {
        source: ip.source(),
        destination: ip.destination(),
        source_port,
        port,
        version: IPV6,
        protocol: ip.next_header(),
        reserved: 0,
    }
}

/// Source and destination, as in the packet; 0 where there are none.
#[inline(always)]
fn ports<P: Packet + ?Sized>(packet: &P, protocol: u8, at: usize) -> (u16, u16) {
    match (protocol, packet.bytes::<4>(at)) {
        (wire::TCP | wire::UDP, Some(&[a, b, c, d])) => {
            (u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d]))
        }
        _ => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::service::{AddressWords, address_words};
    use std::vec::Vec;

    fn words(text: &str) -> AddressWords {
        address_words(text.parse().unwrap())
    }

    fn ethernet(tags: &[[u8; 4]], kind: [u8; 2]) -> Vec<u8> {
        let mut frame = [2; 12].to_vec();
        tags.iter().for_each(|tag| frame.extend(tag));
        frame.extend(kind);
        frame
    }

    /// 198.51.100.7:40000 to 203.0.113.1:80, TCP, with one word of options.
    fn tcp_v4(tags: &[[u8; 4]]) -> Vec<u8> {
        let mut frame = ethernet(tags, [8, 0]);
        frame.extend([0x46, 0, 0, 44, 0, 1, 0x40, 0, 64, 6, 0, 0]);
        frame.extend([198, 51, 100, 7, 203, 0, 113, 1, 1, 1, 1, 1]);
        frame.extend([0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0]);
        frame
    }

    fn udp_v6() -> Vec<u8> {
        let mut frame = ethernet(&[], [0x86, 0xdd]);
        frame.extend([0x60, 0, 0, 0, 0, 8, 17, 64]);
        frame.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
        frame.extend([0x20, 1, 0xd, 0xb8, 0, 15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        frame.extend([0x9c, 0x40, 0, 53, 0, 8, 0, 0]);
        frame
    }

    fn any() -> Capture {
        Capture { until: 1, number: 1, verdicts: u64::MAX, snap: 256, ..Capture::default() }
    }

    #[test]
    fn ends_are_read_behind_options_and_tags() {
        let expected = Ends {
            version: IPV4,
            protocol: 6,
            source: words("198.51.100.7"),
            destination: words("203.0.113.1"),
            source_port: 40_000_u16.to_be(),
            port: 80_u16.to_be(),
            reserved: 0,
        };
        assert_eq!(ends(&tcp_v4(&[])[..]), expected);
        assert_eq!(ends(&tcp_v4(&[[0x81, 0, 0, 7]])[..]), expected);
        assert_eq!(ends(&tcp_v4(&[[0x88, 0xa8, 0, 7], [0x81, 0, 0, 8]])[..]), expected);
        assert_eq!(ends(&tcp_v4(&[[0x81, 0, 0, 7]; 3])[..]), Ends::NONE);
        let expected = Ends {
            version: IPV6,
            protocol: 17,
            source: words("2001:db8::7"),
            destination: words("2001:db8:f::1"),
            source_port: 40_000_u16.to_be(),
            port: 53_u16.to_be(),
            reserved: 0,
        };
        assert_eq!(ends(&udp_v6()[..]), expected);
    }

    #[test]
    fn what_is_cut_short_has_what_there_is() {
        let whole = tcp_v4(&[]);
        for length in 0..whole.len() {
            let ends = ends(&whole[..length]);
            assert_eq!(ends.version, if length < 34 { 0 } else { 4 }, "{length}");
            assert_eq!(ends.port, if length < 42 { 0 } else { 80_u16.to_be() }, "{length}");
        }
        let mut later = tcp_v4(&[]);
        later[20..22].copy_from_slice(&[0, 9]);
        assert_eq!((ends(&later[..]).version, ends(&later[..]).port), (IPV4, 0));
        assert!(matches(&any(), &[0_u8; 3][..]), "an empty filter matches all");
    }

    #[test]
    fn only_the_packets_of_the_excepted_connection_are_left_out() {
        let own = ends(&tcp_v4(&[])[..]);
        let except = |except| matches(&Capture { except, ..any() }, &tcp_v4(&[])[..]);
        assert!(!except(own));
        assert!(except(Ends::NONE));
        for other in [
            Ends { source: words("198.51.100.8"), ..own },
            Ends { destination: words("203.0.113.2"), ..own },
            Ends { source_port: 40_001_u16.to_be(), ..own },
            Ends { port: 81_u16.to_be(), ..own },
            Ends { protocol: 17, ..own },
            Ends { version: IPV6, ..own },
            Ends { source: own.destination, destination: own.source, ..own },
        ] {
            assert!(except(other), "{other:?}");
        }
        let is_wanted = |frame: &[u8]| matches(&Capture { except: own, ..any() }, frame);
        assert!(!is_wanted(&tcp_v4(&[[0x81, 0, 0, 7]])), "behind a tag too");
        assert!(is_wanted(&udp_v6()));
        // One that is not of IP has the same ends as none.
        assert!(matches(&any(), &ethernet(&[], [8, 6])[..]));
        let six = Capture { except: ends(&udp_v6()[..]), ..any() };
        assert!(!matches(&six, &udp_v6()[..]));
    }

    #[test]
    fn each_condition_holds_by_itself() {
        let prefix = |text: &str, bits| Prefix::new(text.parse().unwrap(), bits);
        let frame = tcp_v4(&[]);
        let mut met = 0;
        for (capture, expected) in [
            (any(), true),
            (Capture { version: IPV4, ..any() }, true),
            (Capture { version: IPV6, ..any() }, false),
            (Capture { client: prefix("198.51.100.0", 24), ..any() }, true),
            (Capture { client: prefix("203.0.113.1", 32), ..any() }, false),
            (Capture { vip: prefix("203.0.113.1", 32), ..any() }, true),
            (Capture { vip: prefix("198.51.100.7", 32), ..any() }, false),
            (Capture { port: 80_u16.to_be(), ..any() }, true),
            (Capture { port: 40_000_u16.to_be(), ..any() }, false),
        ] {
            assert_eq!(matches(&capture, &frame[..]), expected, "{capture:?}");
            met += usize::from(expected);
        }
        assert_eq!(met, 5);
    }
}
