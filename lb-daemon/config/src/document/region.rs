use serde::{Deserialize, Serialize};

/// `[[region]]`: a place where backends are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// Name.
    pub name: String,
    /// Regions that take over, nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overflow_to: Vec<String>,
}
