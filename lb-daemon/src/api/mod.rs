//! The door: gRPC over a unix socket in, [`crate::command`] out.

mod activation;
pub mod convert;
mod objects;
mod server;
mod service;
mod socket;
#[cfg(test)]
mod tests;
mod watch;

pub use activation::{ActivationError, activated};
pub use server::{ServeError, serve};
pub use socket::{DEFAULT_SOCKET, Socket, SocketError};
