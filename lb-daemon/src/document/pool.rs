use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

/// `[[pool]]`: a named set of backends with its health checks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// Name.
    pub name: String,
    /// Names of the checks that must all pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health_checks: Vec<String>,
    /// Slots of its tables, a prime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<NonZeroU32>,
    /// `[[pool.backend]]`
    #[serde(default, rename = "backend", skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<Backend>,
}

/// `[[pool.backend]]`: one real server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backend {
    /// IPv4 or IPv6 address the tunnel ends at.
    pub address: String,
    /// Name of its region.
    pub region: String,
    /// Share relative to the others of its region; 0 takes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// What the operator wants of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<WantedState>,
    /// Largest outer IP packet towards it, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<NonZeroU32>,
}

/// What the operator wants of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WantedState {
    /// Takes traffic while it is healthy.
    Active,
    /// Takes nothing.
    Disabled,
}
