//! SYNs to a fleet at the moments of a schedule, counted where they arrive.

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::{Arrivals, Rates, Schedule, Sent, packet, send_until};
use crate::process::pause;
use crate::topology::FleetFabric;

/// A sequence number, other than those of other senders.
const SEQUENCE: u32 = 13;

/// A schedule that is being sent. The loop is open: nothing that a balancer or a backend does delays the next SYN.
#[derive(Debug)]
pub struct Load {
    schedule: Schedule,
    regions: Vec<&'static str>,
    arrivals: Arrivals,
    begun: Instant,
    is_over: Arc<AtomicBool>,
    sender: JoinHandle<Result<Vec<Sent>>>,
}

impl Load {
    /// Begins to send to an address. Backends must [forget](super::forget) the senders, which have no answers to expect.
    ///
    /// # Errors
    /// When what arrives cannot be captured.
    pub fn start(fabric: &FleetFabric, to: SocketAddrV4, schedule: Schedule) -> Result<Self> {
        let arrivals = Arrivals::start(&fabric.backends)?;
        let packets: Vec<_> =
            schedule.syns.iter().map(|syn| packet(syn.from, to, SEQUENCE)).collect();
        let moments: Vec<_> = schedule.syns.iter().map(|syn| syn.at).collect();
        let is_over = Arc::new(AtomicBool::new(false));
        let (client, stop, begun) = (fabric.client.clone(), is_over.clone(), Instant::now());
        let sender = std::thread::spawn(move || {
            send_until(&client, to, &packets, |number| moments[number], &stop)
        });
        let regions = fabric.backends.iter().map(|backend| backend.region).collect();
        Ok(Self { schedule, regions, arrivals, begun, is_over, sender })
    }

    /// Lets time pass until so long after the first moment of the schedule.
    pub fn wait_until(&self, after: Duration) {
        pause(after.saturating_sub(self.begun.elapsed()));
    }

    /// The first moment of the schedule.
    pub const fn begun(&self) -> Instant {
        self.begun
    }

    /// How long ago that was.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Sends no more. What is left of the schedule counts neither as sent nor as lost.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub fn stop(self) -> Result<Rates> {
        self.is_over.store(true, Ordering::Relaxed);
        self.finish()
    }

    /// Whether all has been sent.
    pub fn is_over(&self) -> bool {
        self.sender.is_finished()
    }

    /// Waits until all has been sent, and answers what arrived where.
    ///
    /// # Errors
    /// When a packet could not be sent, or a capture missed some.
    pub fn finish(self) -> Result<Rates> {
        let sent = match self.sender.join() {
            Ok(sent) => sent.context("load")?,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let arrivals = self.arrivals.stop()?;
        Ok(Rates::new(&self.schedule, &sent, &arrivals, &self.regions))
    }
}
