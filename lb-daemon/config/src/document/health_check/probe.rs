use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use super::Bytes;

/// What a check asks: the one of these fields that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
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
