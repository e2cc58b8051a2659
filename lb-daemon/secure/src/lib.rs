//! Who may connect: TLS and its certificates, roles, and the limits of the daemon's listeners.

pub mod access;
mod authority;
pub mod refusals;
pub mod tls;
mod users;
