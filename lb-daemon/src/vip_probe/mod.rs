//! Whether VIPs answer on their backends through the pools' own tunnels, and whether packets of the size that
//! clients send get there: tried once, when somebody asks, and apart from the checks.
//!
//! A way is tried by echo requests, a small one first and then one of the full size. Where none is answered, by
//! a connection too: a firewall that drops echo requests is no VIP that is missing. One call at a time, which
//! ends with its caller.

mod echo;
mod trial;
mod ways;

use std::{sync::Arc, time::Duration};

use futures::{Stream, StreamExt, stream};
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;

use trial::Trial;
pub use trial::{Found, Full, Small};
pub use ways::{NoWay, Wanted, Way};

use crate::audit::Audit;
use lb_base::exclusive::{Exclusive, ExclusiveGuard};
use lb_control::command::{Actor, Commands, Exported, Stopping};
use lb_health::{Tunnels, host::HostProber};

/// Ways that are tried at once. Each has one packet of at most 9000 bytes under way: that floods no link.
const AT_ONCE: usize = 32;
/// Ways of one call. If all are silent it takes a minute and a half.
const MOST: usize = 1_024;
/// Ways of one call of which it is found out what fits them: a dozen questions each.
const SEARCHES: usize = AT_ONCE;
/// How long somebody may take to hear that the daemon stops.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a call may take, twice what it does at most: nobody keeps others from it by not listening.
const LONGEST: Duration = Duration::from_secs(180);

/// Why ways are not tried.
#[derive(Debug, thiserror::Error)]
pub enum VipProbeError {
    /// One call at a time.
    #[error("another probe is on, of {0}")]
    Busy(Actor),
    /// What is wanted is not there.
    #[error(transparent)]
    NoWay(#[from] NoWay),
    /// The daemon knows no ways.
    #[error("the stored configuration cannot be used: {0}")]
    Unusable(String),
    /// The daemon stops.
    #[error(transparent)]
    Stopping(#[from] Stopping),
}

/// What is said of ways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// What came of one.
    Way(Found),
    /// All are done.
    Summary(Summary),
}

/// What a call came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Ways that were tried.
    pub ways: usize,
    /// Ways beyond the most of one call.
    pub left_out: usize,
    /// The full size, bytes.
    pub size: u16,
}

/// Who hears it.
type Ear = mpsc::Sender<Result<Told, VipProbeError>>;

/// Tries ways, for one caller at a time.
#[derive(Clone, Debug)]
pub struct VipProber {
    commands: Commands,
    tunnels: Tunnels,
    audit: Audit,
    stop: CancellationToken,
    running: Exclusive<Actor>,
}

impl VipProber {
    /// Of the configuration in force, through these tunnels. Each call is noted in `audit`.
    pub fn new(
        commands: Commands,
        tunnels: Tunnels,
        audit: Audit,
        stop: CancellationToken,
    ) -> Self {
        Self { commands, tunnels, audit, stop, running: Exclusive::default() }
    }

    /// Begins to try ways, with packets of `size` bytes as the full size; ends when nobody hears it any more.
    ///
    /// # Errors
    /// [`VipProbeError`]; nothing is sent then.
    pub async fn begin(
        &self,
        wanted: Wanted,
        size: u16,
        actor: Actor,
    ) -> Result<mpsc::Receiver<Result<Told, VipProbeError>>, VipProbeError> {
        let Exported { configuration, unusable, .. } = self.commands.export().await?;
        if let Some(unusable) = unusable {
            return Err(VipProbeError::Unusable(unusable.cause));
        }
        let (ways, left_out) = ways::ways(&configuration, &wanted, MOST)?;
        let guard = self.running.begin(&actor).map_err(VipProbeError::Busy)?;
        let summary = Summary { ways: ways.len(), left_out, size };
        self.audit.probed(&actor, summary.ways, size);
        let (ear, heard) = mpsc::channel(AT_ONCE);
        tokio::spawn(self.clone().run(ways, summary, ear, guard));
        Ok(heard)
    }

    async fn run(self, ways: Vec<Way>, summary: Summary, ear: Ear, guard: ExclusiveGuard<Actor>) {
        let Self { tunnels, stop, .. } = self;
        let stopped = tokio::select! {
            biased;
            () = ear.closed() => false,
            () = stop.cancelled() => true,
            _ = timeout(LONGEST, tell(&tunnels, ways, summary, &ear)) => false,
        };
        if stopped {
            // Who does not hear it hears nothing else either.
            let _ = timeout(PATIENCE, ear.send(Err(Stopping.into()))).await;
        }
        drop(guard);
        // Last of all: a daemon that stops waits for who hears this to the end, and then takes the link away.
        drop(ear);
    }
}

async fn tell(tunnels: &Tunnels, ways: Vec<Way>, summary: Summary, ear: &Ear) {
    let mut told = std::pin::pin!(found(tunnels, ways, summary.size));
    while let Some(found) = told.next().await {
        if ear.send(Ok(Told::Way(found))).await.is_err() {
            return;
        }
    }
    let _nobody_hears_it = ear.send(Ok(Told::Summary(summary))).await;
}

fn found(tunnels: &Tunnels, ways: Vec<Way>, size: u16) -> impl Stream<Item = Found> {
    let trial = Arc::new(Trial {
        tunnels: tunnels.clone(),
        host_prober: HostProber::open(),
        size,
        searches: SEARCHES.into(),
    });
    stream::iter(ways)
        .map(move |way| {
            let trial = trial.clone();
            async move { trial.of(way).await }
        })
        .buffer_unordered(AT_ONCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lb_control::command::Command;
    use lb_model::plan::Sources;

    /// Nothing is sent of a configuration that has no services.
    #[tokio::test]
    async fn one_at_a_time_and_none_of_a_daemon_that_stops() {
        let stop = CancellationToken::new();
        let (commands, mut asked) = Commands::channel();
        let answers = tokio::spawn(async move {
            while let Some(Command::Export(reply)) = asked.recv().await {
                let _ = reply.send(Exported { generation: 1, ..Exported::default() });
            }
        });
        let tunnels =
            Tunnels::new(Sources::default(), |_| Err("this test has no packet program".into()));
        let reaches = VipProber::new(commands, tunnels, Audit::default(), stop.clone());
        let begin = || reaches.begin(Wanted::default(), 1_500, Actor::User(8));

        let guard = reaches.running.begin(&Actor::User(7)).unwrap();
        let refused = begin().await.unwrap_err();
        assert_eq!(refused.to_string(), "another probe is on, of uid 7");
        drop(guard);
        let told = begin().await.unwrap().recv().await.unwrap().unwrap();
        assert_eq!(told, Told::Summary(Summary { ways: 0, left_out: 0, size: 1_500 }));

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
