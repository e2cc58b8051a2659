//! The map ABI: every value that the daemon writes and a packet program reads, byte for byte.
//!
//! Flat structs are immutable once published; what changes in place is a single `u64` word.
//! All integers are in host order unless a field says that it holds bytes as they stand in a packet.

pub mod arrays;
pub mod backend;
pub mod capture;
pub mod clock;
pub mod connection;
pub mod counter;
pub mod flow_map;
pub mod form;
pub mod limiter;
pub mod limits;
pub mod member;
pub mod names;
pub mod next_hop;
pub mod pod;
pub mod pool;
pub mod service;
pub mod sizes;
pub mod slot;
pub mod tracepoint;
pub mod verdict;
pub mod zone;

/// Version of this layout. It is part of the pin path, so programs of two layouts never share maps.
pub const LAYOUT_VERSION: u32 = 7;
