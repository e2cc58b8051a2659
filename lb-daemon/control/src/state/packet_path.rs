use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use crate::reconcile::{ApplySummary, PoolHomes, ReconcileError, Reconciler};
use lb_model::{ids::Named, map_memory::TableMemory, plan::Plan};

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

    /// Whether the maps were read again since the last plan, so that the plan must be applied again.
    fn needs_apply(&self) -> bool {
        false
    }

    /// Numbers that packets may still meet.
    fn named(&self) -> Named;

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
}

impl PacketPath for Reconciler {
    fn check(&self, plan: &Plan) -> Result<TableMemory, ReconcileError> {
        Self::check(self, plan)
    }

    async fn apply(&mut self, plan: &Plan) -> Result<ApplySummary, ReconcileError> {
        Self::apply(self, plan).await
    }

    fn needs_apply(&self) -> bool {
        self.is_incomplete()
    }

    fn named(&self) -> Named {
        Self::named(self)
    }

    fn homes(&self) -> BTreeMap<u32, PoolHomes> {
        Self::homes(self)
    }

    fn set_adopting(&mut self, pool: u32, adopting: bool) {
        Self::set_adopting(self, pool, adopting);
    }

    async fn forget_previous(&mut self, pools: &BTreeSet<u32>) -> Result<(), ReconcileError> {
        Self::forget_previous(self, pools).await
    }

    async fn free_next_hops(&mut self) -> Result<(), ReconcileError> {
        Self::free_next_hops(self).await
    }

    fn leaving(&self) -> BTreeSet<IpAddr> {
        Self::leaving(self)
    }

    fn adoptions_refused(&self) -> Result<u64, ReconcileError> {
        Self::adoptions_refused(self)
    }
}
