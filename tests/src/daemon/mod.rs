//! The programs under test: `spillwayd` in its two roles and `spillway`.

pub mod answers;
mod balancer;
mod binaries;
mod client;
mod document;
mod link;
pub mod printed;
mod receiver;
mod web;

pub use balancer::Balancer;
pub use binaries::Binaries;
pub use client::{Answer, Client};
pub use document::{Check, Document, Member, Pool, Service};
pub use link::{XdpMode, xdp_mode};
pub use receiver::Receiver;
pub use web::{HTTP_ADDRESS, get, scrape};
