mod history;
mod interfaces;
mod neighbours;
mod routes;

use std::time::Duration;

use netlink_packet_route::neighbour::NeighbourState::{
    self, Failed, Incomplete, Permanent, Probe, Reachable, Stale,
};
use proptest::prelude::*;

use super::{super::Mac, *};
use lb_model::next_hop::Vlan;

const ETH0: u32 = 2;
const ETH1: u32 = 3;
const GATEWAY: &str = "192.0.2.1";
const A: Mac = [2, 0, 0, 0, 0, 0xa];
const B: Mac = [2, 0, 0, 0, 0, 0xb];

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn interface(index: u32) -> Interface {
    Interface {
        index,
        name: format!("eth{}", index - ETH0),
        alternative_names: Vec::new(),
        mac: Some([2, 0, 0, 0, 1, index as u8]),
        mtu: 1500,
        up: true,
        carrier: true,
        noarp: false,
        vlan: None,
        unsupported_vlan: None,
        bond: None,
    }
}

/// Source of all tunnels.
const SOURCE: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 250)));

fn neighbour(interface: u32, address: &str) -> NeighbourKey {
    NeighbourKey { interface, address: ip(address) }
}

fn route(interface: u32, gateway: &str) -> Result<Route, Unresolved> {
    Ok(Route { neighbour: neighbour(interface, gateway), mtu: None, advmss: None, source: SOURCE })
}

fn hop(interface: u32, gateway: &str, mac: Mac) -> NextHop {
    NextHop {
        gateway: ip(gateway),
        mac,
        interface,
        vlan: None,
        interface_mac: [2, 0, 0, 0, 1, interface as u8],
        mtu: 1500,
        source: SOURCE,
    }
}

/// The state under test, a clock that stands still, and shorthand.
struct Network {
    hops: Hops,
    now: Instant,
}

impl Network {
    /// Two interfaces, and these addresses behind the gateway on the first one.
    fn new(addresses: &[&str]) -> Self {
        let mut network = Self { hops: Hops::default(), now: Instant::now() };
        network.hops.replace(vec![interface(ETH0), interface(ETH1)], Vec::new());
        network.want(addresses);
        for address in addresses {
            network.hops.set_route(ip(address), route(ETH0, GATEWAY));
        }
        network
    }

    fn want(&mut self, addresses: &[&str]) -> Vec<IpAddr> {
        self.hops.want(&addresses.iter().map(|a| ip(a)).collect()).into_iter().collect()
    }

    fn see(&mut self, interface: u32, address: &str, state: NeighbourState, mac: Option<Mac>) {
        let key = neighbour(interface, address);
        self.hops.observe(
            Event::Neighbour(NeighbourEntry { key, state, mac, is_kernels: true }),
            self.now,
        );
    }

    fn gone(&mut self, interface: u32, address: &str) {
        let key = neighbour(interface, address);
        let state = Failed;
        let gone = NeighbourEntry { key, state, mac: None, is_kernels: true };
        self.hops.observe(Event::NeighbourGone(gone), self.now);
    }

    /// The events of `ip neigh del`.
    fn delete(&mut self, interface: u32, address: &str) {
        self.see(interface, address, Failed, None);
        self.gone(interface, address);
    }

    fn observe(&mut self, event: Event) {
        self.hops.observe(event, self.now);
    }

    fn settle(&mut self) -> Vec<(IpAddr, Result<NextHop, String>)> {
        let text = |change: NextHopChange| (change.address, change.hop.map_err(|e| e.to_string()));
        self.hops.settle(self.now).into_iter().map(text).collect()
    }

    /// [`Network::settle`] after failed neighbours are given up.
    fn settle_later(&mut self) -> Vec<(IpAddr, Result<NextHop, String>)> {
        self.now += GRACE_PERIOD;
        self.settle()
    }

    fn requests(&mut self) -> Vec<NeighbourKey> {
        let key = |request| match request {
            Request::Resolve(key) | Request::Probe(key) => key,
        };
        self.hops.take_requests(self.now).into_iter().map(key).collect()
    }
}

fn reported(address: &str, hop: NextHop) -> (IpAddr, Result<NextHop, String>) {
    (ip(address), Ok(hop))
}

fn failed(address: &str, why: &str) -> (IpAddr, Result<NextHop, String>) {
    (ip(address), Err(why.to_owned()))
}
