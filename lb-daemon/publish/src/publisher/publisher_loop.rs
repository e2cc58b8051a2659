use std::{future::Future, sync::Arc};

use tokio::sync::watch;

use super::{FollowedHost, PacketPath, PublishedPools, Publisher, PublisherCommand};
use crate::reconcile::ReconcileError;
use lb_base::{
    background::lower_thread_priority,
    error_chain,
    heartbeat::Heartbeat,
    loops::{LoopCounters, LoopEnd, SECOND, beating, ticks},
    queue::UnboundedReceiver,
};
use lb_model::unserved::LocalHost;

/// Executes the state loop's commands in turn, and frees next hops that are no longer used.
#[derive(Debug)]
pub struct PublisherLoop<P> {
    path: P,
    commands: UnboundedReceiver<PublisherCommand>,
    published: watch::Sender<Arc<PublishedPools>>,
    host: watch::Receiver<Arc<LocalHost>>,
    /// Whether the packet path did not take over all that follows from the host.
    is_behind_host: bool,
    counters: LoopCounters,
}

impl<P: PacketPath> PublisherLoop<P> {
    pub fn new(path: P, counters: LoopCounters, host: &FollowedHost) -> (Self, Publisher) {
        let (publisher, commands, published) =
            Publisher::channel(counters.queue(), path.published());
        let mut host = host.changes();
        // What it is now is taken over before the first command.
        host.mark_changed();
        let publisher_loop =
            Self { path, commands, published, host, is_behind_host: false, counters };
        (publisher_loop, publisher)
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
                // Its sender lives as long as the daemon. Without one nothing changes any more.
                Ok(()) = self.host.changed() => {
                    let _turn = counters.turn();
                    self.follow_host();
                }
                command = self.commands.recv() => match command {
                    Some(command) => {
                        let _turn = counters.turn();
                        beating(&mut beat, &heartbeat, self.execute(command)).await;
                    }
                    None => return LoopEnd::Stopped,
                },
                _ = second.tick() => {
                    let _turn = counters.turn();
                    if self.is_behind_host {
                        self.follow_host();
                    }
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

    fn follow_host(&mut self) {
        let host = Arc::clone(&self.host.borrow_and_update());
        let followed = self.path.follow_host(host);
        if let Err(error) = &followed
            && !self.is_behind_host
        {
            let error = error_chain::message(error);
            tracing::error!(
                error,
                "what of VIPs is left to this host cannot be changed, retried every second: {error}"
            );
        }
        self.is_behind_host = followed.is_err();
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
