use std::num::NonZeroU32;

use spillway_proto::v1;

use super::document::{UnknownValue, duration, number, saturating_duration, text};
use super::enums::{ApiEnum, to_number};
use crate::document::{
    AgentCheck, CheckKind, CheckTls, GrpcCheck, HealthCheck, HttpCheck, UdpCheck,
};
use lb_base::bytes::Bytes;
use lb_model::{HostProbe, Via};

impl From<HealthCheck> for v1::HealthCheck {
    fn from(check: HealthCheck) -> Self {
        Self {
            name: check.name,
            kind: check.kind.map(Into::into),
            tls: check.tls.map(Into::into),
            via: to_number(check.via),
            port: check.port,
            interval: check.interval.map(saturating_duration),
            fast_interval: check.fast_interval.map(saturating_duration),
            timeout: check.timeout.map(saturating_duration),
            rise: number(check.rise),
            fall: number(check.fall),
            jitter_percent: check.jitter_percent,
            host_probe: to_number(check.host_probe),
            host_probe_port: number(check.host_probe_port),
            etag: String::new(),
        }
    }
}

impl TryFrom<v1::HealthCheck> for HealthCheck {
    type Error = UnknownValue;

    fn try_from(message: v1::HealthCheck) -> Result<Self, UnknownValue> {
        let unknown =
            |field| UnknownValue { object: "health check", name: message.name.clone(), field };
        let duration = |field, value| duration(value).ok_or_else(|| unknown(field));
        Ok(Self {
            kind: Some(message.kind.clone().ok_or_else(|| unknown("kind"))?.into()),
            tls: message.tls.clone().map(Into::into),
            via: Via::from_api(message.via).map_err(|_| unknown("via"))?,
            port: message.port,
            interval: duration("interval", message.interval)?,
            fast_interval: duration("fast_interval", message.fast_interval)?,
            timeout: duration("timeout", message.timeout)?,
            rise: NonZeroU32::new(message.rise),
            fall: NonZeroU32::new(message.fall),
            jitter_percent: message.jitter_percent,
            host_probe: HostProbe::from_api(message.host_probe)
                .map_err(|_| unknown("host_probe"))?,
            host_probe_port: NonZeroU32::new(message.host_probe_port),
            name: message.name,
        })
    }
}

impl From<CheckKind> for v1::health_check::Kind {
    fn from(kind: CheckKind) -> Self {
        match kind {
            CheckKind::Tcp => Self::Tcp(v1::TcpCheck {}),
            CheckKind::Http(http) => Self::Http(v1::HttpCheck {
                method: http.method.unwrap_or_default(),
                path: http.path.unwrap_or_default(),
                host: http.host.unwrap_or_default(),
                status_min: number(http.status_min),
                status_max: number(http.status_max),
                body_contains: http.body_contains.unwrap_or_default(),
                agent_header: http.agent_header.unwrap_or_default(),
            }),
            CheckKind::Grpc(grpc) => Self::Grpc(v1::GrpcCheck {
                service: grpc.service.unwrap_or_default(),
                authority: grpc.authority.unwrap_or_default(),
            }),
            CheckKind::Udp(udp) => Self::Udp(v1::UdpCheck {
                request: udp.request.unwrap_or_default().0,
                answer_prefix: udp.answer_prefix.unwrap_or_default().0,
                answer_contains: udp.answer_contains.unwrap_or_default().0,
            }),
            CheckKind::Agent(agent) => {
                Self::Agent(v1::AgentCheck { send: agent.send.unwrap_or_default().0 })
            }
        }
    }
}

impl From<v1::health_check::Kind> for CheckKind {
    fn from(message: v1::health_check::Kind) -> Self {
        match message {
            v1::health_check::Kind::Tcp(v1::TcpCheck {}) => Self::Tcp,
            v1::health_check::Kind::Http(http) => Self::Http(HttpCheck {
                method: text(http.method),
                path: text(http.path),
                host: text(http.host),
                status_min: NonZeroU32::new(http.status_min),
                status_max: NonZeroU32::new(http.status_max),
                body_contains: text(http.body_contains),
                agent_header: text(http.agent_header),
            }),
            v1::health_check::Kind::Grpc(grpc) => Self::Grpc(GrpcCheck {
                service: text(grpc.service),
                authority: text(grpc.authority),
            }),
            v1::health_check::Kind::Udp(udp) => Self::Udp(UdpCheck {
                request: bytes(udp.request),
                answer_prefix: bytes(udp.answer_prefix),
                answer_contains: bytes(udp.answer_contains),
            }),
            v1::health_check::Kind::Agent(agent) => {
                Self::Agent(AgentCheck { send: bytes(agent.send) })
            }
        }
    }
}

impl From<CheckTls> for v1::CheckTls {
    fn from(tls: CheckTls) -> Self {
        Self {
            server_name: tls.server_name.unwrap_or_default(),
            verify: tls.verify,
            ca_file: tls.ca_file.unwrap_or_default(),
        }
    }
}

impl From<v1::CheckTls> for CheckTls {
    fn from(message: v1::CheckTls) -> Self {
        Self {
            server_name: text(message.server_name),
            verify: message.verify,
            ca_file: text(message.ca_file),
        }
    }
}

fn bytes(value: Vec<u8>) -> Option<Bytes> {
    (!value.is_empty()).then_some(Bytes(value))
}
