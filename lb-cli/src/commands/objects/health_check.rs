//! Health checks: flags and columns.

use clap::Args;
use lb_base::bytes::Bytes;
use lb_config::{document, message::ApiEnum};
use lb_model::{HostProbe, Via, bounds};
use prost_types::Duration;
use serde_json::Value;
use spillway_proto::v1::{self, HealthCheck, health_check::Kind as CheckKind};

use super::kind::{
    Fields, Kind, ListColumn, NameArgument, NameOrFileArgument, NoFilter, Patch, cell,
};
use crate::{
    arguments::{one_of, parse_duration, within, within_or_unset},
    commands::confirm::NoForce,
    failure::{Exit, Failure},
};

#[derive(Args, Debug)]
#[group(id = "fields")]
pub(crate) struct HealthFields {
    /// Check the backend at its own address, or the VIPs of its pool through the tunnel as client packets go
    /// [default: address]
    #[arg(long, value_name = "WAY", value_parser = one_of::<Via>())]
    via: Option<Via>,
    /// Port of the backend's own address or of the VIP, 1 to 65535
    #[arg(long, value_parser = within(bounds::PORTS), allow_negative_numbers = true)]
    port: Option<u32>,
    /// Succeed if a TCP connection is accepted, or with TLS if the handshake succeeds
    #[arg(long)]
    tcp: bool,
    #[command(flatten)]
    http: HttpFields,
    #[command(flatten)]
    grpc: GrpcFields,
    #[command(flatten)]
    udp: UdpFields,
    #[command(flatten)]
    agent: AgentFields,
    #[command(flatten)]
    tls: TlsFields,
    /// Time between the starts of two probes [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    interval: Option<Duration>,
    /// Interval while a backend changes state [default: the interval]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    fast_interval: Option<Duration>,
    /// Maximum duration of a probe [default: the interval, at most 1s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    timeout: Option<Duration>,
    /// Consecutive successes before a failed backend is up again [default: 2]
    #[arg(long, value_parser = within_or_unset(bounds::ROUNDS), allow_negative_numbers = true)]
    rise: Option<u32>,
    /// Consecutive failures before a backend is taken out [default: 3]
    #[arg(long, value_parser = within_or_unset(bounds::ROUNDS), allow_negative_numbers = true)]
    fall: Option<u32>,
    /// Random change of each interval, up to this share [default: 10]
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true)]
    #[arg(value_parser = within(bounds::JITTERS))]
    jitter_percent: Option<u32>,
    /// How to find out whether a host is up that does not answer the check
    ///
    /// [default: auto]
    #[arg(long, value_name = "WAY", value_parser = one_of::<HostProbe>())]
    host_probe: Option<HostProbe>,
    /// Unused TCP port at which such a host is asked [default: 1]
    #[arg(long, value_name = "PORT", value_parser = within_or_unset(bounds::PORTS))]
    #[arg(allow_negative_numbers = true)]
    host_probe_port: Option<u32>,
}

impl Fields<HealthCheck> for HealthFields {
    fn write(
        &self,
        patch: &mut Patch<HealthCheck>,
        _: Option<&HealthCheck>,
    ) -> Result<(), Failure> {
        patch.set("via", self.via.as_ref(), |check, via| check.set_via(via.to_api()));
        patch.set("port", self.port.as_ref(), |check, port| check.port = port);
        self.write_kind(patch)?;
        self.tls.write(patch);
        patch.set("interval", self.interval.as_ref(), |c, time| c.interval = Some(time));
        let fast = self.fast_interval.as_ref();
        patch.set("fast_interval", fast, |c, time| c.fast_interval = Some(time));
        patch.set("timeout", self.timeout.as_ref(), |c, time| c.timeout = Some(time));
        patch.set("rise", self.rise.as_ref(), |check, rise| check.rise = rise);
        patch.set("fall", self.fall.as_ref(), |check, fall| check.fall = fall);
        let jitter = self.jitter_percent.as_ref();
        patch.set("jitter_percent", jitter, |check, jitter| check.jitter_percent = Some(jitter));
        let probe = self.host_probe.as_ref();
        patch.set("host_probe", probe, |check, probe| check.set_host_probe(probe.to_api()));
        let port = self.host_probe_port.as_ref();
        patch.set("host_probe_port", port, |check, port| check.host_probe_port = port);
        Ok(())
    }
}

impl HealthFields {
    /// A check has one of five kinds.
    fn write_kind(&self, patch: &mut Patch<HealthCheck>) -> Result<(), Failure> {
        let before = patch.paths.len();
        patch.set("tcp", self.tcp.then_some(&()), |check, ()| {
            check.kind = Some(CheckKind::Tcp(v1::TcpCheck {}));
        });
        self.http.write(patch);
        self.grpc.write(patch);
        self.udp.write(patch);
        self.agent.write(patch);
        let kind = |path: &String| path.split('.').next().unwrap_or_default().to_owned();
        let mut kinds: Vec<_> = patch.paths[before..].iter().map(kind).collect();
        kinds.dedup();
        match &*kinds {
            [] | [_] => Ok(()),
            kinds => Err(Failure::new(
                Exit::Usage,
                format!("health check: has one kind, but flags of {} are given", kinds.join(" and ")),
            )
            .hint(
                "use the flags of only one of tcp, http, grpc, udp and agent; a pool can have several \
                 checks",
            )),
        }
    }
}

/// The kind of a check: `tcp`, `http /healthz`, `grpc over tls`.
fn describe_kind(check: &Value) -> String {
    for kind in ["http", "grpc", "udp", "agent", "tcp"] {
        let probe = &check[kind];
        if probe.is_object() {
            let path = probe["path"].as_str().map(|path| format!(" {path}"));
            let tls = if check["tls"].is_object() { " over tls" } else { "" };
            return format!("{kind}{}{tls}", path.unwrap_or_default());
        }
    }
    "-".into()
}

impl Kind for HealthCheck {
    const NAME: &'static str = "health check";
    const PLURAL: &'static str = "health checks";
    const COMMAND: &'static str = "health";
    const KEYS: (&'static str, &'static str) = ("health_check", "health_checks");
    const COLUMNS: &'static [ListColumn] = &[
        ("NAME", |c| cell(&c["name"])),
        ("PORT", |c| cell(&c["port"])),
        ("INTERVAL", |c| cell(&c["interval"])),
        ("TIMEOUT", |c| cell(&c["timeout"])),
        ("RISE", |c| cell(&c["rise"])),
        ("FALL", |c| cell(&c["fall"])),
        ("KIND", describe_kind),
    ];
    const WIDE_COLUMNS: &'static [ListColumn] = &[
        ("VIA", |c| cell(&c["via"])),
        ("HOST", |c| cell(&c["http"]["host"])),
        ("JITTER %", |c| cell(&c["jitter_percent"])),
        ("HOST PROBE", |c| cell(&c["host_probe"])),
        ("PROBE PORT", |c| cell(&c["host_probe_port"])),
    ];
    type Filter = NoFilter;
    type Target = NameArgument;
    type TargetOrFile = NameOrFileArgument;
    type Fields = HealthFields;
    type File = document::HealthCheck;
    type CreateForce = NoForce;
    type UpdateForce = NoForce;
    type DeleteForce = NoForce;

    fn name(&self) -> &str {
        &self.name
    }

    fn rename(&mut self, name: &str) {
        self.name = name.into();
    }
}

/// Makes a check one of a kind, and lets `write` change its options.
macro_rules! set_kind {
    ($name:ident, $kind:ident, $probe:ident) => {
        fn $name(check: &mut HealthCheck, write: impl FnOnce(&mut v1::$probe)) {
            let mut probe = match check.kind.take() {
                Some(CheckKind::$kind(probe)) => probe,
                _ => v1::$probe::default(),
            };
            write(&mut probe);
            check.kind = Some(CheckKind::$kind(probe));
        }
    };
}

set_kind!(http, Http, HttpCheck);
set_kind!(grpc, Grpc, GrpcCheck);
set_kind!(udp, Udp, UdpCheck);
set_kind!(agent, Agent, AgentCheck);

#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct HttpFields {
    /// Send an HTTP/1.1 request; implied by its options
    #[arg(long, group = "fields")]
    http: bool,
    /// Path with query [default: /]
    #[arg(long, value_name = "PATH", group = "fields")]
    http_path: Option<String>,
    /// Host header [default: the backend's address and port]
    #[arg(long, value_name = "HOST", group = "fields")]
    http_host: Option<String>,
    /// Method [default: GET]
    #[arg(long, value_name = "METHOD", group = "fields")]
    http_method: Option<String>,
    /// Lowest status that counts as success [default: 200]
    #[arg(long, value_name = "STATUS", group = "fields", allow_negative_numbers = true)]
    #[arg(value_parser = within_or_unset(bounds::STATUSES))]
    http_status_min: Option<u32>,
    /// Highest status that counts as success [default: 299]
    #[arg(long, value_name = "STATUS", group = "fields", allow_negative_numbers = true)]
    #[arg(value_parser = within_or_unset(bounds::STATUSES))]
    http_status_max: Option<u32>,
    /// Text that the body must contain [default: not checked]
    #[arg(long, value_name = "TEXT", group = "fields")]
    http_body_contains: Option<String>,
    /// Header with the agent report of the backend [default: none]
    #[arg(long, value_name = "NAME", group = "fields")]
    http_agent_header: Option<String>,
}

#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct GrpcFields {
    /// Call the standard gRPC health service; implied by its options
    #[arg(long, group = "fields")]
    grpc: bool,
    /// Service to ask for [default: the whole server]
    #[arg(long, value_name = "SERVICE", group = "fields")]
    grpc_service: Option<String>,
    /// Authority of the call [default: the TLS name, or the address and port]
    #[arg(long, value_name = "NAME", group = "fields")]
    grpc_authority: Option<String>,
}

#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct UdpFields {
    /// Send a datagram and wait for an answer; implied by its options
    #[arg(long, group = "fields")]
    udp: bool,
    /// Payload to send, text or hex:0001 [default: an empty datagram]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, group = "fields")]
    udp_request: Option<Bytes>,
    /// Bytes that the answer must begin with
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, group = "fields")]
    udp_answer_prefix: Option<Bytes>,
    /// Bytes that the answer must contain
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, group = "fields")]
    udp_answer_contains: Option<Bytes>,
}

#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct AgentFields {
    /// Read an agent report, one line; implied by its option
    #[arg(long, group = "fields")]
    agent: bool,
    /// Payload to send first, text or hex:0001 [default: nothing]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, group = "fields")]
    agent_send: Option<Bytes>,
}

#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct TlsFields {
    /// Use TLS; implied by its options
    #[arg(long, group = "fields")]
    tls: bool,
    /// Server name for SNI and verification [default: the host of the request]
    #[arg(long, value_name = "NAME", group = "fields")]
    tls_server_name: Option<String>,
    /// Whether to verify the certificate [default: if a CA file is given]
    #[arg(long, value_name = "BOOL", group = "fields")]
    tls_verify: Option<bool>,
    /// File with CA certificates on the balancer's host
    #[arg(long, value_name = "PATH", group = "fields")]
    tls_ca_file: Option<String>,
}

fn parse_bytes(text: &str) -> Result<Bytes, String> {
    Bytes::parse(text).ok_or_else(|| "give a text, or hexadecimal bytes such as hex:0001".into())
}

type CheckPatch = Patch<HealthCheck>;

impl HttpFields {
    pub(super) fn write(&self, patch: &mut CheckPatch) {
        patch.set("http", self.http.then_some(&()), |c, ()| http(c, |_| {}));
        patch.set("http.path", self.http_path.as_ref(), |c, v| http(c, |h| h.path = v));
        patch.set("http.host", self.http_host.as_ref(), |c, v| http(c, |h| h.host = v));
        patch.set("http.method", self.http_method.as_ref(), |c, v| http(c, |h| h.method = v));
        let (min, max) = (self.http_status_min.as_ref(), self.http_status_max.as_ref());
        patch.set("http.status_min", min, |c, v| http(c, |h| h.status_min = v));
        patch.set("http.status_max", max, |c, v| http(c, |h| h.status_max = v));
        let text = self.http_body_contains.as_ref();
        patch.set("http.body_contains", text, |c, v| http(c, |h| h.body_contains = v));
        let header = self.http_agent_header.as_ref();
        patch.set("http.agent_header", header, |c, v| http(c, |h| h.agent_header = v));
    }
}

impl GrpcFields {
    pub(super) fn write(&self, patch: &mut CheckPatch) {
        patch.set("grpc", self.grpc.then_some(&()), |c, ()| grpc(c, |_| {}));
        patch.set("grpc.service", self.grpc_service.as_ref(), |c, v| grpc(c, |g| g.service = v));
        let authority = self.grpc_authority.as_ref();
        patch.set("grpc.authority", authority, |c, v| grpc(c, |g| g.authority = v));
    }
}

impl UdpFields {
    pub(super) fn write(&self, patch: &mut CheckPatch) {
        patch.set("udp", self.udp.then_some(&()), |c, ()| udp(c, |_| {}));
        patch.set("udp.request", self.udp_request.as_ref(), |c, v| udp(c, |u| u.request = v.0));
        let prefix = self.udp_answer_prefix.as_ref();
        patch.set("udp.answer_prefix", prefix, |c, v| udp(c, |u| u.answer_prefix = v.0));
        let part = self.udp_answer_contains.as_ref();
        patch.set("udp.answer_contains", part, |c, v| udp(c, |u| u.answer_contains = v.0));
    }
}

impl AgentFields {
    pub(super) fn write(&self, patch: &mut CheckPatch) {
        patch.set("agent", self.agent.then_some(&()), |c, ()| agent(c, |_| {}));
        patch.set("agent.send", self.agent_send.as_ref(), |c, v| agent(c, |a| a.send = v.0));
    }
}

impl TlsFields {
    pub(super) fn write(&self, patch: &mut CheckPatch) {
        fn tls(check: &mut HealthCheck) -> &mut v1::CheckTls {
            check.tls.get_or_insert_default()
        }
        patch.set("tls", self.tls.then_some(&()), |c, ()| {
            tls(c);
        });
        let name = self.tls_server_name.as_ref();
        patch.set("tls.server_name", name, |c, v| tls(c).server_name = v);
        patch.set("tls.verify", self.tls_verify.as_ref(), |c, v| tls(c).verify = Some(v));
        patch.set("tls.ca_file", self.tls_ca_file.as_ref(), |c, v| tls(c).ca_file = v);
    }
}
