//! Whole frames in and out, written out byte for byte: no library had a hand in them.

use crate::packet_table::row::Row;
use lb_tests::packets::expected::Expected;
use lb_tests::packets::{fixture::MapFixture, frames::hex};

/// A SYN of 192.0.2.9:4711 to 198.51.100.1:80, TTL 64.
const SYN_V4: &str = "020000000001 02000000000c 0800
    4500 0028 0001 4000 40 06 4e91 c0000209 c6336401
    1267 0050 00000001 00000000 5002 2000 90ec 0000";
/// The same one hop later: TTL 63, and 0x0100 more in the checksum.
const SYN_V4_INSIDE: &str = "
    4500 0028 0001 4000 3f 06 4f91 c0000209 c6336401
    1267 0050 00000001 00000000 5002 2000 90ec 0000";
/// An ACK of `[2001:db8:c::9]:4711` to `[2001:db8:80::1]:80`, hop limit 64, flow label 12345.
const ACK_V6: &str = "020000000001 02000000000c 86dd
    60012345 0014 06 40 20010db8000c00000000000000000009 20010db8008000000000000000000001
    1267 0050 00000001 00000000 5010 2000 2115 0000";
const ACK_V6_INSIDE: &str = "
    60012345 0014 06 3f 20010db8000c00000000000000000009 20010db8008000000000000000000001
    1267 0050 00000001 00000000 5010 2000 2115 0000";

/// From 10.0.0.1 to 10.1.0.1, 40 bytes of IPv4 inside.
const IPIP: &str = "0200000000fe 020000000001 0800
    4500 003c 0000 4000 40 04 26bc 0a000001 0a010001";
/// The same with 60 bytes of IPv6 inside.
const SIX_IN_FOUR: &str = "0200000000fe 020000000001 0800
    4500 0050 0000 4000 40 29 2683 0a000001 0a010001";
/// From fd00::1 to fd00:1::1, 40 bytes of IPv4 inside; the label is the hash's last 20 bits.
const FOUR_IN_SIX: &str = "0200000000fe 020000000001 86dd
    6001e3e8 0028 04 40 fd000000000000000000000000000001 fd000001000000000000000000000001";
/// The same with 60 bytes of IPv6 inside.
const IP6IP6: &str = "0200000000fe 020000000001 86dd
    60032d9d 003c 29 40 fd000000000000000000000000000001 fd000001000000000000000000000001";

/// By the formula the IPv4 flow hashes to 0x6791b531ca91e3e8, the IPv6 flow to 0xcc4179f834c32d9d:
/// of 65,537 slots these.
const SLOT_V4: u32 = 26_514;
const SLOT_V6: u32 = 52_290;

pub(crate) fn rows() -> Vec<Row<MapFixture>> {
    let row = |what: &str, tunnel, (frame, head, inside), (service, connections)| {
        let fixture = MapFixture::new(tunnel).with(|fixture| {
            for slot in [SLOT_V4, SLOT_V6] {
                fixture.regions[0].lists.insert(slot, [0, 1, 2, 3]);
            }
        });
        let expected = Expected {
            verdict: "transmitted",
            frame: Some([hex(head), hex(inside)].concat()),
            traffic: Some((service, 10, connections)),
        };
        Row { what: format!("by hand: {what}"), fixture, frame: hex(frame), expected }
    };
    vec![
        row("SYN, IPv4 in IPv4", 4, (SYN_V4, IPIP, SYN_V4_INSIDE), (11, 1)),
        row("SYN, IPv4 in IPv6", 6, (SYN_V4, FOUR_IN_SIX, SYN_V4_INSIDE), (11, 1)),
        row("ACK, IPv6 in IPv4", 4, (ACK_V6, SIX_IN_FOUR, ACK_V6_INSIDE), (13, 0)),
        row("ACK, IPv6 in IPv6", 6, (ACK_V6, IP6IP6, ACK_V6_INSIDE), (13, 0)),
    ]
}
