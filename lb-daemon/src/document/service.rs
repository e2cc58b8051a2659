use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::duration;

/// `[[service]]`: a virtual address that clients connect to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Name.
    pub name: String,
    /// The VIP.
    pub address: String,
    /// Port.
    pub port: u32,
    /// Protocol.
    pub protocol: Protocol,
    /// Name of the pool that serves it.
    pub pool: String,
    /// What a connection is hashed by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// What becomes of a new connection when every region is full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_full: Option<WhenFull>,
    /// How packets of a UDP service find their backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<UdpMode>,
    /// How long a tracked flow without packets is remembered.
    #[serde(default, with = "duration", skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Duration>,
}

/// What becomes of a new connection when every region is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenFull {
    /// The nearest region serves it.
    Nearest,
    /// It is dropped.
    Reject,
}

/// How packets of a UDP service find their backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UdpMode {
    /// By their slot alone.
    Stateless,
    /// As the first one of their flow.
    Tracked,
}

/// A transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// What keeps a client at one backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Affinity {
    /// The client's address and port.
    Connection,
    /// The client's address.
    Client,
}
