//! The map of the flow table ([`super::names::FLOWS`]): a head, then the buckets, each a cache line. It is pinned and has a
//! version of its own, so that flows are still known after an upgrade that makes all other maps anew.

use crate::flow_table::CELLS;

/// Version of the head and of the cells' words. The loader makes the table anew for another one.
pub const FLOW_VERSION: u64 = 1;
/// Lines before the first bucket: a page, so that both buckets of a flow are in one
/// ([`FlowKey::bucket`](crate::flow_table::FlowKey::bucket)).
pub const HEAD_LINES: u32 = NEIGHBOURS;
/// Buckets of a page.
pub const NEIGHBOURS: u32 = 64;
/// Words of a line.
pub const LINE_WORDS: usize = 2 * CELLS as usize;

/// The first line.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowHead {
    /// [`FLOW_VERSION`]; 0: the table was not set up yet.
    pub version: u64,
    /// Buckets less one, a power of two of them.
    pub mask: u64,
    /// This balancer's secret, by which flows are hashed to buckets, so that nobody knows whose cell is where.
    pub secret: [u64; 2],
    /// Zero.
    pub reserved: [u64; 4],
}
