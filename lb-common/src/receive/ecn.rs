//! Explicit congestion notification at the end of a tunnel (RFC 6040, 4.2).

/// The sender knows nothing of it.
pub const NOT_ECT: u8 = 0;
/// The sender knows it; as a mark, of a kind that means less than [`CE`].
pub const ECT_1: u8 = 1;
/// The sender knows it.
pub const ECT_0: u8 = 2;
/// A router was congested.
pub const CE: u8 = 3;

const BITS: u8 = 3;

/// The inner packet's new traffic class; both are traffic classes, of which DSCP does not count.
/// `None`: a router marked what stands for a packet whose sender knows no marks, so the mark is a loss.
#[inline(always)]
pub const fn combined(inner: u8, outer: u8) -> Option<u8> {
    match (inner & BITS, outer & BITS) {
        (NOT_ECT, CE) => None,
        (_, CE) => Some(CE),
        (ECT_0, ECT_1) => Some(ECT_1),
        (inner, _) => Some(inner),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figure 4 of RFC 6040, written out: rows are the inner header, columns the outer one.
    #[test]
    fn the_table_is_that_of_the_rfc() {
        const DROP: Option<u8> = None;
        let outer = [0b00, 0b10, 0b01, 0b11];
        let table = [
            (0b00, [Some(0b00), Some(0b00), Some(0b00), DROP]),
            (0b10, [Some(0b10), Some(0b10), Some(0b01), Some(0b11)]),
            (0b01, [Some(0b01), Some(0b01), Some(0b01), Some(0b11)]),
            (0b11, [Some(0b11), Some(0b11), Some(0b11), Some(0b11)]),
        ];
        for (inner, row) in table {
            for (outer, leaves) in outer.into_iter().zip(row) {
                assert_eq!(combined(inner, outer), leaves, "inner {inner:02b}, outer {outer:02b}");
                // DSCP, in the upper six bits, has no part in it.
                assert_eq!(combined(0xb8 | inner, 0x28 | outer), leaves);
            }
        }
    }
}
