use spillway_proto::v1;

use super::duration;
use crate::model::{HealthCheck, Name, Probe, TlsProbe, Trust, Via};

pub(super) fn message((name, check): (&Name, &HealthCheck)) -> v1::HealthCheck {
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
        Probe::Tcp => v1::health_check::Probe::Tcp(v1::TcpProbe {}),
        Probe::Http(http) => v1::health_check::Probe::Http(v1::HttpProbe {
            method: http.method.clone(),
            path: http.path.clone(),
            host: http.host.clone().unwrap_or_default(),
            status_min: http.status_min.into(),
            status_max: http.status_max.into(),
            body_contains: http.body_contains.clone().unwrap_or_default(),
            agent_header: http.agent_header.clone().unwrap_or_default(),
        }),
        Probe::Grpc(grpc) => v1::health_check::Probe::Grpc(v1::GrpcProbe {
            service: grpc.service.clone(),
            authority: grpc.authority.clone().unwrap_or_default(),
        }),
        Probe::Udp(udp) => v1::health_check::Probe::Udp(v1::UdpProbe {
            request: udp.request.clone(),
            answer_prefix: udp.answer_prefix.clone(),
            answer_contains: udp.answer_contains.clone(),
        }),
        Probe::Agent(agent) => {
            v1::health_check::Probe::Agent(v1::AgentProbe { send: agent.send.clone() })
        }
    }
}

fn tls(tls: &TlsProbe) -> v1::TlsProbe {
    let (verify, ca_file) = match &tls.trust {
        Trust::Anybody => (false, String::new()),
        Trust::Host => (true, String::new()),
        Trust::File(path) => (true, path.clone()),
    };
    let server_name = tls.server_name.clone().unwrap_or_default();
    v1::TlsProbe { server_name, verify: Some(verify), ca_file }
}
