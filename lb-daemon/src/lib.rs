//! The daemon of Spillway as a library; the program `spillwayd` only calls [`app::main`].

pub mod api;
pub mod app;
pub mod audit;
pub mod capture;
pub mod reload;
mod tunnel_program;
pub mod vip_probe;
pub mod watchdog;

pub use tunnel_program::attach_tunnel_program;
