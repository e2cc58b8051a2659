//! A valid configuration as a message: every value spelt out, so that later defaults change nothing.

use std::{net::IpAddr, time::Duration};

use spillway_proto::v1;

use lb_model::{
    AdminState, Affinity, Backend, CheckTls, Configuration, Encapsulation, Fragments,
    GroupSettings, HealthCheck, Isolation, Name, Pool, Ports, Probe, Protocol, Rate, Region,
    Service, Trust, Via, WhenFull,
};

/// The message of a configuration.
pub fn to_message(configuration: &Configuration) -> v1::Configuration {
    v1::Configuration {
        regions: configuration.regions.iter().map(region).collect(),
        health_checks: configuration.health_checks.iter().map(health_check).collect(),
        pools: configuration.pools.iter().map(pool).collect(),
        services: configuration.services.iter().map(service).collect(),
        hash_key: configuration.hash_key.map(hash_key).unwrap_or_default(),
        balancers: configuration.balancers.get(),
    }
}

/// 32 hexadecimal digits, the first half first.
pub fn hash_key([first, second]: [u64; 2]) -> String {
    format!("{first:016x}{second:016x}")
}

fn region((name, region): (&Name, &Region)) -> v1::Region {
    v1::Region { name: name.to_string(), overflow_to: names(&region.overflow_to) }
}

fn pool((name, pool): (&Name, &Pool)) -> v1::Pool {
    v1::Pool {
        name: name.to_string(),
        backends: pool.backends.iter().map(backend).collect(),
        health_checks: names(&pool.health_checks),
        slots: pool.slots,
        groups: pool.groups.iter().map(group).collect(),
        isolation: match pool.isolation {
            Isolation::None => v1::Isolation::None,
            Isolation::OnFailure => v1::Isolation::OnFailure,
            Isolation::Strict => v1::Isolation::Strict,
        }
        .into(),
        preferred_regions: names(&pool.preferred_regions),
        panic_threshold_percent: pool.panic_threshold_percent,
        settle_time: Some(duration(pool.settle_time)),
        slow_start: (!pool.slow_start.is_zero()).then(|| duration(pool.slow_start)),
        encapsulation: encapsulation(pool.encapsulation).into(),
        // The registered one goes without saying, so that a pool can go back to IP in IP by one field.
        gue_port: match pool.encapsulation.gue_port() {
            Some(port) if port != Encapsulation::DEFAULT_GUE_PORT => port.into(),
            _ => 0,
        },
    }
}

/// The number of an encapsulation.
pub const fn encapsulation(encapsulation: Encapsulation) -> v1::Encapsulation {
    match encapsulation {
        Encapsulation::IpInIp => v1::Encapsulation::IpInIp,
        Encapsulation::Gue(_) => v1::Encapsulation::Gue,
        Encapsulation::Direct => v1::Encapsulation::Direct,
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

fn backend((address, backend): (&IpAddr, &Backend)) -> v1::Backend {
    v1::Backend {
        address: address.to_string(),
        region: backend.region.to_string(),
        weight: Some(backend.weight),
        admin_state: admin_state(backend.admin_state).into(),
        mtu: backend.mtu.map_or(0, u32::from),
        max_connection_rate_per_second: backend.max_connection_rate.map(Rate::per_second),
    }
}

/// The number of an admin state.
pub const fn admin_state(admin_state: AdminState) -> v1::AdminState {
    match admin_state {
        AdminState::Active => v1::AdminState::Active,
        AdminState::Disabled => v1::AdminState::Disabled,
        AdminState::Drain => v1::AdminState::Drain,
    }
}

fn service((name, service): (&Name, &Service)) -> v1::Service {
    v1::Service {
        name: name.to_string(),
        address: service.address.to_string(),
        port: service.ports.single().map_or(0, u32::from),
        protocol: match service.protocol {
            Protocol::Tcp => v1::Protocol::Tcp,
            Protocol::Udp => v1::Protocol::Udp,
        }
        .into(),
        pool: service.pool.to_string(),
        affinity: match service.affinity {
            Affinity::Connection => v1::Affinity::Connection,
            Affinity::Client => v1::Affinity::Client,
            Affinity::Port => v1::Affinity::Port,
        }
        .into(),
        when_full: match service.when_full {
            WhenFull::Nearest => v1::WhenFull::Nearest,
            WhenFull::Reject => v1::WhenFull::Reject,
        }
        .into(),
        udp: match (service.protocol, service.idle_timeout) {
            (Protocol::Tcp, _) => v1::UdpMode::Unspecified,
            (Protocol::Udp, None) => v1::UdpMode::Stateless,
            (Protocol::Udp, Some(_)) => v1::UdpMode::Tracked,
        }
        .into(),
        idle_timeout: service.idle_timeout.map(duration),
        ports: match &service.ports {
            Ports::Listed(list) if service.ports.single().is_none() => list.ranges(),
            _ => &[],
        }
        .iter()
        .map(|(first, last)| v1::PortRange { first: (*first).into(), last: (*last).into() })
        .collect(),
        any_port: service.ports == Ports::Any,
        fragments: match service.fragments {
            Fragments::Dropped => v1::Fragments::Dropped,
            Fragments::Served => v1::Fragments::Served,
        }
        .into(),
    }
}

fn health_check((name, check): (&Name, &HealthCheck)) -> v1::HealthCheck {
    v1::HealthCheck {
        name: name.to_string(),
        probe: Some(probe(&check.probe)),
        tls: check.tls.as_ref().map(tls),
        via: match check.via {
            Via::Address => v1::Via::Unspecified,
            Via::Tunnel => v1::Via::Tunnel,
        }
        .into(),
        port: check.port.into(),
        interval: Some(duration(check.interval)),
        fast_interval: Some(duration(check.fast_interval)),
        timeout: Some(duration(check.timeout)),
        rise: check.rise,
        fall: check.fall,
        jitter_percent: Some(check.jitter_percent),
    }
}

fn probe(probe: &Probe) -> v1::health_check::Probe {
    match probe {
        Probe::Tcp => v1::health_check::Probe::Tcp(v1::TcpCheck {}),
        Probe::Http(http) => v1::health_check::Probe::Http(v1::HttpCheck {
            method: http.method.clone(),
            path: http.path.clone(),
            host: http.host.clone().unwrap_or_default(),
            status_min: http.status_min.into(),
            status_max: http.status_max.into(),
            body_contains: http.body_contains.clone().unwrap_or_default(),
            agent_header: http.agent_header.clone().unwrap_or_default(),
        }),
        Probe::Grpc(grpc) => v1::health_check::Probe::Grpc(v1::GrpcCheck {
            service: grpc.service.clone(),
            authority: grpc.authority.clone().unwrap_or_default(),
        }),
        Probe::Udp(udp) => v1::health_check::Probe::Udp(v1::UdpCheck {
            request: udp.request.clone(),
            answer_prefix: udp.answer_prefix.clone(),
            answer_contains: udp.answer_contains.clone(),
        }),
        Probe::Agent(agent) => {
            v1::health_check::Probe::Agent(v1::AgentCheck { send: agent.send.clone() })
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
