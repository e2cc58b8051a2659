//! Health checks in a file.

use std::{num::NonZeroU32, time::Duration};

use lb_base::bytes::Bytes;
use lb_model::{HostProbe, Via};
use serde::{Deserialize, Serialize};

use super::units::duration;

/// `[[health_check]]`: how a backend's health is asked for, with one of `tcp = {}`, `http = { … }`,
/// `grpc = { … }`, `udp = { … }` and `agent = { … }`. Required fields may be missing: validation says so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Fields", into = "Fields")]
pub struct HealthCheck {
    /// Name.
    pub name: String,
    /// What is asked.
    pub kind: Option<CheckKind>,
    /// TLS before anything is asked.
    pub tls: Option<CheckTls>,
    /// Which way it goes.
    pub via: Option<Via>,
    /// Port on the backend, or of the VIP.
    pub port: u32,
    /// Time from the start of one check to the start of the next.
    pub interval: Option<Duration>,
    /// The same while the backend is between two states.
    pub fast_interval: Option<Duration>,
    /// Time a check may take.
    pub timeout: Option<Duration>,
    /// Successes in a row that bring a failed backend back.
    pub rise: Option<NonZeroU32>,
    /// Failures in a row that take a backend out.
    pub fall: Option<NonZeroU32>,
    /// How far each interval may be shortened or lengthened, percent.
    pub jitter_percent: Option<u32>,
    /// How a host is asked that does not answer.
    pub host_probe: Option<HostProbe>,
    /// TCP port that it is asked at.
    pub host_probe_port: Option<NonZeroU32>,
}

/// The fields as the file has them.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename = "HealthCheck")]
struct Fields {
    #[serde(default)]
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    via: Option<Via>,
    #[serde(default)]
    port: u32,
    #[serde(default, with = "duration", skip_serializing_if = "Option::is_none")]
    interval: Option<Duration>,
    #[serde(default, with = "duration", skip_serializing_if = "Option::is_none")]
    fast_interval: Option<Duration>,
    #[serde(default, with = "duration", skip_serializing_if = "Option::is_none")]
    timeout: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rise: Option<NonZeroU32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fall: Option<NonZeroU32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    jitter_percent: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host_probe: Option<HostProbe>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host_probe_port: Option<NonZeroU32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tcp: Option<TcpCheck>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    http: Option<HttpCheck>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    grpc: Option<GrpcCheck>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    udp: Option<UdpCheck>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<AgentCheck>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tls: Option<CheckTls>,
}

impl TryFrom<Fields> for HealthCheck {
    type Error = String;

    fn try_from(fields: Fields) -> Result<Self, String> {
        let probes = [
            fields.tcp.map(|TcpCheck {}| CheckKind::Tcp),
            fields.http.map(CheckKind::Http),
            fields.grpc.map(CheckKind::Grpc),
            fields.udp.map(CheckKind::Udp),
            fields.agent.map(CheckKind::Agent),
        ];
        let mut probes = probes.into_iter().flatten();
        let kind = probes.next();
        if probes.next().is_some() {
            return Err("give only one of tcp, http, grpc, udp and agent".into());
        }
        Ok(Self {
            name: fields.name,
            kind,
            tls: fields.tls,
            via: fields.via,
            port: fields.port,
            interval: fields.interval,
            fast_interval: fields.fast_interval,
            timeout: fields.timeout,
            rise: fields.rise,
            fall: fields.fall,
            jitter_percent: fields.jitter_percent,
            host_probe: fields.host_probe,
            host_probe_port: fields.host_probe_port,
        })
    }
}

impl From<HealthCheck> for Fields {
    fn from(check: HealthCheck) -> Self {
        let mut fields = Self {
            name: check.name,
            via: check.via,
            port: check.port,
            interval: check.interval,
            fast_interval: check.fast_interval,
            timeout: check.timeout,
            rise: check.rise,
            fall: check.fall,
            jitter_percent: check.jitter_percent,
            host_probe: check.host_probe,
            host_probe_port: check.host_probe_port,
            tcp: None,
            http: None,
            grpc: None,
            udp: None,
            agent: None,
            tls: check.tls,
        };
        match check.kind {
            None => {}
            Some(CheckKind::Tcp) => fields.tcp = Some(TcpCheck {}),
            Some(CheckKind::Http(http)) => fields.http = Some(http),
            Some(CheckKind::Grpc(grpc)) => fields.grpc = Some(grpc),
            Some(CheckKind::Udp(udp)) => fields.udp = Some(udp),
            Some(CheckKind::Agent(agent)) => fields.agent = Some(agent),
        }
        fields
    }
}

/// What a check asks: the one of these fields that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckKind {
    /// `tcp = {}`: a connect.
    Tcp,
    /// `http = { … }`: a request.
    Http(HttpCheck),
    /// `grpc = { … }`: a call of the standard health service.
    Grpc(GrpcCheck),
    /// `udp = { … }`: a datagram and its answer.
    Udp(UdpCheck),
    /// `agent = { … }`: a line of what the backend says of itself.
    Agent(AgentCheck),
}

/// `tcp = {}`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TcpCheck {}

/// `http = { path = "/healthz" }`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpCheck {
    /// Method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Path with its query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Host header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Lowest status that is a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_min: Option<NonZeroU32>,
    /// Highest status that is a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_max: Option<NonZeroU32>,
    /// What the body must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_contains: Option<String>,
    /// Header in which the backend says how it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_header: Option<String>,
}

/// `grpc = { service = "shop.Cart" }`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrpcCheck {
    /// Service that is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Whom the call is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<String>,
}

/// `udp = { request = "ping", answer_prefix = "pong" }`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UdpCheck {
    /// What is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Bytes>,
    /// What the answer must begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_prefix: Option<Bytes>,
    /// What the answer must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_contains: Option<Bytes>,
}

/// `agent = { send = "status\n" }`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentCheck {
    /// What is sent first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send: Option<Bytes>,
}

/// `tls = { server_name = "shop.example", verify = true }`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckTls {
    /// Name that is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// Whether the certificate is verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<bool>,
    /// File with the certificates of those who may have signed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
}
