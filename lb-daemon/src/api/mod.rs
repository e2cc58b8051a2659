//! The API: gRPC over a unix socket or TLS in, [`lb_control::command`] out.

mod access;
mod all_backends;
mod backend_status;
pub mod convert;
mod fleet;
mod generations;
mod health;
mod limits;
mod objects;
mod overrides;
mod page;
mod server;
mod service;
mod socket;
#[cfg(test)]
mod tests;
mod watch;

pub use server::{DescriptorsError, Handles, ServeError, serve};
pub use socket::{ActivationError, DEFAULT_SOCKET, Rights, Socket, SocketError, activated};
