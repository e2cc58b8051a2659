//! Captures: packets as the packet path sees them. There is one at a time. It is a task that ends when its caller
//! disconnects, after its duration, or when it has its packets.
//!
//! The packet path stops a capture whose deadline the daemon no longer renews, so that a daemon that is killed leaves
//! none running.

mod filter;
mod packet;
mod running;

use std::path::PathBuf;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use filter::{CaptureBounds, CaptureFilter};
pub use packet::{CapturedPacket, LeavingFrame};
pub use running::{CaptureEnd, CaptureSummary};

use crate::audit::Audit;
use lb_base::exclusive::Exclusive;
use lb_control::command::Actor;
use lb_maps::{CaptureMaps, MapsError};
use lb_secure::access::Peer;
use running::RunningCapture;

/// Batches that may wait for a slow caller. Further samples wait in the ring, and are lost when it is full.
const BATCHES: usize = 16;

/// Why a capture cannot begin, or was aborted.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// There is one at a time.
    #[error("another capture is running, started by {0}")]
    Busy(Actor),
    /// The maps cannot be opened or written.
    #[error("the maps")]
    Maps(#[from] MapsError),
    /// Waiting for the ring fails.
    #[error("the ring of samples")]
    Ring(#[from] std::io::Error),
    /// The daemon stops.
    #[error("the daemon is stopping")]
    Stopping,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureEvent {
    /// Packets, at least one.
    Packets(Vec<CapturedPacket>),
    /// The last event of a capture that ended as requested.
    Summary(CaptureSummary),
}

/// Begins captures, one at a time. Clones share that limit.
#[derive(Clone, Debug)]
pub struct Captures {
    bpffs: PathBuf,
    audit: Audit,
    stop: CancellationToken,
    running: Exclusive<Actor>,
}

impl Captures {
    /// Captures through the maps under `bpffs`; each is logged in `audit`.
    pub fn new(bpffs: PathBuf, audit: Audit, stop: CancellationToken) -> Self {
        Self { bpffs, audit, stop, running: Exclusive::default() }
    }

    /// Begins a capture, which ends when the receiver is dropped. It leaves out the packets of the caller's own
    /// connection: each sample would cause more of them.
    pub fn begin(
        &self,
        filter: CaptureFilter,
        caller: Peer,
    ) -> Result<mpsc::Receiver<Result<CaptureEvent, CaptureError>>, CaptureError> {
        let Peer { actor, connection, .. } = caller;
        let guard = self.running.begin(&actor).map_err(CaptureError::Busy)?;
        let maps = CaptureMaps::open(&self.bpffs)?;
        let (sender, receiver) = mpsc::channel(BATCHES);
        let running = RunningCapture::begin(maps, filter, connection)?;
        self.audit.capture_began(&actor, &running.filter().to_string());
        let (audit, stop) = (self.audit.clone(), self.stop.clone());
        tokio::spawn(async move {
            let ended = running.run(&sender, stop).await;
            audit.capture_ended(&actor, &ended.to_string());
            drop(guard);
            // Last: a daemon that stops waits for the stream's end.
            drop(sender);
        });
        Ok(receiver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_the_capture_is_named() {
        let busy = CaptureError::Busy(Actor::user(7)).to_string();
        assert_eq!(busy, "another capture is running, started by uid 7");
    }

    #[tokio::test]
    async fn a_failed_capture_does_not_block_the_next() {
        let stop = CancellationToken::new();
        let captures = Captures::new("/nowhere".into(), Audit::default(), stop);
        for _ in 0..2 {
            let refused = captures.begin(CaptureFilter::default(), Peer::default()).err().unwrap();
            assert!(matches!(refused, CaptureError::Maps(MapsError::Missing { .. })), "{refused}");
        }
    }
}
