//! `spillway stats`: packets by verdict, traffic by service and by backend, and what is remembered of
//! connections.

mod memory;
mod receiver;
mod verdict;

use lb_daemon::{
    dataplane::FlowTables,
    stats::{Stats, Traffic},
};

use crate::{
    arguments::Options,
    daemon::Daemon,
    failure::Failure,
    origin,
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

/// Asks the daemon or reads the maps, and prints.
///
/// # Errors
/// The daemon does not answer, or the maps cannot be read; or a server is asked for a receiver's.
pub(crate) fn run(options: &Options, arguments: &Arguments) -> Result<(), Failure> {
    match arguments.role {
        Role::Balancer => {
            let ask = async |daemon: &mut Daemon| Ok(daemon.stats().await?.into());
            print(&origin::answer(options, ask, || read(options))?, options.output)
        }
        Role::Receiver => {
            origin::this_host(options, "stats --role receiver", "reads the pins of this host")?;
            print(&receiver::read(options)?, options.output)
        }
    }
}

fn read(options: &Options) -> Result<Stats, Failure> {
    let (maps, names) = pinned::open(options)?;
    let read = || Stats::read(&maps, &FlowTables::open(&options.bpffs)?, &names);
    read().map_err(|error| pinned::failure(&error))
}

impl Report for Stats {
    fn table(&self) -> String {
        let mut text = verdict::table(&self.verdicts);
        if !self.services.is_empty() {
            let mut grid =
                Grid::new(["SERVICE", "ENDPOINT", "PROTOCOL", "PACKETS", "BYTES", "CONNECTIONS"])
                    .right([3, 4, 5]);
            for s in &self.services {
                let [packets, bytes, connections] = cells(s.traffic);
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
                let [packets, bytes, connections] = cells(b.traffic);
                let pools = b.pools.iter().cloned().collect::<Vec<_>>().join(", ");
                grid.row([b.backend.clone(), packets, bytes, connections, pools]);
            }
            text += "\n";
            text += &grid.lines();
        }
        text += &memory::table(&self.remembered);
        text
    }
}

fn cells(Traffic { packets, bytes, connections }: Traffic) -> [String; 3] {
    [packets, bytes, connections].map(|number| number.to_string())
}

#[cfg(test)]
mod tests {
    use lb_common::abi::{counter::VerdictCounter, verdict::Verdict};
    use lb_daemon::stats::{BackendStats, ServiceStats};

    use super::*;

    fn example() -> Stats {
        let verdict = |verdict, packets: u64| {
            (verdict, VerdictCounter { packets, bytes: packets * 60 }).into()
        };
        let traffic =
            |connections| Traffic { packets: connections * 10, bytes: 6_000, connections };
        Stats {
            verdicts: [
                verdict(Verdict::NotIp, 12),
                verdict(Verdict::NotOurs, 0),
                verdict(Verdict::Transmitted, 1_234_567),
            ]
            .into(),
            services: vec![ServiceStats {
                service: "shop".into(),
                endpoint: "[2001:db8:1::1]:80".into(),
                protocol: "tcp".into(),
                pool: "web".into(),
                traffic: traffic(3),
            }],
            backends: vec![
                BackendStats {
                    backend: "10.0.0.1".into(),
                    pools: ["web".into(), "api".into()].into(),
                    traffic: traffic(2),
                },
                BackendStats {
                    backend: "10.0.0.2".into(),
                    pools: ["web".into()].into(),
                    traffic: traffic(1),
                },
            ],
            groups: Vec::new(),
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
            verdicts: Vec::new(),
            services: Vec::new(),
            backends: Vec::new(),
            groups: Vec::new(),
            remembered: memory::tests::nothing(),
        };
        assert_eq!(stats.table(), "no packets yet\n");
    }
}
