//! Hosts that are in order, and changes of them.

use std::{collections::BTreeMap, net::IpAddr};

use lb_maps::{AttachedMode, Component, Linked};
use lb_net::{
    Interface, Unresolved,
    device::XdpFeatures,
    survey::{self, Address, Device, Neighbour, Survey},
};

use crate::facts::{
    BalancerFacts, DaemonConfiguration, DaemonState, Environment, Facts, Host, InstalledComponent,
    Network, NetworkCard, PinOwner, PinnedBackend, PoolBackend, PoolServices, ReceiverFacts,
    Sysctls, VipProbe, VipProbeResult, VipProbes,
};

pub(super) const LO: u32 = 1;
pub(super) const ETH0: u32 = 2;
pub(super) const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub(super) const ALL_CAPABILITIES: u64 = 1 << 12 | 1 << 38 | 1 << 39;

pub(super) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub(super) fn device(index: u32, name: &str, mtu: u32) -> Device {
    let ethernet = index != LO;
    let interface = Interface {
        index,
        name: name.into(),
        alternative_names: Vec::new(),
        mac: ethernet.then_some(MAC),
        mtu,
        up: true,
        carrier: true,
        noarp: false,
        vlan: None,
        unsupported_vlan: None,
        bond: None,
    };
    Device { interface, kind: None, lower: None }
}

pub(super) fn address(interface: u32, address: &str, prefix: u8) -> Address {
    let address = ip(address);
    Address { interface, address, prefix, deprecated: false, reachable: !address.is_loopback() }
}

pub(super) fn route(gateway: &str) -> Result<survey::RouteInfo, Unresolved> {
    Ok(survey::RouteInfo { interface: ETH0, gateway: ip(gateway), mtu: None, advmss: None })
}

/// A host with a component on `eth0`, without the facts of that component.
pub(super) fn host(component: Component) -> Facts {
    let card = NetworkCard {
        offloads: Some(["rx-gro".to_owned()].into()),
        xdp: Some(XdpFeatures { native: true, transmits: true }),
        driver: Some("ixgbe".into()),
        occupant: None,
    };
    let neighbour = Neighbour {
        interface: ETH0,
        address: ip("10.0.0.1"),
        mac: Some(MAC),
        failed: false,
        confirmed: true,
    };
    let sysctls = [
        ("net.ipv4.ip_forward", 0),
        ("net.ipv6.conf.all.forwarding", 0),
        ("net.ipv4.conf.all.rp_filter", 2),
        ("net.ipv4.conf.all.arp_ignore", 1),
        ("net.ipv4.conf.all.arp_announce", 2),
    ];
    Facts {
        host: Host {
            release: "6.1.0-30-amd64".into(),
            btf: true,
            bpffs: true,
            jit: Some(1),
            page: 4_096,
            capabilities: ALL_CAPABILITIES,
            rp_filter_drops: 0,
        },
        environment: Environment {
            bpffs: "/sys/fs/bpf".into(),
            state_directory: "/var/lib/spillway".into(),
            socket: "/run/spillway/spillwayd.sock".into(),
            spillwayd: "spillwayd".into(),
            client_mtu: 1500,
        },
        components: vec![InstalledComponent {
            component,
            links: vec![Linked {
                name: "eth0".into(),
                index: Some(ETH0),
                at_tc: false,
                mode: Some(AttachedMode::Native),
            }],
            owner: Some(PinOwner {
                pid: 7,
                command: vec!["/d".into(), component.name().into()],
                capabilities: Some(ALL_CAPABILITIES),
                unit: None,
            }),
            started: None,
            maps_problem: None,
        }],
        network: Network {
            survey: Survey {
                devices: vec![device(LO, "lo", 65536), device(ETH0, "eth0", 1540)],
                addresses: vec![address(LO, "127.0.0.1", 8), address(ETH0, "10.0.0.2", 24)],
                routes: [(ip("1.0.0.1"), route("10.0.0.1")), (ip("2600::1"), route("fd00::1"))]
                    .into(),
                neighbours: vec![neighbour],
            },
            cards: [(ETH0, card)].into(),
            answered: BTreeMap::new(),
        },
        sysctls: Sysctls(sysctls.map(|(name, value)| (name.to_owned(), value)).into()),
        ..Facts::default()
    }
}

pub(super) fn balancer() -> Facts {
    let mut facts = host(Component::Balancer);
    facts.balancer = Some(BalancerFacts {
        region: Some("eu".into()),
        vips: [ip("203.0.113.1")].into(),
        passing_vips: [ip("203.0.113.1")].into(),
        backends: vec![PinnedBackend {
            address: ip("10.1.0.11"),
            mtu: 1540,
            overhead: 20,
            direct: false,
            hop: Some((MAC, ETH0)),
            source: Some(ip("10.0.0.2")),
        }],
        source_prefix: None,
        too_large: 0,
        sent: 0,
        interfaces: Vec::new(),
    });
    facts.daemon = Some(DaemonState::Answers {
        version: env!("CARGO_PKG_VERSION").into(),
        generation: 3,
        behind: String::new(),
        conditions: Vec::new(),
        configuration: Box::new(DaemonConfiguration {
            served: vec![served()],
            ..DaemonConfiguration::default()
        }),
    });
    let (backend, vip) = (ip("10.1.0.11"), ip("203.0.113.1"));
    let probe = VipProbe { backend, vip, overhead: 20, result: VipProbeResult::Works };
    facts.vip_probes = Some(VipProbes::Done { probes: vec![probe], left_out: 0 });
    let routes = &mut facts.network.survey.routes;
    routes.insert(ip("10.1.0.11"), route("10.0.0.1"));
    routes.insert(ip("203.0.113.1"), route("10.0.0.1"));
    facts
}

/// A service with two backends that are up.
pub(super) fn served() -> PoolServices {
    let up = |address: &str| PoolBackend { address: address.into(), idle: None };
    let backends = vec![up("10.1.0.11"), up("10.1.0.12")];
    let (pool, services) = ("web".into(), vec!["web".into()]);
    PoolServices { pool, services, backends, is_tunnel_unchecked: false }
}

pub(super) fn configuration(facts: &mut Facts) -> &mut DaemonConfiguration {
    let Some(DaemonState::Answers { configuration, .. }) = &mut facts.daemon else {
        panic!("it answers")
    };
    configuration
}

pub(super) fn backend() -> Facts {
    let mut facts = host(Component::Receiver);
    let sources = vec!["10.0.0.2/32".into()];
    let (vips, endpoints) = (vec![ip("203.0.113.1")], [ip("10.0.0.2")].into());
    facts.receiver =
        Some(ReceiverFacts { sources, vips, endpoints, not_local: None, not_allowed: None });
    facts.network.survey.addresses.push(address(LO, "203.0.113.1", 32));
    facts
}

pub(super) fn owner(facts: &mut Facts) -> &mut PinOwner {
    facts.components[0].owner.as_mut().unwrap()
}

pub(super) fn eth0(facts: &mut Facts) -> &mut Device {
    &mut facts.network.survey.devices[1]
}

pub(super) fn card(facts: &mut Facts) -> &mut NetworkCard {
    facts.network.cards.get_mut(&ETH0).unwrap()
}

pub(super) fn set(facts: &mut Facts, name: &str, value: i64) {
    facts.sysctls.0.insert(name.into(), value);
}

pub(super) fn offload(facts: &mut Facts, name: &str) {
    card(facts).offloads.as_mut().unwrap().insert(name.into());
}

pub(super) fn silent(facts: &mut Facts) {
    facts.balancer.as_mut().unwrap().backends[0].hop = None;
    let neighbour = &mut facts.network.survey.neighbours[0];
    (neighbour.mac, neighbour.failed) = (None, true);
}
