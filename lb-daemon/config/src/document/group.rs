use serde::{Deserialize, Serialize};

use super::rate;

/// `[[pool.group]]`: what is set of a pool's backends in one region.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Name of the region.
    pub region: String,
    /// New connections it takes a second, over all balancers.
    #[serde(default, with = "rate", skip_serializing_if = "Option::is_none")]
    pub capacity: Option<f64>,
    /// Share of that capacity in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaler: Option<f64>,
    /// Whether it takes no new connections, whatever the scaler.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drained: bool,
}
