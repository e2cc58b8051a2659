use serde::{Deserialize, Serialize};

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
