use std::collections::{BTreeMap, BTreeSet};

use lb_common::abi::{
    counter::TrafficCounter,
    service::{Service, address_of},
};
use serde::Serialize;

use crate::names::{self, Names};
use lb_maps::{MapsError, PinnedMaps};
use lb_model::{Endpoint, PortList, Ports};

/// A service's traffic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServiceStats {
    /// Name.
    pub service: String,
    /// Address and ports.
    pub endpoint: String,
    /// `tcp` or `udp`.
    pub protocol: String,
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
    let row = |(index, keys): (u32, Keys)| {
        Ok(ServiceStats {
            service: names.service(index),
            endpoint: keys.endpoint(),
            protocol: names::protocol(&keys.first.key),
            pool: names.pool(keys.first.pool),
            traffic: maps.service_traffic(index)?.into(),
        })
    };
    let mut services: Vec<_> = by_index(maps.services()?).into_iter().collect();
    services.sort_by_key(|(_, keys)| keys.first.key);
    services.into_iter().map(row).collect()
}

/// Entries of one service.
struct Keys {
    /// The lowest.
    first: Service,
    /// Its ports, in order; 0 is any.
    ports: Vec<u16>,
}

/// Entries of services, in the order of their keys, by service.
fn by_index(entries: Vec<Service>) -> BTreeMap<u32, Keys> {
    let mut services = BTreeMap::new();
    for entry in entries.into_iter().filter(|entry| !entry.key.is_of_fragments()) {
        let keys = services.entry(entry.index).or_insert(Keys { first: entry, ports: Vec::new() });
        keys.ports.push(u16::from_be(entry.key.port));
    }
    services
}

impl Keys {
    fn endpoint(&self) -> String {
        let listed = PortList::new(self.ports.iter().map(|port| (*port, *port)));
        let ports = listed.map_or(Ports::Any, Ports::Listed);
        Endpoint { address: self.first.key.ip(), ports }.to_string()
    }
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
