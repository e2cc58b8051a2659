//! The programs under test: `spillwayd` in its two roles and `spillway`.

mod balancer;
mod binaries;
mod document;
mod link;
mod receiver;

pub use balancer::Balancer;
pub use binaries::Binaries;
pub use document::{Check, Document, Member, Pool, Service};
pub use link::{XdpMode, xdp_mode};
pub use receiver::Receiver;
