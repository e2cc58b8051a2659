//! Whole frames through the pure decision. Frames are built by etherparse; expected heads are
//! written out by hand.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use etherparse::PacketBuilder;
use lb_common::{
    abi::{
        service::{IPV4, IPV6, SERVICE_BY_ADDRESS, SERVICE_BY_PORT},
        verdict::Verdict,
    },
    path::{self, Head, Kind, encapsulate},
};
use lb_common_fake::{FakeTables, GATEWAY, OWN};
use proptest::prelude::*;

const CLIENT_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x0c];

fn v4(source: [u8; 4], port: u16, syn: bool) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(CLIENT_MAC, OWN)
        .ipv4(source, [198, 51, 100, 1], 64)
        .tcp(4711, port, 1, 1000);
    let builder = if syn { builder.syn() } else { builder.ack(1) };
    let mut frame = Vec::new();
    builder.write(&mut frame, b"hello").unwrap();
    frame
}

fn v4_udp(source: [u8; 4], port: u16) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2(CLIENT_MAC, OWN)
        .ipv4(source, [198, 51, 100, 1], 64)
        .udp(4711, port)
        .write(&mut frame, b"hello")
        .unwrap();
    frame
}

fn v6_udp() -> Vec<u8> {
    let vip = "2001:db8::80".parse::<std::net::Ipv6Addr>().unwrap().octets();
    let client = "2001:db8:c::1".parse::<std::net::Ipv6Addr>().unwrap().octets();
    let builder = PacketBuilder::ethernet2(CLIENT_MAC, OWN).ipv6(client, vip, 64).udp(4711, 53);
    let mut frame = Vec::new();
    builder.write(&mut frame, b"hello").unwrap();
    frame
}

/// One member in one slot, behind a tunnel of the given version, serving both VIPs.
fn one_backend(version: u8) -> FakeTables {
    FakeTables::new(&[(vec![[0, 0xffff, 0xffff, 0xffff]], 1)], version)
        .with_service("198.51.100.1", 80, 6, 0)
        .with_service("2001:db8::80", 53, 17, 0)
}

fn head_of(fake: &FakeTables, frame: &[u8]) -> Head {
    encapsulate::head(fake, &path::decide(frame, fake).unwrap()).unwrap().0
}

#[test]
fn ipv4_in_ipv4() {
    let mut frame = v4([192, 0, 2, 9], 80, true);
    frame[15] = 0xb9; // DSCP EF, ECN 1: the checksum of the inner packet does not matter here.
    let Head::V4(head) = head_of(&one_backend(IPV4), &frame) else { panic!("not an IPv4 tunnel") };
    assert_eq!(head[..6], GATEWAY);
    assert_eq!(head[6..12], OWN);
    assert_eq!(head[12..14], [0x08, 0x00]);
    // Inner: 20 + 20 + 5 bytes, so 65 outer. Sum by hand:
    // 45b9+0041+0000+4000+4004+0a00+0001+0a00+0000 = d9ff; ~ = 2600.
    let outer =
        [0x45, 0xb9, 0x00, 0x41, 0, 0, 0x40, 0x00, 64, 4, 0x26, 0x00, 10, 0, 0, 1, 10, 0, 0, 0];
    assert_eq!(head[14..], outer);
}

#[test]
fn ipv6_in_ipv4_and_ipv4_in_ipv6_name_their_payload() {
    let Head::V4(head) = head_of(&one_backend(IPV4), &v6_udp()) else { panic!("not IPv4") };
    assert_eq!((head[23], &head[16..18]), (41, &[0, 73][..]), "20 + 40 + 8 + 5 bytes of 6in4");
    let frame = v4([192, 0, 2, 9], 80, true);
    let Head::V6(head) = head_of(&one_backend(IPV6), &frame) else { panic!("not IPv6") };
    assert_eq!((head[20], &head[18..20]), (4, &[0, 45][..]), "45 bytes of 4in6");
    assert_eq!(head[12..14], [0x86, 0xdd]);
}

#[test]
fn ipv6_in_ipv6() {
    let Head::V6(head) = head_of(&one_backend(IPV6), &v6_udp()) else { panic!("not IPv6") };
    assert_eq!(head[14] >> 4, 6);
    assert_eq!(head[18..22], [0, 53, 41, 64], "40 + 8 + 5 bytes, IPv6, hop limit 64");
    assert_eq!(head[22..38], "fd00::1".parse::<std::net::Ipv6Addr>().unwrap().octets());
    assert_eq!(head[38..54], "fd00::".parse::<std::net::Ipv6Addr>().unwrap().octets());
}

#[test]
fn the_mtu_is_kept_to_the_byte() {
    let frame = v4([192, 0, 2, 9], 80, true);
    for (version, overhead) in [(IPV4, 20), (IPV6, 40)] {
        let mut fake = one_backend(version);
        fake.backends[1].mtu = 45 + overhead;
        head_of(&fake, &frame);
        fake.backends[1].mtu -= 1;
        let forward = path::decide(&frame[..], &fake).unwrap();
        assert_eq!(encapsulate::head(&fake, &forward), Err(Verdict::TooLarge));
    }
}

#[test]
fn without_a_source_address_there_is_no_tunnel() {
    for version in [IPV4, IPV6] {
        let mut fake = one_backend(version);
        fake.source = [0; 4];
        let frame = v4([192, 0, 2, 9], 80, true);
        let forward = path::decide(&frame[..], &fake).unwrap();
        assert_eq!(encapsulate::head(&fake, &forward), Err(Verdict::NoSourceAddress));
    }
}

#[test]
fn tcp_flags_decide_the_kind() {
    let fake = one_backend(IPV4);
    let with_flags = |flags: u8| {
        let mut frame = v4([192, 0, 2, 9], 80, true);
        frame[14 + 20 + 13] = flags;
        path::decide(&frame[..], &fake).map(|forward| forward.parsed.kind)
    };
    for (flags, expected) in [
        (0x02, Ok(Kind::NewConnection)),
        (0xc2, Ok(Kind::NewConnection)), // SYN with ECE and CWR (RFC 3168)
        (0x12, Ok(Kind::OpenConnection)),
        (0x10, Ok(Kind::OpenConnection)),
        (0x04, Ok(Kind::OpenConnection)),
        (0x11, Ok(Kind::OpenConnection)),
        (0x00, Ok(Kind::OpenConnection)),
        (0x03, Err(Verdict::InvalidTcpFlags)),
        (0x06, Err(Verdict::InvalidTcpFlags)),
        (0x16, Err(Verdict::InvalidTcpFlags)),
    ] {
        assert_eq!(with_flags(flags), expected, "flags {flags:#04x}");
    }
}

#[test]
fn a_by_address_service_forgets_the_port() {
    let lists = (0..97).map(|n| [n, 0xffff, 0xffff, 0xffff]).collect();
    let fake = FakeTables::new(&[(lists, 97)], IPV4)
        .with_service("198.51.100.1", 80, 6, SERVICE_BY_ADDRESS)
        .with_service("198.51.100.1", 81, 6, 0);
    let backends = |service_port| {
        let chosen = (1..=200_u16).map(|port| {
            let mut frame = v4([192, 0, 2, 9], service_port, true);
            frame[34..36].copy_from_slice(&port.to_be_bytes());
            path::decide(&frame[..], &fake).unwrap().choice.member.backend()
        });
        chosen.collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!(backends(80), 1);
    assert!(backends(81) > 50);
}

/// Both ports: a client meets one backend on all services of an address that go by it.
#[test]
fn by_address_the_services_port_is_forgotten_too() {
    let lists = (0..97).map(|n| [n, 0xffff, 0xffff, 0xffff]).collect();
    let mut fake = FakeTables::new(&[(lists, 97)], IPV4);
    for port in 1..=50 {
        fake = fake.with_service("198.51.100.1", port, 6, SERVICE_BY_ADDRESS);
    }
    let backend = |client, port| {
        path::decide(&v4(client, port, true)[..], &fake).unwrap().choice.member.backend()
    };
    let of = |client: u8| (1..=50).map(|port| backend([192, 0, 2, client], port)).collect();
    let all: Vec<std::collections::BTreeSet<u32>> = (1..=50).map(of).collect();
    assert!(all.iter().all(|backends| backends.len() == 1));
    assert!(all.iter().flatten().collect::<std::collections::BTreeSet<_>>().len() > 20);
}

/// By port: on any of its ports everybody meets one backend, over either protocol.
#[test]
fn a_by_port_service_hashes_the_port_alone() {
    let lists = (0..97).map(|n| [n, 0xffff, 0xffff, 0xffff]).collect();
    let fake = FakeTables::new(&[(lists, 97)], IPV4)
        .with_service("198.51.100.1", 0, 6, SERVICE_BY_PORT)
        .with_service("198.51.100.1", 0, 17, SERVICE_BY_PORT);
    let backend = |client, port, tcp: bool| {
        let frame = if tcp { v4(client, port, true) } else { v4_udp(client, port) };
        path::decide(&frame[..], &fake).unwrap().choice.member.backend()
    };
    let mut backends = std::collections::BTreeSet::new();
    for port in 1..=100 {
        let to = backend([192, 0, 2, 9], port, true);
        for client in 10..20 {
            assert_eq!(backend([192, 0, 2, client], port, true), to, "port {port}");
            assert_eq!(backend([192, 0, 2, client], port, false), to, "port {port}");
        }
        backends.insert(to);
    }
    assert!(backends.len() > 40, "{}", backends.len());
}

#[test]
fn an_exact_port_goes_before_any() {
    let lists = vec![[0, 0xffff, 0xffff, 0xffff]];
    let mut fake = FakeTables::new(&[(lists, 1)], IPV4)
        .with_service("198.51.100.1", 0, 6, 0)
        .with_service("198.51.100.1", 443, 6, 0);
    for service in fake.services.values_mut() {
        service.index = u32::from(u16::from_be(service.key.port));
    }
    let service = |frame: Vec<u8>| path::decide(&frame[..], &fake).map(|forward| forward.service);
    let client = [192, 0, 2, 9];
    let of = |port| service(v4(client, port, true));
    assert_eq!([of(443), of(444), of(1)], [Ok(443), Ok(0), Ok(0)]);
    assert_eq!(service(v4_udp(client, 443)), Err(Verdict::NotOurs));
}

#[test]
fn another_incarnation_of_the_backend_is_never_sent_to() {
    let mut fake = one_backend(IPV4);
    fake.backends[1].incarnation += 1;
    let frame = v4([192, 0, 2, 9], 80, true);
    assert_eq!(path::decide(&frame[..], &fake).map(|_| ()), Err(Verdict::Inconsistent));
}

#[test]
fn a_frame_cut_anywhere_is_never_forwarded() {
    for (frame, whole) in [(v4([192, 0, 2, 9], 80, true), 59), (v6_udp(), 67)] {
        assert_eq!(frame.len(), whole);
        for length in 0..whole {
            let verdict = path::decide(&frame[..length], &one_backend(IPV4)).map(|_| ());
            let expected = if length < 14 { Verdict::NotIp } else { Verdict::Malformed };
            assert_eq!(verdict, Err(expected), "{length} bytes");
        }
        let padded: Vec<u8> = frame.iter().copied().chain([0; 7]).collect();
        let forward = path::decide(&padded[..], &one_backend(IPV4)).map(|f| f.parsed.ip_length);
        assert_eq!(forward, Ok(whole as u32 - 14), "padding is no part of the packet");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>, start in 0..3_usize) {
        let fake = one_backend(IPV4);
        let ethertypes = [[0x08, 0x00], [0x86, 0xdd], [0x81, 0x00]];
        let frame: Vec<u8> = [0; 12].into_iter().chain(ethertypes[start]).chain(bytes).collect();
        let _ = path::decide(&frame[..], &fake).map(|_| ());
    }

    #[test]
    fn a_mutated_frame_goes_to_the_backend_or_has_a_verdict(at in 0..59_usize, byte: u8) {
        let mut frame = v4([192, 0, 2, 9], 80, true);
        frame[at] = byte;
        if let Ok(forward) = path::decide(&frame[..], &one_backend(IPV4)) {
            prop_assert_eq!(forward.choice.member.backend(), 1);
            prop_assert_eq!(forward.parsed.ip_length as usize, usize::from(u16::from_be_bytes([frame[16], frame[17]])));
        }
    }
}
