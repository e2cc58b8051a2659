//! Messages between balancers as they are sent. What a peer sent is the input of a stranger: it is taken whole, or refused
//! with a sentence.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

use std::time::SystemTime;

pub use decode::{MessageReader, PeerMessage, PeerMessageError};
pub use encode::{EncodedReports, to_request};

/// The protocol that this program speaks. It rises with each change that a balancer of the protocol before would
/// misunderstand.
pub const PROTOCOL: u32 = 1;

/// This program's version.
pub const PROGRAM_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Milliseconds since 1970.
fn wall_clock_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
