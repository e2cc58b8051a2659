//! `spillway stats`: packets by verdict, traffic by service and by backend, and what is remembered of
//! connections.

mod memory;
mod receiver;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

use lb_common::abi::{
    counter::TrafficCounter,
    service::{Service, address_of},
};
use lb_daemon::dataplane::{MapsError, PinnedMaps};
use serde::Serialize;

use self::{memory::Remembered, receiver::Receiver, verdict::Verdicts};
use crate::{
    arguments::Options,
    failure::Failure,
    names::Names,
    output::{Grid, Report, print},
    pinned,
    role::Role,
};

/// Options of `stats`.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Whose counters: of the balancer, or of the receiver on a backend
    #[arg(long, value_enum, default_value_t)]
    role: Role,
}

/// The answer.
#[derive(Serialize)]
struct Stats {
    verdicts: Verdicts,
    services: Vec<ServiceRow>,
    backends: Vec<BackendRow>,
    remembered: Remembered,
}

#[derive(Serialize)]
struct ServiceRow {
    service: String,
    endpoint: String,
    protocol: String,
    pool: String,
    #[serde(flatten)]
    traffic: Traffic,
}

#[derive(Serialize)]
struct BackendRow {
    backend: String,
    /// Pools that have it; its counters are of all of them together.
    pools: BTreeSet<String>,
    #[serde(flatten)]
    traffic: Traffic,
}

/// Of the packets that were forwarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Traffic {
    packets: u64,
    bytes: u64,
    connections: u64,
}

/// Reads the maps and prints.
///
/// # Errors
/// The maps cannot be read.
pub(crate) fn run(options: &Options, arguments: &Arguments) -> Result<(), Failure> {
    match arguments.role {
        Role::Balancer => print(&Stats::read(options)?, options.output),
        Role::Receiver => print(&Receiver::read(options)?, options.output),
    }
}

fn services(maps: &PinnedMaps, names: &Names) -> Result<Vec<ServiceRow>, MapsError> {
    let row = |service: Service| {
        Ok(ServiceRow {
            service: names.service(service.index),
            endpoint: pinned::endpoint(&service.key),
            protocol: pinned::protocol(&service.key),
            pool: names.pool(service.pool),
            traffic: maps.service_traffic(service.index)?.into(),
        })
    };
    maps.services()?.into_iter().map(row).collect()
}

fn backends(maps: &PinnedMaps, names: &Names) -> Result<Vec<BackendRow>, MapsError> {
    let mut rows = BTreeMap::new();
    for pool in pinned::pools(maps, names) {
        let Some(view) = maps.pool_view(pool)? else { continue };
        for (&index, backend) in &view.backends {
            let (_, pools) = rows.entry(index).or_insert((*backend, BTreeSet::new()));
            pools.insert(names.pool(pool));
        }
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|(_, (backend, _))| address_of(&backend.address, backend.version));
    let row = |(index, (backend, pools))| {
        let traffic = maps.backend_traffic(index)?.into();
        Ok(BackendRow { backend: pinned::address(&backend), pools, traffic })
    };
    rows.into_iter().map(row).collect()
}

impl From<TrafficCounter> for Traffic {
    fn from(TrafficCounter { packets, bytes, connections }: TrafficCounter) -> Self {
        Self { packets, bytes, connections }
    }
}

impl Report for Stats {
    fn table(&self) -> String {
        let mut text = self.verdicts.table();
        if !self.services.is_empty() {
            let mut grid =
                Grid::new(["SERVICE", "ENDPOINT", "PROTOCOL", "PACKETS", "BYTES", "CONNECTIONS"])
                    .right([3, 4, 5]);
            for s in &self.services {
                let [packets, bytes, connections] = s.traffic.cells();
                let (service, endpoint) = (s.service.clone(), s.endpoint.clone());
                grid.row([service, endpoint, s.protocol.clone(), packets, bytes, connections]);
            }
            text += "\n";
            text += &grid.lines();
        }
        if !self.backends.is_empty() {
            let mut grid =
                Grid::new(["BACKEND", "PACKETS", "BYTES", "CONNECTIONS", "POOLS"]).right([1, 2, 3]);
            for b in &self.backends {
                let [packets, bytes, connections] = b.traffic.cells();
                let pools = b.pools.iter().cloned().collect::<Vec<_>>().join(", ");
                grid.row([b.backend.clone(), packets, bytes, connections, pools]);
            }
            text += "\n";
            text += &grid.lines();
        }
        text += &self.remembered.table();
        text
    }
}

impl Stats {
    fn read(options: &Options) -> Result<Self, Failure> {
        let (maps, names) = pinned::open(options)?;
        let read = || {
            Ok(Self {
                verdicts: maps.verdicts()?.into_iter().collect(),
                services: services(&maps, &names)?,
                backends: backends(&maps, &names)?,
                remembered: Remembered::read(&options.bpffs, &maps, &names)?,
            })
        };
        read().map_err(|error| pinned::failure(&error))
    }
}

impl Traffic {
    fn cells(self) -> [String; 3] {
        [self.packets, self.bytes, self.connections].map(|number| number.to_string())
    }
}

#[cfg(test)]
mod tests {
    use lb_common::abi::{counter::VerdictCounter, verdict::Verdict};

    use super::*;

    fn example() -> Stats {
        let verdict =
            |verdict, packets: u64| (verdict, VerdictCounter { packets, bytes: packets * 60 });
        let traffic =
            |connections| Traffic { packets: connections * 10, bytes: 6_000, connections };
        Stats {
            verdicts: [
                verdict(Verdict::NotIp, 12),
                verdict(Verdict::NotOurs, 0),
                verdict(Verdict::Transmitted, 1_234_567),
            ]
            .into_iter()
            .collect(),
            services: vec![ServiceRow {
                service: "shop".into(),
                endpoint: "[2001:db8:1::1]:80".into(),
                protocol: "tcp".into(),
                pool: "web".into(),
                traffic: traffic(3),
            }],
            backends: vec![
                BackendRow {
                    backend: "10.0.0.1".into(),
                    pools: ["web".into(), "api".into()].into(),
                    traffic: traffic(2),
                },
                BackendRow {
                    backend: "10.0.0.2".into(),
                    pools: ["web".into()].into(),
                    traffic: traffic(1),
                },
            ],
            remembered: memory::tests::nothing(),
        }
    }

    #[test]
    fn the_table_leaves_out_verdicts_that_nobody_got() {
        assert_eq!(
            example().table(),
            "\
VERDICT      ACTION    PACKETS     BYTES
not_ip       pass           12       720
transmitted  transmit  1234567  74074020

SERVICE  ENDPOINT            PROTOCOL  PACKETS  BYTES  CONNECTIONS
shop     [2001:db8:1::1]:80  tcp            30   6000            3

BACKEND   PACKETS  BYTES  CONNECTIONS  POOLS
10.0.0.1       20   6000            2  api, web
10.0.0.2       10   6000            1  web
"
        );
    }

    #[test]
    fn json_has_them_all() {
        let json = serde_json::to_value(example()).unwrap();
        assert_eq!(json["verdicts"][1]["verdict"], "not_ours");
        assert_eq!(json["verdicts"][1]["packets"], 0);
        assert_eq!(json["services"][0]["connections"], 3);
        assert_eq!(json["backends"][0]["pools"], serde_json::json!(["api", "web"]));
    }

    #[test]
    fn a_fresh_balancer_says_so() {
        let stats = Stats {
            verdicts: Verdicts(Vec::new()),
            services: Vec::new(),
            backends: Vec::new(),
            remembered: memory::tests::nothing(),
        };
        assert_eq!(stats.table(), "no packets yet\n");
    }
}
