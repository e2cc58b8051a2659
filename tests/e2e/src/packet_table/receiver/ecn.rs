//! What congestion did to the outer header, and what the inner one says of it (RFC 6040, 4.2).

use super::{opened, tunnel};
use crate::packet_table::flows::{v4, v6};
use crate::packet_table::row::Row;
use lb_tests::packets::frames::{Packet, classed, hex};

/// Figure 4 of the RFC: the inner header; what leaves for an outer one of Not-ECT, ECT(0), ECT(1), CE.
const FIGURE_4: [(u8, [Option<u8>; 4]); 4] = [
    (0b00, [Some(0b00), Some(0b00), Some(0b00), None]),
    (0b10, [Some(0b10), Some(0b10), Some(0b01), Some(0b11)]),
    (0b01, [Some(0b01), Some(0b01), Some(0b01), Some(0b11)]),
    (0b11, [Some(0b11), Some(0b11), Some(0b11), Some(0b11)]),
];
const OUTER: [u8; 4] = [0b00, 0b10, 0b01, 0b11];

/// DSCP of the inner packet, and what a network on the way made of the outer one's.
const DSCP: (u8, u8) = (0xb8, 0x28);

pub(super) fn rows() -> Vec<Row<()>> {
    let mut rows = by_hand();
    for outer_version in [4, 6] {
        for (version, flow) in [(4, v4()), (6, v6())] {
            for (inner, leaves) in FIGURE_4 {
                for (outer, leaves) in OUTER.into_iter().zip(leaves) {
                    let packet = |ecn| Packet::new(flow).traffic_class(DSCP.0 | ecn).tcp("A");
                    let frame = tunnel(outer_version).around(&packet(inner));
                    let frame = classed(&frame, DSCP.1 | outer);
                    let what = format!(
                        "ECN {inner:02b} of IPv{version} out of {outer:02b} of IPv{outer_version}"
                    );
                    rows.push(match leaves {
                        Some(leaves) => opened(what, frame, &packet(leaves)),
                        None => Row::dropped(what, (), frame, "not_ecn_capable"),
                    });
                }
            }
        }
    }
    // The sum of this header is 0xffff with CE, which is written as 0.
    let flow = lb_tests::packets::frames::Flow::new("192.0.62.100:1", "198.51.100.1:80");
    let packet = |ecn| Packet::new(flow).traffic_class(ecn).payload(&[]).tcp("A");
    assert_eq!(packet(0b11)[24..26], [0, 0], "the checksum that this row is about");
    let frame = classed(&tunnel(4).around(&packet(0b10)), 0b11);
    rows.push(opened("ECN makes a checksum of zero", frame, &packet(0b11)));
    rows
}

/// Written out: no library had a hand in it. ECT(0) becomes CE, and the checksum one less.
fn by_hand() -> Vec<Row<()>> {
    let frame = hex("020000000001 02000000000c 0800
        4503 003c 0000 4000 40 04 26b9 0a000001 0a010001
        4502 0028 0001 4000 3f 06 4f8f c0000209 c6336401
        1267 0050 00000001 00000000 5010 2000 90de 0000");
    let after = hex("020000000001 02000000000c 0800
        4503 0028 0001 4000 3f 06 4f8e c0000209 c6336401
        1267 0050 00000001 00000000 5010 2000 90de 0000");
    vec![Row::changed("by hand: a mark of congestion", (), (frame, after), "decapsulated")]
}
