//! The daemon of Spillway as a library: `spillwayd` is a thin program over it, and `spillway` reads
//! the pinned maps through it.

pub mod access;
pub mod api;
pub mod app;
pub mod audit;
pub mod capture;
pub mod file;
pub mod http;
pub mod metrics;
mod objects;
mod receiver_socket;
pub mod reloads;

pub mod tls;
mod tunnel_program;
pub mod vip_probe;
pub mod watchdog;

pub use objects::OBJECTS;
pub use tunnel_program::attach_tunnel_program;
