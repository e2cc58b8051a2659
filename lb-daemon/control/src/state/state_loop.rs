use std::{future::Future, time::Duration};

use tokio::time::{MissedTickBehavior, interval};

use super::{PacketPath, SECOND, State};
use crate::command::Command;
use lb_base::{error_chain, heartbeat::Heartbeat};

/// Time between two attempts to bring a packet path that is behind to the plan.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Why a loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopEnd {
    /// It was told to stop, or all senders of commands are gone.
    Stopped,
    /// A sensor ended, which is a defect.
    SensorEnded,
}

impl<P: PacketPath> State<P> {
    /// Begins with the stored generation, and runs until `stop` is done. It blocks its thread while it works, so it needs
    /// its own. The heartbeat has its own tick, which comes before all else, and proves only that the loop turns: while
    /// the packet path is behind, a restart would not help.
    pub async fn run(mut self, heartbeat: Heartbeat, stop: impl Future<Output = ()>) -> LoopEnd {
        tokio::pin!(stop);
        let mut beat = interval(heartbeat.interval());
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut retry = interval(RETRY_INTERVAL);
        retry.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut second = interval(SECOND);
        second.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.begin().await;
        loop {
            tokio::select! {
                biased;
                () = &mut stop => return LoopEnd::Stopped,
                _ = beat.tick() => heartbeat.beat(),
                updates = self.updates.recv() => match updates {
                    Some(updates) => self.take_updates(updates),
                    None => return LoopEnd::SensorEnded,
                },
                command = self.commands.recv() => match command {
                    Some(command) => self.execute(command).await,
                    None => return LoopEnd::Stopped,
                },
                _ = retry.tick(), if self.behind.is_some() => self.retry_apply().await,
                _ = second.tick() => {
                    self.read_counters();
                    self.advance_remaps().await;
                    self.free_next_hops().await;
                }
            }
        }
    }

    async fn free_next_hops(&mut self) {
        if let Err(error) = self.path.free_next_hops().await {
            let error = error_chain::message(&error);
            tracing::error!(error, "next hops that are no longer used cannot be freed");
        }
    }

    async fn execute(&mut self, command: Command) {
        // The caller hung up or its deadline is over, and it was told that the outcome is unknown.
        if command.is_abandoned() {
            tracing::debug!("a command is skipped: its caller is gone");
            return;
        }
        match command {
            Command::Apply(apply, mut change, reply) => {
                let result = self.apply(*apply, &mut change).await;
                if let Some(change) = change {
                    change.finished(&result);
                }
                drop(reply.send(result));
            }
            Command::Export(reply) => drop(reply.send(self.export())),
            Command::Status(reply) => drop(reply.send(self.status())),
            Command::Condition(reply) => drop(reply.send(self.condition())),
            Command::Regions(pool, reply) => drop(reply.send(self.regions(pool.as_deref()))),
            Command::History { pool, address, reply } => {
                drop(reply.send(self.history(&pool, address.as_deref())));
            }
            Command::Watch(reply) => drop(reply.send(self.watch())),
        }
    }

    async fn retry_apply(&mut self) {
        if let Err(error) = self.catch_up().await {
            // A higher level would log every second; the condition is logged once.
            tracing::debug!(
                error = error_chain::message(&error),
                "the packet path is still behind"
            );
        }
    }
}
