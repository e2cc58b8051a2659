//! Captures: packets as the packet path sees them. One at a time; each is a task that ends with whoever
//! asked for it, with its time, or with the packets that were asked for.
//!
//! The packet path ends a capture by itself that is not put off every few seconds, so that a daemon that
//! is killed leaves none behind.

mod clock;
mod ended;
mod running;
mod taken;
mod wanted;

use std::path::PathBuf;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use ended::{Summary, Why};
pub use taken::{Left, Taken};
pub use wanted::{Bounds, Wanted};

use crate::{access::Peer, audit::Audit};
use lb_base::exclusive::Exclusive;
use lb_control::command::Actor;
use lb_maps::{CaptureMaps, MapsError};
use running::Running;

/// Batches that may wait for a slow reader; further samples wait in the ring, and are lost when that is
/// full.
const BATCHES: usize = 16;

/// Why there is no capture.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// One at a time.
    #[error("another capture is on, of {0}")]
    Busy(Actor),
    /// The maps cannot be opened or written.
    #[error("the maps")]
    Maps(#[from] MapsError),
    /// The ring cannot be waited for.
    #[error("the ring of samples")]
    Ring(#[from] std::io::Error),
    /// The daemon stops.
    #[error("the daemon is stopping")]
    Stopping,
}

/// What a capture says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Packets, at least one.
    Packets(Vec<Taken>),
    /// It has ended.
    Summary(Summary),
}

/// Who may capture: one at a time. Clones are of the same packet path.
#[derive(Clone, Debug)]
pub struct Captures {
    bpffs: PathBuf,
    audit: Audit,
    stop: CancellationToken,
    running: Exclusive<Actor>,
}

impl Captures {
    /// Captures of the balancer whose maps are under a BPF file system; each is noted in `audit`.
    pub fn new(bpffs: PathBuf, audit: Audit, stop: CancellationToken) -> Self {
        Self { bpffs, audit, stop, running: Exclusive::default() }
    }

    /// Begins a capture, which ends when its caller reads it no more. The packets of the caller's own connection
    /// are left out: each sample would make more of them.
    ///
    /// # Errors
    /// [`CaptureError`]; nothing is captured then.
    pub fn begin(
        &self,
        wanted: Wanted,
        caller: Peer,
    ) -> Result<mpsc::Receiver<Result<Said, CaptureError>>, CaptureError> {
        let Peer { actor, connection, .. } = caller;
        let guard = self.running.begin(&actor).map_err(CaptureError::Busy)?;
        let maps = CaptureMaps::open(&self.bpffs)?;
        let (sender, receiver) = mpsc::channel(BATCHES);
        let running = Running::begin(maps, wanted, connection)?;
        self.audit.capture_began(&actor, &running.wanted().to_string());
        let (audit, stop) = (self.audit.clone(), self.stop.clone());
        tokio::spawn(async move {
            let ended = running.run(&sender, stop).await;
            audit.capture_ended(&actor, &ended.to_string());
            drop(guard);
            // Last of all: a daemon that stops waits for who hears this to the end.
            drop(sender);
        });
        Ok(receiver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_it_is_named() {
        let busy = CaptureError::Busy(Actor::User(7)).to_string();
        assert_eq!(busy, "another capture is on, of uid 7");
    }

    #[tokio::test]
    async fn who_cannot_have_it_keeps_it_from_nobody() {
        let stop = CancellationToken::new();
        let captures = Captures::new("/nowhere".into(), Audit::default(), stop);
        for _ in 0..2 {
            let refused = captures.begin(Wanted::default(), Peer::default()).err().unwrap();
            assert!(matches!(refused, CaptureError::Maps(MapsError::Missing { .. })), "{refused}");
        }
    }
}
