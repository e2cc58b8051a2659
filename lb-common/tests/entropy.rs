//! What the outer header shows of flows: evenly spread, always the same for one flow, whatever the service's affinity.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{collections::BTreeSet, net::Ipv4Addr};

use etherparse::{Ipv4HeaderSlice, PacketBuilder};
use lb_common::{
    abi::{
        form::Form,
        service::{IPV4, IPV6, SERVICE_BY_ADDRESS, SERVICE_BY_PORT, SERVICE_FRAGMENTS},
    },
    path::{self, Head, encapsulate},
};
use lb_common_fake::{FakeTables, OWN};
use proptest::prelude::*;

const PREFIX: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 0);
const CLIENT: [u8; 4] = [192, 0, 2, 9];

/// One backend; services of the flags on TCP and UDP, any port; sources from a prefix of so many bits.
fn tables(flags: u32, version: u8, bits: u32) -> FakeTables {
    let mut fake = FakeTables::new(&[(vec![[0, 0xffff, 0xffff, 0xffff]], 1)], version)
        .with_service("198.51.100.1", 0, 6, flags)
        .with_service("198.51.100.1", 0, 17, flags);
    let hosts = u32::MAX.checked_shr(bits).unwrap_or(0);
    let first = u32::from(PREFIX) & !hosts;
    fake.descriptors[1].source_v4 = u32::from_ne_bytes(first.to_be_bytes());
    fake.descriptors[1].source_hosts_v4 = u32::from_ne_bytes(hosts.to_be_bytes());
    fake
}

/// An address that a client may have.
fn client() -> impl Strategy<Value = [u8; 4]> {
    (1..=126_u8, any::<[u8; 3]>()).prop_map(|(first, [a, b, c])| [first, a, b, c])
}

fn tcp(client: [u8; 4], ports: (u16, u16)) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2; 6], OWN)
        .ipv4(client, [198, 51, 100, 1], 64)
        .tcp(ports.0, ports.1, 1, 1000)
        .ack(1)
        .write(&mut frame, b"hello")
        .unwrap();
    frame
}

fn udp(client: [u8; 4], ports: (u16, u16)) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2; 6], OWN)
        .ipv4(client, [198, 51, 100, 1], 64)
        .udp(ports.0, ports.1)
        .write(&mut frame, &[0; 64])
        .unwrap();
    frame
}

/// The outer header's source of IPv4, whose checksum is right.
fn source(fake: &FakeTables, frame: &[u8]) -> Ipv4Addr {
    let forward = path::decide(frame, fake).unwrap();
    let (head, _) = encapsulate::head(fake, &forward).unwrap();
    let Head::V4(head) = head else { panic!("not an IPv4 tunnel") };
    let header = Ipv4HeaderSlice::from_slice(&head[14..]).unwrap();
    assert_eq!(header.header_checksum(), header.to_header().calc_header_checksum());
    header.source_addr()
}

/// The source port in GUE.
fn source_port(fake: &FakeTables, frame: &[u8]) -> u16 {
    let forward = path::decide(frame, fake).unwrap();
    let shim = encapsulate::shim(Form::gue(6_080), forward.entropy, 4, 45);
    u16::from_be_bytes([shim[0], shim[1]])
}

fn flow_label(fake: &FakeTables, frame: &[u8]) -> u32 {
    let forward = path::decide(frame, fake).unwrap();
    let (head, _) = encapsulate::head(fake, &forward).unwrap();
    let Head::V6(head) = head else { panic!("not an IPv6 tunnel") };
    u32::from_be_bytes(head[14..18].try_into().unwrap()) & 0xf_ffff
}

/// Chi-squared at most six standard deviations above that of a random spread.
fn assert_even(counts: &[u32], what: &str) {
    let total: u32 = counts.iter().sum();
    let expected = f64::from(total) / counts.len() as f64;
    let chi2: f64 = counts.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
    let freedom = counts.len() as f64 - 1.0;
    assert!(chi2 - freedom < 6.0 * (2.0 * freedom).sqrt(), "{what}: chi2 {chi2} of {freedom}");
}

proptest! {
    #[test]
    fn the_source_is_always_of_the_prefix(
        bits in 8..=32_u32, client in client(), ports: (u16, u16), flags in 0..32_u32,
    ) {
        let fake = tables(flags & (SERVICE_BY_ADDRESS | SERVICE_BY_PORT), IPV4, bits);
        let frame = tcp(client, ports);
        let hosts = u32::MAX.checked_shr(bits).unwrap_or(0);
        let source = source(&fake, &frame);
        prop_assert_eq!(u32::from(source) & !hosts, u32::from(PREFIX) & !hosts);
        // And the same for each packet of the flow.
        let mut other = frame;
        other[14 + 20 + 13] = 0x11;
        prop_assert_eq!(self::source(&fake, &other), source);
    }

    #[test]
    fn without_a_prefix_the_source_is_that_of_the_next_hop(client in client(), ports: (u16, u16)) {
        let mut fake = tables(0, IPV4, 32);
        prop_assert_eq!(source(&fake, &tcp(client, ports)), PREFIX);
        fake.descriptors[1].source_v4 = 0;
        prop_assert_eq!(source(&fake, &tcp(client, ports)), Ipv4Addr::new(10, 0, 0, 1));
    }
}

#[test]
fn connections_of_one_client_are_spread_evenly_over_the_prefix() {
    for flags in [0, SERVICE_BY_ADDRESS, SERVICE_BY_PORT] {
        for bits in [31, 24, 20] {
            let fake = tables(flags, IPV4, bits);
            let mut counts = vec![0; 1 << (32 - bits)];
            for port in 1..=20_000 {
                let source = source(&fake, &tcp(CLIENT, (port, 80)));
                counts[(u32::from(source) - u32::from(PREFIX)) as usize] += 1;
            }
            assert_even(&counts, &format!("flags {flags}, /{bits}"));
        }
    }
}

#[test]
fn ports_and_labels_of_one_client_are_spread_evenly() {
    for flags in [0, SERVICE_BY_ADDRESS, SERVICE_BY_PORT] {
        let (v4, v6) = (tables(flags, IPV4, 24), tables(flags, IPV6, 24));
        let (mut ports, mut labels) = (vec![0; 1 << 10], vec![0; 1 << 10]);
        for port in 1..=20_000 {
            let frame = tcp(CLIENT, (port, 80));
            let source_port = source_port(&v4, &frame);
            assert!(source_port >= 49_152);
            ports[usize::from(source_port) & 0x3ff] += 1;
            labels[flow_label(&v6, &frame) as usize & 0x3ff] += 1;
        }
        assert_even(&ports, &format!("ports, flags {flags}"));
        assert_even(&labels, &format!("labels, flags {flags}"));
    }
}

/// Within one source address the ports differ as much as in all: both together spread more than one.
#[test]
fn source_and_port_are_independent() {
    let fake = tables(SERVICE_BY_ADDRESS, IPV4, 24);
    let mut counts = vec![0; 64];
    for port in 1..=20_000 {
        let frame = tcp(CLIENT, (port, 80));
        if source(&fake, &frame).octets()[3] < 16 {
            counts[usize::from(source_port(&fake, &frame)) & 63] += 1;
        }
    }
    assert_even(&counts, "ports of a few sources");
}

#[test]
fn a_client_that_stays_at_one_backend_has_many_ports() {
    for flags in [SERVICE_BY_ADDRESS, SERVICE_BY_PORT] {
        let lists = (0..97).map(|n| [n, 0xffff, 0xffff, 0xffff]).collect();
        let fake = FakeTables::new(&[(lists, 97)], IPV4).with_service("198.51.100.1", 0, 6, flags);
        let (mut backends, mut ports) = (BTreeSet::new(), BTreeSet::new());
        for port in 1..=200 {
            let frame = tcp(CLIENT, (port, 80));
            backends.insert(path::decide(&frame[..], &fake).unwrap().choice.member.backend());
            ports.insert(source_port(&fake, &frame));
        }
        assert_eq!(backends.len(), 1, "flags {flags}");
        // Of 200 draws from 16,384 one or two repeat another.
        assert!(ports.len() > 190, "flags {flags}: {} ports", ports.len());
    }
}

/// Whole datagrams, first fragments and those without ports: none overtakes another by another way.
#[test]
fn where_fragments_are_served_all_packets_of_two_addresses_show_the_same() {
    let fake = tables(SERVICE_BY_ADDRESS | SERVICE_FRAGMENTS, IPV4, 16);
    let whole = udp(CLIENT, (4_711, 53));
    let fragment = |word: u16| {
        let mut frame = whole.clone();
        frame[20..22].copy_from_slice(&word.to_be_bytes());
        frame
    };
    let first = source(&fake, &whole);
    for frame in [fragment(0x2000), fragment(0x2003), fragment(0x0003), udp(CLIENT, (9, 53))] {
        assert_eq!(source(&fake, &frame), first);
        assert_eq!(source_port(&fake, &frame), source_port(&fake, &whole));
    }
    let others: BTreeSet<_> =
        (1..=100).map(|last| source(&fake, &udp([192, 0, 2, last], (4_711, 53)))).collect();
    assert!(others.len() > 90, "other clients show {} others", others.len());
    // Without fragments the ports count.
    let by_address = tables(SERVICE_BY_ADDRESS, IPV4, 16);
    let of = |port| source(&by_address, &udp(CLIENT, (port, 53)));
    assert_ne!(of(4_711), of(9));
}

/// An ICMP error takes the way of the flow that it is about.
#[test]
fn an_error_shows_what_its_flow_shows() {
    for flags in [0, SERVICE_BY_ADDRESS] {
        let fake = tables(flags, IPV4, 16);
        let sent = source(&fake, &tcp(CLIENT, (4_711, 80)));
        let mut quoted = Vec::new();
        PacketBuilder::ethernet2(OWN, [2; 6])
            .ipv4([198, 51, 100, 1], CLIENT, 64)
            .tcp(80, 4_711, 1, 1000)
            .ack(1)
            .write(&mut quoted, &[])
            .unwrap();
        let mut error = Vec::new();
        let unreachable = etherparse::Icmpv4Type::DestinationUnreachable(
            etherparse::icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: 1_280 },
        );
        PacketBuilder::ethernet2([2; 6], OWN)
            .ipv4([203, 0, 113, 7], [198, 51, 100, 1], 64)
            .icmpv4(unreachable)
            .write(&mut error, &quoted[14..])
            .unwrap();
        assert_eq!(source(&fake, &error), sent, "flags {flags}");
    }
}
