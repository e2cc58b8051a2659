use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tokio::sync::{oneshot, watch};

use super::{MovedSlots, PublishedPools};
use crate::reconcile::{ApplySummary, ReconcileError};
use lb_base::queue::{QueueCounters, UnboundedReceiver, UnboundedSender, unbounded};
use lb_model::{ids::Named, maglev::BuiltTables, map_memory::TableMemory, plan::Plan};

type Reply<T> = oneshot::Sender<Result<T, ReconcileError>>;

/// What the state loop asks of the publisher.
#[derive(Debug)]
pub(crate) enum PublisherCommand {
    Check(Arc<Plan>, Reply<TableMemory>),
    Publish(Arc<Plan>, Arc<BuiltTables>, Reply<ApplySummary>),
    MovedSlots(Arc<Plan>, Reply<BTreeMap<u32, MovedSlots>>),
    ForgetPrevious(BTreeSet<u32>, Reply<()>),
    Named(Reply<Named>),
}

/// Sends commands to the publisher, and waits for what becomes of them. If it has ended, the daemon is stopping, and each
/// fails with [`ReconcileError::Stopping`].
#[derive(Clone, Debug)]
pub struct Publisher {
    commands: UnboundedSender<PublisherCommand>,
    published: watch::Receiver<Arc<PublishedPools>>,
}

impl Publisher {
    /// The publisher and the other ends.
    pub(super) fn channel(
        counters: &QueueCounters,
        published: PublishedPools,
    ) -> (Self, UnboundedReceiver<PublisherCommand>, watch::Sender<Arc<PublishedPools>>) {
        let (commands, receiver) = unbounded(counters);
        let (sender, published) = watch::channel(Arc::new(published));
        (Self { commands, published }, receiver, sender)
    }

    /// What packets see of pools, as of the last command that was answered.
    pub fn published(&self) -> Arc<PublishedPools> {
        Arc::clone(&self.published.borrow())
    }

    pub async fn check(&self, plan: &Arc<Plan>) -> Result<TableMemory, ReconcileError> {
        self.ask(|reply| PublisherCommand::Check(Arc::clone(plan), reply)).await
    }

    /// If it is no longer waited for, it is given up half-way.
    pub async fn publish(
        &self,
        plan: &Arc<Plan>,
        built: Arc<BuiltTables>,
    ) -> Result<ApplySummary, ReconcileError> {
        self.ask(|reply| PublisherCommand::Publish(Arc::clone(plan), built, reply)).await
    }

    /// [`super::PacketPath::moved_slots`].
    pub async fn moved_slots(
        &self,
        plan: &Arc<Plan>,
    ) -> Result<BTreeMap<u32, MovedSlots>, ReconcileError> {
        self.ask(|reply| PublisherCommand::MovedSlots(Arc::clone(plan), reply)).await
    }

    pub async fn forget_previous(&self, pools: BTreeSet<u32>) -> Result<(), ReconcileError> {
        self.ask(|reply| PublisherCommand::ForgetPrevious(pools, reply)).await
    }

    pub async fn named(&self) -> Result<Named, ReconcileError> {
        self.ask(PublisherCommand::Named).await
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(Reply<T>) -> PublisherCommand,
    ) -> Result<T, ReconcileError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).map_err(|_| ReconcileError::Stopping)?;
        answer.await.map_err(|_| ReconcileError::Stopping)?
    }
}
