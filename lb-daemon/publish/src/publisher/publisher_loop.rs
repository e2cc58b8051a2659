use std::{future::Future, sync::Arc};

use tokio::sync::watch;

use super::{PacketPath, PublishedPools, Publisher, PublisherCommand};
use crate::reconcile::ReconcileError;
use lb_base::{
    background::lower_thread_priority,
    error_chain,
    heartbeat::Heartbeat,
    loops::{LoopCounters, LoopEnd, SECOND, beating, ticks},
    queue::UnboundedReceiver,
};

/// Executes the state loop's commands in turn, and frees next hops that are no longer used.
#[derive(Debug)]
pub struct PublisherLoop<P> {
    path: P,
    commands: UnboundedReceiver<PublisherCommand>,
    published: watch::Sender<Arc<PublishedPools>>,
    counters: LoopCounters,
}

impl<P: PacketPath> PublisherLoop<P> {
    pub fn new(path: P, counters: LoopCounters) -> (Self, Publisher) {
        let (publisher, commands, published) =
            Publisher::channel(counters.queue(), path.published());
        (Self { path, commands, published, counters }, publisher)
    }

    /// Runs until the state loop is gone. It blocks its thread while it builds tables and waits for packets, so it needs its
    /// own, which has a lower priority than those that check and forward.
    pub async fn run(mut self, heartbeat: Heartbeat) -> LoopEnd {
        let (mut beat, mut second) = (ticks(heartbeat.interval()), ticks(SECOND));
        let counters = self.counters.clone();
        lower_thread_priority();
        loop {
            tokio::select! {
                biased;
                _ = beat.tick() => heartbeat.beat(),
                command = self.commands.recv() => match command {
                    Some(command) => {
                        let _turn = counters.turn();
                        beating(&mut beat, &heartbeat, self.execute(command)).await;
                    }
                    None => return LoopEnd::Stopped,
                },
                _ = second.tick() => {
                    let _turn = counters.turn();
                    beating(&mut beat, &heartbeat, self.free_next_hops()).await;
                }
            }
        }
    }

    async fn execute(&mut self, command: PublisherCommand) {
        // A caller that no longer waits is being dropped.
        match command {
            PublisherCommand::Check(plan, reply) => drop(reply.send(self.path.check(&plan))),
            PublisherCommand::Publish(plan, built, mut reply) => {
                let published = unless(reply.closed(), self.path.publish(&plan, &built)).await;
                self.show();
                if let Some(published) = published {
                    drop(reply.send(published));
                }
            }
            PublisherCommand::MovedSlots(plan, reply) => {
                drop(reply.send(self.path.moved_slots(&plan)));
            }
            PublisherCommand::ForgetPrevious(pools, reply) => {
                let forgotten = self.path.forget_previous(&pools).await;
                self.show();
                drop(reply.send(forgotten));
            }
            PublisherCommand::Named(reply) => drop(reply.send(Ok(self.path.named()))),
        }
    }

    /// Shows the state loop what packets see now.
    fn show(&self) {
        self.published.send_replace(Arc::new(self.path.published()));
    }

    async fn free_next_hops(&mut self) {
        match self.path.free_next_hops().await {
            // The member loop has ended, and this one is about to.
            Ok(()) | Err(ReconcileError::Stopping) => {}
            Err(error) => {
                let error = error_chain::message(&error);
                tracing::error!(error, "next hops that are no longer used cannot be freed");
            }
        }
    }
}

/// Waits for work, unless something else is done before; then the work is dropped.
async fn unless<T>(other: impl Future<Output = ()>, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = other => None,
    }
}
