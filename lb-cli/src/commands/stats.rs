//! `spillway stats`: packets by verdict, traffic by service and by backend, and what is remembered of
//! connections; of a receiver, what it did and what it lets through.

use lb_inspect::stats::{InterfaceStats, ReceiverStats, Remembered, Stats, Traffic, VerdictStats};
use lb_maps::MapsError;

use crate::{
    arguments::{Component, Options},
    client::DaemonClient,
    failure::Failure,
    origin,
    output::{Grid, Report, fields, print},
    pinned,
};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Component whose counters are printed: the balancer, or the receiver on a backend
    #[arg(long, value_enum, default_value_t)]
    component: Component,
}

/// # Errors
/// The daemon does not answer, the maps cannot be read, or a server is asked for a receiver's counters.
pub(crate) fn run(options: &Options, arguments: &Arguments) -> Result<(), Failure> {
    match arguments.component {
        Component::Balancer => {
            let ask = async |daemon: &mut DaemonClient| Ok(daemon.stats().await?.into());
            print(&origin::ask_or_read(options, ask, || read_balancer(options))?, options.output)
        }
        Component::Receiver => {
            origin::refuse_server(options, "stats --component receiver")?;
            print(&read_receiver(options)?, options.output)
        }
    }
}

fn read_balancer(options: &Options) -> Result<Stats, Failure> {
    let (maps, names) = pinned::open(options)?;
    pinned::warn_of_namespace(&names);
    Stats::read(&options.bpffs, &maps, &names).map_err(|error| pinned::maps_failure(&error))
}

impl Report for Stats {
    fn table(&self) -> String {
        let mut text = verdict_table(&self.verdicts);
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
        text += &remembered_table(&self.remembered);
        text += &interface_table(&self.interfaces);
        text
    }
}

/// Leaves out counters of drivers that are zero; JSON and YAML have them.
fn interface_table(interfaces: &[InterfaceStats]) -> String {
    if interfaces.is_empty() {
        return String::new();
    }
    let columns = ["INTERFACE", "DRIVER", "RX", "TX", "RX LOST", "TX LOST", "AFTER PROGRAM"];
    let mut grid = Grid::new(columns).right([2, 3, 4, 5, 6]);
    for it in interfaces {
        let link = &it.link;
        let rx_lost = link.rx_errors.saturating_add(link.rx_dropped);
        let tx_lost = link.tx_errors.saturating_add(link.tx_dropped);
        let numbers = [link.rx_packets, link.tx_packets, rx_lost, tx_lost];
        let [rx, tx, rx_lost, tx_lost] = numbers.map(|number| number.to_string());
        let after = it.dropped_after_program().map_or("unknown".into(), |it| it.to_string());
        grid.row([it.interface.clone(), it.driver.clone(), rx, tx, rx_lost, tx_lost, after]);
    }
    let mut text = format!("\n{}", grid.lines());
    let mut drops = Grid::new(["INTERFACE", "DROPPED BY THE DRIVER", "STAGE", "FRAMES"]).right([3]);
    let all = interfaces.iter().flat_map(|it| it.driver_drops.iter().map(move |of| (it, of)));
    let some: Vec<_> = all.filter(|(_, of)| of.frames > 0).collect();
    for (it, of) in &some {
        let (counter, stage) = (of.counter.clone(), of.stage.to_string());
        drops.row([it.interface.clone(), counter, stage, of.frames.to_string()]);
    }
    if !some.is_empty() {
        text += &format!("\n{}", drops.lines());
    }
    let mut traced = Grid::new(["INTERFACE", "DROPS BY TRACEPOINT", "FRAMES"]).right([2]);
    let all = interfaces.iter().flat_map(|it| it.traced_drops.iter().map(move |of| (it, of)));
    let some: Vec<_> = all.filter(|(_, of)| of.frames > 0).collect();
    for (it, of) in &some {
        traced.row([it.interface.clone(), of.tracepoint.to_string(), of.frames.to_string()]);
    }
    if !some.is_empty() {
        text += &format!("\n{}", traced.lines());
    }
    text
}

fn cells(Traffic { packets, bytes, connections }: Traffic) -> [String; 3] {
    [packets, bytes, connections].map(|number| number.to_string())
}

/// Leaves out states that no flow is in and events that never happened; JSON and YAML have them.
fn remembered_table(it: &Remembered) -> String {
    let mut text = String::new();
    let mut flows = Grid::new(["FLOWS", "HELD"]).right([1]);
    let in_use = || it.flows.iter().filter(|flows| flows.held > 0);
    for each in in_use() {
        flows.row([each.state.replace('_', " "), each.held.to_string()]);
    }
    if in_use().next().is_some() {
        flows.row(["room".into(), it.room.to_string()]);
        text += "\n";
        text += &flows.lines();
    }
    let mut events = Grid::new(["EVENT", "COUNT"]).right([1]);
    let happened = || it.events.iter().filter(|event| event.count > 0);
    for e in happened() {
        events.row([e.event.to_string(), e.count.to_string()]);
    }
    if happened().next().is_some() {
        text += "\n";
        text += &events.lines();
    }
    if !it.pools_with_displaced.is_empty() {
        text += &format!("\ndisplaced connections: {}\n", it.pools_with_displaced.join(", "));
    }
    text
}

fn read_receiver(options: &Options) -> Result<ReceiverStats, Failure> {
    ReceiverStats::read(&options.bpffs).map_err(|error| match error {
        MapsError::Missing { .. } => pinned::nothing_pinned(options, Component::Receiver.into()),
        error => pinned::maps_failure(&error),
    })
}

impl Report for ReceiverStats {
    fn table(&self) -> String {
        let port = self.gue_port.map_or_else(|| "none".into(), |port| port.to_string());
        let allowed = [
            ("sources", self.sources.join(", ")),
            ("vips", self.vips.join(", ")),
            ("endpoints", self.endpoints.join(", ")),
            ("gue port", port),
        ];
        format!("{}\n{}", fields(&allowed), verdict_table(&self.verdicts))
    }
}

/// Leaves out verdicts that no packet got; JSON and YAML have them.
fn verdict_table(verdicts: &[VerdictStats]) -> String {
    let seen = || verdicts.iter().filter(|v| v.packets > 0);
    if seen().next().is_none() {
        return "no packets yet\n".into();
    }
    let mut grid = Grid::new(["VERDICT", "ACTION", "PACKETS", "BYTES"]).right([2, 3]);
    for v in seen() {
        let (verdict, action) = (v.verdict.to_string(), v.action.to_string());
        grid.row([verdict, action, v.packets.to_string(), v.bytes.to_string()]);
    }
    grid.lines()
}

#[cfg(test)]
mod tests {
    use lb_common::abi::{
        counter::{Event, VerdictCounter},
        verdict::Verdict,
    };
    use lb_inspect::stats::{
        BackendStats, DriverDrops, DropStage, EventStats, FlowsHeld, ServiceStats, TracepointDrops,
    };
    use lb_maps::LinkStatistics;

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
            remembered: nothing_remembered(),
            interfaces: Vec::new(),
        }
    }

    #[test]
    fn the_table_leaves_out_verdicts_without_packets() {
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
    fn a_balancer_without_packets_shows_that() {
        let stats = Stats {
            verdicts: Vec::new(),
            services: Vec::new(),
            backends: Vec::new(),
            groups: Vec::new(),
            remembered: nothing_remembered(),
            interfaces: Vec::new(),
        };
        assert_eq!(stats.table(), "no packets yet\n");
    }

    fn flows(held: u64) -> FlowsHeld {
        FlowsHeld { state: "half_open".into(), held }
    }

    fn nothing_remembered() -> Remembered {
        Remembered {
            flows: vec![flows(0)],
            room: 524_288,
            pools_with_displaced: Vec::new(),
            events: vec![(Event::FlowTaken, 0).into()],
        }
    }

    #[test]
    fn a_balancer_that_remembers_nothing_shows_no_such_section() {
        assert_eq!(remembered_table(&nothing_remembered()), "");
    }

    #[test]
    fn tables_and_events_are_listed() {
        let events = [(Event::SynRepeated, 12), (Event::FlowTaken, 3456)];
        let remembered = Remembered {
            flows: vec![flows(12), flows(0)],
            room: 524_288,
            pools_with_displaced: vec!["api".into(), "web".into()],
            events: events.map(Into::into).into(),
        };
        assert_eq!(
            remembered_table(&remembered),
            "\n\
FLOWS        HELD
half open      12
room       524288

EVENT         COUNT
syn_repeated     12
flow_taken     3456

displaced connections: api, web
"
        );
        let json = serde_json::to_value(&remembered).unwrap();
        assert_eq!(json["flows"][0]["held"], 12);
        assert_eq!(
            json["events"][0]["meaning"],
            "A repeated SYN went where the first one had gone."
        );
    }

    fn interface(name: &str, driver_drops: Vec<DriverDrops>) -> InterfaceStats {
        InterfaceStats {
            interface: name.into(),
            driver: "veth".into(),
            attached: true,
            redirect_target: false,
            link: LinkStatistics {
                rx_packets: 700,
                tx_packets: 650,
                rx_dropped: 3,
                rx_errors: 4,
                tx_dropped: 50,
                ..LinkStatistics::default()
            },
            driver_drops,
            traced_drops: Vec::new(),
        }
    }

    #[test]
    fn interfaces_show_what_their_drivers_dropped() {
        let drops = |counter: &str, stage: DropStage, frames| DriverDrops {
            counter: counter.into(),
            stage: stage.name().into(),
            after_program: stage.is_after_program(),
            frames,
        };
        let of_veth = vec![
            drops("rx_queue_N_drops", DropStage::Mixed, 9),
            drops("rx_queue_N_xdp_tx_errors", DropStage::Transmit, 50),
            drops("tx_queue_N_xdp_xmit_errors", DropStage::Redirect, 0),
        ];
        let mut interfaces = [interface("eth0", of_veth), interface("eth1", Vec::new())];
        assert_eq!(
            interface_table(&interfaces),
            "\n\
INTERFACE  DRIVER   RX   TX  RX LOST  TX LOST  AFTER PROGRAM
eth0       veth    700  650        7       50             50
eth1       veth    700  650        7       50        unknown

INTERFACE  DROPPED BY THE DRIVER     STAGE     FRAMES
eth0       rx_queue_N_drops          mixed          9
eth0       rx_queue_N_xdp_tx_errors  transmit      50
"
        );
        let traced = |tracepoint: &'static str, frames| TracepointDrops {
            tracepoint: tracepoint.into(),
            after_program: true,
            frames,
        };
        interfaces[1].traced_drops = vec![traced("xdp_exception", 0), traced("xdp_devmap_xmit", 7)];
        let table = interface_table(&interfaces[1..]);
        assert_eq!(
            table,
            "\n\
INTERFACE  DRIVER   RX   TX  RX LOST  TX LOST  AFTER PROGRAM
eth1       veth    700  650        7       50              7

INTERFACE  DROPS BY TRACEPOINT  FRAMES
eth1       xdp_devmap_xmit           7
"
        );
        let json = serde_json::to_value(&interfaces[0]).unwrap();
        assert_eq!(json["link"]["tx_dropped"], 50);
        assert_eq!(json["driver_drops"][1]["stage"], "transmit");
        assert_eq!(json["driver_drops"][2]["frames"], 0);
    }

    /// docs/observability.md holds the stages and their meanings, word for word.
    #[test]
    fn the_documents_explain_each_stage() {
        let page = include_str!("../../../docs/observability.md");
        for stage in DropStage::ALL {
            let line = format!("| `{}` | {} |\n", stage.name(), stage.meaning());
            assert!(page.contains(&line), "docs/observability.md lacks\n{line}");
        }
    }

    /// docs/operations.md holds the names and meanings of events, word for word.
    #[test]
    fn the_documents_explain_each_event() {
        let page = include_str!("../../../docs/operations.md");
        for row in Event::ALL.iter().map(|each| EventStats::from((*each, 0))) {
            let line = format!("| `{}` | {} |\n", row.event, row.meaning);
            assert!(page.contains(&line), "docs/operations.md lacks\n{line}");
        }
    }

    #[test]
    fn a_receiver_shows_its_allow_lists_and_verdicts() {
        let counter = VerdictCounter { packets: 7, bytes: 700 };
        let receiver = ReceiverStats {
            verdicts: [(Verdict::Decapsulated, counter), (Verdict::NotTunnel, counter)]
                .map(Into::into)
                .into(),
            sources: ["10.0.0.2/32", "fd00::/64"].map(Into::into).into(),
            vips: ["203.0.113.1", "2001:db8:f::1"].map(Into::into).into(),
            endpoints: ["10.0.0.3", "fd00::3"].map(Into::into).into(),
            gue_port: Some(6080),
        };
        assert_eq!(
            receiver.table(),
            "\
sources    10.0.0.2/32, fd00::/64
vips       203.0.113.1, 2001:db8:f::1
endpoints  10.0.0.3, fd00::3
gue port   6080

VERDICT       ACTION  PACKETS  BYTES
decapsulated  pass          7    700
not_tunnel    pass          7    700
"
        );
        let json = serde_json::to_value(&receiver).unwrap();
        assert_eq!(json["endpoints"], serde_json::json!(["10.0.0.3", "fd00::3"]));
        assert_eq!(json["vips"], serde_json::json!(["203.0.113.1", "2001:db8:f::1"]));
        assert_eq!(json["verdicts"][0]["packets"], 7);
    }
}
