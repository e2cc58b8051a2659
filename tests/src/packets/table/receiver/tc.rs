//! The same rows at tc's hook, where the stack sums up what is inside of a tunnel, and no program need to.

use crate::packets::{
    frames::ETHERNET,
    receiver::is_for_tc,
    row::{Expected, Row},
};

/// What the row is at tc's hook; `None`: a frame on which the kernel tries no program for it.
pub(crate) fn at_tc(row: Row<()>) -> Option<Row<()>> {
    if !is_for_tc(&row.frame) {
        return None;
    }
    let what = format!("{}, at tc", row.what);
    let expected = match row.expected.verdict {
        "inner_checksum" => {
            Expected { verdict: "decapsulated", frame: Some(out_of_gue(&row.frame)), traffic: None }
        }
        _ => row.expected,
    };
    Some(Row { what, expected, ..row })
}

/// The packet in GUE, behind the same MACs.
fn out_of_gue(frame: &[u8]) -> Vec<u8> {
    let outer = if frame[ETHERNET] >> 4 == 4 { 20 } else { 40 };
    let inner = &frame[ETHERNET + outer + 12..];
    let ether_type = if inner[0] >> 4 == 4 { [0x08, 0x00] } else { [0x86, 0xdd] };
    [&frame[..12], &ether_type, inner].concat()
}
