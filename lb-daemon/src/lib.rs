//! The daemon of Spillway as a library; the program `spillwayd` only calls [`app::main`].

pub mod access;
pub mod api;
pub mod app;
pub mod audit;
pub mod capture;
pub mod fleet;
pub mod http;
pub mod metrics;
mod packet_programs;
pub mod reload;
pub mod tls;
pub mod vip_probe;
pub mod watchdog;

pub use packet_programs::{OBJECTS, attach_tunnel_program};
