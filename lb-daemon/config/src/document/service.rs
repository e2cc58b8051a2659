use std::{num::NonZeroU32, time::Duration};

use lb_model::{Affinity, Fragments, Protocol, UdpMode, WhenFull};
use serde::{Deserialize, Serialize};

use super::{duration, ports::PortRange};

/// `[[service]]`: a virtual address that clients connect to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Name.
    pub name: String,
    /// The VIP.
    pub address: String,
    /// Its one port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<NonZeroU32>,
    /// Its ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortRange>,
    /// Whether it has all ports that no other service of the address and protocol has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_port: bool,
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
    /// What becomes of fragments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fragments: Option<Fragments>,
}
