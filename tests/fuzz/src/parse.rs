//! Headers: what is read of a frame is what stands in it, and frames that are as they should be are read.

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use lb_common::{
    abi::{service::address_of, verdict::Verdict},
    path::{self, Parsed, parse},
    wire::vlan::Tags,
};

use crate::ip::{self, ETHERNET};

/// Any bytes, as a frame.
pub fn check(data: &[u8]) {
    let tags = Tags::read(data);
    if data.len() >= 14 && !tags.is_none() {
        let (_, ours) = ip::untagged(data);
        assert_eq!(tags.bytes()[..tags.length()], ours, "tags are as they stand there");
    }
    let at_once = parse::parse(data);
    let read = path::parse_any(data);
    if let Ok(parsed) = &read {
        stands_there(data, parsed);
        let end = ETHERNET + parsed.ip_length as usize;
        let without_padding = path::parse_any(&data[..end]);
        assert_eq!(without_padding, read, "padding says nothing");
    }
    as_others_read_it(data, &at_once, &read);
}

fn stands_there(data: &[u8], parsed: &Parsed) {
    let ip = ip::read(&data[ETHERNET..]).expect("what was read is whole");
    assert_eq!(
        (u32::from(parsed.flow.version), parsed.ip_length),
        (u32::from(ip.version), ip.length() as u32)
    );
    assert_eq!((parsed.hop_limit, parsed.traffic_class), (ip.hop_limit, ip.traffic_class));
    assert_eq!(address_of(&parsed.source, parsed.flow.version), ip.source);
    let addresses =
        [&parsed.flow.client, &parsed.flow.vip].map(|it| address_of(it, parsed.flow.version));
    if parsed.is_quoted {
        assert_eq!(addresses[1], ip.destination, "an error goes to whom it is about");
        assert!(matches!(parsed.flow.protocol, 6 | 17));
        return;
    }
    assert_eq!(addresses, [ip.source, ip.destination]);
    if parsed.is_without_ports {
        assert_eq!((parsed.flow.client_port, parsed.flow.service_port), (0, 0));
        assert!(parsed.is_fragment);
    }
    if ip.version == 4 {
        assert_eq!((parsed.is_fragment, parsed.flow.protocol), (ip.is_fragment(), ip.protocol));
        if !parsed.is_without_ports {
            ports(parsed, ip.payload);
        }
    }
}

fn ports(parsed: &Parsed, transport: &[u8]) {
    let stand = (transport[..2].try_into().unwrap(), transport[2..4].try_into().unwrap());
    assert_eq!(
        (parsed.flow.client_port, parsed.flow.service_port),
        (u16::from_ne_bytes(stand.0), u16::from_ne_bytes(stand.1))
    );
    let flags = if parsed.flow.protocol == 6 { transport[13] } else { 0 };
    assert_eq!(parsed.tcp_flags, flags);
}

/// What etherparse finds nothing wrong with.
fn as_others_read_it(
    data: &[u8],
    at_once: &Result<Parsed, Verdict>,
    read: &Result<Parsed, Verdict>,
) {
    let Ok(others) = SlicedPacket::from_ethernet(data) else { return };
    if !others.link_exts.is_empty() {
        return;
    }
    let (extensions, fragment) = match &others.net {
        Some(NetSlice::Ipv4(v4)) => {
            (v4.extensions().auth.is_some(), v4.header().is_fragmenting_payload())
        }
        Some(NetSlice::Ipv6(v6)) => {
            (!v6.extensions().slice().is_empty(), v6.extensions().is_fragmenting_payload())
        }
        _ => {
            assert!(at_once.is_err());
            return;
        }
    };
    let (source, destination) = match &others.transport {
        Some(TransportSlice::Tcp(tcp)) => (tcp.source_port(), tcp.destination_port()),
        Some(TransportSlice::Udp(udp)) => (udp.source_port(), udp.destination_port()),
        _ => return,
    };
    // etherparse takes no length of IPv6 for any length.
    let has_length = data[14] >> 4 == 4 || data[18..20] != [0, 0];
    if data[0] & 1 == 1 {
        assert_eq!((at_once, read), (&Err(Verdict::BroadcastFrame), &Err(Verdict::BroadcastFrame)));
        return;
    }
    if !extensions && !fragment && has_length {
        assert!(at_once.is_ok(), "{at_once:?}");
    }
    // Behind extension headers of IPv4, or behind more of IPv6 than are walked over, nobody looks.
    if let Ok(parsed) = read
        && !parsed.is_without_ports
    {
        let ports = (u16::from_be(parsed.flow.client_port), u16::from_be(parsed.flow.service_port));
        assert_eq!(ports, (source, destination));
    }
}
