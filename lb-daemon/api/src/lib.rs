//! The API: gRPC over a unix socket or TLS in, [`lb_control::command`] out; and what is done for its calls alone: the
//! audit log, captures, VIP probes, requests of a reload.

mod access;
mod all_backends;
pub mod audit;
mod backend_status;
mod bodies;
pub mod capture;
mod convert;
mod fleet;
mod generations;
mod health;
mod limits;
mod objects;
mod overrides;
mod page;
pub mod reload;
mod server;
mod service;
mod socket;
#[cfg(test)]
mod tests;
pub mod vip_probe;
mod watch;

pub use server::{DescriptorsError, Handles, ServeError, serve};
pub use socket::{ActivationError, DEFAULT_SOCKET, Rights, Socket, SocketError, activated};
