//! Conversion of captures: the filter, the packets, the summary, and the errors.

use std::{net::IpAddr, num::NonZeroU32, time::Duration};

use futures::StreamExt;
use nix::net::if_::if_indextoname;
use spillway_proto::v1::{
    self, CaptureResponse, ErrorReason, capture_response::Event, capture_summary::Reason,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, codegen::BoxStream};

use super::{ApiError, WrongField};
use crate::capture::{
    CaptureBounds, CaptureEnd, CaptureError, CaptureEvent, CaptureFilter, CaptureSummary,
    CapturedPacket, LeavingFrame,
};
use lb_base::{Quoted, error_chain};
use lb_common::abi::verdict::{Action, Verdict};
use lb_inspect::stats::action_word;

pub(crate) fn capture_filter(request: &v1::CaptureRequest) -> Result<CaptureFilter, WrongField> {
    let set = |text: &str| !text.is_empty();
    let client = set(&request.client).then(|| prefix(&request.client)).transpose()?;
    let vip = set(&request.vip).then(|| address("vip", &request.vip)).transpose()?;
    if let (Some((client, _)), Some(vip)) = (client, vip)
        && client.is_ipv4() != vip.is_ipv4()
    {
        return Err(WrongField::new(
            "vip",
            format!("{vip} is of another IP version than {client}"),
        ));
    }
    let port = u16::try_from(request.port).map_err(|_| {
        WrongField::new("port", format!("{} is not a port; give 1 to 65535", request.port))
    })?;
    let backend =
        set(&request.backend).then(|| address("backend", &request.backend)).transpose()?;
    let dropped = request.dropped;
    let verdicts: Result<_, _> =
        request.verdicts.iter().map(|name| verdict(name, dropped)).collect();
    Ok(CaptureFilter {
        client,
        vip,
        port: Some(port).filter(|port| *port != 0),
        backend,
        verdicts: verdicts?,
        dropped,
        bounds: bounds(request)?,
    })
}

fn bounds(request: &v1::CaptureRequest) -> Result<CaptureBounds, WrongField> {
    let default = CaptureBounds::default();
    let within = |field, number, default, most: u32| match number {
        0 => Ok(default),
        _ if number <= most => Ok(number),
        _ => Err(WrongField::new(field, format!("{number} is more than {most}"))),
    };
    let duration = match request.duration {
        None => default.duration,
        Some(duration) => Duration::try_from(duration)
            .ok()
            .filter(|time| !time.is_zero() && *time <= CaptureBounds::MOST_DURATION)
            .ok_or_else(|| {
                WrongField::new("duration", "must be above zero and at most an hour (1h)")
            })?,
    };
    let most = CaptureBounds::MOST_PACKETS;
    let per_second = within("packets_per_second", request.packets_per_second, 0, most)?;
    Ok(CaptureBounds {
        snap: within("snap_length", request.snap_length, default.snap, CaptureBounds::MOST_SNAP)?,
        packets: within("packets", request.packets, default.packets, most)?,
        duration,
        per_second: NonZeroU32::new(per_second),
    })
}

fn address(field: &'static str, text: &str) -> Result<IpAddr, WrongField> {
    text.parse().map_err(|_| {
        WrongField::new(field, format!("{} is not an IPv4 or IPv6 address", Quoted(text)))
    })
}

fn prefix(text: &str) -> Result<(IpAddr, u8), WrongField> {
    let (address_text, bits) = match text.split_once('/') {
        None => (text, None),
        Some((address, bits)) => (address, Some(bits)),
    };
    let address = address("client", address_text)?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let Some(bits) = bits else { return Ok((address, most)) };
    match bits.parse() {
        Ok(bits) if bits <= most => Ok((address, bits)),
        _ => {
            let cause = format!("{} is not a prefix; its length is 0 to {most}", Quoted(text));
            Err(WrongField::new("client", cause))
        }
    }
}

/// The verdict of a name, if the capture can have such packets.
fn verdict(name: &str, dropped: bool) -> Result<Verdict, WrongField> {
    let wrong = |cause| Err(WrongField::new("verdicts", cause));
    let Some(found) = Verdict::ALL.iter().find(|verdict| verdict.name() == name) else {
        return wrong(format!("{} is no verdict; see `spillway verdicts`", Quoted(name)));
    };
    if found.is_receivers() {
        return wrong(format!(
            "{name} is a verdict of receivers, which this balancer cannot capture; on the receiver's host \
             `spillway stats` counts such packets, and tcpdump shows them"
        ));
    }
    if dropped && found.action() != Action::Drop {
        return wrong(format!(
            "{name} drops nothing, but only dropped packets were requested; `spillway capture \
             --verdict {name}` without --dropped captures such packets"
        ));
    }
    Ok(*found)
}

fn capture_event(event: CaptureEvent) -> CaptureResponse {
    let event = match event {
        CaptureEvent::Packets(packets) => Event::Packets(v1::CapturedPackets {
            packets: packets.into_iter().map(packet).collect(),
        }),
        CaptureEvent::Summary(it) => Event::Summary(summary(&it)),
    };
    CaptureResponse { event: Some(event) }
}

fn packet(taken: CapturedPacket) -> v1::CapturedPacket {
    v1::CapturedPacket {
        number: taken.number,
        at: Some(taken.at.into()),
        interface: interface(taken.interface),
        frame: taken.frame,
        length: taken.length,
        verdict: taken.verdict.name().into(),
        action: action_word(taken.verdict.action()).into(),
        backend: taken.backend.map(|backend| backend.to_string()).unwrap_or_default(),
        left: taken.left.map(|LeavingFrame { interface: by, frame, length }| v1::LeavingFrame {
            interface: interface(by),
            frame,
            length,
        }),
    }
}

fn interface(index: u32) -> String {
    let name = if_indextoname(index).ok().and_then(|name| name.into_string().ok());
    name.unwrap_or_else(|| index.to_string())
}

fn summary(summary: &CaptureSummary) -> v1::CaptureSummary {
    v1::CaptureSummary {
        reason: match summary.end {
            CaptureEnd::Packets => Reason::Packets,
            CaptureEnd::Duration => Reason::Duration,
        }
        .into(),
        matched: summary.counted.matched,
        written: summary.written,
        left_out: summary.counted.left_out,
        lost: summary.counted.lost,
    }
}

/// The stream of a capture, which ends when the stream is dropped.
pub(crate) fn capture_stream(
    events: mpsc::Receiver<Result<CaptureEvent, CaptureError>>,
) -> BoxStream<CaptureResponse> {
    Box::pin(ReceiverStream::new(events).map(|event| Ok(capture_event(event?))))
}

impl From<CaptureError> for Status {
    fn from(error: CaptureError) -> Self {
        let (code, reason) = match &error {
            CaptureError::Busy(_) => (Code::FailedPrecondition, ErrorReason::InProgress),
            CaptureError::Maps(_) | CaptureError::Ring(_) => {
                (Code::Unavailable, ErrorReason::MapsUnreadable)
            }
            CaptureError::Stopping => (Code::Unavailable, ErrorReason::Stopping),
        };
        ApiError::new(code, reason, error_chain::message(&error)).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_set_does_not_matter() {
        assert_eq!(
            capture_filter(&v1::CaptureRequest::default()).unwrap(),
            CaptureFilter::default()
        );
    }

    #[test]
    fn all_that_is_set_counts() {
        let request = v1::CaptureRequest {
            client: "2001:db8::/32".into(),
            vip: "2001:db8:f::1".into(),
            port: 65_535,
            backend: "10.1.0.11".into(),
            // However often one is named.
            verdicts: ["no_backend", "fragment"]
                .repeat(1_000)
                .into_iter()
                .map(Into::into)
                .collect(),
            dropped: true,
            snap_length: 2_000,
            packets: 1_000_000,
            duration: Some(prost_types::Duration { seconds: 3_600, nanos: 0 }),
            packets_per_second: 10,
        };
        let expected = CaptureFilter {
            client: Some(("2001:db8::".parse().unwrap(), 32)),
            vip: Some("2001:db8:f::1".parse().unwrap()),
            port: Some(65_535),
            backend: Some("10.1.0.11".parse().unwrap()),
            verdicts: [Verdict::Fragment, Verdict::NoBackend].into(),
            dropped: true,
            bounds: CaptureBounds {
                snap: 2_000,
                packets: 1_000_000,
                duration: Duration::from_secs(3_600),
                per_second: NonZeroU32::new(10),
            },
        };
        assert_eq!(capture_filter(&request).unwrap(), expected);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let ask = |change: fn(&mut v1::CaptureRequest)| {
            let mut request = v1::CaptureRequest::default();
            change(&mut request);
            capture_filter(&request).err().unwrap().to_string()
        };
        let time = |seconds, nanos| Some(prost_types::Duration { seconds, nanos });
        assert_eq!(
            ask(|r| r.client = "10.0.0.0/33".into()),
            "client: \"10.0.0.0/33\" is not a prefix; its length is 0 to 32"
        );
        assert_eq!(
            ask(|r| r.client = "web/24".into()),
            "client: \"web\" is not an IPv4 or IPv6 address"
        );
        assert_eq!(
            ask(|r| (r.client, r.vip) = ("10.0.0.1".into(), "2001:db8::1".into())),
            "vip: 2001:db8::1 is of another IP version than 10.0.0.1"
        );
        assert_eq!(ask(|r| r.port = 65_536), "port: 65536 is not a port; give 1 to 65535");
        assert_eq!(
            ask(|r| r.verdicts = vec!["gone".into()]),
            "verdicts: \"gone\" is no verdict; see `spillway verdicts`"
        );
        assert_eq!(
            ask(|r| r.verdicts = vec!["fragment".into(), "decapsulated".into()]),
            "verdicts: decapsulated is a verdict of receivers, which this balancer cannot capture; on the \
         receiver's host `spillway stats` counts such packets, and tcpdump shows them"
        );
        assert_eq!(
            ask(|r| {
                r.verdicts = vec!["fragment".into(), "transmitted".into()];
                r.dropped = true;
            }),
            "verdicts: transmitted drops nothing, but only dropped packets were requested; \
         `spillway capture --verdict transmitted` without --dropped captures such packets"
        );
        assert_eq!(ask(|r| r.snap_length = 2_001), "snap_length: 2001 is more than 2000");
        assert_eq!(ask(|r| r.packets = 1_000_001), "packets: 1000001 is more than 1000000");
        assert_eq!(
            ask(|r| r.packets_per_second = 1_000_001),
            "packets_per_second: 1000001 is more than 1000000"
        );
        for duration in [time(0, 0), time(3_600, 1), time(-1, 0)] {
            let request = v1::CaptureRequest { duration, ..Default::default() };
            assert_eq!(
                capture_filter(&request).err().unwrap().to_string(),
                "duration: must be above zero and at most an hour (1h)"
            );
        }
    }
}
