//! The receiver: only packets of a tunnel that is allowed lose a header, and lose nothing else.

use std::net::IpAddr;

use lb_tests::packets::{
    fake_tables::Lists,
    receiver::{ENDPOINTS, VIPS},
};

use crate::ip::{self, ETHERNET, Ip};

/// A frame; the rest of the first byte says whether an outer header is put in front of it.
pub fn check(data: &[u8]) {
    let Some((how, frame)) = data.split_first() else { return };
    let frame = match how % 3 {
        0 => frame.to_vec(),
        how => around(frame, how),
    };
    if frame.len() < ETHERNET {
        return;
    }
    let received = Lists::LOADED.expects(&frame);
    let (came, came_with) = ip::untagged(&frame);
    if received.verdict != "decapsulated" {
        assert!(received.frame.is_none_or(|after| after == frame), "nobody touched it");
        return;
    }
    let (after, tags) = ip::untagged(received.frame.as_ref().expect("the host gets it"));
    assert_eq!((tags, &after[..12]), (came_with, &came[..12]));
    let outer = ip::read(&came[ETHERNET..]).expect("an outer packet");
    assert!(is_allowed(outer.source), "{} is no balancer", outer.source);
    assert!(outer.is_sound(), "it was damaged on the way");
    assert!(ENDPOINTS.contains(&outer.destination) && !outer.is_fragment());
    assert_eq!(outer.header.len(), if outer.version == 4 { 20 } else { 40 });
    // In IP alone, or behind UDP and GUE.
    let (kind, shim) =
        if outer.protocol == 17 { (outer.payload[9], 12) } else { (outer.protocol, 0) };
    let inner = ip::read(&outer.payload[shim..]).expect("an inner packet");
    assert_eq!(kind, if inner.version == 4 { 4 } else { 41 });
    assert!(VIPS.contains(&inner.destination), "{} is not served here", inner.destination);
    assert!(!VIPS.contains(&inner.source), "{} is a VIP of this host", inner.source);
    let bytes = if inner.version == 4 { [0x08, 0x00] } else { [0x86, 0xdd] };
    assert_eq!(after[12..ETHERNET], bytes);
    is_the_same(&outer, &inner, &came[ETHERNET + outer.header.len() + shim..], &after[ETHERNET..]);
}

/// The inner packet is as it was, but for a mark of congestion that the outer one got (RFC 6040, figure 4).
fn is_the_same(outer: &Ip<'_>, inner: &Ip<'_>, before: &[u8], after: &[u8]) {
    let mark = match (inner.traffic_class & 3, outer.traffic_class & 3) {
        (0, 3) => panic!("a mark for one who knows none is a loss"),
        (_, 3) => 3,
        (2, 1) => 1,
        (inner, _) => inner,
    };
    let now = ip::read(after).expect("a packet");
    assert_eq!(now.traffic_class, inner.traffic_class & !3 | mark);
    assert_eq!(now.is_sound(), inner.is_sound(), "a checksum is neither broken nor mended");
    let mut expected = before.to_vec();
    if inner.version == 4 {
        expected[1] = now.traffic_class;
        expected[10..12].copy_from_slice(&after[10..12]);
    } else {
        expected[1] = expected[1] & !0x30 | mark << 4;
    }
    assert_eq!(expected, after);
}

/// By the lists of the fixture: 10.0.0.0/29, 192.0.2.1, fd00::/64.
fn is_allowed(source: IpAddr) -> bool {
    match source {
        IpAddr::V4(v4) => matches!(v4.octets(), [10, 0, 0, 0..=7] | [192, 0, 2, 1]),
        IpAddr::V6(v6) => v6.segments()[..4] == [0xfd00, 0, 0, 0],
    }
}

/// The bytes in a tunnel of a balancer, to this host; the second kind says it is IPv6 that it carries.
fn around(inner: &[u8], kind: u8) -> Vec<u8> {
    let length = (20 + inner.len()).min(65_535) as u16;
    let mut header = [
        0x45,
        0,
        0,
        0,
        0,
        0,
        0x40,
        0,
        64,
        if kind == 1 { 4 } else { 41 },
        0,
        0,
        10,
        0,
        0,
        1,
        10,
        1,
        0,
        1,
    ];
    header[2..4].copy_from_slice(&length.to_be_bytes());
    let sum = !ip::sum([&header]);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    [&[2; 12][..], &[0x08, 0x00], &header, inner].concat()
}
