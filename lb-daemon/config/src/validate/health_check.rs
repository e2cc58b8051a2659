//! Health checks.

use std::time::Duration;

use lb_base::Quoted;
use lb_model::{
    AgentCheck, CheckKind, CheckTls, GrpcCheck, HealthCheck, HttpCheck, Trust, UdpCheck, bounds,
};
use rustls_pki_types::DnsName;
use spillway_proto::v1;

use super::{
    invalid::{Invalid, ObjectPath, all},
    values,
};

const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);
const LONGEST_INTERVAL: Duration = Duration::from_secs(3600);
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(1);
/// Interval where none is given, and the longest timeout that is assumed.
const SECOND: Duration = Duration::from_secs(1);

/// A check with its defaults.
pub(super) fn health_check(
    at: &ObjectPath,
    message: &v1::HealthCheck,
) -> Result<HealthCheck, Invalid> {
    let tls = match (&message.tls, &message.kind) {
        (None, _) => Ok(None),
        (Some(_), Some(v1::health_check::Kind::Udp(_))) => {
            Err(at.invalid("tls", "is not for udp").depending_on_fields(at, &KINDS))
        }
        (Some(tls), _) => check_tls(at, tls).map(Some),
    };
    let jitter_percent = match message.jitter_percent {
        None => Ok(10),
        Some(percent) => values::within(at, "jitter_percent", percent, bounds::JITTERS),
    };
    let host_probe_port = values::within_or(
        at,
        "host_probe_port",
        message.host_probe_port,
        bounds::PORTS,
        HealthCheck::DEFAULT_HOST_PROBE_PORT,
    );
    let (kind, tls, via, port, times, rise, fall, jitter_percent, host_probe, host_probe_port) =
        all((
            kind(at, message),
            tls,
            values::value(at, "via", message.via),
            values::port(at, "port", message.port),
            times(at, message),
            values::within_or(at, "rise", message.rise, bounds::ROUNDS, 2),
            values::within_or(at, "fall", message.fall, bounds::ROUNDS, 3),
            jitter_percent,
            values::value(at, "host_probe", message.host_probe),
            host_probe_port,
        ))?;
    let (via, host_probe) = (via.unwrap_or_default(), host_probe.unwrap_or_default());
    let (interval, fast_interval, timeout) = times;
    Ok(HealthCheck {
        kind,
        tls,
        via,
        port,
        interval,
        fast_interval,
        timeout,
        rise,
        fall,
        jitter_percent,
        host_probe,
        host_probe_port,
    })
}

/// A file has one of these fields.
const KINDS: [&str; 5] = ["tcp", "http", "grpc", "udp", "agent"];

fn kind(at: &ObjectPath, message: &v1::HealthCheck) -> Result<CheckKind, Invalid> {
    match &message.kind {
        None => Err(at
            .invalid("kind", "must be set; give tcp, http, grpc, udp or agent")
            .depending_on_fields(at, &KINDS)),
        Some(v1::health_check::Kind::Tcp(v1::TcpCheck {})) => Ok(CheckKind::Tcp),
        Some(v1::health_check::Kind::Http(http)) => http_check(at, http).map(CheckKind::Http),
        Some(v1::health_check::Kind::Grpc(grpc)) => grpc_check(at, grpc).map(CheckKind::Grpc),
        Some(v1::health_check::Kind::Udp(udp)) => udp_check(at, udp).map(CheckKind::Udp),
        Some(v1::health_check::Kind::Agent(agent)) => agent_check(at, agent).map(CheckKind::Agent),
    }
}

/// Interval, fast interval and timeout.
fn times(
    at: &ObjectPath,
    message: &v1::HealthCheck,
) -> Result<(Duration, Duration, Duration), Invalid> {
    let interval = match message.interval {
        None => SECOND,
        Some(interval) => {
            let (shortest, longest) = (SHORTEST_INTERVAL, LONGEST_INTERVAL);
            values::duration(at, "interval", interval, shortest, longest, "1h")?
        }
    };
    let within_interval = |field, message: Option<prost_types::Duration>, shortest, unset| {
        let Some(duration) = message else { return Ok(unset) };
        let longest_name = format!("the interval of {interval:?}");
        values::duration(at, field, duration, shortest, interval, longest_name)
            .map_err(|invalid| invalid.depending_on_fields(at, &["interval"]))
    };
    let (fast, timeout) = (message.fast_interval, message.timeout);
    all((
        Ok(interval),
        within_interval("fast_interval", fast, SHORTEST_INTERVAL, interval),
        within_interval("timeout", timeout, SHORTEST_TIMEOUT, interval.min(SECOND)),
    ))
}

const LONGEST_METHOD: usize = 16;
const LONGEST_PATH: usize = 2048;
const LONGEST_HOST: usize = 255;
const LONGEST_TEXT: usize = 1024;

fn http_check(at: &ObjectPath, message: &v1::HttpCheck) -> Result<HttpCheck, Invalid> {
    let text = &message.body_contains;
    let body_contains = match at_most(at, "http.body_contains", text.len(), LONGEST_TEXT) {
        Ok(()) if !text.is_empty() && message.method == "HEAD" => {
            let cause = "an answer to HEAD has no body";
            Err(at.invalid("http.body_contains", cause).depending_on_fields(at, &["http.method"]))
        }
        checked => checked,
    };
    let (method, path, (), (status_min, status_max), (), agent_header) = all((
        method(at, &message.method),
        path(at, &message.path),
        plain(at, "http.host", &message.host, LONGEST_HOST),
        statuses(at, message),
        body_contains,
        agent_header(at, &message.agent_header),
    ))?;
    Ok(HttpCheck {
        method,
        path,
        host: Some(message.host.clone()).filter(|host| !host.is_empty()),
        status_min,
        status_max,
        body_contains: Some(text.clone()).filter(|text| !text.is_empty()),
        agent_header,
    })
}

fn path(at: &ObjectPath, path: &str) -> Result<String, Invalid> {
    let path = if path.is_empty() { "/" } else { path };
    if !path.starts_with('/') {
        return Err(at.invalid("http.path", format_args!("{} must begin with '/'", Quoted(path))));
    }
    plain(at, "http.path", path, LONGEST_PATH)?;
    Ok(path.into())
}

/// The lowest and the highest status that passes.
fn statuses(at: &ObjectPath, message: &v1::HttpCheck) -> Result<(u16, u16), Invalid> {
    let (field, range) = ("http.status_max", bounds::STATUSES);
    let lowest = values::within_or(at, "http.status_min", message.status_min, range.clone(), 200);
    let unset = lowest.as_ref().map_or(299, |lowest| 299.max(*lowest));
    let highest = values::within_or(at, field, message.status_max, range, unset);
    let (lowest, highest): (u16, u16) = all((lowest, highest))?;
    match highest < lowest {
        true => {
            let cause = format!("{highest} is below status_min, {lowest}");
            Err(at.invalid(field, cause).depending_on_fields(at, &["http.status_min"]))
        }
        false => Ok((lowest, highest)),
    }
}

fn method(at: &ObjectPath, method: &str) -> Result<String, Invalid> {
    const FIELD: &str = "http.method";
    at_most(at, FIELD, method.len(), LONGEST_METHOD)?;
    if !method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-') {
        let cause = format_args!("{} may hold only A-Z and '-'", Quoted(method));
        return Err(at.invalid(FIELD, cause));
    }
    match method {
        "" => Ok("GET".into()),
        "CONNECT" => Err(at.invalid(FIELD, "CONNECT asks for a tunnel; give GET or HEAD")),
        _ => Ok(method.into()),
    }
}

const LONGEST_NAME: usize = 255;

fn grpc_check(at: &ObjectPath, message: &v1::GrpcCheck) -> Result<GrpcCheck, Invalid> {
    let v1::GrpcCheck { service, authority } = message.clone();
    let is_host = authority.is_empty() || authority.parse::<http::uri::Authority>().is_ok();
    let host = match plain(at, "grpc.authority", &authority, LONGEST_NAME) {
        Ok(()) if !is_host => {
            Err(at.invalid("grpc.authority", "is not a host, with or without a port"))
        }
        checked => checked,
    };
    all((plain(at, "grpc.service", &service, LONGEST_NAME), host))?;
    Ok(GrpcCheck { service, authority: Some(authority).filter(|name| !name.is_empty()) })
}

/// What every path takes in one IPv6 packet (RFC 8200: 1280 bytes) after its headers.
const LONGEST_REQUEST: usize = 1232;
const LONGEST_EXPECTED: usize = 1024;

fn udp_check(at: &ObjectPath, message: &v1::UdpCheck) -> Result<UdpCheck, Invalid> {
    let v1::UdpCheck { request, answer_prefix, answer_contains } = message.clone();
    all((
        at_most(at, "udp.request", request.len(), LONGEST_REQUEST),
        at_most(at, "udp.answer_prefix", answer_prefix.len(), LONGEST_EXPECTED),
        at_most(at, "udp.answer_contains", answer_contains.len(), LONGEST_EXPECTED),
    ))?;
    Ok(UdpCheck { request, answer_prefix, answer_contains })
}

const LONGEST_SENT: usize = 1024;
const LONGEST_HEADER: usize = 64;

fn agent_check(at: &ObjectPath, message: &v1::AgentCheck) -> Result<AgentCheck, Invalid> {
    let v1::AgentCheck { send } = message.clone();
    at_most(at, "agent.send", send.len(), LONGEST_SENT)?;
    Ok(AgentCheck { send })
}

/// The name of a header, a token of RFC 9110.
fn agent_header(at: &ObjectPath, name: &str) -> Result<Option<String>, Invalid> {
    const FIELD: &str = "http.agent_header";
    at_most(at, FIELD, name.len(), LONGEST_HEADER)?;
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    match name.chars().all(is_token) {
        true => Ok(Some(name.to_owned()).filter(|name| !name.is_empty())),
        false => Err(at.invalid(FIELD, format_args!("{} is not a header name", Quoted(name)))),
    }
}

/// PATH_MAX of Linux, which counts the NUL behind it.
const LONGEST_FILE: usize = 4095;

fn check_tls(at: &ObjectPath, message: &v1::CheckTls) -> Result<CheckTls, Invalid> {
    let v1::CheckTls { server_name, verify, ca_file } = message.clone();
    let is_name = server_name.is_empty() || DnsName::try_from(server_name.as_str()).is_ok();
    let named = match is_name {
        true => Ok(()),
        false => {
            let cause = format_args!("{} is not a DNS name", Quoted(&server_name));
            Err(at.invalid("tls.server_name", cause))
        }
    };
    let trust = match (verify, ca_file) {
        (None | Some(false), file) if file.is_empty() => Ok(Trust::Anybody),
        (Some(true), file) if file.is_empty() => Ok(Trust::Host),
        (Some(false), _) => {
            let cause = "is set, but verify is false; give one of them";
            Err(at.invalid("tls.ca_file", cause).depending_on_fields(at, &["tls.verify"]))
        }
        (None | Some(true), file) => absolute_path(at, file).map(Trust::File),
    };
    let ((), trust) = all((named, trust))?;
    Ok(CheckTls { server_name: Some(server_name).filter(|name| !name.is_empty()), trust })
}

fn absolute_path(at: &ObjectPath, path: String) -> Result<String, Invalid> {
    const FIELD: &str = "tls.ca_file";
    at_most(at, FIELD, path.len(), LONGEST_FILE)?;
    if let Some(c) = path.chars().find(|c| c.is_control()) {
        return Err(at.invalid(FIELD, format_args!("holds {c:?}")));
    }
    match path.starts_with('/') {
        true => Ok(path),
        false => Err(at.invalid(FIELD, format_args!("{} must begin with '/'", Quoted(&path)))),
    }
}

/// Only what may stand inside a request line or a header: printable ASCII without blanks.
fn plain(at: &ObjectPath, field: &'static str, text: &str, longest: usize) -> Result<(), Invalid> {
    at_most(at, field, text.len(), longest)?;
    if let Some(c) = text.chars().find(|c| !c.is_ascii_graphic()) {
        let cause = format!("holds {c:?}; only printable ASCII without blanks is allowed");
        return Err(at.invalid(field, cause));
    }
    Ok(())
}

/// No more bytes than there is room for.
fn at_most(
    at: &ObjectPath,
    field: &'static str,
    bytes: usize,
    longest: usize,
) -> Result<(), Invalid> {
    if bytes > longest {
        let cause = format!("has {bytes} bytes; at most {longest} are allowed");
        return Err(at.invalid(field, cause));
    }
    Ok(())
}
