//! Converts the file form to the messages of the API and back, without validation.

use std::num::NonZeroU32;

use spillway_proto::v1;

use lb_model::{
    AdminState, Affinity, EncapsulationKind, Fragments, Isolation, Protocol, UdpMode, Unserved,
    WhenFull,
};

use super::enums::{ApiEnum, to_number};
use crate::document::{Backend, Document, Group, Pool, PortRange, Region, Service, Vip};

/// A message has a value that the file form of this version lacks: it comes from a newer daemon.
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
            vips: document.vips.into_iter().map(Into::into).collect(),
        }
    }
}

impl TryFrom<v1::Configuration> for Document {
    type Error = UnknownValue;

    fn try_from(message: v1::Configuration) -> Result<Self, UnknownValue> {
        let v1::Configuration {
            regions,
            health_checks,
            pools,
            services,
            hash_key,
            balancers,
            vips,
        } = message;
        Ok(Self {
            hash_key: text(hash_key),
            balancers: NonZeroU32::new(balancers),
            regions: regions.into_iter().map(Into::into).collect(),
            health_checks: each(health_checks)?,
            pools: each(pools)?,
            services: each(services)?,
            vips: each(vips)?,
        })
    }
}

impl From<Region> for v1::Region {
    fn from(region: Region) -> Self {
        Self { name: region.name, overflow_to: region.overflow_to, etag: String::new() }
    }
}

impl From<v1::Region> for Region {
    fn from(message: v1::Region) -> Self {
        Self { name: message.name, overflow_to: message.overflow_to }
    }
}

impl From<Pool> for v1::Pool {
    fn from(pool: Pool) -> Self {
        Self {
            name: pool.name,
            backends: pool.backends.into_iter().map(Into::into).collect(),
            health_checks: pool.health_checks,
            slots: pool.slots,
            groups: pool.groups.into_iter().map(Into::into).collect(),
            isolation: to_number(pool.isolation),
            preferred_regions: pool.preferred_regions,
            panic_threshold_percent: number(pool.panic_threshold_percent),
            settle_time: pool.settle_time.map(saturating_duration),
            slow_start: pool.slow_start.map(saturating_duration),
            hold_down: pool.hold_down.map(saturating_duration),
            max_hold_down: pool.max_hold_down.map(saturating_duration),
            encapsulation: to_number(pool.encapsulation),
            gue_port: number(pool.gue_port),
            etag: String::new(),
        }
    }
}

impl TryFrom<v1::Pool> for Pool {
    type Error = UnknownValue;

    fn try_from(message: v1::Pool) -> Result<Self, UnknownValue> {
        let unknown = |field| UnknownValue { object: "pool", name: message.name.clone(), field };
        let settle_time = duration(message.settle_time).ok_or_else(|| unknown("settle_time"))?;
        let slow_start = duration(message.slow_start).ok_or_else(|| unknown("slow_start"))?;
        let hold_down = duration(message.hold_down).ok_or_else(|| unknown("hold_down"))?;
        let max_hold_down =
            duration(message.max_hold_down).ok_or_else(|| unknown("max_hold_down"))?;
        Ok(Self {
            health_checks: message.health_checks,
            slots: message.slots,
            settle_time,
            slow_start,
            hold_down,
            max_hold_down,
            encapsulation: EncapsulationKind::from_api(message.encapsulation)
                .map_err(|_| unknown("encapsulation"))?,
            gue_port: NonZeroU32::new(message.gue_port),
            isolation: Isolation::from_api(message.isolation).map_err(|_| unknown("isolation"))?,
            preferred_regions: message.preferred_regions,
            panic_threshold_percent: NonZeroU32::new(message.panic_threshold_percent),
            groups: message.groups.into_iter().map(Into::into).collect(),
            backends: each(message.backends)?,
            name: message.name,
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
        Self {
            address: backend.address,
            region: backend.region,
            weight: backend.weight,
            admin_state: to_number(backend.admin_state),
            mtu: number(backend.mtu),
            max_connection_rate_per_second: backend.max_connection_rate,
            pool: String::new(),
            etag: String::new(),
        }
    }
}

impl TryFrom<v1::Backend> for Backend {
    type Error = UnknownValue;

    fn try_from(message: v1::Backend) -> Result<Self, UnknownValue> {
        let admin_state = AdminState::from_api(message.admin_state).map_err(|_| {
            let name = message.address.clone();
            UnknownValue { object: "backend", name, field: "admin_state" }
        })?;
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
        let range = |range: PortRange| v1::PortRange { first: range.first, last: range.last };
        Self {
            name: service.name,
            address: service.address,
            port: number(service.port),
            protocol: to_number(service.protocol),
            pool: service.pool,
            affinity: to_number(service.affinity),
            when_full: to_number(service.when_full),
            udp: to_number(service.udp),
            idle_timeout: service.idle_timeout.map(saturating_duration),
            ports: service.ports.into_iter().map(range).collect(),
            any_port: service.any_port,
            fragments: to_number(service.fragments),
            etag: String::new(),
        }
    }
}

impl TryFrom<v1::Service> for Service {
    type Error = UnknownValue;

    fn try_from(message: v1::Service) -> Result<Self, UnknownValue> {
        let unknown = |field| UnknownValue { object: "service", name: message.name.clone(), field };
        let protocol = Protocol::from_api(message.protocol).ok().flatten();
        let protocol = Some(protocol.ok_or_else(|| unknown("protocol"))?);
        let idle_timeout = duration(message.idle_timeout).ok_or_else(|| unknown("idle_timeout"))?;
        let range = |range: v1::PortRange| PortRange {
            first: range.first,
            last: if range.last == 0 { range.first } else { range.last },
        };
        Ok(Self {
            address: message.address,
            port: NonZeroU32::new(message.port),
            ports: message.ports.into_iter().map(range).collect(),
            any_port: message.any_port,
            protocol,
            pool: message.pool,
            affinity: Affinity::from_api(message.affinity).map_err(|_| unknown("affinity"))?,
            when_full: WhenFull::from_api(message.when_full).map_err(|_| unknown("when_full"))?,
            udp: UdpMode::from_api(message.udp).map_err(|_| unknown("udp"))?,
            idle_timeout,
            fragments: Fragments::from_api(message.fragments).map_err(|_| unknown("fragments"))?,
            name: message.name,
        })
    }
}

impl From<Vip> for v1::VipRange {
    fn from(vip: Vip) -> Self {
        Self { prefix: vip.prefix, unserved: to_number(vip.unserved) }
    }
}

impl TryFrom<v1::VipRange> for Vip {
    type Error = UnknownValue;

    fn try_from(message: v1::VipRange) -> Result<Self, UnknownValue> {
        let unserved = Unserved::from_api(message.unserved).map_err(|_| {
            let name = message.prefix.clone();
            UnknownValue { object: "vip", name, field: "unserved" }
        })?;
        Ok(Self { prefix: message.prefix, unserved })
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

/// A duration that may be unset; the outer `None`: it is not a valid duration.
pub(super) fn duration(
    message: Option<prost_types::Duration>,
) -> Option<Option<std::time::Duration>> {
    message.map(std::time::Duration::try_from).transpose().ok()
}

/// Durations beyond protobuf's range become its largest, which validation refuses.
pub(super) fn saturating_duration(duration: std::time::Duration) -> prost_types::Duration {
    prost_types::Duration::try_from(duration)
        .unwrap_or(prost_types::Duration { seconds: i64::MAX, nanos: 0 })
}
