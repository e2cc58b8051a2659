//! Which ways to try, and what came of them, as messages.

use spillway_proto::v1::{self, VipProbeAnswer, VipProbeOutcome, probe_vips_response::Event};

use lb_config::message::ApiEnum;

use super::WrongField;
use crate::vip_probe::{Found, Full, Small, Summary, Told, Wanted};
use lb_base::Quoted;
use lb_health::host::UNSERVED;

/// The full size where a request says none, bytes: what fits an Ethernet.
const USUAL: u16 = 1_500;
/// Full sizes: from what every IPv6 link takes to what jumbo frames do, bytes.
const SIZES: std::ops::RangeInclusive<u32> = 1_280..=9_000;

/// What a request asks for, and the full size, bytes.
pub(in crate::api) fn asked(request: v1::ProbeVipsRequest) -> Result<(Wanted, u16), WrongField> {
    let v1::ProbeVipsRequest { packet_size, pool, backend } = request;
    let size = match packet_size {
        0 => USUAL,
        size => u16::try_from(size).ok().filter(|_| SIZES.contains(&size)).ok_or_else(|| {
            let (least, most) = (SIZES.start(), SIZES.end());
            let cause = format!("{size} bytes are not tried; give {least} to {most}");
            WrongField::new("packet_size", cause)
        })?,
    };
    let wrong = |_| {
        let cause = format!("{} is not an IPv4 or IPv6 address", Quoted(&backend));
        WrongField::new("backend", cause)
    };
    let address = (!backend.is_empty()).then(|| backend.parse().map_err(wrong)).transpose()?;
    Ok((Wanted { pool: Some(pool).filter(|pool| !pool.is_empty()), backend: address }, size))
}

/// What is said of ways.
pub(in crate::api) fn told(told: Told) -> v1::ProbeVipsResponse {
    let event = match told {
        Told::Way(found) => Event::Way(way(found)),
        Told::Summary(Summary { ways, left_out, size }) => Event::Summary(v1::VipProbeSummary {
            ways: number(ways),
            left_out: number(left_out),
            packet_size: size.into(),
        }),
    };
    v1::ProbeVipsResponse { event: Some(event) }
}

fn way(Found { way, small, full }: Found) -> v1::ProbedWay {
    let mut message = v1::ProbedWay {
        pools: way.pools.iter().map(ToString::to_string).collect(),
        backend: way.backend.to_string(),
        vip: way.vip.to_string(),
        encapsulation: way.encapsulation.kind().to_api().into(),
        ..v1::ProbedWay::default()
    };
    let (outcome, answer, after) = match small {
        Small::Echo(after) => (VipProbeOutcome::Answered, VipProbeAnswer::Echo, Some(after)),
        Small::Tcp(after) => (VipProbeOutcome::Answered, VipProbeAnswer::Tcp, Some(after)),
        Small::Silent { host } => {
            message.host = host.unwrap_or_default();
            (VipProbeOutcome::Silent, VipProbeAnswer::Unspecified, None)
        }
        Small::Barred(why) => {
            message.reason = why;
            (VipProbeOutcome::Barred, VipProbeAnswer::Unspecified, None)
        }
    };
    message.set_small(outcome);
    message.set_answer(answer);
    message.round_trip_time = after.and_then(|after| after.try_into().ok());
    if answer != VipProbeAnswer::Echo {
        // A host may well drop what asks for a port that nobody serves.
        message.tcp_port = way.tcp_port.filter(|port| *port != UNSERVED).map_or(0, Into::into);
    }
    match full {
        Full::Answered => message.set_full(VipProbeOutcome::Answered),
        Full::Silent { fits } => {
            message.set_full(VipProbeOutcome::Silent);
            message.fits = fits.map_or(0, Into::into);
        }
        Full::Untried => {}
        Full::Unknown(why) => message.reason = why,
    }
    message
}

fn number(of: usize) -> u32 {
    of.try_into().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::vip_probe::Way;
    use lb_model::{Encapsulation, Name};

    #[test]
    fn a_request_is_within_its_bounds() {
        let ask = |packet_size, pool: &str, backend: &str| {
            let request =
                v1::ProbeVipsRequest { packet_size, pool: pool.into(), backend: backend.into() };
            asked(request).map_err(|wrong| wrong.to_string())
        };
        assert_eq!(ask(0, "", ""), Ok((Wanted::default(), 1_500)));
        let wanted =
            Wanted { pool: Some("web".into()), backend: Some("2001:db8::1".parse().unwrap()) };
        assert_eq!(ask(9_000, "web", "2001:db8::1"), Ok((wanted, 9_000)));
        for size in [1, 1_279, 9_001, 70_000] {
            let wrong = format!("packet_size: {size} bytes are not tried; give 1280 to 9000");
            assert_eq!(ask(size, "", ""), Err(wrong));
        }
        let wrong = "backend: \"web1\" is not an IPv4 or IPv6 address".to_owned();
        assert_eq!(ask(1_280, "", "web1"), Err(wrong));
    }

    #[test]
    fn each_outcome_says_what_is_known() {
        let of = |small, full| {
            let way = Way {
                pools: [Name::new("web").unwrap(), Name::new("api").unwrap()].into(),
                backend: "10.1.0.11".parse().unwrap(),
                vip: "203.0.113.1".parse().unwrap(),
                encapsulation: Encapsulation::Gue(7),
                tcp_port: Some(80),
            };
            match told(Told::Way(Found { way, small, full })).event {
                Some(Event::Way(way)) => way,
                other => panic!("{other:?}"),
            }
        };
        let time = Duration::from_micros(1_500);
        let echo = of(Small::Echo(time), Full::Silent { fits: Some(1_420) });
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
        let tcp = of(Small::Tcp(time), Full::Unknown("no echo".into()));
        assert_eq!((tcp.answer(), tcp.full()), (VipProbeAnswer::Tcp, VipProbeOutcome::Unspecified));
        assert_eq!((tcp.tcp_port, tcp.reason.as_str()), (80, "no echo"));
        let silent = of(Small::Silent { host: Some("is there".into()) }, Full::Untried);
        assert_eq!((silent.small(), silent.host.as_str()), (VipProbeOutcome::Silent, "is there"));
        assert_eq!((silent.tcp_port, silent.round_trip_time), (80, None));
        let barred = of(Small::Barred("no link".into()), Full::Untried);
        assert_eq!((barred.small(), barred.reason.as_str()), (VipProbeOutcome::Barred, "no link"));
    }
}
