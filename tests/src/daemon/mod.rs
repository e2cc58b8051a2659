//! The programs under test: `spillwayd` in its two roles and `spillway`.

mod balancer;
mod binaries;
mod document;
mod link;
mod receiver;
mod web;

pub use balancer::Balancer;
pub use binaries::Binaries;
pub use document::{Check, Document, Member, Pool, Service};
pub use link::{XdpMode, xdp_mode};
pub use receiver::Receiver;
pub use web::{HTTP_ADDRESS, get, scrape};
