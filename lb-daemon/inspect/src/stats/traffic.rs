use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
};

use lb_common::abi::{
    backend::Backend,
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

/// One row per address. A backend that was removed and added again has two indices until the settle time is over. The earlier
/// one is left out: a sum would fall when that goes, and look like a counter that began anew.
pub(super) fn backends(maps: &PinnedMaps, names: &Names) -> Result<Vec<BackendStats>, MapsError> {
    let mut rows = BTreeMap::new();
    let mut replaced = Vec::new();
    for index in names.pools(maps) {
        let pool = names.pool(index);
        let members = maps.pool_members(index)?.unwrap_or_default();
        add_rows(&mut rows, members.backends, &pool);
        replaced.push((members.replaced, pool));
    }
    for (backends, pool) in replaced {
        add_rows(&mut rows, backends, &pool);
    }
    let row = |row: BackendRow| {
        let traffic = maps.backend_traffic(row.index)?.into();
        Ok(BackendStats { backend: names::address(&row.backend), pools: row.pools, traffic })
    };
    rows.into_values().map(row).collect()
}

struct BackendRow {
    index: u32,
    backend: Backend,
    pools: BTreeSet<String>,
}

/// Adds a pool to the rows of its backends. The index that came first stays.
fn add_rows(rows: &mut BTreeMap<IpAddr, BackendRow>, backends: HashMap<u32, Backend>, pool: &str) {
    for (index, backend) in backends {
        let address = address_of(&backend.address, backend.version);
        let new = || BackendRow { index, backend, pools: BTreeSet::new() };
        rows.entry(address).or_insert_with(new).pools.insert(pool.to_owned());
    }
}
