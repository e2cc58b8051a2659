//! The file form to the API's form and back. Nothing is judged here.

use std::num::NonZeroU32;

use spillway_proto::v1;

use crate::document::{
    AdminState, Affinity, Backend, Document, Encapsulation, Fragments, Group, Isolation, Pool,
    PortRange, Protocol, Region, Service, UdpMode, WhenFull,
};

/// A message holds what this version has no word for: it comes from a newer daemon.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object} {name:?}: {field} has a value that this version does not know")]
pub struct UnknownValue {
    pub(super) object: &'static str,
    pub(super) name: String,
    pub(super) field: &'static str,
}

impl From<Document> for v1::Configuration {
    fn from(document: Document) -> Self {
        Self {
            regions: document.regions.into_iter().map(Into::into).collect(),
            health_checks: document.health_checks.into_iter().map(Into::into).collect(),
            pools: document.pools.into_iter().map(Into::into).collect(),
            services: document.services.into_iter().map(Into::into).collect(),
            hash_key: document.hash_key.unwrap_or_default(),
            balancers: number(document.balancers),
        }
    }
}

impl TryFrom<v1::Configuration> for Document {
    type Error = UnknownValue;

    fn try_from(message: v1::Configuration) -> Result<Self, UnknownValue> {
        let v1::Configuration { regions, health_checks, pools, services, hash_key, balancers } =
            message;
        Ok(Self {
            hash_key: text(hash_key),
            balancers: NonZeroU32::new(balancers),
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

impl From<Pool> for v1::Pool {
    fn from(pool: Pool) -> Self {
        let isolation = match pool.isolation {
            None => v1::Isolation::Unspecified,
            Some(Isolation::None) => v1::Isolation::None,
            Some(Isolation::OnFailure) => v1::Isolation::OnFailure,
            Some(Isolation::Strict) => v1::Isolation::Strict,
        };
        let encapsulation = match pool.encapsulation {
            None => v1::Encapsulation::Unspecified,
            Some(Encapsulation::IpInIp) => v1::Encapsulation::IpInIp,
            Some(Encapsulation::Gue) => v1::Encapsulation::Gue,
            Some(Encapsulation::Direct) => v1::Encapsulation::Direct,
        };
        Self {
            name: pool.name,
            backends: pool.backends.into_iter().map(Into::into).collect(),
            health_checks: pool.health_checks,
            slots: number(pool.slots),
            groups: pool.groups.into_iter().map(Into::into).collect(),
            isolation: isolation.into(),
            preferred_regions: pool.preferred_regions,
            panic_threshold_percent: number(pool.panic_threshold_percent),
            settle_time: pool.settle_time.map(saturating_duration),
            slow_start: pool.slow_start.map(saturating_duration),
            encapsulation: encapsulation.into(),
            gue_port: number(pool.gue_port),
        }
    }
}

impl TryFrom<v1::Pool> for Pool {
    type Error = UnknownValue;

    fn try_from(message: v1::Pool) -> Result<Self, UnknownValue> {
        let isolation = match v1::Isolation::try_from(message.isolation) {
            Ok(v1::Isolation::Unspecified) => None,
            Ok(v1::Isolation::None) => Some(Isolation::None),
            Ok(v1::Isolation::OnFailure) => Some(Isolation::OnFailure),
            Ok(v1::Isolation::Strict) => Some(Isolation::Strict),
            Err(_) => {
                let name = message.name;
                return Err(UnknownValue { object: "pool", name, field: "isolation" });
            }
        };
        let unknown = |field| UnknownValue { object: "pool", name: message.name.clone(), field };
        let encapsulation = match v1::Encapsulation::try_from(message.encapsulation) {
            Ok(v1::Encapsulation::Unspecified) => None,
            Ok(v1::Encapsulation::IpInIp) => Some(Encapsulation::IpInIp),
            Ok(v1::Encapsulation::Gue) => Some(Encapsulation::Gue),
            Ok(v1::Encapsulation::Direct) => Some(Encapsulation::Direct),
            Err(_) => return Err(unknown("encapsulation")),
        };
        let settle_time = duration(message.settle_time).ok_or_else(|| unknown("settle_time"))?;
        let slow_start = duration(message.slow_start).ok_or_else(|| unknown("slow_start"))?;
        Ok(Self {
            name: message.name,
            health_checks: message.health_checks,
            slots: NonZeroU32::new(message.slots),
            settle_time,
            slow_start,
            encapsulation,
            gue_port: NonZeroU32::new(message.gue_port),
            isolation,
            preferred_regions: message.preferred_regions,
            panic_threshold_percent: NonZeroU32::new(message.panic_threshold_percent),
            groups: message.groups.into_iter().map(Into::into).collect(),
            backends: each(message.backends)?,
        })
    }
}

impl From<Group> for v1::Group {
    fn from(group: Group) -> Self {
        let Group { region, capacity, scaler, drained } = group;
        Self { region, capacity_per_second: capacity, scaler, drained }
    }
}

impl From<v1::Group> for Group {
    fn from(message: v1::Group) -> Self {
        let v1::Group { region, capacity_per_second, scaler, drained } = message;
        Self { region, capacity: capacity_per_second, scaler, drained }
    }
}

impl From<Backend> for v1::Backend {
    fn from(backend: Backend) -> Self {
        let admin_state = match backend.admin_state {
            None => v1::AdminState::Unspecified,
            Some(AdminState::Active) => v1::AdminState::Active,
            Some(AdminState::Disabled) => v1::AdminState::Disabled,
            Some(AdminState::Drain) => v1::AdminState::Drain,
        };
        Self {
            address: backend.address,
            region: backend.region,
            weight: backend.weight,
            admin_state: admin_state.into(),
            mtu: number(backend.mtu),
            max_connection_rate_per_second: backend.max_connection_rate,
        }
    }
}

impl TryFrom<v1::Backend> for Backend {
    type Error = UnknownValue;

    fn try_from(message: v1::Backend) -> Result<Self, UnknownValue> {
        let admin_state = match v1::AdminState::try_from(message.admin_state) {
            Ok(v1::AdminState::Unspecified) => None,
            Ok(v1::AdminState::Active) => Some(AdminState::Active),
            Ok(v1::AdminState::Disabled) => Some(AdminState::Disabled),
            Ok(v1::AdminState::Drain) => Some(AdminState::Drain),
            Err(_) => {
                let name = message.address;
                return Err(UnknownValue { object: "backend", name, field: "admin_state" });
            }
        };
        Ok(Self {
            address: message.address,
            region: message.region,
            weight: message.weight,
            admin_state,
            mtu: NonZeroU32::new(message.mtu),
            max_connection_rate: message.max_connection_rate_per_second,
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
            Some(Affinity::Port) => v1::Affinity::Port,
        };
        let fragments = match service.fragments {
            None => v1::Fragments::Unspecified,
            Some(Fragments::Dropped) => v1::Fragments::Dropped,
            Some(Fragments::Served) => v1::Fragments::Served,
        };
        let range = |range: PortRange| v1::PortRange { first: range.first, last: range.last };
        let when_full = match service.when_full {
            None => v1::WhenFull::Unspecified,
            Some(WhenFull::Nearest) => v1::WhenFull::Nearest,
            Some(WhenFull::Reject) => v1::WhenFull::Reject,
        };
        let udp = match service.udp {
            None => v1::UdpMode::Unspecified,
            Some(UdpMode::Stateless) => v1::UdpMode::Stateless,
            Some(UdpMode::Tracked) => v1::UdpMode::Tracked,
        };
        Self {
            name: service.name,
            address: service.address,
            port: number(service.port),
            protocol: protocol.into(),
            pool: service.pool,
            affinity: affinity.into(),
            when_full: when_full.into(),
            udp: udp.into(),
            idle_timeout: service.idle_timeout.map(saturating_duration),
            ports: service.ports.into_iter().map(range).collect(),
            any_port: service.any_port,
            fragments: fragments.into(),
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
            Ok(v1::Affinity::Port) => Some(Affinity::Port),
            Err(_) => return Err(unknown("affinity")),
        };
        let when_full = match v1::WhenFull::try_from(message.when_full) {
            Ok(v1::WhenFull::Unspecified) => None,
            Ok(v1::WhenFull::Nearest) => Some(WhenFull::Nearest),
            Ok(v1::WhenFull::Reject) => Some(WhenFull::Reject),
            Err(_) => return Err(unknown("when_full")),
        };
        let udp = match v1::UdpMode::try_from(message.udp) {
            Ok(v1::UdpMode::Unspecified) => None,
            Ok(v1::UdpMode::Stateless) => Some(UdpMode::Stateless),
            Ok(v1::UdpMode::Tracked) => Some(UdpMode::Tracked),
            Err(_) => return Err(unknown("udp")),
        };
        let idle_timeout = duration(message.idle_timeout).ok_or_else(|| unknown("idle_timeout"))?;
        let fragments = match v1::Fragments::try_from(message.fragments) {
            Ok(v1::Fragments::Unspecified) => None,
            Ok(v1::Fragments::Dropped) => Some(Fragments::Dropped),
            Ok(v1::Fragments::Served) => Some(Fragments::Served),
            Err(_) => return Err(unknown("fragments")),
        };
        let range = |range: v1::PortRange| PortRange {
            first: range.first,
            last: if range.last == 0 { range.first } else { range.last },
        };
        Ok(Self {
            name: message.name,
            address: message.address,
            port: NonZeroU32::new(message.port),
            ports: message.ports.into_iter().map(range).collect(),
            any_port: message.any_port,
            protocol,
            pool: message.pool,
            affinity,
            when_full,
            udp,
            idle_timeout,
            fragments,
        })
    }
}

fn each<M, D: TryFrom<M>>(messages: Vec<M>) -> Result<Vec<D>, D::Error> {
    messages.into_iter().map(D::try_from).collect()
}

pub(super) fn text(value: String) -> Option<String> {
    (!value.is_empty()).then_some(value)
}

pub(super) fn number(value: Option<NonZeroU32>) -> u32 {
    value.map_or(0, NonZeroU32::get)
}

/// A duration that may be unset; the outer `None`: it is none at all.
pub(super) fn duration(
    message: Option<prost_types::Duration>,
) -> Option<Option<std::time::Duration>> {
    message.map(std::time::Duration::try_from).transpose().ok()
}

/// Durations beyond protobuf's range become its largest; the validation behind refuses them anyway.
pub(super) fn saturating_duration(duration: std::time::Duration) -> prost_types::Duration {
    prost_types::Duration::try_from(duration)
        .unwrap_or(prost_types::Duration { seconds: i64::MAX, nanos: 0 })
}
