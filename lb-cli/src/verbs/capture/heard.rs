//! What the daemon says of a capture.

use std::ops::ControlFlow;

use serde::Serialize;
use spillway_proto::v1::{
    CaptureRequest, CaptureSummary, CapturedPacket, capture_response::Event,
    capture_summary::Reason,
};
use tonic::Code;

use crate::{arguments::Options, daemon::Daemon, exit::Exit, failure::Failure};

/// How a capture ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct End {
    /// Packets that we have.
    pub(super) written: u64,
    /// What it came to; `None`: the user ended it.
    #[serde(flatten)]
    pub(super) counted: Option<Counted>,
    /// Why it ended: "packets", "duration", or "stopped" by the user.
    pub(super) reason: &'static str,
}

/// What the packet path counted of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Counted {
    /// Packets that met all conditions.
    pub(super) matched: u64,
    /// Of them, those beyond the rate.
    pub(super) left_out: u64,
    /// Of them, those that came faster than they were read.
    pub(super) lost: u64,
    /// Of them, those that came when there were as many as were wanted already.
    pub(super) beyond: u64,
}

impl End {
    fn of(summary: &CaptureSummary) -> Self {
        let CaptureSummary { matched, written, left_out, lost, .. } = *summary;
        let reason = match summary.reason() {
            Reason::Packets => "packets",
            Reason::Duration => "duration",
            Reason::Unspecified => "unknown",
        };
        let beyond = matched.saturating_sub(written + left_out + lost);
        Self { written, counted: Some(Counted { matched, left_out, lost, beyond }), reason }
    }

    /// In words.
    pub(super) fn words(&self) -> String {
        let Some(Counted { matched, left_out, lost, beyond }) = self.counted else {
            return "stopped".into();
        };
        let some = |number, text| if number == 0 { String::new() } else { text };
        let left_out = some(left_out, format!(", {left_out} left out"));
        let beyond = some(beyond, format!(", {beyond} beyond the count"));
        format!("{matched} matched{left_out}, {lost} lost{beyond}")
    }
}

/// Hears a capture of `spillway VERB` to its end, or until the user stops it or `take` has enough. That is
/// called once with nothing as soon as the capture is on, then with packets.
///
/// # Errors
/// The daemon does not answer, refuses, or goes away; or those of `take`.
pub(super) async fn hear(
    options: &Options,
    verb: &str,
    request: CaptureRequest,
    mut take: impl FnMut(&[CapturedPacket]) -> Result<ControlFlow<()>, Failure>,
) -> Result<End, Failure> {
    let mut daemon = Daemon::open(options).await?;
    let mut events = daemon.capture(request).await.map_err(|failure| refused(verb, failure))?;
    let _ = take(&[])?;
    let stopped = tokio::signal::ctrl_c();
    tokio::pin!(stopped);
    let mut written = 0;
    loop {
        let message = tokio::select! {
            message = events.message() => message,
            _ = &mut stopped => return Ok(End { written, counted: None, reason: "stopped" }),
        };
        let message = message.map_err(|status| daemon.failure(&status))?;
        let message = message.ok_or_else(|| daemon.broken("it ended the capture"))?;
        match message.event {
            Some(Event::Packets(packets)) => {
                written += packets.packets.len() as u64;
                if take(&packets.packets)?.is_break() {
                    return Ok(End { written, counted: None, reason: "stopped" });
                }
            }
            Some(Event::Summary(summary)) => return Ok(End::of(&summary)),
            // Of a later daemon.
            None => {}
        }
    }
}

/// What the daemon refuses is a command line, and no configuration.
fn refused(verb: &str, failure: Failure) -> Failure {
    match failure.code {
        Some(Code::InvalidArgument) => Failure { exit: Exit::Usage, ..failure }
            .hint(format!("`spillway {verb} --help` says what it takes")),
        Some(Code::FailedPrecondition) => failure.hint(
            "there is one capture at a time: wait until it ends, or end it where it was begun",
        ),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matched_is_all_accounted_for() {
        let words = |written, left_out, lost| {
            let reason = Reason::Packets.into();
            End::of(&CaptureSummary { reason, matched: 1_412, written, left_out, lost }).words()
        };
        assert_eq!(words(1_412, 0, 0), "1412 matched, 0 lost");
        assert_eq!(words(1_000, 0, 412), "1412 matched, 412 lost");
        assert_eq!(words(1_000, 0, 12), "1412 matched, 12 lost, 400 beyond the count");
        assert_eq!(words(1_000, 400, 0), "1412 matched, 400 left out, 0 lost, 12 beyond the count");
    }
}
