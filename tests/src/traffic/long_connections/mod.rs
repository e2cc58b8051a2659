//! Hundreds of long connections on which every byte is checked, on one thread at each side.
//!
//! A server says the name of its node and returns every byte changed by that name ([`mark`]), so that
//! each byte shows who sent it.

mod client;
mod server;

pub use client::{Connection, LongConnections};
pub use server::LongConnectionServer;

/// What a node changes bytes by (exclusive or): a sum of its name (Fletcher's, so that places count).
fn mark(name: &str) -> u8 {
    let (mut first, mut second) = (0_u8, 0_u8);
    for byte in name.bytes() {
        first = first.wrapping_add(byte);
        second = second.wrapping_add(first);
    }
    second
}

#[cfg(test)]
mod tests {
    use super::mark;

    #[test]
    fn backends_have_marks_of_their_own() {
        let marks = ["eu1", "eu2", "eu3", "us1", "us2", "us3"].map(mark);
        let distinct: std::collections::HashSet<_> = marks.into_iter().collect();
        assert_eq!(distinct.len(), 6, "{marks:?}");
    }
}
