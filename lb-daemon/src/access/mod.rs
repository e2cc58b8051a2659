//! Who asks, and what they may: actors, their roles, and the names that clients are let in by.

mod actor;
mod clients;
mod role;
#[cfg(test)]
mod tests;

pub use actor::{Actor, Peer};
pub use clients::{Client, ClientError, Clients};
pub use role::{Role, UnknownRole};
