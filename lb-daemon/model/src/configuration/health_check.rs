use std::time::Duration;

use super::named_value::named_values;

/// How a backend's health is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HealthCheck {
    /// What is asked.
    pub probe: Probe,
    /// TLS on the connection before anything is asked; `None`: none, as always over UDP.
    pub tls: Option<CheckTls>,
    /// Which way it goes.
    pub via: Via,
    /// Port on the backend, or of the VIP.
    pub port: u16,
    /// From the start of one check to the start of the next.
    pub interval: Duration,
    /// The same while the backend is between two states.
    pub fast_interval: Duration,
    /// Time a check may take.
    pub timeout: Duration,
    /// Successes in a row that bring a failed backend back; the very first success suffices alone.
    pub rise: u32,
    /// Failures in a row that take it out.
    pub fall: u32,
    /// How far an interval may be shortened or lengthened at random, percent.
    pub jitter_percent: u32,
}

impl HealthCheck {
    /// Whether both ask the same, be it at other times, for longer, and judged by another row.
    pub fn asks_the_same(&self, other: &Self) -> bool {
        // Every field is named, so that a new one is not forgotten here.
        let Self {
            probe,
            tls,
            via,
            port,
            interval: _,
            fast_interval: _,
            timeout: _,
            rise: _,
            fall: _,
            jitter_percent: _,
        } = self;
        (probe, tls, via, port) == (&other.probe, &other.tls, &other.via, &other.port)
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

/// What a check asks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Probe {
    /// A TCP connect.
    Tcp,
    /// An HTTP/1.1 request.
    Http(HttpCheck),
    /// A call of the standard gRPC health service.
    Grpc(GrpcCheck),
    /// A datagram and its answer.
    Udp(UdpCheck),
    /// A line of what the backend says of itself.
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
    /// What the beginning of the body must have; `None`: it is not looked at.
    pub body_contains: Option<String>,
    /// Header of the answer in which the backend says how it is; `None`: none is read.
    pub agent_header: Option<String>,
}

/// A call of `grpc.health.v1.Health/Check`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GrpcCheck {
    /// Service that is asked for; empty: the server as a whole.
    pub service: String,
    /// Whom the call is for; `None`: the name that TLS asks for, else the backend's address and port.
    pub authority: Option<String>,
}

/// A datagram and its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UdpCheck {
    /// What is sent.
    pub request: Vec<u8>,
    /// What the answer must begin with; empty: anything.
    pub answer_prefix: Vec<u8>,
    /// What the beginning of the answer must have; empty: anything.
    pub answer_contains: Vec<u8>,
}

/// A line of what a backend says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentCheck {
    /// What is sent first; empty: nothing.
    pub send: Vec<u8>,
}

/// How TLS is spoken.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CheckTls {
    /// Name that is asked for; `None`: the host of the request if that is a name.
    pub server_name: Option<String>,
    /// Whose certificates will do.
    pub trust: Trust,
}

/// Whose certificates will do.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Trust {
    /// Everybody's.
    Anybody,
    /// Those signed by whom the balancer's host trusts.
    Host,
    /// Those signed by whom this file holds the certificates of.
    File(String),
}
