//! Converts a valid configuration to a message with all values set, so that later defaults change nothing, and to the
//! bytes that the store keeps.

use std::{net::IpAddr, time::Duration};

use lb_base::Prefix;
use lb_model::{
    Backend, CheckKind, CheckTls, Configuration, Encapsulation, GroupSettings, HealthCheck,
    HostProbe, Name, Pool, Ports, Rate, Region, Service, Trust, Unserved, Via,
};
use prost::Message;
use spillway_proto::v1;

use super::enums::{ApiEnum, to_number};
use crate::{Invalid, validate_first};

/// The message of a configuration.
pub fn to_message(configuration: &Configuration) -> v1::Configuration {
    to_message_with(configuration, |_| true)
}

/// As [`to_message`], but only some pools have their backends.
pub(crate) fn to_message_with(
    configuration: &Configuration,
    has_backends: impl Fn(&Name) -> bool,
) -> v1::Configuration {
    let pools = configuration.pools.iter().map(|(name, pool)| match has_backends(name) {
        true => self::pool(name, pool),
        false => pool_settings(name, pool),
    });
    v1::Configuration { pools: pools.collect(), ..without_pools(configuration) }
}

fn without_pools(configuration: &Configuration) -> v1::Configuration {
    v1::Configuration {
        regions: configuration.regions.iter().map(region).collect(),
        health_checks: configuration.health_checks.iter().map(health_check).collect(),
        pools: Vec::new(),
        services: configuration.services.iter().map(service).collect(),
        hash_key: configuration.hash_key.map(hash_key).unwrap_or_default(),
        balancers: configuration.balancers.get(),
        vips: configuration.vips.iter().map(vip).collect(),
    }
}

/// 32 hexadecimal digits, the first half first.
pub fn hash_key([first, second]: [u64; 2]) -> String {
    format!("{first:016x}{second:016x}")
}

fn region((name, region): (&Name, &Region)) -> v1::Region {
    v1::Region {
        name: name.to_string(),
        overflow_to: names(&region.overflow_to),
        etag: String::new(),
    }
}

/// The message of a pool.
pub fn pool(name: &Name, pool: &Pool) -> v1::Pool {
    let backends = pool.backends.iter().map(backend).collect();
    v1::Pool { backends, ..pool_settings(name, pool) }
}

/// A pool without its backends.
fn pool_settings(name: &Name, pool: &Pool) -> v1::Pool {
    v1::Pool {
        name: name.to_string(),
        backends: Vec::new(),
        health_checks: names(&pool.health_checks),
        slots: Some(pool.slots),
        groups: pool.groups.iter().map(group).collect(),
        isolation: pool.isolation.to_api().into(),
        preferred_regions: names(&pool.preferred_regions),
        panic_threshold_percent: pool.panic_threshold_percent,
        settle_time: Some(duration(pool.settle_time)),
        slow_start: (!pool.slow_start.is_zero()).then(|| duration(pool.slow_start)),
        hold_down: Some(duration(pool.hold_down)),
        max_hold_down: Some(duration(pool.max_hold_down)),
        encapsulation: pool.encapsulation.kind().to_api().into(),
        // The default port is left out, so that a pool can go back to IP in IP by a change of one field.
        gue_port: match pool.encapsulation.gue_port() {
            Some(port) if port != Encapsulation::DEFAULT_GUE_PORT => port.into(),
            _ => 0,
        },
        etag: String::new(),
    }
}

fn group((region, group): (&Name, &GroupSettings)) -> v1::Group {
    v1::Group {
        region: region.to_string(),
        capacity_per_second: group.capacity.map(Rate::per_second),
        scaler: Some(group.scaler.share()),
        drained: group.drained,
    }
}

/// The message of a backend of a pool.
pub fn backend((address, backend): (&IpAddr, &Backend)) -> v1::Backend {
    v1::Backend {
        address: address.to_string(),
        region: backend.region.to_string(),
        weight: Some(backend.weight),
        admin_state: backend.admin_state.to_api().into(),
        mtu: backend.mtu.map_or(0, u32::from),
        max_connection_rate_per_second: backend.max_connection_rate.map(Rate::per_second),
        pool: String::new(),
        etag: String::new(),
    }
}

fn service((name, service): (&Name, &Service)) -> v1::Service {
    v1::Service {
        name: name.to_string(),
        address: service.address.to_string(),
        port: service.ports.single().map_or(0, u32::from),
        protocol: service.protocol.to_api().into(),
        pool: service.pool.to_string(),
        affinity: service.affinity.to_api().into(),
        when_full: service.when_full.to_api().into(),
        udp: to_number(service.udp_mode()),
        idle_timeout: service.idle_timeout.map(duration),
        ports: match &service.ports {
            Ports::Listed(list) if service.ports.single().is_none() => list.ranges(),
            _ => &[],
        }
        .iter()
        .map(|(first, last)| v1::PortRange { first: (*first).into(), last: (*last).into() })
        .collect(),
        any_port: service.ports == Ports::Any,
        fragments: service.fragments.to_api().into(),
        etag: String::new(),
    }
}

fn vip((prefix, unserved): (&Prefix, &Unserved)) -> v1::VipRange {
    v1::VipRange { prefix: prefix.to_string(), unserved: unserved.to_api().into() }
}

fn health_check((name, check): (&Name, &HealthCheck)) -> v1::HealthCheck {
    v1::HealthCheck {
        name: name.to_string(),
        kind: Some(probe(&check.kind)),
        tls: check.tls.as_ref().map(tls),
        // The default is left out.
        via: to_number((check.via != Via::Address).then_some(check.via)),
        port: check.port.into(),
        interval: Some(duration(check.interval)),
        fast_interval: Some(duration(check.fast_interval)),
        timeout: Some(duration(check.timeout)),
        rise: check.rise,
        fall: check.fall,
        jitter_percent: Some(check.jitter_percent),
        host_probe: to_number((check.host_probe != HostProbe::Auto).then_some(check.host_probe)),
        host_probe_port: match check.host_probe_port {
            HealthCheck::DEFAULT_HOST_PROBE_PORT => 0,
            port => port.into(),
        },
        etag: String::new(),
    }
}

fn probe(probe: &CheckKind) -> v1::health_check::Kind {
    match probe {
        CheckKind::Tcp => v1::health_check::Kind::Tcp(v1::TcpCheck {}),
        CheckKind::Http(http) => v1::health_check::Kind::Http(v1::HttpCheck {
            method: http.method.clone(),
            path: http.path.clone(),
            host: http.host.clone().unwrap_or_default(),
            status_min: http.status_min.into(),
            status_max: http.status_max.into(),
            body_contains: http.body_contains.clone().unwrap_or_default(),
            agent_header: http.agent_header.clone().unwrap_or_default(),
        }),
        CheckKind::Grpc(grpc) => v1::health_check::Kind::Grpc(v1::GrpcCheck {
            service: grpc.service.clone(),
            authority: grpc.authority.clone().unwrap_or_default(),
        }),
        CheckKind::Udp(udp) => v1::health_check::Kind::Udp(v1::UdpCheck {
            request: udp.request.clone(),
            answer_prefix: udp.answer_prefix.clone(),
            answer_contains: udp.answer_contains.clone(),
        }),
        CheckKind::Agent(agent) => {
            v1::health_check::Kind::Agent(v1::AgentCheck { send: agent.send.clone() })
        }
    }
}

fn tls(tls: &CheckTls) -> v1::CheckTls {
    let (verify, ca_file) = match &tls.trust {
        Trust::Anybody => (false, String::new()),
        Trust::Host => (true, String::new()),
        Trust::File(path) => (true, path.clone()),
    };
    let server_name = tls.server_name.clone().unwrap_or_default();
    v1::CheckTls { server_name, verify: Some(verify), ca_file }
}

fn names(names: &[Name]) -> Vec<String> {
    names.iter().map(Name::to_string).collect()
}

/// Durations of a model are hours at most.
pub fn duration(duration: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: duration.subsec_nanos().cast_signed(),
    }
}

/// A stored configuration, which may break the rules of this version.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredMessage(pub v1::Configuration);

impl StoredMessage {
    /// Decodes bytes of [`encode`], or those of [`encode_without_pools`] followed by those of [`encode_pool`] of each pool:
    /// messages that follow each other are one. Fields that this version does not know are left out.
    ///
    /// # Errors
    /// They are not a message.
    pub fn read(bytes: &[u8]) -> Result<Self, prost::DecodeError> {
        v1::Configuration::decode(bytes).map(Self)
    }

    /// The configuration that it is.
    ///
    /// # Errors
    /// It breaks a rule.
    pub fn configuration(&self) -> Result<Configuration, Invalid> {
        // A stored configuration has the slots of each pool.
        validate_first(&self.0)
    }
}

impl From<&Configuration> for StoredMessage {
    fn from(configuration: &Configuration) -> Self {
        Self(to_message(configuration))
    }
}

/// The bytes of a configuration.
pub fn encode(configuration: &Configuration) -> Vec<u8> {
    to_message(configuration).encode_to_vec()
}

/// The bytes of a configuration without its pools, to be followed by [`encode_pool`] of each.
pub fn encode_without_pools(configuration: &Configuration) -> Vec<u8> {
    without_pools(configuration).encode_to_vec()
}

/// The bytes of a configuration with one pool and nothing else.
pub fn encode_pool(name: &Name, pool: &Pool) -> Vec<u8> {
    let pools = vec![self::pool(name, pool)];
    v1::Configuration { pools, ..v1::Configuration::default() }.encode_to_vec()
}
