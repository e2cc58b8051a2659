//! The file form to the API's form and back. Nothing is judged here.

use std::num::NonZeroU32;

use spillway_proto::v1;

use crate::document::{
    Affinity, Backend, Document, HealthCheck, HttpProbe, Pool, Probe, Protocol, Region, Service,
    WantedState,
};

/// A message holds what this version has no word for: it comes from a newer daemon.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object} {name:?}: {field} has a value that this version does not know")]
pub struct UnknownValue {
    object: &'static str,
    name: String,
    field: &'static str,
}

impl From<Document> for v1::Configuration {
    fn from(document: Document) -> Self {
        Self {
            regions: document.regions.into_iter().map(Into::into).collect(),
            health_checks: document.health_checks.into_iter().map(Into::into).collect(),
            pools: document.pools.into_iter().map(Into::into).collect(),
            services: document.services.into_iter().map(Into::into).collect(),
            hash_key: document.hash_key.unwrap_or_default(),
        }
    }
}

impl TryFrom<v1::Configuration> for Document {
    type Error = UnknownValue;

    fn try_from(message: v1::Configuration) -> Result<Self, UnknownValue> {
        let v1::Configuration { regions, health_checks, pools, services, hash_key } = message;
        Ok(Self {
            hash_key: text(hash_key),
            regions: regions.into_iter().map(Into::into).collect(),
            health_checks: each(health_checks)?,
            pools: each(pools)?,
            services: each(services)?,
        })
    }
}

impl From<Region> for v1::Region {
    fn from(region: Region) -> Self {
        Self { name: region.name, overflow_to: region.overflow_to }
    }
}

impl From<v1::Region> for Region {
    fn from(message: v1::Region) -> Self {
        Self { name: message.name, overflow_to: message.overflow_to }
    }
}

impl From<HealthCheck> for v1::HealthCheck {
    fn from(check: HealthCheck) -> Self {
        Self {
            name: check.name,
            probe: Some(match check.probe {
                Probe::Tcp => v1::health_check::Probe::Tcp(v1::TcpProbe {}),
                Probe::Http(http) => v1::health_check::Probe::Http(v1::HttpProbe {
                    path: http.path.unwrap_or_default(),
                    host: http.host.unwrap_or_default(),
                    status_min: number(http.status_min),
                    status_max: number(http.status_max),
                }),
            }),
            port: check.port,
            interval: check.interval.map(saturating_duration),
            timeout: check.timeout.map(saturating_duration),
            rise: number(check.rise),
            fall: number(check.fall),
            jitter_percent: check.jitter_percent,
        }
    }
}

impl TryFrom<v1::HealthCheck> for HealthCheck {
    type Error = UnknownValue;

    fn try_from(message: v1::HealthCheck) -> Result<Self, UnknownValue> {
        let unknown =
            |field| UnknownValue { object: "health check", name: message.name.clone(), field };
        let duration = |field, value: Option<prost_types::Duration>| {
            value.map(std::time::Duration::try_from).transpose().map_err(|_| unknown(field))
        };
        Ok(Self {
            probe: match message.probe.clone() {
                Some(v1::health_check::Probe::Tcp(v1::TcpProbe {})) => Probe::Tcp,
                Some(v1::health_check::Probe::Http(http)) => Probe::Http(HttpProbe {
                    path: text(http.path),
                    host: text(http.host),
                    status_min: NonZeroU32::new(http.status_min),
                    status_max: NonZeroU32::new(http.status_max),
                }),
                None => return Err(unknown("probe")),
            },
            port: message.port,
            interval: duration("interval", message.interval)?,
            timeout: duration("timeout", message.timeout)?,
            rise: NonZeroU32::new(message.rise),
            fall: NonZeroU32::new(message.fall),
            jitter_percent: message.jitter_percent,
            name: message.name,
        })
    }
}

impl From<Pool> for v1::Pool {
    fn from(pool: Pool) -> Self {
        Self {
            name: pool.name,
            backends: pool.backends.into_iter().map(Into::into).collect(),
            health_checks: pool.health_checks,
            slots: number(pool.slots),
        }
    }
}

impl TryFrom<v1::Pool> for Pool {
    type Error = UnknownValue;

    fn try_from(message: v1::Pool) -> Result<Self, UnknownValue> {
        Ok(Self {
            name: message.name,
            health_checks: message.health_checks,
            slots: NonZeroU32::new(message.slots),
            backends: each(message.backends)?,
        })
    }
}

impl From<Backend> for v1::Backend {
    fn from(backend: Backend) -> Self {
        let wanted = match backend.wanted {
            None => v1::WantedState::Unspecified,
            Some(WantedState::Active) => v1::WantedState::Active,
            Some(WantedState::Disabled) => v1::WantedState::Disabled,
        };
        Self {
            address: backend.address,
            region: backend.region,
            weight: backend.weight,
            wanted: wanted.into(),
            mtu: number(backend.mtu),
        }
    }
}

impl TryFrom<v1::Backend> for Backend {
    type Error = UnknownValue;

    fn try_from(message: v1::Backend) -> Result<Self, UnknownValue> {
        let wanted = match v1::WantedState::try_from(message.wanted) {
            Ok(v1::WantedState::Unspecified) => None,
            Ok(v1::WantedState::Active) => Some(WantedState::Active),
            Ok(v1::WantedState::Disabled) => Some(WantedState::Disabled),
            Err(_) => {
                let name = message.address;
                return Err(UnknownValue { object: "backend", name, field: "wanted" });
            }
        };
        Ok(Self {
            address: message.address,
            region: message.region,
            weight: message.weight,
            wanted,
            mtu: NonZeroU32::new(message.mtu),
        })
    }
}

impl From<Service> for v1::Service {
    fn from(service: Service) -> Self {
        let protocol = match service.protocol {
            Protocol::Tcp => v1::Protocol::Tcp,
            Protocol::Udp => v1::Protocol::Udp,
        };
        let affinity = match service.affinity {
            None => v1::Affinity::Unspecified,
            Some(Affinity::Connection) => v1::Affinity::Connection,
            Some(Affinity::Client) => v1::Affinity::Client,
        };
        Self {
            name: service.name,
            address: service.address,
            port: service.port,
            protocol: protocol.into(),
            pool: service.pool,
            affinity: affinity.into(),
        }
    }
}

impl TryFrom<v1::Service> for Service {
    type Error = UnknownValue;

    fn try_from(message: v1::Service) -> Result<Self, UnknownValue> {
        let unknown = |field| UnknownValue { object: "service", name: message.name.clone(), field };
        let protocol = match v1::Protocol::try_from(message.protocol) {
            Ok(v1::Protocol::Tcp) => Protocol::Tcp,
            Ok(v1::Protocol::Udp) => Protocol::Udp,
            Ok(v1::Protocol::Unspecified) | Err(_) => return Err(unknown("protocol")),
        };
        let affinity = match v1::Affinity::try_from(message.affinity) {
            Ok(v1::Affinity::Unspecified) => None,
            Ok(v1::Affinity::Connection) => Some(Affinity::Connection),
            Ok(v1::Affinity::Client) => Some(Affinity::Client),
            Err(_) => return Err(unknown("affinity")),
        };
        Ok(Self {
            name: message.name,
            address: message.address,
            port: message.port,
            protocol,
            pool: message.pool,
            affinity,
        })
    }
}

fn each<M, D: TryFrom<M>>(messages: Vec<M>) -> Result<Vec<D>, D::Error> {
    messages.into_iter().map(D::try_from).collect()
}

fn text(value: String) -> Option<String> {
    (!value.is_empty()).then_some(value)
}

fn number(value: Option<NonZeroU32>) -> u32 {
    value.map_or(0, NonZeroU32::get)
}

/// Durations beyond protobuf's range become its largest; the validation behind refuses them anyway.
fn saturating_duration(duration: std::time::Duration) -> prost_types::Duration {
    prost_types::Duration::try_from(duration)
        .unwrap_or(prost_types::Duration { seconds: i64::MAX, nanos: 0 })
}
