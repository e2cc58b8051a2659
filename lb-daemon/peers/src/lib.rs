//! Messages between balancers as they are sent. What a peer sent is the input of a stranger: it is taken whole, or refused
//! with a sentence.

mod decode;
mod encode;
#[cfg(test)]
mod tests;
mod wall_clock;

pub use decode::{MessageReader, PeerMessage, PeerMessageError};
pub use encode::{EncodedReports, to_request};

/// The protocol that this program speaks. It rises with each change that a balancer of the protocol before would
/// misunderstand.
pub const PROTOCOL: u32 = 1;

/// This program's version.
pub const PROGRAM_VERSION: &str = env!("CARGO_PKG_VERSION");
