//! The receiver's decision. Frames are built by etherparse.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::HashSet;

use etherparse::{IpNumber, Ipv4Header, Ipv6Header, PacketBuilder};
use lb_common::{
    abi::{
        service::{AddressWords, address_words},
        verdict::{Action, Verdict},
    },
    receive::{self, AllowLists, Decapsulation},
};

const BALANCER4: [u8; 4] = [10, 0, 0, 1];
const BALANCER6: [u8; 16] = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const VIP4: [u8; 4] = [198, 51, 100, 1];
const VIP6: [u8; 16] = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80];
/// Where tunnels end.
const HOST4: [u8; 4] = [10, 0, 1, 1];
const HOST6: [u8; 16] = [0xfd; 16];

struct Lists {
    sources: HashSet<AddressWords>,
    vips: HashSet<(AddressWords, u8)>,
    endpoints: HashSet<(AddressWords, u8)>,
}

impl AllowLists for Lists {
    fn source(&self, address: &AddressWords) -> bool {
        self.sources.contains(address)
    }
    fn vip(&self, address: &AddressWords, version: u8) -> bool {
        self.vips.contains(&(*address, version))
    }
    fn endpoint(&self, address: &AddressWords, version: u8) -> bool {
        self.endpoints.contains(&(*address, version))
    }
    fn gue_port(&self) -> u16 {
        6080
    }
}

fn lists() -> Lists {
    Lists {
        sources: [address_words(BALANCER4.into()), address_words(BALANCER6.into())].into(),
        vips: [(address_words(VIP4.into()), 4), (address_words(VIP6.into()), 6)].into(),
        endpoints: [(address_words(HOST4.into()), 4), (address_words(HOST6.into()), 6)].into(),
    }
}

/// An inner packet, without Ethernet.
fn inner(v6: bool, vip4: [u8; 4]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([2; 6], [2; 6]);
    let mut frame = Vec::new();
    if v6 {
        builder.ipv6([0x20; 16], VIP6, 63).udp(1, 53).write(&mut frame, b"abc").unwrap();
    } else {
        builder.ipv4([192, 0, 2, 9], vip4, 63).udp(1, 53).write(&mut frame, b"abc").unwrap();
    }
    frame.split_off(14)
}

/// A tunnel frame around a payload.
fn tunnel(v6: bool, source4: [u8; 4], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    if v6 {
        frame.extend([0x86, 0xdd]);
        let header = Ipv6Header {
            payload_length: payload.len() as u16,
            next_header: IpNumber(protocol),
            hop_limit: 64,
            source: BALANCER6,
            destination: HOST6,
            ..Default::default()
        };
        header.write(&mut frame).unwrap();
    } else {
        frame.extend([0x08, 0x00]);
        let length = payload.len() as u16;
        let header = Ipv4Header::new(length, 64, IpNumber(protocol), source4, HOST4).unwrap();
        header.write(&mut frame).unwrap();
    }
    frame.extend(payload);
    frame
}

#[test]
fn the_four_forms_lose_their_outer_header() {
    for (outer_v6, outer) in [(false, 20), (true, 40)] {
        for (inner_v6, protocol, ether_type) in [(false, 4, [0x08, 0x00]), (true, 41, [0x86, 0xdd])]
        {
            let frame = tunnel(outer_v6, BALANCER4, protocol, &inner(inner_v6, VIP4));
            assert_eq!(
                receive::decide(&frame[..], &lists()),
                Ok(Decapsulation { outer, ether_type, ecn: None, is_udp: false }),
                "outer v6 {outer_v6}, inner v6 {inner_v6}"
            );
        }
    }
}

#[test]
fn an_outer_header_is_of_the_version_that_its_ether_type_says() {
    for v6 in [false, true] {
        for version in (0..16).filter(|version| *version != if v6 { 6 } else { 4 }) {
            let mut frame = tunnel(v6, BALANCER4, 4, &inner(false, VIP4));
            frame[14] = version << 4 | frame[14] & 15;
            let decided = receive::decide(&frame[..], &lists());
            assert_eq!(decided, Err(Verdict::NotTunnel), "version {version}, v6 {v6}");
        }
    }
}

#[test]
fn who_may_send_and_to_whom() {
    let stranger = [10, 0, 0, 2];
    let other = [198, 51, 100, 2];
    for (source, vip, verdict) in [
        (stranger, VIP4, Verdict::SourceNotAllowed),
        (BALANCER4, other, Verdict::VipNotAllowed),
        (stranger, other, Verdict::NotTunnel),
    ] {
        let frame = tunnel(false, source, 4, &inner(false, vip));
        assert_eq!(receive::decide(&frame[..], &lists()), Err(verdict));
    }
}

#[test]
fn marks_of_congestion_come_through() {
    let inner_class = |v6: bool, payload: &mut [u8], class: u8| {
        if v6 { payload[1] |= class << 4 } else { payload[1] |= class }
    };
    for (v6, inner, outer, expected) in [
        (false, 0b10, 0b11, Ok(Some(0b11))),
        (true, 0b01, 0b11, Ok(Some(0b11))),
        (true, 0b10, 0b01, Ok(Some(0b01))),
        (false, 0b11, 0b00, Ok(None)),
        (false, 0b00, 0b10, Ok(None)),
        (false, 0b00, 0b11, Err(Verdict::NotEcnCapable)),
        (true, 0b00, 0b11, Err(Verdict::NotEcnCapable)),
    ] {
        for outer_v6 in [false, true] {
            let mut payload = self::inner(v6, VIP4);
            inner_class(v6, &mut payload, inner);
            let mut frame = tunnel(outer_v6, BALANCER4, if v6 { 41 } else { 4 }, &payload);
            inner_class(outer_v6, &mut frame[14..], outer);
            if !outer_v6 {
                seal(&mut frame);
            }
            let ecn = receive::decide(&frame[..], &lists()).map(|to_do| to_do.ecn);
            assert_eq!(ecn, expected, "v6 {v6}: {inner:02b} in {outer:02b}, v6 {outer_v6}");
        }
    }
}

/// Gives the outer IPv4 header the checksum that etherparse computes.
fn seal(frame: &mut [u8]) {
    let sum = Ipv4Header::from_slice(&frame[14..]).unwrap().0.calc_header_checksum();
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
}

#[test]
fn a_tunnel_with_a_damaged_outer_header_is_not_opened() {
    for (inner_v6, protocol) in [(false, 4), (true, 41)] {
        let frame = tunnel(false, BALANCER4, protocol, &inner(inner_v6, VIP4));
        // Identification, TTL and checksum: what is damaged there changes nothing else that decides.
        for bit in [(18, 0), (19, 7), (22, 3), (24, 0), (25, 7)] {
            let mut damaged = frame.clone();
            damaged[bit.0] ^= 1 << bit.1;
            let decided = receive::decide(&damaged[..], &lists());
            assert_eq!(decided, Err(Verdict::OuterChecksum), "{bit:?}");
            seal(&mut damaged);
            assert!(receive::decide(&damaged[..], &lists()).is_ok(), "{bit:?}, sealed again");
        }
    }
    // The host's stack finds what the receiver leaves alone.
    let mut other = tunnel(false, [10, 0, 0, 2], 4, &inner(false, VIP4));
    other[24] ^= 1;
    assert_eq!(receive::decide(&other[..], &lists()), Err(Verdict::SourceNotAllowed));
}

#[test]
fn what_goes_round_is_dropped() {
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = tunnel(false, BALANCER4, 4, &inner(false, VIP4));
        change(&mut frame);
        receive::decide(&frame[..], &lists()).map(drop)
    };
    assert_eq!(with(&|_| {}), Ok(()));
    assert_eq!(with(&|f| f[43] = 4), Err(Verdict::InnerTunnel), "IPv4 in the inner packet");
    assert_eq!(with(&|f| f[43] = 41), Err(Verdict::InnerTunnel), "IPv6 in the inner packet");
    assert_eq!(with(&|f| f[42] = 0), Err(Verdict::InnerExpired), "no time left");
    let from = |source: [u8; 4]| with(&|f| f[46..50].copy_from_slice(&source));
    assert_eq!(from(HOST4), Err(Verdict::InnerFromHere), "the end of the tunnel");
    assert_eq!(from(VIP4), Err(Verdict::InnerFromHere), "the VIP itself");
    assert_eq!(from(BALANCER4), Ok(()), "a balancer that checks health");
    let to_vip = with(&|f| f[30..34].copy_from_slice(&VIP4));
    assert_eq!(to_vip, Err(Verdict::TunnelToVip), "the tunnel ends at the VIP");
}

/// Where the destination of an outer header begins and ends in a frame.
fn destination(v6: bool) -> std::ops::Range<usize> {
    if v6 { 38..54 } else { 30..34 }
}

/// The IPv4 address as an IPv6 one.
fn mapped(address: [u8; 4]) -> [u8; 16] {
    std::net::Ipv4Addr::from(address).to_ipv6_mapped().octets()
}

#[test]
fn a_tunnel_to_another_address_than_this_hosts_is_not_opened() {
    for (v6, to, expected) in [
        (false, &HOST4[..], Ok(())),
        (false, &[10, 0, 1, 2], Err(Verdict::TunnelNotLocal)),
        (false, &BALANCER4, Err(Verdict::TunnelNotLocal)),
        (false, &VIP4, Err(Verdict::TunnelToVip)),
        (true, &HOST6, Ok(())),
        (true, &BALANCER6, Err(Verdict::TunnelNotLocal)),
        (true, &VIP6, Err(Verdict::TunnelToVip)),
        // On the wire it is no IPv4 address.
        (true, &mapped(HOST4), Err(Verdict::TunnelNotLocal)),
        (true, &mapped(VIP4), Err(Verdict::TunnelNotLocal)),
    ] {
        for (inner_v6, protocol) in [(false, 4), (true, 41)] {
            let mut frame = tunnel(v6, BALANCER4, protocol, &inner(inner_v6, VIP4));
            frame[destination(v6)].copy_from_slice(to);
            let decided = receive::decide(&frame[..], &lists()).map(drop);
            assert_eq!(decided, expected, "to {to:?}, inner v6 {inner_v6}");
        }
    }
}

#[test]
fn what_is_no_tunnel_of_ours_stays_untouched() {
    let payload = inner(false, VIP4);
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = tunnel(false, BALANCER4, 4, &payload);
        change(&mut frame);
        receive::decide(&frame[..], &lists())
    };
    assert_eq!(with(&|f| f[23] = 47), Err(Verdict::NotTunnel), "GRE");
    assert_eq!(with(&|f| f[12] = 0x81), Err(Verdict::NotTunnel), "VLAN");
    assert_eq!(with(&|f| f[20] = 0x20), Err(Verdict::NotTunnel), "a first fragment");
    assert_eq!(with(&|f| f[21] = 1), Err(Verdict::NotTunnel), "a later fragment");
    assert_eq!(with(&|f| f[14] = 0x46), Err(Verdict::NotTunnel), "outer options");
    assert_eq!(with(&|f| f.truncate(40)), Err(Verdict::NotTunnel), "cut in the inner header");
}

#[test]
fn an_inner_packet_that_contradicts_the_outer_one_is_dropped() {
    let with = |at: usize, byte: u8| {
        let mut frame = tunnel(false, BALANCER4, 4, &inner(false, VIP4));
        frame[34 + at] = byte;
        receive::decide(&frame[..], &lists())
    };
    assert_eq!(with(3, 32), Err(Verdict::InnerMalformed), "31 bytes that claim to be 32");
    assert_eq!(with(3, 19), Err(Verdict::InnerMalformed), "shorter than its header");
    assert_eq!(with(0, 0x44), Err(Verdict::InnerMalformed), "header length 16");
    assert_eq!(with(0, 0x65), Err(Verdict::InnerMalformed), "version 6 under protocol 4");
    let mut frame = tunnel(false, BALANCER4, 41, &inner(true, VIP4));
    frame[34 + 5] = 12;
    assert_eq!(receive::decide(&frame[..], &lists()), Err(Verdict::InnerMalformed), "v6 length");
}

proptest::proptest! {
    /// Whatever is in it: in IP itself, or in GUE. A packet for a VIP is among them often enough.
    #[test]
    fn what_goes_to_another_host_is_neither_changed_nor_dropped(
        bytes: Vec<u8>,
        packet: [bool; 4],
        to: [u8; 16],
        change: (usize, u8),
    ) {
        let [v6, is_gue, inner_v6, is_ours] = packet;
        let end = destination(v6);
        proptest::prop_assume!(to[..end.len()] != if v6 { &HOST6[..] } else { &HOST4 }[..]);
        let mut payload = if is_ours { inner(inner_v6, VIP4) } else { bytes };
        if !payload.is_empty() {
            let at = change.0 % payload.len();
            payload[at] ^= change.1;
        }
        let mut protocol = if inner_v6 { 41 } else { 4 };
        if is_gue {
            let length = (payload.len() + 12) as u16;
            let udp = [&[0xc0, 1, 0x17, 0xc0][..], &length.to_be_bytes(), &[0, 0]].concat();
            payload = [&udp[..], &[0, protocol, 0, 0], &payload].concat();
            protocol = 17;
        }
        let mut frame = tunnel(v6, BALANCER4, protocol, &payload);
        let length = end.len();
        frame[end].copy_from_slice(&to[..length]);
        let verdict = receive::decide(&frame[..], &lists()).map(drop);
        let passes = verdict.is_err_and(|verdict| verdict.action() == Action::Pass);
        proptest::prop_assert!(passes, "{:?}", verdict);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>, v6: bool) {
        let mut frame = tunnel(v6, BALANCER4, 4, &[]);
        frame.extend(bytes);
        let _ = receive::decide(&frame[..], &lists());
    }

    #[test]
    fn no_bytes_in_gue_make_it_panic(mut bytes: Vec<u8>, v6: bool, zero: bool) {
        let length = (bytes.len() + 12) as u16;
        let mut datagram = vec![0xc0, 1, 0x17, 0xc0];
        datagram.extend(length.to_be_bytes());
        datagram.extend([0, u8::from(!zero), 0, if v6 { 41 } else { 4 }, 0, 0]);
        datagram.append(&mut bytes);
        let frame = tunnel(v6, BALANCER4, 17, &datagram);
        let _ = receive::decide(&frame[..], &lists());
        let header = if v6 { 52 } else { 32 };
        let _ = receive::checksums(&frame[..], header, if v6 { 41 } else { 4 });
    }
}
