mod agent;
mod grpc;
mod http;
mod plain;
mod tls;
mod udp;

use std::time::Duration;

use spillway_proto::v1;

use super::{
    invalid::{Invalid, Place},
    number,
};
use lb_model::{HealthCheck, Probe, bounds};

const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);
const LONGEST_INTERVAL: Duration = Duration::from_secs(3600);
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(1);
/// Interval where none is given, and the longest timeout that is assumed.
const SECOND: Duration = Duration::from_secs(1);

/// A check with its defaults.
pub(super) fn health_check(at: &Place, message: &v1::HealthCheck) -> Result<HealthCheck, Invalid> {
    let probe = match &message.probe {
        None => return Err(at.wrong("probe", "must be set; give tcp, http, grpc, udp or agent")),
        Some(v1::health_check::Probe::Tcp(v1::TcpCheck {})) => Probe::Tcp,
        Some(v1::health_check::Probe::Http(http)) => Probe::Http(http::probe(at, http)?),
        Some(v1::health_check::Probe::Grpc(grpc)) => Probe::Grpc(grpc::probe(at, grpc)?),
        Some(v1::health_check::Probe::Udp(udp)) => Probe::Udp(udp::probe(at, udp)?),
        Some(v1::health_check::Probe::Agent(agent)) => Probe::Agent(agent::probe(at, agent)?),
    };
    let tls = match (&message.tls, &probe) {
        (None, _) => None,
        (Some(_), Probe::Udp(_)) => return Err(at.wrong("tls", "is not for udp")),
        (Some(tls), _) => Some(tls::probe(at, tls)?),
    };
    let port = number::port(at, "port", message.port)?;
    let interval = match message.interval {
        None => SECOND,
        Some(interval) => {
            let (shortest, longest) = (SHORTEST_INTERVAL, LONGEST_INTERVAL);
            number::duration(at, "interval", interval, shortest, longest, "1h")?
        }
    };
    let within_interval = |field, message: Option<prost_types::Duration>, shortest, unset| {
        let Some(duration) = message else { return Ok(unset) };
        let longest_name = format!("the interval of {interval:?}");
        number::duration(at, field, duration, shortest, interval, longest_name)
    };
    let (fast, timeout) = (message.fast_interval, message.timeout);
    Ok(HealthCheck {
        probe,
        tls,
        via: number::value(at, "via", message.via)?.unwrap_or_default(),
        port,
        interval,
        fast_interval: within_interval("fast_interval", fast, SHORTEST_INTERVAL, interval)?,
        timeout: within_interval("timeout", timeout, SHORTEST_TIMEOUT, interval.min(SECOND))?,
        rise: number::within_or(at, "rise", message.rise, bounds::ROUNDS, 2)?,
        fall: number::within_or(at, "fall", message.fall, bounds::ROUNDS, 3)?,
        jitter_percent: match message.jitter_percent {
            None => 10,
            Some(percent) => number::within(at, "jitter_percent", percent, bounds::JITTERS)?,
        },
    })
}
