use std::time::Duration;

use spillway_proto::v1;

use super::{
    super::invalid::{Invalid, Place, Quoted},
    number,
};
use crate::model::{HealthCheck, HttpProbe, Probe};

const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);
const LONGEST_INTERVAL: Duration = Duration::from_secs(3600);
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(1);
/// Interval where none is given, and the longest timeout that is assumed.
const SECOND: Duration = Duration::from_secs(1);
const LONGEST_PATH: usize = 2048;
const LONGEST_HOST: usize = 255;

/// A check with its defaults.
pub(super) fn health_check(at: &Place, message: &v1::HealthCheck) -> Result<HealthCheck, Invalid> {
    let probe = match &message.probe {
        None => return Err(at.wrong("probe", "must be set; give tcp or http")),
        Some(v1::health_check::Probe::Tcp(v1::TcpProbe {})) => Probe::Tcp,
        Some(v1::health_check::Probe::Http(http)) => Probe::Http(http_probe(at, http)?),
    };
    let port = number::port(at, message.port)?;
    let interval = match message.interval {
        None => SECOND,
        Some(interval) => {
            let (shortest, longest) = (SHORTEST_INTERVAL, LONGEST_INTERVAL);
            number::duration(at, "interval", interval, shortest, longest, "1h")?
        }
    };
    let timeout = match message.timeout {
        None => interval.min(SECOND),
        Some(timeout) => {
            let longest_name = format!("the interval of {interval:?}");
            number::duration(at, "timeout", timeout, SHORTEST_TIMEOUT, interval, longest_name)?
        }
    };
    Ok(HealthCheck {
        probe,
        port,
        interval,
        timeout,
        rise: number::within_or(at, "rise", message.rise, 1..=100, 2)?,
        fall: number::within_or(at, "fall", message.fall, 1..=100, 3)?,
        jitter_percent: match message.jitter_percent {
            None => 10,
            Some(percent) => number::within(at, "jitter_percent", percent, 0..=50)?,
        },
    })
}

fn http_probe(at: &Place, message: &v1::HttpProbe) -> Result<HttpProbe, Invalid> {
    let path = if message.path.is_empty() { "/" } else { &*message.path };
    if !path.starts_with('/') {
        return Err(at.wrong("http.path", format_args!("{} must begin with '/'", Quoted(path))));
    }
    plain(at, "http.path", path, LONGEST_PATH)?;
    plain(at, "http.host", &message.host, LONGEST_HOST)?;
    let status_min = number::within_or(at, "http.status_min", message.status_min, 100..=599, 200)?;
    let status_max = number::within_or(
        at,
        "http.status_max",
        message.status_max,
        100..=599,
        status_min.max(299),
    )?;
    if status_max < status_min {
        let cause = format!("{status_max} is below status_min, {status_min}");
        return Err(at.wrong("http.status_max", cause));
    }
    Ok(HttpProbe {
        path: path.into(),
        host: Some(message.host.clone()).filter(|host| !host.is_empty()),
        status_min,
        status_max,
    })
}

/// Only what may stand inside a request line or a header: printable ASCII without blanks.
fn plain(at: &Place, field: &'static str, text: &str, longest: usize) -> Result<(), Invalid> {
    if text.len() > longest {
        let cause = format!("has {} bytes; at most {longest} are allowed", text.len());
        return Err(at.wrong(field, cause));
    }
    if let Some(c) = text.chars().find(|c| !c.is_ascii_graphic()) {
        let cause = format!("holds {c:?}; only printable ASCII without blanks is allowed");
        return Err(at.wrong(field, cause));
    }
    Ok(())
}
