//! The door: gRPC over a unix socket or TLS in, [`lb_control::command`] out.

mod access;
mod activation;
mod capture;
pub mod convert;
mod limits;
mod local;
mod objects;
mod probe;
mod routes;
mod server;
mod service;
mod serving;
mod sized;
mod socket;
#[cfg(test)]
mod tests;
mod watch;

pub use activation::{ActivationError, activated};
pub use routes::DescriptorsError;
pub use server::{Handles, ServeError, serve};
pub use socket::{DEFAULT_SOCKET, Rights, Socket, SocketError};
