//! What no service takes, where that is dropped: all rows whose packet the host gets, once more.

use std::net::IpAddr;

use crate::packet_table::row::Row;
use lb_tests::packets::{
    fixture::MapFixture,
    frames::{Packet, hex},
};

use super::flows::{fixture, v4};

/// Of `rows`, those whose packet is IP and the host's: for a VIP it is dropped, for any other address still the host's.
pub(crate) fn rows(rows: &[Row<MapFixture>]) -> Vec<Row<MapFixture>> {
    let of_host = ["not_ours", "other_protocol", "later_fragment"];
    let again = rows.iter().filter(|row| of_host.contains(&row.expected.verdict)).map(|row| {
        let fixture = row.fixture.clone().with(|fixture| fixture.drops_unserved = true);
        let (what, frame) = (format!("nothing unserved: {}", row.what), row.frame.clone());
        if is_for_vip(row) && !is_on_its_way(row) && !is_of_neighbours(row) {
            Row::dropped(what, fixture, frame, "unserved")
        } else {
            Row::passed(what, fixture, frame, row.expected.verdict)
        }
    });
    again.chain(served()).collect()
}

/// What services take, and pings.
fn served() -> Vec<Row<MapFixture>> {
    let dropping = || fixture(4).with(|fixture| fixture.drops_unserved = true);
    let ping =
        hex("020000000001 02000000000c 0800 4500 0020 0001 4000 3f 01 4f9e c0000209 c6336401
         0800 88bf 1234 0007 5a01 0304");
    let answer =
        hex("02000000000c 020000000001 0800 4500 0020 0001 4000 40 01 4e9e c6336401 c0000209
         0000 90bf 1234 0007 5a01 0304");
    vec![
        Row::sent(
            "nothing unserved: a SYN",
            dropping(),
            (&v4(), Packet::new(v4()).tcp("S")),
            (0, 0),
        ),
        Row::changed("nothing unserved: a ping", dropping(), (ping, answer), "answered_echo"),
    ]
}

/// Whether the destination, read here byte by byte, is a VIP of the fixture.
fn is_for_vip(row: &Row<MapFixture>) -> bool {
    let tags = row.frame[12..]
        .chunks(4)
        .take_while(|tag| matches!(tag.get(..2), Some([0x81, 0] | [0x88, 0xa8])));
    let ip = &row.frame[14 + 4 * tags.count()..];
    let destination: IpAddr = match ip[0] >> 4 {
        4 => <[u8; 4]>::try_from(&ip[16..20]).unwrap().into(),
        _ => <[u8; 16]>::try_from(&ip[24..40]).unwrap().into(),
    };
    row.fixture.services.iter().any(|service| service.vip == destination)
}

/// Neighbour discovery, of types 133 to 137, from this link.
fn is_of_neighbours(row: &Row<MapFixture>) -> bool {
    row.frame[12..14] == [0x86, 0xdd]
        && row.frame[20..22] == [58, 255]
        && row.frame.get(54).is_some_and(|kind| (133..=137).contains(kind))
}

/// A frame of a service that a switch flooded on its way to a backend with direct return.
fn is_on_its_way(row: &Row<MapFixture>) -> bool {
    row.expected.verdict == "not_ours" && row.frame[..6] != lb_tests::packets::frames::HOST
}
