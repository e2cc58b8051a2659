//! What must hold of everything that becomes of a frame.

use std::net::{IpAddr, Ipv4Addr};

use lb_tests::packets::expected::Expected;
use lb_tests::packets::fixture::{Form, MapFixture, Member};

use crate::ip::{self, ETHERNET, Ip};

/// A packet that went to a backend in a tunnel.
#[derive(Debug)]
pub struct Tunnelled {
    /// Its frame, without tags, and these.
    pub frame: (Vec<u8>, Vec<u8>),
    /// The frame that came, without tags, after one hop.
    pub hopped: Vec<u8>,
}

/// Checks what became of a frame; the answer is what went to a backend in a tunnel, if it did.
pub fn check(fixture: &MapFixture, came: &[u8], became: &Expected) -> Option<Tunnelled> {
    match became.verdict {
        "transmitted" | "redirected" if fixture.form == Form::Direct => {
            on_the_link(fixture, came, became);
            return None;
        }
        "transmitted" | "redirected" => return Some(to_a_backend(fixture, came, became)),
        "answered_echo" => echo(came, became),
        "answered_too_large" => too_large(fixture, came, became),
        "answered_time_exceeded" => time_exceeded(came, became),
        // Nobody has touched what the host gets.
        _ => assert!(became.frame.as_ref().is_none_or(|frame| *frame == came)),
    }
    assert!(became.traffic.is_none(), "no backend has it: {became:?}");
    None
}

fn to_a_backend(fixture: &MapFixture, came: &[u8], became: &Expected) -> Tunnelled {
    let (came, _) = ip::untagged(came);
    let (frame, tags) = ip::untagged(became.frame.as_ref().expect("it went somewhere"));
    let (service, backend, _) = became.traffic.expect("it is counted");
    assert!(fixture.services.iter().any(|it| it.index == service), "service {service}");
    let member = member(fixture, backend);
    let inner = ip::read(&came[ETHERNET..]).expect("what is no packet goes nowhere");
    let outer = ip::read(&frame[ETHERNET..]).expect("an outer header");
    assert_eq!(outer.header.len(), if outer.version == 4 { 20 } else { 40 });
    assert_eq!(frame[12..ETHERNET], ether_type(&outer));
    let kind = if inner.version == 4 { 4 } else { 41 };
    let head = outer.header.len() + shim(fixture.form, &outer, kind);
    assert_eq!(outer.length(), head + inner.length(), "the outer length");
    assert_eq!(frame.len(), came.len() + head, "padding stays");
    assert!(outer.is_sound(), "the outer checksum: {outer:?}");
    assert_eq!((outer.hop_limit, outer.traffic_class), (64, inner.traffic_class));
    assert_eq!(outer.destination, member.address);
    match outer.source {
        IpAddr::V4(source) => {
            let hosts = u32::MAX.checked_shr(fixture.prefix_v4.into()).unwrap_or(0);
            assert_eq!(Ipv4Addr::from(u32::from(source) & !hosts), fixture.sources.0);
        }
        IpAddr::V6(source) => assert_eq!(source, fixture.sources.1),
    }
    assert!(!outer.is_fragment());
    assert!(outer.length() <= member.mtu.into(), "{} bytes of {}", outer.length(), member.mtu);
    assert!(outer.has_df(), "an outer packet is never fragmented");
    is_a_clients(&came, &inner);
    by_its_way(fixture, &member, &frame, became);
    let hopped = hopped(&came, &frame[ETHERNET + head..]);
    Tunnelled { hopped, frame: (frame, tags) }
}

/// Without a tunnel: to the backend itself, and nothing but the hop limit has changed.
fn on_the_link(fixture: &MapFixture, came: &[u8], became: &Expected) {
    let (came, _) = ip::untagged(came);
    let (frame, _) = ip::untagged(became.frame.as_ref().expect("it went somewhere"));
    let (_, backend, _) = became.traffic.expect("it is counted");
    let member = member(fixture, backend);
    assert!(member.on_link, "to a gateway it is for the VIP as before");
    assert_eq!(frame[12..ETHERNET], came[12..ETHERNET]);
    assert_ne!(frame[..6], came[..6], "it was on its way already");
    by_its_way(fixture, &member, &frame, became);
    let after = hopped(&came, &frame[ETHERNET..]);
    let packet = ip::read(&after[ETHERNET..]).expect("still a packet");
    assert!(packet.length() <= member.mtu.into(), "{} bytes fit", member.mtu);
}

/// A frame has the MACs of its backend's next hop, and leaves by its interface.
fn by_its_way(fixture: &MapFixture, member: &Member, frame: &[u8], became: &Expected) {
    let way = fixture.next_hops.get(&member.next_hop).expect("a way there");
    assert_eq!(frame[..6], way.0, "to the next hop");
    assert_eq!(frame[6..12], fixture.interfaces[&way.1], "from the interface that it leaves by");
    assert_eq!(became.verdict == "transmitted", way.1 == 1);
}

/// Length of what stands between the outer header and the packet, whose protocol number is `kind`: nothing, or
/// UDP and GUE (draft-ietf-intarea-gue, variant 0).
fn shim(form: Form, outer: &Ip<'_>, kind: u8) -> usize {
    let Form::Gue(port) = form else {
        assert_eq!(outer.protocol, kind);
        return 0;
    };
    assert_eq!(outer.protocol, 17);
    let number = |at: usize| u16::from_be_bytes([outer.payload[at], outer.payload[at + 1]]);
    assert!(number(0) >= 49_152, "from port {}", number(0));
    assert_eq!((number(2), usize::from(number(4)), number(6)), (port, outer.payload.len(), 0));
    assert_eq!(outer.payload[8..12], [0, kind, 0, 0]);
    12
}

/// Of the packet that came, nothing but the hop limit has changed.
fn hopped(came: &[u8], after: &[u8]) -> Vec<u8> {
    let before = &came[ETHERNET..];
    assert_eq!(before.len(), after.len());
    let (was, is) = (ip::read(before).unwrap(), ip::read(after).expect("still a packet"));
    assert_eq!(was.hop_limit.checked_sub(1), Some(is.hop_limit));
    assert!(is.hop_limit > 0, "it lives on");
    assert_eq!(was.is_sound(), is.is_sound(), "a checksum is neither broken nor mended");
    let mut expected = before.to_vec();
    if was.version == 4 {
        expected[8] -= 1;
        expected[10..12].copy_from_slice(&after[10..12]);
    } else {
        expected[7] -= 1;
    }
    assert_eq!(expected, after);
    [&came[..ETHERNET], after].concat()
}

fn echo(came: &[u8], became: &Expected) {
    let ((came, came_with), frame) =
        (ip::untagged(came), became.frame.as_ref().expect("an answer"));
    let (frame, tags) = ip::untagged(frame);
    assert_eq!((tags, frame.len()), (came_with, came.len()));
    turned(&came, &frame);
    let (asked, answer) =
        (ip::read(&came[ETHERNET..]).unwrap(), ip::read(&frame[ETHERNET..]).unwrap());
    assert_eq!((answer.source, answer.destination), (asked.destination, asked.source));
    let kinds = if asked.version == 4 { (8, 0) } else { (128, 129) };
    assert_eq!((asked.payload[0], answer.payload[0]), kinds);
    assert_eq!(asked.payload[4..], answer.payload[4..], "what was asked comes back");
    assert!(asked.has_sound_icmp() && answer.has_sound_icmp());
    assert!(asked.is_sound() && answer.is_sound());
    is_a_clients(&came, &asked);
}

/// It came to this host alone, from an address that a client may have.
fn is_a_clients(came: &[u8], packet: &Ip<'_>) {
    assert_eq!(came[0] & 1, 0, "a frame for a group");
    assert_ne!(packet.source, packet.destination);
    match packet.source {
        IpAddr::V4(v4) => {
            let is_odd = v4.is_loopback() || v4.is_multicast() || v4.is_link_local();
            assert!(!is_odd && !matches!(v4.octets()[0], 0 | 240..), "{v4}");
        }
        IpAddr::V6(v6) => {
            let is_odd = v6.is_loopback() || v6.is_multicast() || v6.is_unspecified();
            let is_linked = v6.is_unicast_link_local() || v6.to_ipv4_mapped().is_some();
            assert!(!is_odd && !is_linked, "{v6}");
        }
    }
}

fn too_large(fixture: &MapFixture, came: &[u8], became: &Expected) {
    let (large, rest) = told(came, became, [(3, 4), (2, 0)]);
    let fits = u32::from_be_bytes(rest) as usize;
    let widest = fixture.regions.iter().flat_map(|region| &region.members).map(|member| member.mtu);
    assert!(fits < large && fits + 20 <= usize::from(widest.max().unwrap()), "{fits}");
}

fn time_exceeded(came: &[u8], became: &Expected) {
    let (frame, _) = ip::untagged(came);
    let packet = ip::read(&frame[ETHERNET..]).unwrap();
    assert!(packet.hop_limit <= 1, "it goes on");
    assert_eq!(told(came, became, [(11, 0), (3, 0)]).1, [0; 4]);
}

/// The answer is an ICMP error of a type and code, by IP version; returns how long the packet was, and the error's four
/// bytes behind its checksum.
fn told(came: &[u8], became: &Expected, kinds: [(u8, u8); 2]) -> (usize, [u8; 4]) {
    let ((came, came_with), frame) =
        (ip::untagged(came), became.frame.as_ref().expect("an answer"));
    let (frame, tags) = ip::untagged(frame);
    assert_eq!(tags, came_with);
    turned(&came, &frame);
    let (large, answer) =
        (ip::read(&came[ETHERNET..]).unwrap(), ip::read(&frame[ETHERNET..]).unwrap());
    assert_eq!((answer.source, answer.destination), (large.destination, large.source));
    assert_eq!(frame.len(), ETHERNET + answer.length(), "nothing follows");
    assert!(answer.is_sound() && answer.has_sound_icmp(), "{answer:?}");
    is_a_clients(&came, &large);
    assert!(large.is_sound(), "its addresses may be wrong");
    let (most, kind) = if large.version == 4 { (576, kinds[0]) } else { (1_280, kinds[1]) };
    assert_eq!((answer.payload[0], answer.payload[1]), kind);
    let quoted = &answer.payload[8..];
    assert!(answer.length() == most || answer.length() < most && quoted.len() == large.length());
    assert_eq!(quoted, &came[ETHERNET..][..quoted.len()], "the packet is quoted as it came");
    assert!(kind != (3, 4) || large.has_df(), "RFC 1191 has no error for it");
    (large.length(), *answer.payload[4..].first_chunk().unwrap())
}

/// A frame goes back where another came from.
fn turned(came: &[u8], frame: &[u8]) {
    assert_eq!(frame[..12], [&came[6..12], &came[..6]].concat());
    assert_eq!(frame[12..ETHERNET], came[12..ETHERNET]);
}

fn ether_type(ip: &Ip<'_>) -> [u8; 2] {
    if ip.version == 4 { [0x08, 0x00] } else { [0x86, 0xdd] }
}

fn member(fixture: &MapFixture, backend: u32) -> Member {
    let mut members = fixture.regions.iter().flat_map(|region| &region.members);
    *members.find(|member| member.backend == backend).expect("a member of the pool")
}
