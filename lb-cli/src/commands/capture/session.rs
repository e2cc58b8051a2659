//! A capture: its filter and limits, the stream of packets, its result.

use std::{
    net::{IpAddr, SocketAddr},
    ops::ControlFlow,
};

use clap::builder::PossibleValuesParser;
use lb_common::abi::verdict::Verdict;
use serde::Serialize;
use spillway_proto::v1::{
    CaptureRequest, CaptureSummary, CapturedPacket, capture_response::Event,
    capture_summary::Reason,
};
use tonic::Code;

use crate::{
    arguments::Options,
    client::DaemonClient,
    failure::{Exit, Failure},
};

#[derive(clap::Args, Debug)]
pub(in crate::commands) struct Filter {
    /// Only packets from this address or prefix
    #[arg(long, value_name = "PREFIX")]
    client: Option<String>,
    /// Only packets to this address, and to the port if given, such as
    /// 203.0.113.1:80 or [2001:db8:f::1]:80
    #[allow(rustdoc::broken_intra_doc_links, reason = "a help text shows brackets as they are")]
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = parse_vip)]
    vip: Option<Vip>,
    /// Only packets for which this backend was chosen
    #[arg(long, value_name = "ADDRESS")]
    backend: Option<IpAddr>,
    /// Only packets with this verdict (see `spillway verdicts`); may be repeated to
    /// capture several
    #[arg(long = "verdict", value_name = "VERDICT", hide_possible_values = true)]
    #[arg(value_parser = PossibleValuesParser::new(Verdict::ALL.iter().map(|v| v.name())))]
    verdicts: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::commands) struct Limits {
    pub(in crate::commands) count: u32,
    pub(in crate::commands) duration: prost_types::Duration,
    pub(in crate::commands) rate: Option<u32>,
}

impl Filter {
    pub(in crate::commands) fn request(self, dropped: bool, limits: &Limits) -> CaptureRequest {
        let vip = self.vip;
        CaptureRequest {
            client: self.client.unwrap_or_default(),
            vip: vip.map(|vip| vip.address.to_string()).unwrap_or_default(),
            port: vip.map_or(0, |vip| u32::from(vip.port)),
            backend: self.backend.map(|backend| backend.to_string()).unwrap_or_default(),
            verdicts: self.verdicts,
            dropped,
            snap_length: 0,
            packets: limits.count,
            duration: Some(limits.duration),
            packets_per_second: limits.rate.unwrap_or(0),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) struct Vip {
    address: IpAddr,
    /// 0: any port.
    port: u16,
}

fn parse_vip(text: &str) -> Result<Vip, String> {
    if let Ok(address) = text.parse() {
        return Ok(Vip { address, port: 0 });
    }
    match text.parse::<SocketAddr>() {
        Ok(endpoint) if endpoint.port() != 0 => {
            Ok(Vip { address: endpoint.ip(), port: endpoint.port() })
        }
        _ => Err("write 203.0.113.1, 203.0.113.1:80, 2001:db8:f::1 or [2001:db8:f::1]:80".into()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(in crate::commands) struct CaptureResult {
    /// Packets received.
    pub(in crate::commands) written: u64,
    /// `None`: the user stopped the capture.
    #[serde(flatten)]
    pub(in crate::commands) counted: Option<CaptureCounts>,
    /// Why the capture ended: "packets", "duration", or "stopped" by the user.
    pub(in crate::commands) reason: &'static str,
}

/// Counted by the packet path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(in crate::commands) struct CaptureCounts {
    /// Packets that match the filter.
    pub(in crate::commands) matched: u64,
    /// Of those, packets over the rate.
    pub(in crate::commands) left_out: u64,
    /// Of those, packets that arrived faster than they were read.
    pub(in crate::commands) lost: u64,
    /// Of those, packets after the count was reached.
    pub(in crate::commands) beyond: u64,
}

impl CaptureResult {
    fn from_summary(summary: &CaptureSummary) -> Self {
        let CaptureSummary { matched, written, left_out, lost, .. } = *summary;
        let reason = match summary.reason() {
            Reason::Packets => "packets",
            Reason::Duration => "duration",
            Reason::Unspecified => "unknown",
        };
        let beyond = matched.saturating_sub(written + left_out + lost);
        Self { written, counted: Some(CaptureCounts { matched, left_out, lost, beyond }), reason }
    }

    pub(in crate::commands) fn describe(&self) -> String {
        let Some(CaptureCounts { matched, left_out, lost, beyond }) = self.counted else {
            return "stopped".into();
        };
        let some = |number, text| if number == 0 { String::new() } else { text };
        let left_out = some(left_out, format!(", {left_out} over the rate"));
        let beyond = some(beyond, format!(", {beyond} over the count"));
        format!("{matched} matched{left_out}, {lost} lost{beyond}")
    }
}

/// Receives the packets of a capture until it ends, the user stops it or `take` breaks. `take` is called
/// with no packets as soon as the capture is on. `command` is the name for hints.
///
/// # Errors
/// The daemon does not answer, refuses, or goes away; or those of `take`.
pub(in crate::commands) async fn receive(
    options: &Options,
    command: &str,
    request: CaptureRequest,
    mut take: impl FnMut(&[CapturedPacket]) -> Result<ControlFlow<()>, Failure>,
) -> Result<CaptureResult, Failure> {
    let mut daemon = DaemonClient::connect(options).await?;
    let mut events = daemon.capture(request).await.map_err(|failure| refusal(command, failure))?;
    let _ = take(&[])?;
    let stopped = tokio::signal::ctrl_c();
    tokio::pin!(stopped);
    let mut written = 0;
    loop {
        let message = tokio::select! {
            message = events.message() => message,
            _ = &mut stopped => return Ok(CaptureResult { written, counted: None, reason: "stopped" }),
        };
        let message = message.map_err(|status| daemon.failure(&status))?;
        let message = message.ok_or_else(|| daemon.lost("the daemon ended the capture"))?;
        match message.event {
            Some(Event::Packets(packets)) => {
                written += packets.packets.len() as u64;
                if take(&packets.packets)?.is_break() {
                    return Ok(CaptureResult { written, counted: None, reason: "stopped" });
                }
            }
            Some(Event::Summary(summary)) => return Ok(CaptureResult::from_summary(&summary)),
            // An event that only a newer daemon knows.
            None => {}
        }
    }
}

/// An invalid argument comes from the command line here, not from a configuration.
fn refusal(command: &str, failure: Failure) -> Failure {
    match failure.code {
        Some(Code::InvalidArgument) => Failure { exit: Exit::Usage, ..failure }
            .hint(format!("`spillway {command} --help` lists the valid values")),
        Some(Code::FailedPrecondition) => failure.hint(
            "only one capture can run at a time: wait until it ends, or stop it where it was started",
        ),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vip_has_a_port_or_none() {
        let of = |text| parse_vip(text).map(|vip| (vip.address.to_string(), vip.port));
        assert_eq!(of("203.0.113.1"), Ok(("203.0.113.1".into(), 0)));
        assert_eq!(of("203.0.113.1:80"), Ok(("203.0.113.1".into(), 80)));
        assert_eq!(of("2001:db8:f::1"), Ok(("2001:db8:f::1".into(), 0)));
        assert_eq!(of("[2001:db8:f::1]:443"), Ok(("2001:db8:f::1".into(), 443)));
        for wrong in ["web", "203.0.113.1:0", "203.0.113.1:", "2001:db8:f::1]:80", ""] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_matched_packet_is_accounted_for() {
        let words = |written, left_out, lost| {
            let reason = Reason::Packets.into();
            CaptureResult::from_summary(&CaptureSummary {
                reason,
                matched: 1_412,
                written,
                left_out,
                lost,
            })
            .describe()
        };
        assert_eq!(words(1_412, 0, 0), "1412 matched, 0 lost");
        assert_eq!(words(1_000, 0, 412), "1412 matched, 412 lost");
        assert_eq!(words(1_000, 0, 12), "1412 matched, 12 lost, 400 over the count");
        assert_eq!(
            words(1_000, 400, 0),
            "1412 matched, 400 over the rate, 0 lost, 12 over the count"
        );
    }
}
