use std::{num::NonZeroU32, time::Duration};

use lb_model::{AdminState, EncapsulationKind, Isolation};
use serde::{Deserialize, Serialize};

use super::units::{duration, rate_per_second};

/// `[[pool]]`: a named set of backends with its health checks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// Name.
    #[serde(default)]
    pub name: String,
    /// Names of the checks that must all pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health_checks: Vec<String>,
    /// Slots of its tables, a prime; 0: chosen from the backends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// When its new connections may leave the first region of its order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// Names of regions that are asked first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preferred_regions: Vec<String>,
    /// Share of healthy backends below which the others are the last resort, percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panic_threshold_percent: Option<NonZeroU32>,
    /// How long open connections stay where they are after a remap.
    #[serde(default, with = "duration", skip_serializing_if = "Option::is_none")]
    pub settle_time: Option<Duration>,
    /// How long a backend that comes up takes until it has its whole share of new connections.
    #[serde(default, with = "duration", skip_serializing_if = "Option::is_none")]
    pub slow_start: Option<Duration>,
    /// How long a backend is held back that went down soon after it came back; `0s`: not at all.
    #[serde(default, with = "duration", skip_serializing_if = "Option::is_none")]
    pub hold_down: Option<Duration>,
    /// How long it is held back at most.
    #[serde(default, with = "duration", skip_serializing_if = "Option::is_none")]
    pub max_hold_down: Option<Duration>,
    /// How packets get to its backends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encapsulation: Option<EncapsulationKind>,
    /// UDP port that GUE goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gue_port: Option<NonZeroU32>,
    /// `[[pool.group]]`
    #[serde(default, rename = "group", skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
    /// `[[pool.backend]]`
    #[serde(default, rename = "backend", skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<Backend>,
}

/// `[[pool.backend]]`: one real server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backend {
    /// IPv4 or IPv6 address the tunnel ends at.
    #[serde(default)]
    pub address: String,
    /// Name of its region.
    #[serde(default)]
    pub region: String,
    /// Share relative to the others of its region; 0 takes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// What the operator wants of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin_state: Option<AdminState>,
    /// Largest outer IP packet towards it, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<NonZeroU32>,
    /// New connections it takes a second in this pool, over all balancers.
    #[serde(default, with = "rate_per_second", skip_serializing_if = "Option::is_none")]
    pub max_connection_rate: Option<f64>,
}

/// `[[pool.group]]`: what is set of a pool's backends in one region.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Name of the region.
    #[serde(default)]
    pub region: String,
    /// New connections it takes a second, over all balancers.
    #[serde(default, with = "rate_per_second", skip_serializing_if = "Option::is_none")]
    pub capacity: Option<f64>,
    /// Share of that capacity in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaler: Option<f64>,
    /// Whether it takes no new connections, whatever the scaler.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drained: bool,
}
