//! What the balancer of a scene is told.

use std::net::IpAddr;

use super::{ECHO, HTTP, Tunnel};
use crate::daemon::{Check, Document, Member, Pool, Service};
use crate::topology::{Fabric, REGIONS};

/// Key of the flow hash.
pub const HASH_KEY: &str = "00112233445566778899aabbccddeeff";

/// How health is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Health {
    /// Interval and timeout, milliseconds.
    pub interval_ms: u32,
    /// Failures in a row that take a backend out.
    pub fall: u32,
}

impl Health {
    /// Quick enough for tests, and slow enough for a busy machine.
    pub const QUICK: Self = Self { interval_ms: 300, fall: 3 };
    /// What a check has that does not say.
    pub const DEFAULT: Self = Self { interval_ms: 1000, fall: 3 };
}

/// All backends in two pools by IP version, and the services of every tunnel.
pub fn configuration(fabric: &Fabric, health: Health) -> Document {
    let pool = |name: &str, address: fn(&crate::topology::Backend) -> IpAddr| Pool {
        name: name.into(),
        checks: vec!["page".into()],
        members: fabric
            .backends
            .iter()
            .map(|b| Member { address: address(b), region: b.region.into(), weight: 1 })
            .collect(),
    };
    let service = |tunnel: Tunnel, port, protocol: &'static str| Service {
        name: format!("{}-{protocol}-{port}", tunnel.name()),
        address: tunnel.vip(),
        port,
        protocol,
        pool: tunnel.pool().into(),
    };
    Document {
        hash_key: Some(HASH_KEY),
        regions: REGIONS.map(String::from).to_vec(),
        checks: vec![Check {
            name: "page".into(),
            path: Some("/healthz".into()),
            port: HTTP,
            interval_ms: health.interval_ms,
            fall: health.fall,
        }],
        pools: vec![pool("v4", |b| b.v4.into()), pool("v6", |b| b.v6.into())],
        services: Tunnel::ALL
            .into_iter()
            .flat_map(|tunnel| {
                [(HTTP, "tcp"), (ECHO, "tcp"), (ECHO, "udp")]
                    .map(|(port, protocol)| service(tunnel, port, protocol))
            })
            .collect(),
    }
}
