//! Mistakes, one at a time.

mod backends;
mod checks;
mod groups;
mod names;
mod pools;
mod probes;
mod regions;
mod services;
mod whole;

use spillway_proto::v1;

pub(super) fn http(message: &mut v1::Configuration) -> &mut v1::HttpCheck {
    match message.health_checks[0].probe.as_mut() {
        Some(v1::health_check::Probe::Http(http)) => http,
        _ => panic!("the first check is http"),
    }
}

/// Makes the first check one of gRPC.
fn grpc(message: &mut v1::Configuration) -> &mut v1::GrpcCheck {
    let probe = &mut message.health_checks[0].probe;
    match probe.insert(v1::health_check::Probe::Grpc(v1::GrpcCheck::default())) {
        v1::health_check::Probe::Grpc(grpc) => grpc,
        _ => unreachable!("it was just made one"),
    }
}

/// Makes the first check one of UDP.
fn udp(message: &mut v1::Configuration) -> &mut v1::UdpCheck {
    let probe = &mut message.health_checks[0].probe;
    match probe.insert(v1::health_check::Probe::Udp(v1::UdpCheck::default())) {
        v1::health_check::Probe::Udp(udp) => udp,
        _ => unreachable!("it was just made one"),
    }
}

/// Makes the first check one that asks an agent.
fn agent(message: &mut v1::Configuration) -> &mut v1::AgentCheck {
    let probe = &mut message.health_checks[0].probe;
    match probe.insert(v1::health_check::Probe::Agent(v1::AgentCheck::default())) {
        v1::health_check::Probe::Agent(agent) => agent,
        _ => unreachable!("it was just made one"),
    }
}

/// Gives the first check TLS.
fn tls(message: &mut v1::Configuration) -> &mut v1::CheckTls {
    message.health_checks[0].tls.get_or_insert_default()
}

/// What is done wrong.
pub(super) type Mistake = fn(&mut v1::Configuration);

/// What is done to the correct message, the answer, and the field it names.
pub(super) type Row = (Mistake, &'static str, &'static str);

/// All of them.
pub(super) fn all() -> impl Iterator<Item = &'static Row> {
    let kinds = [
        names::NAMES,
        regions::REGIONS,
        checks::CHECKS,
        probes::PROBES,
        pools::POOLS,
        groups::GROUPS,
        backends::BACKENDS,
        services::SERVICES,
        whole::WHOLE,
    ];
    kinds.into_iter().flatten()
}
