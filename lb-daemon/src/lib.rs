//! The daemon of Spillway as a library; the program `spillwayd` only calls [`app::main`].

pub mod app;
mod tunnel_program;
pub mod watchdog;

pub use tunnel_program::attach_tunnel_program;
