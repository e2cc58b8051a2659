use std::{num::NonZeroU32, time::Duration};

use serde::{Deserialize, Serialize};

use super::duration;

/// `[[health_check]]`: how a backend's health is asked for, with either `tcp = {}` or `http = { … }`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Fields", into = "Fields")]
pub struct HealthCheck {
    /// Name.
    pub name: String,
    /// What is asked.
    pub probe: Probe,
    /// Port on the backend.
    pub port: u32,
    /// Time from the start of one check to the start of the next.
    pub interval: Option<Duration>,
    /// Time a check may take.
    pub timeout: Option<Duration>,
    /// Successes in a row that bring a failed backend back.
    pub rise: Option<NonZeroU32>,
    /// Failures in a row that take a backend out.
    pub fall: Option<NonZeroU32>,
    /// How far each interval may be shortened or lengthened, percent.
    pub jitter_percent: Option<u32>,
}

/// What a check asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// `tcp = {}`: a connect.
    Tcp,
    /// `http = { … }`: a request.
    Http(HttpProbe),
}

/// `http = { path = "/healthz" }`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpProbe {
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
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TcpProbe {}

/// The fields as the file has them.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename = "HealthCheck")]
struct Fields {
    name: String,
    port: u32,
    #[serde(default, with = "duration", skip_serializing_if = "Option::is_none")]
    interval: Option<Duration>,
    #[serde(default, with = "duration", skip_serializing_if = "Option::is_none")]
    timeout: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rise: Option<NonZeroU32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fall: Option<NonZeroU32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    jitter_percent: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tcp: Option<TcpProbe>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    http: Option<HttpProbe>,
}

impl TryFrom<Fields> for HealthCheck {
    type Error = String;

    fn try_from(fields: Fields) -> Result<Self, String> {
        let Fields { name, port, interval, timeout, rise, fall, jitter_percent, tcp, http } =
            fields;
        let probe = match (tcp, http) {
            (Some(TcpProbe {}), None) => Probe::Tcp,
            (None, Some(http)) => Probe::Http(http),
            (None, None) => {
                return Err(format!(
                    "health check {name:?}: give either tcp = {{}} or http = {{}}"
                ));
            }
            (Some(_), Some(_)) => {
                return Err(format!("health check {name:?}: give tcp or http, not both"));
            }
        };
        Ok(Self { name, probe, port, interval, timeout, rise, fall, jitter_percent })
    }
}

impl From<HealthCheck> for Fields {
    fn from(check: HealthCheck) -> Self {
        let HealthCheck { name, probe, port, interval, timeout, rise, fall, jitter_percent } =
            check;
        let (tcp, http) = match probe {
            Probe::Tcp => (Some(TcpProbe {}), None),
            Probe::Http(http) => (None, Some(http)),
        };
        Self { name, port, interval, timeout, rise, fall, jitter_percent, tcp, http }
    }
}
