//! The loop that publishes plans. It owns the packet path's maps but for member words: it builds tables, writes what packets
//! cannot reach yet, sets the words that make them reach it, and waits until no packet reads what was replaced. The state
//! loop sends it one command at a time; changes of health never wait for it. It also follows what this host is to VIPs, by
//! itself, so that such a change waits for no disk.

mod commands;
mod host;
mod publisher_loop;

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    net::IpAddr,
    sync::Arc,
};

pub use commands::Publisher;
pub(crate) use commands::PublisherCommand;
pub use host::FollowedHost;
pub use publisher_loop::PublisherLoop;

use crate::reconcile::{ApplySummary, PoolHomes, ReconcileError};
use lb_model::{
    ids::Named, maglev::BuiltTables, map_memory::TableMemory, plan::Plan, unserved::LocalHost,
};

/// The maps of a packet path but for member words.
pub trait PacketPath: Send {
    /// Checks that a plan fits and that its numbers are free, and returns what its tables take. Changes nothing.
    ///
    /// # Errors
    /// Those of [`Self::publish`], except what only the kernel knows.
    fn check(&self, plan: &Plan) -> Result<TableMemory, ReconcileError>;

    /// Brings the maps to a plan, and writes only what differs. A table that is among `built` is not built again. Members keep their states; new ones accept
    /// nothing until a state is set. Packets see each pool and each service either as before or as planned.
    ///
    /// # Errors
    /// If there is no room for the plan, nothing changes. If the kernel refuses a step, publishing again
    /// continues from there.
    fn publish(
        &mut self,
        plan: &Plan,
        built: &BuiltTables,
    ) -> impl Future<Output = Result<ApplySummary, ReconcileError>> + Send;

    /// Of pools in a remap that a plan would turn to a further home, by index: what their remap moves. Not of those that it
    /// would bring back to the home from before the remap.
    ///
    /// # Errors
    /// Those of [`Self::check`].
    fn moved_slots(&self, plan: &Plan) -> Result<BTreeMap<u32, MovedSlots>, ReconcileError>;

    /// Forgets the previous homes of pools. What only the previous versions named is freed after one grace period.
    ///
    /// # Errors
    /// The kernel refused a step. The versions are forgotten nevertheless.
    fn forget_previous(
        &mut self,
        pools: &BTreeSet<u32>,
    ) -> impl Future<Output = Result<(), ReconcileError>> + Send;

    /// Takes over what this host is to VIPs, for all that is published from now on, and corrects the words of VIPs that are
    /// published.
    ///
    /// # Errors
    /// The kernel refused a word. The same call writes what is left.
    fn follow_host(&mut self, host: Arc<LocalHost>) -> Result<(), ReconcileError>;

    /// Frees next hops that are no longer used.
    ///
    /// # Errors
    /// What the kernel answers, or [`ReconcileError::Stopping`]. They are not free yet.
    fn free_next_hops(&mut self) -> impl Future<Output = Result<(), ReconcileError>> + Send;

    /// Numbers in use in the maps, which must not be assigned to other objects.
    fn named(&self) -> Named;

    fn published(&self) -> PublishedPools;
}

/// Slots whose open connections a remap moves, those without a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovedSlots {
    pub moved: u32,
    /// Slots of the table that they are of.
    pub of: u32,
}

/// What packets see of pools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishedPools {
    /// By index of the pool.
    pub homes: BTreeMap<u32, PoolHomes>,
    /// Backends that only previous versions of pools have. Their next hops are still needed.
    pub leaving: BTreeSet<IpAddr>,
    /// Whether the maps were read again since the last plan, so that it must be published again.
    pub is_incomplete: bool,
}
