//! Who asks, and what they may: actors, their roles, and the names that clients are let in by.

mod clients;
mod quota;
mod role;
#[cfg(test)]
mod tests;

pub use clients::{Client, ClientError, Clients};
pub(crate) use quota::{Exceeded, Lease, Quota};
pub use role::{Peer, Role, TcpEnds, UnknownRole};
