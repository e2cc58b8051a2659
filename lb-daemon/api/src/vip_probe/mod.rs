//! VIP probes: whether VIPs answer on their backends through the pools' own tunnels, and whether packets of the size that
//! clients send arrive. They run once, when a client asks for them, and are independent of health checks.
//!
//! A target gets echo requests, first small ones, then some of the full size. If the small ones are not answered, a TCP
//! connection is tried: a firewall that drops echo requests does not mean that the VIP is missing. There is one call at
//! a time, which ends when its caller disconnects.

mod echo;
mod probe;
mod targets;

use std::{sync::Arc, time::Duration};

use futures::{Stream, StreamExt, stream};
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;

use probe::TargetProber;
pub use probe::{FullResult, SmallResult, TargetResult};
pub use targets::{NoProbeTarget, ProbeSelection, ProbeTarget};

use crate::audit::Audit;
use lb_base::exclusive::{Exclusive, ExclusiveGuard};
use lb_control::command::{Actor, Commands, Exported, Stopping};
use lb_health::{Tunnels, host::HostProber};

/// Targets probed at a time. Each has one packet of at most 9000 bytes under way, which floods no link.
const CONCURRENCY: usize = 32;
/// Most targets of one call. If all are silent, it takes a minute and a half.
const MAX_TARGETS: usize = 1_024;
/// Most targets of one call whose path MTU is searched for, with a dozen requests each.
const MTU_SEARCHES: usize = CONCURRENCY;
/// Time for the caller to read that the daemon stops.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time of a call, twice what it needs at most: a caller that does not read must not block others.
const CALL_TIMEOUT: Duration = Duration::from_secs(180);

/// Why a VIP probe cannot begin, or was aborted.
#[derive(Debug, thiserror::Error)]
pub enum VipProbeError {
    /// There is one call at a time.
    #[error("another probe is running, started by {0}")]
    Busy(Actor),
    /// The selected pool or backend does not exist.
    #[error(transparent)]
    NoTarget(#[from] NoProbeTarget),
    /// The daemon has no usable configuration.
    #[error("the stored configuration cannot be used: {0}")]
    Unusable(String),
    /// The daemon stops.
    #[error(transparent)]
    Stopping(#[from] Stopping),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VipProbeEvent {
    /// The result of one target.
    Result(TargetResult),
    /// All targets are done.
    Summary(ProbeSummary),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeSummary {
    /// Number of probed targets.
    pub targets: usize,
    /// Number of targets beyond the most of one call.
    pub left_out: usize,
    /// The full size, bytes.
    pub size: u16,
}

type EventSender = mpsc::Sender<Result<VipProbeEvent, VipProbeError>>;

/// Runs VIP probes, for one caller at a time.
#[derive(Clone, Debug)]
pub struct VipProber {
    commands: Commands,
    tunnels: Tunnels,
    audit: Audit,
    stop: CancellationToken,
    running: Exclusive<Actor>,
}

impl VipProber {
    /// Probes the configuration in force through these tunnels. Each call is logged in `audit`.
    pub fn new(
        commands: Commands,
        tunnels: Tunnels,
        audit: Audit,
        stop: CancellationToken,
    ) -> Self {
        Self { commands, tunnels, audit, stop, running: Exclusive::default() }
    }

    /// Begins probes with `size` bytes as the full size, which end when the receiver is dropped. After an error nothing
    /// is sent.
    ///
    /// # Errors
    /// [`VipProbeError`].
    pub async fn begin(
        &self,
        selection: ProbeSelection,
        size: u16,
        actor: Actor,
    ) -> Result<mpsc::Receiver<Result<VipProbeEvent, VipProbeError>>, VipProbeError> {
        let Exported { configuration, unusable, .. } = self.commands.export().await?;
        if let Some(unusable) = unusable {
            return Err(VipProbeError::Unusable(unusable.cause));
        }
        let (targets, left_out) = targets::list(&configuration, &selection, MAX_TARGETS)?;
        let guard = self.running.begin(&actor).map_err(VipProbeError::Busy)?;
        let summary = ProbeSummary { targets: targets.len(), left_out, size };
        self.audit.probe_began(&actor, summary.targets, size);
        let (events_tx, events) = mpsc::channel(CONCURRENCY);
        tokio::spawn(self.clone().run(targets, summary, events_tx, guard));
        Ok(events)
    }

    async fn run(
        self,
        targets: Vec<ProbeTarget>,
        summary: ProbeSummary,
        events: EventSender,
        guard: ExclusiveGuard<Actor>,
    ) {
        let Self { tunnels, stop, .. } = self;
        let stopped = tokio::select! {
            biased;
            () = events.closed() => false,
            () = stop.cancelled() => true,
            _ = timeout(CALL_TIMEOUT, send_results(&tunnels, targets, summary, &events)) => false,
        };
        if stopped {
            // A caller that does not read this does not read anything.
            let _ = timeout(CLOSE_TIMEOUT, events.send(Err(Stopping.into()))).await;
        }
        drop(guard);
        // Last: a daemon that stops waits for the stream's end, and then removes the tunnels' link.
        drop(events);
    }
}

async fn send_results(
    tunnels: &Tunnels,
    targets: Vec<ProbeTarget>,
    summary: ProbeSummary,
    events: &EventSender,
) {
    let mut results = std::pin::pin!(results(tunnels, targets, summary.size));
    while let Some(result) = results.next().await {
        if events.send(Ok(VipProbeEvent::Result(result))).await.is_err() {
            return;
        }
    }
    let _ = events.send(Ok(VipProbeEvent::Summary(summary))).await;
}

fn results(
    tunnels: &Tunnels,
    targets: Vec<ProbeTarget>,
    size: u16,
) -> impl Stream<Item = TargetResult> {
    let prober = Arc::new(TargetProber {
        tunnels: tunnels.clone(),
        host_prober: HostProber::open(tunnels.sources().clone()),
        size,
        searches: MTU_SEARCHES.into(),
    });
    stream::iter(targets)
        .map(move |target| {
            let prober = prober.clone();
            async move { prober.probe(target).await }
        })
        .buffer_unordered(CONCURRENCY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lb_control::command::{Command, Query};
    use lb_net::SourceRules;

    /// Nothing is sent of a configuration that has no services.
    #[tokio::test]
    async fn one_at_a_time_and_none_of_a_daemon_that_stops() {
        let stop = CancellationToken::new();
        let (commands, mut asked) = Commands::channel();
        let answers = tokio::spawn(async move {
            while let Some(Command::Query(Query::Export(reply))) = asked.recv().await {
                let _ = reply.send(Exported { generation: 1, ..Exported::default() });
            }
        });
        let tunnels =
            Tunnels::new(SourceRules::default(), |_| Err("this test has no packet program".into()));
        let prober = VipProber::new(commands, tunnels, Audit::default(), stop.clone());
        let begin = || prober.begin(ProbeSelection::default(), 1_500, Actor::user(8));

        let guard = prober.running.begin(&Actor::user(7)).unwrap();
        let refused = begin().await.unwrap_err();
        assert_eq!(refused.to_string(), "another probe is running, started by uid 7");
        drop(guard);
        let told = begin().await.unwrap().recv().await.unwrap().unwrap();
        assert_eq!(
            told,
            VipProbeEvent::Summary(ProbeSummary { targets: 0, left_out: 0, size: 1_500 })
        );

        stop.cancel();
        let stopped = loop {
            // The one before may be about to end.
            match begin().await {
                Err(VipProbeError::Busy(_)) => tokio::task::yield_now().await,
                begun => break begun.unwrap().recv().await.unwrap(),
            }
        };
        assert_eq!(stopped.unwrap_err().to_string(), "the daemon is stopping");
        answers.abort();
    }
}
