use std::collections::{BTreeMap, BTreeSet};

use lb_common::abi::{
    counter::TrafficCounter,
    service::{Service, address_of},
};
use serde::Serialize;

use crate::{
    dataplane::{MapsError, PinnedMaps},
    names::{self, Names},
};

/// A service's traffic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServiceStats {
    /// Name.
    pub service: String,
    /// Address and port.
    pub endpoint: String,
    /// `tcp` or `udp`.
    pub protocol: String,
    /// Pool.
    pub pool: String,
    /// What was counted.
    #[serde(flatten)]
    pub traffic: Traffic,
}

/// A backend's traffic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BackendStats {
    /// Address.
    pub backend: String,
    /// Pools that have it; its counters are of all of them together.
    pub pools: BTreeSet<String>,
    /// What was counted.
    #[serde(flatten)]
    pub traffic: Traffic,
}

/// Of the packets that were forwarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Packets.
    pub packets: u64,
    /// Bytes of the frames as they came in.
    pub bytes: u64,
    /// SYNs among them, repeated ones included.
    pub connections: u64,
}

impl From<TrafficCounter> for Traffic {
    fn from(TrafficCounter { packets, bytes, connections }: TrafficCounter) -> Self {
        Self { packets, bytes, connections }
    }
}

pub(super) fn services(maps: &PinnedMaps, names: &Names) -> Result<Vec<ServiceStats>, MapsError> {
    let row = |service: Service| {
        Ok(ServiceStats {
            service: names.service(service.index),
            endpoint: names::endpoint(&service.key),
            protocol: names::protocol(&service.key),
            pool: names.pool(service.pool),
            traffic: maps.service_traffic(service.index)?.into(),
        })
    };
    maps.services()?.into_iter().map(row).collect()
}

pub(super) fn backends(maps: &PinnedMaps, names: &Names) -> Result<Vec<BackendStats>, MapsError> {
    let mut rows = BTreeMap::new();
    for pool in names.pools(maps) {
        let name = names.pool(pool);
        for (index, backend) in maps.pool_members(pool)?.unwrap_or_default().backends {
            let (_, pools) = rows.entry(index).or_insert((backend, BTreeSet::new()));
            pools.insert(name.clone());
        }
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|(_, (backend, _))| address_of(&backend.address, backend.version));
    let row = |(index, (backend, pools))| {
        let traffic = maps.backend_traffic(index)?.into();
        Ok(BackendStats { backend: names::address(&backend), pools, traffic })
    };
    rows.into_iter().map(row).collect()
}
