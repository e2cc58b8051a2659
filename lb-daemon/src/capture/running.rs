//! A capture while it is on.

use std::time::Duration;

use lb_common::abi::capture::{Capture, Captured};
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    CaptureError, Said, Summary, Taken, Wanted, Why,
    clock::Clocks,
    ended::{Ended, How},
};
use crate::access::TcpEnds;
use lb_base::error_chain;
use lb_maps::{CaptureMaps, CaptureSwitch, MapsError, Sample, Samples, clock};

/// How long the packet path goes on with nobody putting the end off, and how often that is done.
const LEASE: Duration = Duration::from_secs(3);
const AGAIN: Duration = Duration::from_secs(1);
/// Longest time that a packet is on its way through the program.
const GRACE: Duration = Duration::from_millis(20);
/// Packets that are told at once.
const BATCH: usize = 64;
/// How long somebody may take to hear the rest.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who hears it.
type Ear = mpsc::Sender<Result<Said, CaptureError>>;

/// Why a capture ends otherwise than it was to.
enum Cut {
    /// See [`How`].
    Unheard,
    /// See [`How`].
    Unread,
    /// Who hears it is told.
    Broken(CaptureError),
}

impl<E: Into<CaptureError>> From<E> for Cut {
    fn from(error: E) -> Self {
        Self::Broken(error.into())
    }
}

/// The packet path captures; it ends when this is dropped.
struct On {
    switch: CaptureSwitch,
    capture: Capture,
}

impl On {
    /// Puts the end off, but not beyond `end`.
    fn renew(&mut self, end: Instant) -> Result<(), CaptureError> {
        let lease = LEASE.min(end.saturating_duration_since(Instant::now()));
        self.capture.until = clock::now()? + lease.as_nanos() as u64;
        Ok(self.switch.set(&self.capture)?)
    }

    fn end(&mut self) -> Result<(), MapsError> {
        self.capture.until = 0;
        self.switch.set(&Capture::default())
    }
}

impl Drop for On {
    fn drop(&mut self) {
        if self.capture.until != 0
            && let Err(error) = self.end()
        {
            // It ends by itself.
            tracing::warn!(error = error_chain::message(&error), "capture: cannot be turned off");
        }
    }
}

/// A capture.
pub(super) struct Running {
    on: On,
    samples: Samples,
    wanted: Wanted,
    /// What was counted before.
    before: Captured,
    /// When it ends.
    end: Instant,
    written: u64,
}

impl Running {
    /// Turns it on.
    ///
    /// # Errors
    /// [`CaptureError`]; nothing is captured then.
    pub(super) fn begin(
        maps: CaptureMaps,
        wanted: Wanted,
        own: Option<TcpEnds>,
    ) -> Result<Self, CaptureError> {
        let CaptureMaps { switch, mut samples } = maps;
        // Of captures that were cut off.
        while !samples.there(BATCH).is_empty() {}
        switch.set_limit(wanted.limit());
        let before = switch.counted()?;
        // No two captures begin at one moment, whoever the daemon is.
        let capture = wanted.capture(clock::now()?, own);
        let end = Instant::now() + wanted.bounds.duration;
        let mut on = On { switch, capture };
        on.renew(end)?;
        Ok(Self { on, samples, wanted, before, end, written: 0 })
    }

    pub(super) const fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Tells what comes until it ends.
    pub(super) async fn run(mut self, ear: &Ear, stop: CancellationToken) -> Ended {
        let told = self.tell(ear, stop).await;
        let counted = self.turn_off().await;
        let known = counted.as_ref().ok().copied();
        let closed = match (told, counted) {
            (Ok(why), Ok(counted)) => {
                timeout(PATIENCE, self.close(why, counted, ear)).await.unwrap_or(Err(Cut::Unread))
            }
            (Ok(_), Err(error)) => Err(error.into()),
            (Err(cut), _) => Err(cut),
        };
        let how = match closed {
            Ok(why) => How::Done(why),
            Err(Cut::Unheard) => How::Unheard,
            Err(Cut::Unread) => How::Unread,
            Err(Cut::Broken(error)) => {
                let cause = error_chain::message(&error);
                // Who does not hear it hears nothing else either.
                let _ = timeout(PATIENCE, ear.send(Err(error))).await;
                How::Broken(cause)
            }
        };
        Ended { how, counted: known, written: self.written }
    }

    async fn tell(&mut self, ear: &Ear, stop: CancellationToken) -> Result<Why, Cut> {
        let mut again = interval(AGAIN);
        again.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let stop = stop.cancelled_owned();
        tokio::pin!(stop);
        while self.left() > 0 {
            let most = BATCH.min(self.left());
            let samples = &mut self.samples;
            let next = async {
                // First a place for them: those that nobody takes are lost in the ring, and counted.
                let place = ear.reserve().await.map_err(|_| Cut::Unheard)?;
                Ok::<_, Cut>((place, samples.next(most).await?))
            };
            tokio::select! {
                biased;
                () = ear.closed() => return Err(Cut::Unheard),
                () = &mut stop => return Err(CaptureError::Stopping.into()),
                () = sleep_until(self.end) => return Ok(Why::Duration),
                _ = again.tick() => self.on.renew(self.end)?,
                next = next => {
                    let (place, samples) = next?;
                    let packets = self.read(samples)?;
                    if !packets.is_empty() {
                        self.written += packets.len() as u64;
                        place.send(Ok(Said::Packets(packets)));
                    }
                }
            }
        }
        Ok(Why::Packets)
    }

    /// Turns it off, and says what was counted of it.
    async fn turn_off(&mut self) -> Result<Captured, CaptureError> {
        self.on.end()?;
        sleep(GRACE).await;
        let now = self.on.switch.counted()?;
        Ok(Captured {
            matched: now.matched.wrapping_sub(self.before.matched),
            left_out: now.left_out.wrapping_sub(self.before.left_out),
            lost: now.lost.wrapping_sub(self.before.lost),
        })
    }

    /// Tells what is in the ring, as far as it is wanted, and then what it came to.
    async fn close(&mut self, why: Why, counted: Captured, ear: &Ear) -> Result<Why, Cut> {
        while self.left() > 0 {
            let samples = self.samples.there(BATCH.min(self.left()));
            if samples.is_empty() {
                break;
            }
            let packets = self.read(samples)?;
            let number = packets.len() as u64;
            if number > 0 {
                ear.send(Ok(Said::Packets(packets))).await.map_err(|_| Cut::Unheard)?;
                self.written += number;
            }
        }
        let summary = Summary { why, counted, written: self.written };
        ear.send(Ok(Said::Summary(summary))).await.map_err(|_| Cut::Unheard)?;
        Ok(why)
    }

    /// Packets that are still wanted.
    fn left(&self) -> usize {
        (u64::from(self.wanted.bounds.packets) - self.written) as usize
    }

    /// The packets of samples that are of this capture, numbered after those that were told.
    fn read(&self, samples: Vec<Sample>) -> Result<Vec<Taken>, CaptureError> {
        let clocks = Clocks::now()?;
        let number = self.on.capture.number;
        let ours = samples.into_iter().filter(|sample| sample.head.number == number);
        let mut packets = Vec::new();
        for sample in ours {
            packets.extend(Taken::new(self.written + 1 + packets.len() as u64, sample, &clocks));
        }
        Ok(packets)
    }
}
