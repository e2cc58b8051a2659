//! Conversion of VIP probes: the request, the results, and the errors.

use futures::StreamExt;
use spillway_proto::v1::{
    self, ErrorReason, ProbeVipsResponse, VipProbeAnswer, VipProbeOutcome,
    probe_vips_response::Event,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, codegen::BoxStream};

use super::{ApiError, WrongField};
use crate::vip_probe::{
    FullResult, NoProbeTarget, ProbeSelection, ProbeSummary, SmallResult, TargetResult,
    VipProbeError, VipProbeEvent,
};
use lb_base::{Quoted, error_chain};
use lb_config::message::ApiEnum;
use lb_model::HealthCheck;

/// The full size if the request sets none, bytes: that of Ethernet.
const DEFAULT_SIZE: u16 = 1_500;
/// Full sizes, bytes: from the IPv6 minimum MTU to jumbo frames.
const SIZES: std::ops::RangeInclusive<u32> = 1_280..=9_000;

/// The selected targets, and the full size in bytes.
pub(crate) fn probe_request(
    request: v1::ProbeVipsRequest,
) -> Result<(ProbeSelection, u16), WrongField> {
    let v1::ProbeVipsRequest { packet_size, pool, backend } = request;
    let size = match packet_size {
        0 => DEFAULT_SIZE,
        size => u16::try_from(size).ok().filter(|_| SIZES.contains(&size)).ok_or_else(|| {
            let (least, most) = (SIZES.start(), SIZES.end());
            let cause = format!("{size} bytes are not possible; give {least} to {most}");
            WrongField::new("packet_size", cause)
        })?,
    };
    let wrong = |_| {
        let cause = format!("{} is not an IPv4 or IPv6 address", Quoted(&backend));
        WrongField::new("backend", cause)
    };
    let address = (!backend.is_empty()).then(|| backend.parse().map_err(wrong)).transpose()?;
    Ok((
        ProbeSelection { pool: Some(pool).filter(|pool| !pool.is_empty()), backend: address },
        size,
    ))
}

fn probe_event(event: VipProbeEvent) -> ProbeVipsResponse {
    let event = match event {
        VipProbeEvent::Result(found) => Event::Way(way(found)),
        VipProbeEvent::Summary(ProbeSummary { targets, left_out, size }) => {
            Event::Summary(v1::VipProbeSummary {
                ways: number(targets),
                left_out: number(left_out),
                packet_size: size.into(),
            })
        }
    };
    ProbeVipsResponse { event: Some(event) }
}

fn way(TargetResult { target, small, full }: TargetResult) -> v1::ProbedWay {
    let mut message = v1::ProbedWay {
        pools: target.pools.iter().map(ToString::to_string).collect(),
        backend: target.backend.to_string(),
        vip: target.vip.to_string(),
        encapsulation: target.encapsulation.kind().to_api().into(),
        ..v1::ProbedWay::default()
    };
    let (outcome, answer, after) = match small {
        SmallResult::Echo(after) => (VipProbeOutcome::Answered, VipProbeAnswer::Echo, Some(after)),
        SmallResult::Tcp(after) => (VipProbeOutcome::Answered, VipProbeAnswer::Tcp, Some(after)),
        SmallResult::Silent { host } => {
            message.host = host.unwrap_or_default();
            (VipProbeOutcome::Silent, VipProbeAnswer::Unspecified, None)
        }
        SmallResult::Barred(why) => {
            message.reason = why;
            (VipProbeOutcome::Barred, VipProbeAnswer::Unspecified, None)
        }
    };
    message.set_small(outcome);
    message.set_answer(answer);
    message.round_trip_time = after.and_then(|after| after.try_into().ok());
    if answer != VipProbeAnswer::Echo {
        // A host may drop packets to a port that is not served.
        message.tcp_port = target
            .tcp_port
            .filter(|port| *port != HealthCheck::DEFAULT_HOST_PROBE_PORT)
            .map_or(0, Into::into);
    }
    match full {
        FullResult::Answered => message.set_full(VipProbeOutcome::Answered),
        FullResult::Silent { fits } => {
            message.set_full(VipProbeOutcome::Silent);
            message.fits = fits.map_or(0, Into::into);
        }
        FullResult::NotSent => {}
        FullResult::Unknown(why) => message.reason = why,
    }
    message
}

fn number(of: usize) -> u32 {
    of.try_into().unwrap_or(u32::MAX)
}

/// The stream of a VIP probe, which ends when the stream is dropped.
pub(crate) fn probe_vips_stream(
    events: mpsc::Receiver<Result<VipProbeEvent, VipProbeError>>,
) -> BoxStream<ProbeVipsResponse> {
    Box::pin(ReceiverStream::new(events).map(|event| Ok(probe_event(event?))))
}

impl From<VipProbeError> for Status {
    fn from(error: VipProbeError) -> Self {
        let (code, reason) = match &error {
            VipProbeError::Busy(_) => (Code::FailedPrecondition, ErrorReason::InProgress),
            VipProbeError::Unusable(_) => {
                (Code::FailedPrecondition, ErrorReason::ConfigurationUnusable)
            }
            VipProbeError::NoTarget(missing) => {
                let (kind, name, pool) = match missing {
                    NoProbeTarget::Pool(name) => ("pool", name.to_string(), ""),
                    NoProbeTarget::Backend(pool, address) => {
                        ("backend", address.to_string(), &**pool)
                    }
                    NoProbeTarget::NoPool(address) => ("backend", address.to_string(), ""),
                };
                return ApiError::not_found(missing.to_string(), kind, &name, pool).into();
            }
            VipProbeError::Stopping(_) => (Code::Unavailable, ErrorReason::Stopping),
        };
        ApiError::new(code, reason, error_chain::message(&error)).into()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::vip_probe::ProbeTarget;
    use lb_model::{Encapsulation, Name};

    #[test]
    fn a_request_is_within_its_bounds() {
        let ask = |packet_size, pool: &str, backend: &str| {
            let request =
                v1::ProbeVipsRequest { packet_size, pool: pool.into(), backend: backend.into() };
            probe_request(request).map_err(|wrong| wrong.to_string())
        };
        assert_eq!(ask(0, "", ""), Ok((ProbeSelection::default(), 1_500)));
        let wanted = ProbeSelection {
            pool: Some("web".into()),
            backend: Some("2001:db8::1".parse().unwrap()),
        };
        assert_eq!(ask(9_000, "web", "2001:db8::1"), Ok((wanted, 9_000)));
        for size in [1, 1_279, 9_001, 70_000] {
            let wrong = format!("packet_size: {size} bytes are not possible; give 1280 to 9000");
            assert_eq!(ask(size, "", ""), Err(wrong));
        }
        let wrong = "backend: \"web1\" is not an IPv4 or IPv6 address".to_owned();
        assert_eq!(ask(1_280, "", "web1"), Err(wrong));
    }

    #[test]
    fn each_outcome_says_what_is_known() {
        let of = |small, full| {
            let target = ProbeTarget {
                pools: [Name::new("web").unwrap(), Name::new("api").unwrap()].into(),
                backend: "10.1.0.11".parse().unwrap(),
                vip: "203.0.113.1".parse().unwrap(),
                encapsulation: Encapsulation::Gue(7),
                tcp_port: Some(80),
            };
            match probe_event(VipProbeEvent::Result(TargetResult { target, small, full })).event {
                Some(Event::Way(way)) => way,
                other => panic!("{other:?}"),
            }
        };
        let time = Duration::from_micros(1_500);
        let echo = of(SmallResult::Echo(time), FullResult::Silent { fits: Some(1_420) });
        assert_eq!(
            echo,
            v1::ProbedWay {
                pools: vec!["api".into(), "web".into()],
                backend: "10.1.0.11".into(),
                vip: "203.0.113.1".into(),
                encapsulation: v1::Encapsulation::Gue.into(),
                small: VipProbeOutcome::Answered.into(),
                full: VipProbeOutcome::Silent.into(),
                answer: VipProbeAnswer::Echo.into(),
                fits: 1_420,
                round_trip_time: Some(prost_types::Duration { seconds: 0, nanos: 1_500_000 }),
                ..Default::default()
            }
        );
        let tcp = of(SmallResult::Tcp(time), FullResult::Unknown("no echo".into()));
        assert_eq!((tcp.answer(), tcp.full()), (VipProbeAnswer::Tcp, VipProbeOutcome::Unspecified));
        assert_eq!((tcp.tcp_port, tcp.reason.as_str()), (80, "no echo"));
        let silent = of(SmallResult::Silent { host: Some("is there".into()) }, FullResult::NotSent);
        assert_eq!((silent.small(), silent.host.as_str()), (VipProbeOutcome::Silent, "is there"));
        assert_eq!((silent.tcp_port, silent.round_trip_time), (80, None));
        let barred = of(SmallResult::Barred("no link".into()), FullResult::NotSent);
        assert_eq!((barred.small(), barred.reason.as_str()), (VipProbeOutcome::Barred, "no link"));
    }
}
