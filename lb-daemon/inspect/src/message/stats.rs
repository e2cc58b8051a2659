//! What was counted, as messages and back.

use lb_common::abi::counter::Event;
use lb_maps::LinkStatistics;
use lb_model::capacity::Connections;
use spillway_proto::v1;

use crate::stats::{
    BackendStats, DriverDrops, EventStats, FlowsHeld, GroupStats, InterfaceStats, Remembered,
    ServiceStats, Stats, TracepointDrops, Traffic, VerdictStats, sentence,
};

impl From<Stats> for v1::StatsResponse {
    fn from(it: Stats) -> Self {
        let Stats { verdicts, services, backends, groups, remembered, interfaces } = it;
        Self {
            verdicts: verdicts.into_iter().map(Into::into).collect(),
            services: services.into_iter().map(Into::into).collect(),
            backends: backends.into_iter().map(Into::into).collect(),
            groups: groups.into_iter().map(Into::into).collect(),
            flows: remembered.flows.into_iter().map(Into::into).collect(),
            flow_room: remembered.room,
            events: remembered.events.into_iter().map(Into::into).collect(),
            pools_with_displaced: remembered.pools_with_displaced,
            interfaces: interfaces.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<InterfaceStats> for v1::InterfaceStats {
    fn from(it: InterfaceStats) -> Self {
        Self {
            interface: it.interface,
            driver: it.driver,
            attached: it.attached,
            redirect_target: it.redirect_target,
            link: Some(link(it.link)),
            driver_drops: it.driver_drops.into_iter().map(Into::into).collect(),
            traced_drops: it.traced_drops.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<DriverDrops> for v1::DriverDrops {
    fn from(DriverDrops { counter, stage, after_program, frames }: DriverDrops) -> Self {
        Self { counter, stage: stage.into_owned(), after_program, frames }
    }
}

impl From<TracepointDrops> for v1::TracepointDrops {
    fn from(TracepointDrops { tracepoint, after_program, frames }: TracepointDrops) -> Self {
        Self { tracepoint: tracepoint.into_owned(), after_program, frames }
    }
}

fn link(it: LinkStatistics) -> v1::LinkStats {
    v1::LinkStats {
        rx_packets: it.rx_packets,
        tx_packets: it.tx_packets,
        rx_errors: it.rx_errors,
        tx_errors: it.tx_errors,
        rx_dropped: it.rx_dropped,
        tx_dropped: it.tx_dropped,
        rx_missed: it.rx_missed,
        rx_no_handler: it.rx_no_handler,
    }
}

fn link_from(it: v1::LinkStats) -> LinkStatistics {
    LinkStatistics {
        rx_packets: it.rx_packets,
        tx_packets: it.tx_packets,
        rx_errors: it.rx_errors,
        tx_errors: it.tx_errors,
        rx_dropped: it.rx_dropped,
        tx_dropped: it.tx_dropped,
        rx_missed: it.rx_missed,
        rx_no_handler: it.rx_no_handler,
    }
}

impl From<VerdictStats> for v1::VerdictStats {
    fn from(VerdictStats { verdict, action, packets, bytes }: VerdictStats) -> Self {
        Self { verdict: verdict.into_owned(), action: action.into_owned(), packets, bytes }
    }
}

impl From<Traffic> for v1::Traffic {
    fn from(Traffic { packets, bytes, connections }: Traffic) -> Self {
        Self { packets, bytes, connections }
    }
}

impl From<ServiceStats> for v1::ServiceStats {
    fn from(ServiceStats { service, endpoint, protocol, pool, traffic }: ServiceStats) -> Self {
        Self { service, endpoint, protocol, pool, traffic: Some(traffic.into()) }
    }
}

impl From<BackendStats> for v1::BackendStats {
    fn from(BackendStats { backend, pools, traffic }: BackendStats) -> Self {
        Self { backend, pools: pools.into_iter().collect(), traffic: Some(traffic.into()) }
    }
}

impl From<GroupStats> for v1::GroupStats {
    fn from(GroupStats { pool, region, connections }: GroupStats) -> Self {
        Self { pool, region, counters: Some(counters(connections)) }
    }
}

impl From<FlowsHeld> for v1::FlowsHeld {
    fn from(FlowsHeld { state, held }: FlowsHeld) -> Self {
        Self { state: state.into_owned(), held }
    }
}

impl From<EventStats> for v1::EventStats {
    fn from(EventStats { event, count, .. }: EventStats) -> Self {
        Self { event: event.into_owned(), count }
    }
}

impl From<v1::StatsResponse> for Stats {
    fn from(answer: v1::StatsResponse) -> Self {
        Self {
            verdicts: answer.verdicts.into_iter().map(Into::into).collect(),
            services: answer.services.into_iter().map(Into::into).collect(),
            backends: answer.backends.into_iter().map(Into::into).collect(),
            groups: answer.groups.into_iter().map(Into::into).collect(),
            remembered: Remembered {
                flows: answer.flows.into_iter().map(Into::into).collect(),
                room: answer.flow_room,
                pools_with_displaced: answer.pools_with_displaced,
                events: answer.events.into_iter().map(Into::into).collect(),
            },
            interfaces: answer.interfaces.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<v1::InterfaceStats> for InterfaceStats {
    fn from(it: v1::InterfaceStats) -> Self {
        Self {
            interface: it.interface,
            driver: it.driver,
            attached: it.attached,
            redirect_target: it.redirect_target,
            link: link_from(it.link.unwrap_or_default()),
            driver_drops: it.driver_drops.into_iter().map(Into::into).collect(),
            traced_drops: it.traced_drops.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<v1::DriverDrops> for DriverDrops {
    fn from(v1::DriverDrops { counter, stage, after_program, frames }: v1::DriverDrops) -> Self {
        Self { counter, stage: stage.into(), after_program, frames }
    }
}

impl From<v1::TracepointDrops> for TracepointDrops {
    fn from(it: v1::TracepointDrops) -> Self {
        let v1::TracepointDrops { tracepoint, after_program, frames } = it;
        Self { tracepoint: tracepoint.into(), after_program, frames }
    }
}

impl From<v1::VerdictStats> for VerdictStats {
    fn from(v1::VerdictStats { verdict, action, packets, bytes }: v1::VerdictStats) -> Self {
        Self { verdict: verdict.into(), action: action.into(), packets, bytes }
    }
}

impl From<v1::Traffic> for Traffic {
    fn from(v1::Traffic { packets, bytes, connections }: v1::Traffic) -> Self {
        Self { packets, bytes, connections }
    }
}

impl From<v1::ServiceStats> for ServiceStats {
    fn from(it: v1::ServiceStats) -> Self {
        let v1::ServiceStats { service, endpoint, protocol, pool, traffic } = it;
        Self { service, endpoint, protocol, pool, traffic: traffic.unwrap_or_default().into() }
    }
}

impl From<v1::BackendStats> for BackendStats {
    fn from(v1::BackendStats { backend, pools, traffic }: v1::BackendStats) -> Self {
        let traffic = traffic.unwrap_or_default().into();
        Self { backend, pools: pools.into_iter().collect(), traffic }
    }
}

impl From<v1::GroupStats> for GroupStats {
    fn from(v1::GroupStats { pool, region, counters }: v1::GroupStats) -> Self {
        Self { pool, region, connections: counters_from(counters.unwrap_or_default()) }
    }
}

impl From<v1::FlowsHeld> for FlowsHeld {
    fn from(v1::FlowsHeld { state, held }: v1::FlowsHeld) -> Self {
        Self { state: state.into(), held }
    }
}

impl From<v1::EventStats> for EventStats {
    /// An event of a newer daemon has no meaning here.
    fn from(v1::EventStats { event, count }: v1::EventStats) -> Self {
        let known = Event::ALL.iter().find(|known| known.name() == event);
        let meaning = known.map(|known| sentence(known.meaning())).unwrap_or_default();
        Self { event: event.into(), count, meaning }
    }
}

/// The message of counted connections.
pub fn counters(counted: Connections<u64>) -> v1::GroupCounters {
    let Connections { offered, admitted, overflow_in, overflow_out, refused, over_capacity } =
        counted;
    v1::GroupCounters { offered, admitted, overflow_in, overflow_out, refused, over_capacity }
}

/// The connections that a message counts.
pub fn counters_from(message: v1::GroupCounters) -> Connections<u64> {
    let v1::GroupCounters { offered, admitted, overflow_in, overflow_out, refused, over_capacity } =
        message;
    Connections { offered, admitted, overflow_in, overflow_out, refused, over_capacity }
}

#[cfg(test)]
mod tests {
    use lb_common::abi::{counter::VerdictCounter, verdict::Verdict};

    use super::*;

    #[test]
    fn what_was_counted_comes_back_as_it_was_sent() {
        let traffic = Traffic { packets: 1, bytes: 2, connections: 3 };
        let connections = Connections {
            offered: 4,
            admitted: 5,
            overflow_in: 6,
            overflow_out: 7,
            refused: 8,
            over_capacity: 9,
        };
        let stats = Stats {
            verdicts: vec![
                (Verdict::NotIp, VerdictCounter { packets: 10, bytes: 11 }).into(),
                (Verdict::Transmitted, VerdictCounter { packets: 12, bytes: 13 }).into(),
            ],
            services: vec![ServiceStats {
                service: "shop".into(),
                endpoint: "192.0.2.1:80".into(),
                protocol: "tcp".into(),
                pool: "web".into(),
                traffic,
            }],
            backends: vec![BackendStats {
                backend: "10.0.0.1".into(),
                pools: ["api".into(), "web".into()].into(),
                traffic,
            }],
            groups: vec![GroupStats { pool: "web".into(), region: "eu".into(), connections }],
            remembered: Remembered {
                flows: vec![FlowsHeld { state: "half_open".into(), held: 14 }],
                room: 15,
                pools_with_displaced: vec!["web".into()],
                events: Event::ALL.iter().map(|event| (*event, 16).into()).collect(),
            },
            interfaces: vec![InterfaceStats {
                interface: "eth0".into(),
                driver: "veth".into(),
                attached: true,
                redirect_target: false,
                link: LinkStatistics {
                    rx_packets: 17,
                    tx_packets: 18,
                    rx_errors: 19,
                    tx_errors: 20,
                    rx_dropped: 21,
                    tx_dropped: 22,
                    rx_missed: 23,
                    rx_no_handler: 24,
                },
                driver_drops: vec![DriverDrops {
                    counter: "rx_queue_N_xdp_tx_errors".into(),
                    stage: "transmit".into(),
                    after_program: true,
                    frames: 25,
                }],
                traced_drops: vec![TracepointDrops {
                    tracepoint: "xdp_devmap_xmit".into(),
                    after_program: true,
                    frames: 26,
                }],
            }],
        };
        assert_eq!(Stats::from(v1::StatsResponse::from(stats.clone())), stats);
    }
}
