//! A capture while it runs, and cause it ends.

use std::{fmt, time::Duration};

use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{CaptureError, CaptureEvent, CaptureFilter, CapturedPacket, packet::Clocks};
use lb_base::error_chain;
use lb_common::abi::capture::{Capture, Captured};
use lb_maps::{CaptureMaps, CaptureSwitch, MapsError, Sample, Samples, clock};
use lb_secure::access::TcpEnds;

/// How long the packet path captures without a renewal, and how often the daemon renews.
const LEASE: Duration = Duration::from_secs(3);
const RENEWAL_INTERVAL: Duration = Duration::from_secs(1);
/// Longest time that a packet is in the packet program.
const GRACE: Duration = Duration::from_millis(20);
/// Most packets of one event.
const BATCH: usize = 64;
/// Time for the caller to read the last events.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

type EventSender = mpsc::Sender<Result<CaptureEvent, CaptureError>>;

/// Why a capture ends early.
enum Interruption {
    Disconnected,
    NotReading,
    Aborted(CaptureError),
}

impl<E: Into<CaptureError>> From<E> for Interruption {
    fn from(error: E) -> Self {
        Self::Aborted(error.into())
    }
}

/// The switched-on capture in the map, switched off on drop.
struct ActiveCapture {
    switch: CaptureSwitch,
    capture: Capture,
}

impl ActiveCapture {
    /// Renews the deadline, up to `end` at most.
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

impl Drop for ActiveCapture {
    fn drop(&mut self) {
        if self.capture.until != 0
            && let Err(error) = self.end()
        {
            // The deadline ends it.
            tracing::warn!(
                error = error_chain::message(&error),
                "capture: cannot be switched off; it stops in 3 s"
            );
        }
    }
}

pub(super) struct RunningCapture {
    on: ActiveCapture,
    samples: Samples,
    filter: CaptureFilter,
    /// The counters before it began.
    before: Captured,
    end: Instant,
    written: u64,
}

impl RunningCapture {
    /// Switches the capture on. After an error nothing is captured.
    pub(super) fn begin(
        maps: CaptureMaps,
        filter: CaptureFilter,
        own: Option<TcpEnds>,
    ) -> Result<Self, CaptureError> {
        let CaptureMaps { switch, mut samples } = maps;
        // Samples of aborted captures.
        while !samples.there(BATCH).is_empty() {}
        switch.set_limit(filter.limit());
        let before = switch.counted()?;
        // The time is a unique number, even across restarts of the daemon.
        let capture = filter.to_abi(clock::now()?, own);
        let end = Instant::now() + filter.bounds.duration;
        let mut on = ActiveCapture { switch, capture };
        on.renew(end)?;
        Ok(Self { on, samples, filter, before, end, written: 0 })
    }

    pub(super) const fn filter(&self) -> &CaptureFilter {
        &self.filter
    }

    /// Sends packets until the capture ends.
    pub(super) async fn run(
        mut self,
        events: &EventSender,
        stop: CancellationToken,
    ) -> CaptureOutcome {
        let ended = self.send_packets(events, stop).await;
        let counted = self.switch_off().await;
        let known = counted.as_ref().ok().copied();
        let closed = match (ended, counted) {
            (Ok(end), Ok(counted)) => timeout(CLOSE_TIMEOUT, self.close(end, counted, events))
                .await
                .unwrap_or(Err(Interruption::NotReading)),
            (Ok(_), Err(error)) => Err(error.into()),
            (Err(cut), _) => Err(cut),
        };
        let cause = match closed {
            Ok(end) => CaptureEndCause::Done(end),
            Err(Interruption::Disconnected) => CaptureEndCause::Disconnected,
            Err(Interruption::NotReading) => CaptureEndCause::NotReading,
            Err(Interruption::Aborted(error)) => {
                let cause = error_chain::message(&error);
                // A caller that does not read this does not read anything.
                let _ = timeout(CLOSE_TIMEOUT, events.send(Err(error))).await;
                CaptureEndCause::Aborted(cause)
            }
        };
        CaptureOutcome { cause, counted: known, written: self.written }
    }

    async fn send_packets(
        &mut self,
        events: &EventSender,
        stop: CancellationToken,
    ) -> Result<CaptureEnd, Interruption> {
        let mut again = interval(RENEWAL_INTERVAL);
        again.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let stop = stop.cancelled_owned();
        tokio::pin!(stop);
        while self.left() > 0 {
            let most = BATCH.min(self.left());
            let samples = &mut self.samples;
            let next = async {
                // First a place in the channel: samples that are not read stay in the ring, which counts what it loses.
                let place = events.reserve().await.map_err(|_| Interruption::Disconnected)?;
                Ok::<_, Interruption>((place, samples.next(most).await?))
            };
            tokio::select! {
                biased;
                () = events.closed() => return Err(Interruption::Disconnected),
                () = &mut stop => return Err(CaptureError::Stopping.into()),
                () = sleep_until(self.end) => return Ok(CaptureEnd::Duration),
                _ = again.tick() => self.on.renew(self.end)?,
                next = next => {
                    let (place, samples) = next?;
                    let packets = self.read(samples)?;
                    if !packets.is_empty() {
                        self.written += packets.len() as u64;
                        place.send(Ok(CaptureEvent::Packets(packets)));
                    }
                }
            }
        }
        Ok(CaptureEnd::Packets)
    }

    /// Switches the capture off, and returns its counters.
    async fn switch_off(&mut self) -> Result<Captured, CaptureError> {
        self.on.end()?;
        sleep(GRACE).await;
        let now = self.on.switch.counted()?;
        Ok(Captured {
            matched: now.matched.wrapping_sub(self.before.matched),
            left_out: now.left_out.wrapping_sub(self.before.left_out),
            lost: now.lost.wrapping_sub(self.before.lost),
        })
    }

    /// Sends the packets that are left in the ring, and the summary.
    async fn close(
        &mut self,
        end: CaptureEnd,
        counted: Captured,
        events: &EventSender,
    ) -> Result<CaptureEnd, Interruption> {
        while self.left() > 0 {
            let samples = self.samples.there(BATCH.min(self.left()));
            if samples.is_empty() {
                break;
            }
            let packets = self.read(samples)?;
            let number = packets.len() as u64;
            if number > 0 {
                events
                    .send(Ok(CaptureEvent::Packets(packets)))
                    .await
                    .map_err(|_| Interruption::Disconnected)?;
                self.written += number;
            }
        }
        let summary = CaptureSummary { end, counted, written: self.written };
        events
            .send(Ok(CaptureEvent::Summary(summary)))
            .await
            .map_err(|_| Interruption::Disconnected)?;
        Ok(end)
    }

    /// Packets until the limit.
    fn left(&self) -> usize {
        (u64::from(self.filter.bounds.packets) - self.written) as usize
    }

    /// The packets of this capture among samples, numbered after those that were sent.
    fn read(&self, samples: Vec<Sample>) -> Result<Vec<CapturedPacket>, CaptureError> {
        let clocks = Clocks::now()?;
        let number = self.on.capture.number;
        let ours = samples.into_iter().filter(|sample| sample.head.number == number);
        let mut packets = Vec::new();
        for sample in ours {
            packets.extend(CapturedPacket::new(
                self.written + 1 + packets.len() as u64,
                sample,
                &clocks,
            ));
        }
        Ok(packets)
    }
}

/// Why a capture ended as requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureEnd {
    /// It has all its packets.
    Packets,
    /// Its duration is over.
    Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureSummary {
    pub end: CaptureEnd,
    /// The packet path's counters.
    pub counted: Captured,
    /// Packets that were sent.
    pub written: u64,
}

/// How a capture ended, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CaptureOutcome {
    pub(super) cause: CaptureEndCause,
    /// The packet path's counters; `None`: they could not be read.
    pub(super) counted: Option<Captured>,
    /// Packets that were sent.
    pub(super) written: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CaptureEndCause {
    Done(CaptureEnd),
    Disconnected,
    NotReading,
    /// The daemon stops, or the maps cannot be read.
    Aborted(String),
}

impl fmt::Display for CaptureEndCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(CaptureEnd::Packets) => f.write_str("all packets captured"),
            Self::Done(CaptureEnd::Duration) => f.write_str("duration over"),
            Self::Disconnected => f.write_str("the caller disconnected"),
            Self::NotReading => f.write_str("the caller stopped reading"),
            Self::Aborted(cause) => write!(f, "aborted: {cause}"),
        }
    }
}

impl fmt::Display for CaptureOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cause, counted, written } = self;
        let Some(Captured { matched, left_out, lost }) = *counted else {
            return write!(f, "{cause}; unknown how many matched, {written} written");
        };
        write!(
            f,
            "{cause}; {matched} matched, {written} written, {left_out} left out, {lost} lost"
        )?;
        match matched.saturating_sub(written + left_out + lost) {
            0 => Ok(()),
            rest => write!(f, ", {rest} not written"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_logged_is_what_happened() {
        let counted = Some(Captured { matched: 12, left_out: 2, lost: 1 });
        let logged =
            |cause, counted, written| CaptureOutcome { cause, counted, written }.to_string();
        assert_eq!(
            logged(CaptureEndCause::Done(CaptureEnd::Duration), counted, 9),
            "duration over; 12 matched, 9 written, 2 left out, 1 lost"
        );
        assert_eq!(
            logged(CaptureEndCause::Done(CaptureEnd::Packets), counted, 5),
            "all packets captured; 12 matched, 5 written, 2 left out, 1 lost, 4 not written"
        );
        assert_eq!(
            logged(CaptureEndCause::Disconnected, counted, 9),
            "the caller disconnected; 12 matched, 9 written, 2 left out, 1 lost"
        );
        assert_eq!(
            logged(CaptureEndCause::NotReading, None, 5),
            "the caller stopped reading; unknown how many matched, 5 written"
        );
        assert_eq!(
            logged(CaptureEndCause::Aborted("the daemon is stopping".into()), counted, 0),
            "aborted: the daemon is stopping; 12 matched, 0 written, 2 left out, 1 lost, 9 not \
         written"
        );
    }
}
