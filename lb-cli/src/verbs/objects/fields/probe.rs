//! What a health check asks, and TLS below it.

use clap::Args;
use lb_daemon::{document::Bytes, model::bounds};
use spillway_proto::v1::{self, HealthCheck, health_check::Probe};

use super::number::within_or_unset;
use crate::verbs::objects::edit::Edit;

/// Makes a check one of a kind, and gives what it asks.
macro_rules! made {
    ($name:ident, $kind:ident, $probe:ident) => {
        fn $name(check: &mut HealthCheck, write: impl FnOnce(&mut v1::$probe)) {
            let mut probe = match check.probe.take() {
                Some(Probe::$kind(probe)) => probe,
                _ => v1::$probe::default(),
            };
            write(&mut probe);
            check.probe = Some(Probe::$kind(probe));
        }
    };
}

made!(http, Http, HttpProbe);
made!(grpc, Grpc, GrpcProbe);
made!(udp, Udp, UdpProbe);
made!(agent, Agent, AgentProbe);

/// Fields of an HTTP check.
#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct HttpFields {
    /// An HTTP/1.1 request is sent; its options imply it
    #[arg(long, group = "fields")]
    http: bool,
    /// Path with its query [left out: /]
    #[arg(long, value_name = "PATH", group = "fields")]
    http_path: Option<String>,
    /// Host header [left out: the backend's address and port]
    #[arg(long, value_name = "HOST", group = "fields")]
    http_host: Option<String>,
    /// Method [left out: GET]
    #[arg(long, value_name = "METHOD", group = "fields")]
    http_method: Option<String>,
    /// Lowest status that is a success [left out: 200]
    #[arg(long, value_name = "STATUS", group = "fields", allow_negative_numbers = true)]
    #[arg(value_parser = within_or_unset(bounds::STATUSES))]
    http_status_min: Option<u32>,
    /// Highest status that is a success [left out: 299]
    #[arg(long, value_name = "STATUS", group = "fields", allow_negative_numbers = true)]
    #[arg(value_parser = within_or_unset(bounds::STATUSES))]
    http_status_max: Option<u32>,
    /// Text that the body must have [left out: it is not looked at]
    #[arg(long, value_name = "TEXT", group = "fields")]
    http_body_contains: Option<String>,
    /// Header in which the backend says how it is [left out: none is read]
    #[arg(long, value_name = "NAME", group = "fields")]
    http_agent_header: Option<String>,
}

/// Fields of a gRPC check.
#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct GrpcFields {
    /// The standard gRPC health service is asked; its options imply it
    #[arg(long, group = "fields")]
    grpc: bool,
    /// Service that is asked for [left out: the server as a whole]
    #[arg(long, value_name = "SERVICE", group = "fields")]
    grpc_service: Option<String>,
    /// Whom the call is for [left out: the name of TLS, or the address and port]
    #[arg(long, value_name = "NAME", group = "fields")]
    grpc_authority: Option<String>,
}

/// Fields of a UDP check.
#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct UdpFields {
    /// A datagram is sent and an answer awaited; its options imply it
    #[arg(long, group = "fields")]
    udp: bool,
    /// What is sent, a text or hex:0001 [left out: an empty datagram]
    #[arg(long, value_name = "BYTES", value_parser = bytes, group = "fields")]
    udp_request: Option<Bytes>,
    /// What the answer must begin with
    #[arg(long, value_name = "BYTES", value_parser = bytes, group = "fields")]
    udp_answer_prefix: Option<Bytes>,
    /// What the answer must have
    #[arg(long, value_name = "BYTES", value_parser = bytes, group = "fields")]
    udp_answer_contains: Option<Bytes>,
}

/// Fields of an agent check.
#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct AgentFields {
    /// A line is read of what the backend says of itself; its option implies it
    #[arg(long, group = "fields")]
    agent: bool,
    /// What is sent first, a text or hex:0001 [left out: nothing]
    #[arg(long, value_name = "BYTES", value_parser = bytes, group = "fields")]
    agent_send: Option<Bytes>,
}

/// Fields of the TLS below a check.
#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct TlsFields {
    /// TLS before anything is asked; its options imply it
    #[arg(long, group = "fields")]
    tls: bool,
    /// Name that is asked for and verified [left out: the host of the request]
    #[arg(long, value_name = "NAME", group = "fields")]
    tls_server_name: Option<String>,
    /// Whether the certificate is verified [left out: where there is a CA file]
    #[arg(long, value_name = "BOOL", group = "fields")]
    tls_verify: Option<bool>,
    /// File on the balancer's host with the certificates of those who may sign
    #[arg(long, value_name = "PATH", group = "fields")]
    tls_ca_file: Option<String>,
}

fn bytes(text: &str) -> Result<Bytes, String> {
    Bytes::parse(text).ok_or_else(|| "give a text, or pairs of digits as hex:0001".into())
}

type Check = Edit<HealthCheck>;

impl HttpFields {
    pub(super) fn write(&self, edit: &mut Check) {
        edit.set("http", self.http.then_some(&()), |c, ()| http(c, |_| {}));
        edit.set("http.path", self.http_path.as_ref(), |c, v| http(c, |h| h.path = v));
        edit.set("http.host", self.http_host.as_ref(), |c, v| http(c, |h| h.host = v));
        edit.set("http.method", self.http_method.as_ref(), |c, v| http(c, |h| h.method = v));
        let (min, max) = (self.http_status_min.as_ref(), self.http_status_max.as_ref());
        edit.set("http.status_min", min, |c, v| http(c, |h| h.status_min = v));
        edit.set("http.status_max", max, |c, v| http(c, |h| h.status_max = v));
        let text = self.http_body_contains.as_ref();
        edit.set("http.body_contains", text, |c, v| http(c, |h| h.body_contains = v));
        let header = self.http_agent_header.as_ref();
        edit.set("http.agent_header", header, |c, v| http(c, |h| h.agent_header = v));
    }
}

impl GrpcFields {
    pub(super) fn write(&self, edit: &mut Check) {
        edit.set("grpc", self.grpc.then_some(&()), |c, ()| grpc(c, |_| {}));
        edit.set("grpc.service", self.grpc_service.as_ref(), |c, v| grpc(c, |g| g.service = v));
        let authority = self.grpc_authority.as_ref();
        edit.set("grpc.authority", authority, |c, v| grpc(c, |g| g.authority = v));
    }
}

impl UdpFields {
    pub(super) fn write(&self, edit: &mut Check) {
        edit.set("udp", self.udp.then_some(&()), |c, ()| udp(c, |_| {}));
        edit.set("udp.request", self.udp_request.as_ref(), |c, v| udp(c, |u| u.request = v.0));
        let prefix = self.udp_answer_prefix.as_ref();
        edit.set("udp.answer_prefix", prefix, |c, v| udp(c, |u| u.answer_prefix = v.0));
        let part = self.udp_answer_contains.as_ref();
        edit.set("udp.answer_contains", part, |c, v| udp(c, |u| u.answer_contains = v.0));
    }
}

impl AgentFields {
    pub(super) fn write(&self, edit: &mut Check) {
        edit.set("agent", self.agent.then_some(&()), |c, ()| agent(c, |_| {}));
        edit.set("agent.send", self.agent_send.as_ref(), |c, v| agent(c, |a| a.send = v.0));
    }
}

impl TlsFields {
    pub(super) fn write(&self, edit: &mut Check) {
        fn tls(check: &mut HealthCheck) -> &mut v1::TlsProbe {
            check.tls.get_or_insert_default()
        }
        edit.set("tls", self.tls.then_some(&()), |c, ()| {
            tls(c);
        });
        let name = self.tls_server_name.as_ref();
        edit.set("tls.server_name", name, |c, v| tls(c).server_name = v);
        edit.set("tls.verify", self.tls_verify.as_ref(), |c, v| tls(c).verify = Some(v));
        edit.set("tls.ca_file", self.tls_ca_file.as_ref(), |c, v| tls(c).ca_file = v);
    }
}
