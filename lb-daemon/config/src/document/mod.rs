//! The file form of a configuration, TOML, for people.
//!
//! It has the same fields as `spillway.v1.Configuration`. Values are validated behind the API, in one place for files
//! and calls. Mistakes that only a file can have (misspelt fields, wrong types, durations and rates without a unit)
//! are found here. If there is one, what could be read is validated here too, so that all mistakes are reported at once.

mod error;
mod health_check;
mod pool;
mod position;
mod read;
mod service;
#[cfg(test)]
mod tests;
mod units;

use std::num::NonZeroU32;

use lb_model::Unserved;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

pub use error::{DocumentError, typographic};
pub use health_check::{
    AgentCheck, CheckKind, CheckTls, GrpcCheck, HealthCheck, HttpCheck, UdpCheck,
};
pub use lb_model::rate::parse as parse_rate;
pub use pool::{Backend, Group, Pool};
pub use position::{find_field, line_and_column};
pub use service::{PortRange, Service, parse_ports};
pub use units::{DurationError, parse_duration};

/// A configuration file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Key of the flow hash, 32 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash_key: Option<String>,
    /// Balancers that share the capacities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balancers: Option<NonZeroU32>,
    /// `[[region]]`
    #[serde(default, rename = "region", skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<Region>,
    /// `[[health_check]]`
    #[serde(default, rename = "health_check", skip_serializing_if = "Vec::is_empty")]
    pub health_checks: Vec<HealthCheck>,
    /// `[[pool]]`
    #[serde(default, rename = "pool", skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<Pool>,
    /// `[[service]]`
    #[serde(default, rename = "service", skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Service>,
    /// `[[vip]]`
    #[serde(default, rename = "vip", skip_serializing_if = "Vec::is_empty")]
    pub vips: Vec<Vip>,
}

impl Document {
    /// Reads a file's text. An empty text is refused, because such a file was more likely cut off than written; a
    /// comment suffices for an empty configuration.
    ///
    /// # Errors
    /// [`DocumentError`] has all that is not TOML; or all that is no field of ours, or of another type than its field,
    /// and what validation refuses of the rest.
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        if text.trim().is_empty() {
            return Err(DocumentError::empty());
        }
        toml::from_str(text).map_err(|error| read::document_mistakes(text, &error))
    }

    /// The file's text.
    ///
    /// # Errors
    /// [`DocumentError`] where a value has no TOML form.
    pub fn to_toml(&self) -> Result<String, DocumentError> {
        match toml::to_string(self) {
            Ok(text) if text.is_empty() => Ok("# nothing\n".into()),
            written => written.map_err(|error| DocumentError::unwritable(&error)),
        }
    }
}

/// Reads the text of a single object: the lines below `[[service]]` in a file.
///
/// # Errors
/// As [`Document::parse`].
pub fn parse_object<T: DeserializeOwned + Default>(text: &str) -> Result<T, DocumentError> {
    toml::from_str(text).map_err(|error| read::object_mistakes::<T>(text, &error))
}

/// The text of a single object.
///
/// # Errors
/// [`DocumentError`] where a value has no TOML form.
pub fn object_to_toml<T: Serialize>(object: &T) -> Result<String, DocumentError> {
    toml::to_string(object).map_err(|error| DocumentError::unwritable(&error))
}

/// `[[region]]`: a place where backends are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// Name.
    #[serde(default)]
    pub name: String,
    /// Regions that take over, nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overflow_to: Vec<String>,
}

/// `[[vip]]`: what is set for the VIPs of a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vip {
    /// The prefix.
    #[serde(default)]
    pub prefix: String,
    /// What becomes of packets that no service takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unserved: Option<Unserved>,
}
