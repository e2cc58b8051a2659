use std::{hash::Hash, time::Duration};

use super::named_value::named_values;

/// How the health of backends is checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HealthCheck {
    pub kind: CheckKind,
    /// TLS on the connection; always `None` for UDP.
    pub tls: Option<CheckTls>,
    pub via: Via,
    /// Port on the backend, or of the VIP.
    pub port: u16,
    /// From the start of one check to the start of the next.
    pub interval: Duration,
    /// Interval while the backend changes state.
    pub fast_interval: Duration,
    /// Maximum duration of a probe.
    pub timeout: Duration,
    /// Consecutive successes before a failed backend is up again. For a pending one, one success suffices.
    pub rise: u32,
    /// Consecutive failures before a backend is taken out.
    pub fall: u32,
    /// Random change of each interval, up to this share, percent.
    pub jitter_percent: u32,
    /// How a host is asked that does not answer.
    pub host_probe: HostProbe,
    /// TCP port that such a host is asked at.
    pub host_probe_port: u16,
}

impl HealthCheck {
    /// Default port for asking hosts, which is normally unused (tcpmux, RFC 1078): a host that is up refuses each
    /// connection to it.
    pub const DEFAULT_HOST_PROBE_PORT: u16 = 1;

    /// Whether both send the same probes; timing and thresholds may differ.
    pub fn asks_the_same(&self, other: &Self) -> bool {
        self.question() == other.question()
    }

    /// What it asks, without timing and thresholds.
    pub fn question(&self) -> impl Eq + Hash + '_ {
        // Names every field, so that a new one cannot be forgotten.
        let Self {
            kind,
            tls,
            via,
            port,
            interval: _,
            fast_interval: _,
            timeout: _,
            rise: _,
            fall: _,
            jitter_percent: _,
            host_probe: _,
            host_probe_port: _,
        } = self;
        (kind, tls, via, port)
    }
}

named_values! {
    /// Which way a check goes to a backend.
    pub enum Via, default Address {
        /// To the backend's own address
        Address = "address",
        /// To the VIPs of its pool, through the tunnel
        Tunnel = "tunnel",
    }
}

named_values! {
    /// How a host is asked that does not answer a check.
    pub enum HostProbe, default Auto {
        /// By ARP or NDP on the balancer's own link, else by an echo request
        Auto = "auto",
        /// By ARP or NDP only
        Neighbour = "neighbour",
        /// By an echo request only
        Icmp = "icmp",
        /// As auto, and by a TCP SYN
        Tcp = "tcp",
    }
}

/// What a check sends, and what it expects.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CheckKind {
    /// A TCP connect.
    Tcp,
    /// An HTTP/1.1 request.
    Http(HttpCheck),
    /// A call of the standard gRPC health service.
    Grpc(GrpcCheck),
    /// A datagram and its answer.
    Udp(UdpCheck),
    /// Reads an agent report.
    Agent(AgentCheck),
}

/// An HTTP/1.1 request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HttpCheck {
    pub method: String,
    /// Path with its query.
    pub path: String,
    /// Host header; `None`: the backend's address and port.
    pub host: Option<String>,
    /// Lowest status that is a success.
    pub status_min: u16,
    /// Highest status that is a success.
    pub status_max: u16,
    /// What the start of the body must contain; `None`: not checked.
    pub body_contains: Option<String>,
    /// Response header with the backend's agent report; `None`: none.
    pub agent_header: Option<String>,
}

/// A call of `grpc.health.v1.Health/Check`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GrpcCheck {
    /// Service that is asked for; empty: the server as a whole.
    pub service: String,
    /// Authority of the call; `None`: the TLS server name, else the backend's address and port.
    pub authority: Option<String>,
}

/// A datagram and its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UdpCheck {
    /// What is sent.
    pub request: Vec<u8>,
    /// What the answer must begin with; empty: anything.
    pub answer_prefix: Vec<u8>,
    /// What the start of the answer must contain; empty: anything.
    pub answer_contains: Vec<u8>,
}

/// Reads an agent report, one line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentCheck {
    /// What is sent first; empty: nothing.
    pub send: Vec<u8>,
}

/// TLS of a check.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CheckTls {
    /// Server name for SNI and verification; `None`: the host of the request if that is a name.
    pub server_name: Option<String>,
    pub trust: Trust,
}

/// Which certificates are accepted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Trust {
    /// All: the certificate is not verified.
    Anybody,
    /// Those signed by a CA that the balancer's host trusts.
    Host,
    /// Those signed by a CA in this file.
    File(String),
}
