use std::{future::Future, time::Duration};

use tokio::time::sleep;

use super::State;
use crate::{command::ApplyRequest, status::StatusUpdate};
use lb_base::{
    background::lower_thread_priority,
    error_chain,
    heartbeat::Heartbeat,
    loops::{LoopEnd, SECOND, beating, ticks},
};

/// Time between two attempts to bring a packet path that is behind to the plan.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// How long a daemon that stops waits for an apply that waits for the disk.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// Waits for `stop`, and then for as long as an apply may take.
async fn long_after(stop: &mut (impl Future<Output = ()> + Unpin)) {
    stop.await;
    sleep(STOP_GRACE).await;
}

impl State {
    /// Begins with the stored generation, and runs until `stop` is done. It blocks its thread while it works, so it needs
    /// its own, which has a lower priority than those that check and forward. The heartbeat has its own tick, which comes before
    /// all else, and proves only that the loop turns: while the packet path is behind or the disk does not answer, a restart
    /// would not help.
    pub async fn run(mut self, heartbeat: Heartbeat, stop: impl Future<Output = ()>) -> LoopEnd {
        tokio::pin!(stop);
        let (mut beat, mut second) = (ticks(heartbeat.interval()), ticks(SECOND));
        let mut retry = ticks(RETRY_INTERVAL);
        let counters = self.settings.loop_counters.state.clone();
        lower_thread_priority();
        tokio::select! {
            () = beating(&mut beat, &heartbeat, self.begin()) => {}
            () = long_after(&mut stop) => return LoopEnd::Stopped,
        }
        self.tell_status();
        self.status.send(StatusUpdate::Begun);
        loop {
            tokio::select! {
                biased;
                () = &mut stop => return LoopEnd::Stopped,
                _ = beat.tick() => heartbeat.beat(),
                is_open = self.publishing.updates.changed() => match is_open {
                    true => {
                        let _turn = counters.turn();
                        self.publishing.take_waiting_updates();
                    }
                    false => return LoopEnd::Stopped,
                },
                // Before applies: of those there may always be another one.
                _ = retry.tick(), if self.current.behind.is_some() => {
                    let _turn = counters.turn();
                    beating(&mut beat, &heartbeat, self.retry_apply()).await;
                }
                _ = second.tick() => {
                    let _turn = counters.turn();
                    beating(&mut beat, &heartbeat, self.look_after()).await;
                }
                request = self.applies.recv() => match request {
                    Some(request) => {
                        let _turn = counters.turn();
                        let work = beating(&mut beat, &heartbeat, self.execute(request));
                        tokio::select! {
                            () = work => {}
                            () = long_after(&mut stop) => {
                                tracing::error!("an apply is abandoned, because the daemon stops");
                                return LoopEnd::Stopped;
                            }
                        }
                    }
                    None => return LoopEnd::Stopped,
                },
            }
        }
    }

    /// What time alone brings, once a second.
    async fn look_after(&mut self) {
        self.advance_remaps().await;
        self.names.follow().await;
        self.storing.follow().await;
        if self.current.plan.is_some()
            && self.current.behind.is_none()
            && self.publishing.publisher.published().is_incomplete
        {
            self.retry_apply().await;
        }
        self.tell_status();
    }

    async fn execute(&mut self, request: ApplyRequest) {
        let ApplyRequest { apply, mut record, reply } = request;
        // The caller hung up or its deadline is over, and it was told that the outcome is unknown.
        if reply.is_closed() {
            tracing::debug!("an apply is skipped: its caller is gone");
            return;
        }
        let result = self.apply(*apply, &mut record).await;
        // Before the answer, so that whoever has it is shown what it says.
        self.tell_status();
        if let Some(record) = record {
            record.finished(&result);
        }
        drop(reply.send(result));
    }

    async fn retry_apply(&mut self) {
        if let Err(error) = self.catch_up().await {
            // A higher level would log every second; the condition is logged once.
            tracing::debug!(
                error = error_chain::message(&error),
                "the packet path is still behind"
            );
        }
        self.tell_status();
    }
}
