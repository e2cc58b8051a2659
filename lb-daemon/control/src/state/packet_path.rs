use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use crate::{
    command::InterfaceStatus,
    reconcile::{ApplySummary, PoolHomes, ReconcileError, Reconciler},
};
use lb_maps::{Attached, Interface};
use lb_model::{capacity::GroupReading, ids::Named, map_memory::TableMemory, plan::Plan};

/// What the state loop needs of the packet path, besides what the member loop does with it. [`Reconciler`] documents these
/// methods in full.
pub trait PacketPath: Send {
    /// Whether a plan can be applied, and what its tables take. Changes nothing.
    fn check(&self, plan: &Plan) -> Result<TableMemory, ReconcileError>;

    /// Brings the packet path to a plan.
    ///
    /// # Errors
    /// The change may be half made; applying again completes it.
    fn apply(
        &mut self,
        plan: &Plan,
    ) -> impl Future<Output = Result<ApplySummary, ReconcileError>> + Send;

    /// Numbers that packets may still meet.
    fn named(&self) -> Named;

    /// Digest over what the packet path decides by.
    fn checksum(&mut self) -> Result<u64, ReconcileError>;

    /// The groups of each pool in order, with their counters.
    fn readings(&self) -> Result<Vec<GroupReading>, ReconcileError>;

    /// By index of the pool.
    fn homes(&self) -> BTreeMap<u32, PoolHomes>;

    /// Whether connections at their previous home are adopted, that is, remembered one by one.
    fn set_adopting(&mut self, pool: u32, adopting: bool);

    /// Forgets the previous homes of pools.
    ///
    /// # Errors
    /// They are forgotten, but their entries in the maps are not free yet.
    fn forget_previous(
        &mut self,
        pools: &BTreeSet<u32>,
    ) -> impl Future<Output = Result<(), ReconcileError>> + Send;

    /// Frees next hops that are no longer used, once a second.
    ///
    /// # Errors
    /// They are not free yet.
    fn free_next_hops(&mut self) -> impl Future<Output = Result<(), ReconcileError>> + Send;

    /// Backends that only previous versions of pools have.
    fn leaving(&self) -> BTreeSet<IpAddr>;

    /// Adoptions refused so far, because the budget was used up.
    fn adoptions_refused(&self) -> Result<u64, ReconcileError>;

    /// Interfaces with the packet program.
    fn interfaces(&self) -> Vec<InterfaceStatus>;
}

/// The packet path of this host: maps and interfaces.
#[derive(Debug)]
pub struct Packets {
    reconciler: Reconciler,
    attached: Attached,
}

impl Packets {
    pub fn new(reconciler: Reconciler, attached: Attached) -> Self {
        Self { reconciler, attached }
    }
}

impl PacketPath for Packets {
    fn check(&self, plan: &Plan) -> Result<TableMemory, ReconcileError> {
        self.reconciler.check(plan)
    }

    async fn apply(&mut self, plan: &Plan) -> Result<ApplySummary, ReconcileError> {
        self.reconciler.apply(plan).await
    }

    fn named(&self) -> Named {
        self.reconciler.named()
    }

    fn checksum(&mut self) -> Result<u64, ReconcileError> {
        self.reconciler.checksum()
    }

    fn readings(&self) -> Result<Vec<GroupReading>, ReconcileError> {
        Ok(self.reconciler.readings()?)
    }

    fn homes(&self) -> BTreeMap<u32, PoolHomes> {
        self.reconciler.homes()
    }

    fn set_adopting(&mut self, pool: u32, adopting: bool) {
        self.reconciler.set_adopting(pool, adopting);
    }

    async fn forget_previous(&mut self, pools: &BTreeSet<u32>) -> Result<(), ReconcileError> {
        self.reconciler.forget_previous(pools).await
    }

    async fn free_next_hops(&mut self) -> Result<(), ReconcileError> {
        self.reconciler.free_next_hops().await
    }

    fn leaving(&self) -> BTreeSet<IpAddr> {
        self.reconciler.leaving()
    }

    fn adoptions_refused(&self) -> Result<u64, ReconcileError> {
        self.reconciler.adoptions_refused()
    }

    fn interfaces(&self) -> Vec<InterfaceStatus> {
        self.attached.interfaces().into_iter().map(Into::into).collect()
    }
}

impl From<Interface> for InterfaceStatus {
    fn from(interface: Interface) -> Self {
        Self { name: interface.name, mode: interface.mode.map(|mode| mode.to_string()) }
    }
}
