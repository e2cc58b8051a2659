//! The network of a fleet: the standard one with several balancers, over which the router spreads clients.
//!
//! ```text
//!                       ┌──────┐ 10.0.1.0/24, fd00:0:0:1::/64   10.0.9.0/24, fd00:0:0:9::/64
//!                       │ lb-1 ├──────┐                 ┌─────── switch "etcd" ── etcd1 etcd2 etcd3
//!                       └──────┘      │                 │
//!  ┌────────┐           ┌──────┐  ┌───┴────┐            │
//!  │ client ├───────┐   │ lb-2 ├──┤ router ├────────────┴─────── switch "eu" ──── eu1 eu2 …
//!  └────────┘       └───┴──────┴──┤        ├──────────────────── switch "us" ──── us1 us2 …
//!                         …       └────────┘
//! ```
//!
//! Client, regions and VIPs are those of [`Fabric`]. The router has one route to all VIPs ([`FleetFabric::VIPS_V4`],
//! [`FleetFabric::VIPS_V6`]) with a next hop for each balancer, and chooses by a hash of addresses and ports. Clients of
//! some prefixes ([`FleetFabric::clients_v4`] and the like) are sent to one balancer whatever the hash says, so that a test
//! decides exactly how much demand each balancer has.
//!
//! Balancers are counted from 0; the first is `lb-1`.

use std::net::{Ipv4Addr, Ipv6Addr};

use anyhow::{Result, ensure};

#[cfg(doc)]
use super::Fabric;
use super::backend::{REGIONS, add_regions};
use super::parts::{Host, Segment, add_balancer, add_client, add_router, add_segment};
use super::{Backend, Node, Topology};
use crate::sandbox::Sandbox;
use crate::syns;

/// Ids of next hops: of a balancer, plus its place from 1; and of the group of all.
const HOP_V4: usize = 100;
const HOP_V6: usize = 200;
const ALL_V4: usize = 10;
const ALL_V6: usize = 20;
/// The routing table and the rule's preference of clients who are sent to a chosen balancer, plus a place from 1.
const STEERED: usize = 100;
/// The preference of rules that cut a balancer off: before all of these.
const CUT: usize = 50;

/// What a balancer's host is cut off from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Everybody: the host is gone. The router sends its share of packets there until it is taken out of the routes.
    Everything,
    /// The other balancers and etcd. Packets of clients go on, and so do health checks.
    PeersAndEtcd,
    /// The other balancers.
    Peers,
    /// Connections that other balancers make to it. Those that it makes to them go on.
    FromPeers,
    /// One other balancer.
    Peer(usize),
    /// All of etcd.
    Etcd,
}

/// The network.
#[derive(Debug)]
pub struct FleetFabric {
    /// All of it; it goes when this goes.
    pub net: Topology,
    /// As in [`Fabric`]; SYNs of [`syns::SOURCES`] come from here too.
    pub client: Node,
    /// Joins all others. Its ends are named after what they lead to.
    pub router: Node,
    /// Where balancers run, each on its `eth0`. They are named `lb-1` and so on.
    pub balancers: Vec<Host>,
    /// The backends, region by region.
    pub backends: Vec<Backend>,
    /// Where etcd runs; named `etcd1` and so on.
    pub etcd: Vec<Host>,
    /// Balancers that are out of the routes.
    out: Vec<bool>,
    /// By prefixes of clients: the balancer that they are sent to.
    steered: Vec<usize>,
    /// By balancers: the rules that cut it off, and whether it is cut off from everything.
    rules: Vec<Rules>,
    blocked: Vec<bool>,
}

impl FleetFabric {
    /// Most balancers that it may have.
    pub const MOST: usize = 6;
    /// Where balancers listen for their peers.
    pub const PEER_PORT: u16 = 7946;
    /// Where all VIPs are, version 4.
    pub const VIPS_V4: (Ipv4Addr, u8) = (Ipv4Addr::new(203, 0, 113, 0), 24);
    /// Where all VIPs are, version 6.
    pub const VIPS_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2001, 0xdb8, 0xf, 0, 0, 0, 0, 0), 48);

    /// Builds it with 1 to [`Self::MOST`] balancers, `per_region` backends in each region (at most 89) and so many hosts
    /// for etcd, and waits until it is up.
    ///
    /// # Errors
    /// When a part cannot be made.
    pub fn new(
        sandbox: &Sandbox,
        name: &str,
        balancers: usize,
        per_region: u8,
        etcd: u8,
    ) -> Result<Self> {
        Self::with_regions(sandbox, name, balancers, (REGIONS.len(), per_region), etcd)
    }

    /// The same with the first regions alone: how many, and backends in each.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_regions(
        sandbox: &Sandbox,
        name: &str,
        balancers: usize,
        (regions, per_region): (usize, u8),
        etcd: u8,
    ) -> Result<Self> {
        ensure!((1..=Self::MOST).contains(&balancers), "{balancers} balancers");
        let mut net = Topology::new(sandbox, name)?;
        let router = add_router(&mut net)?;
        // By addresses and ports, as routers in front of balancers do.
        let by_flow = ["ipv4", "ipv6"].map(|ip| format!("net.{ip}.fib_multipath_hash_policy"));
        router.sysctls(&by_flow.each_ref().map(|name| (name.as_str(), "1")))?;
        let client = add_client(&mut net, &router)?;
        let mut hosts = Vec::new();
        for number in 1..=balancers {
            let addresses = addresses(number as u8);
            hosts.push(add_balancer(&mut net, &router, &format!("lb-{number}"), addresses)?);
        }
        let backends = add_regions(&mut net, &router, regions, per_region)?;
        let (v4, v6) = (Ipv4Addr::new(10, 0, 9, 0), Ipv6Addr::new(0xfd00, 0, 0, 9, 0, 0, 0, 0));
        let segment = Segment { name: "etcd", v4, v6, number: 9 };
        // A switch without ports never comes up.
        let etcd = match etcd {
            0 => Vec::new(),
            hosts => add_segment(&mut net, &router, segment, hosts)?,
        };
        let mut fabric = Self {
            net,
            client,
            router,
            balancers: hosts,
            backends,
            etcd,
            out: vec![false; balancers],
            steered: (0..balancers).collect(),
            rules: vec![Rules::default(); balancers],
            blocked: vec![false; balancers],
        };
        fabric.net.ready()?;
        fabric.add_routes()?;
        Ok(fabric)
    }

    /// The backends of one region.
    pub fn region_backends(&self, region: &str) -> impl Iterator<Item = &Backend> {
        self.backends.iter().filter(move |backend| backend.region == region)
    }

    /// A part of [`Fabric::CLIENTS_V4`] whose packets go to one balancer. So do those of [`Self::clients_v6`] and
    /// [`Self::syn_sources`]. The parts before the first of them and behind the last are spread by the hash.
    pub const fn clients_v4(balancer: usize) -> (Ipv4Addr, u8) {
        (Ipv4Addr::new(100, 65 + balancer as u8, 0, 0), 16)
    }

    /// The same of [`Fabric::CLIENTS_V6`].
    pub const fn clients_v6(balancer: usize) -> (Ipv6Addr, u8) {
        (Ipv6Addr::new(0x2001, 0xdb8, 0xca, 1 + balancer as u16, 0, 0, 0, 0), 64)
    }

    /// The same of [`syns::SOURCES`].
    pub const fn syn_sources(balancer: usize) -> (Ipv4Addr, u8) {
        (Ipv4Addr::new(198, 18, 16 * (1 + balancer as u8), 0), 20)
    }

    /// Sends the clients of one balancer to another from now on, or back again.
    ///
    /// # Errors
    /// When the router refuses.
    pub fn steer(&mut self, clients_of: usize, to: usize) -> Result<()> {
        ensure!(to < self.balancers.len(), "no balancer {to}");
        self.steered[clients_of] = to;
        self.set_steered(clients_of)
    }

    /// Takes a balancer out of the routes, as its own or somebody's withdrawal would: the router spreads all packets over
    /// the others, those of its clients too.
    ///
    /// # Errors
    /// When the router refuses, or no balancer would be left.
    pub fn take_out(&mut self, balancer: usize) -> Result<()> {
        let others = self.out.iter().enumerate().filter(|(n, out)| *n != balancer && !**out);
        ensure!(others.count() > 0, "balancer {balancer} is the last in the routes");
        self.out[balancer] = true;
        self.set_hops()
    }

    /// Undoes [`Self::take_out`].
    ///
    /// # Errors
    /// When the router refuses.
    pub fn put_back(&mut self, balancer: usize) -> Result<()> {
        self.out[balancer] = false;
        self.set_hops()
    }

    /// Cuts a balancer off, beside what it is cut off from already. Routes stay as they are, and no link loses its carrier.
    ///
    /// # Errors
    /// When the router refuses.
    pub fn cut(&mut self, balancer: usize, cut: Cut) -> Result<()> {
        let all_arms = ("10.0.0.0/21".to_owned(), "fd00::/61".to_owned());
        let etcd = ("10.0.9.0/24".to_owned(), "fd00:0:0:9::/64".to_owned());
        match cut {
            Cut::Everything => {
                ensure!(!self.blocked[balancer], "balancer {balancer} is cut off already");
                self.blocked[balancer] = true;
                self.net.block(&self.router, self.balancers[balancer].name())
            }
            Cut::PeersAndEtcd => {
                self.cut_from(balancer, &all_arms)?;
                self.cut_from(balancer, &etcd)
            }
            Cut::Peers => self.cut_from(balancer, &all_arms),
            Cut::FromPeers => {
                let (v4, v6) = arm(balancer);
                let to = |arm| {
                    vec![format!(
                        "preference {CUT} to {arm} ipproto tcp dport {} blackhole",
                        Self::PEER_PORT
                    )]
                };
                self.add_rules(balancer, Rules { v4: to(v4), v6: to(v6) })
            }
            Cut::Peer(peer) => self.cut_from(balancer, &arm(peer)),
            Cut::Etcd => self.cut_from(balancer, &etcd),
        }
    }

    /// Undoes all cuts of a balancer, but not those of its peers from it.
    ///
    /// # Errors
    /// When the router refuses.
    pub fn heal(&mut self, balancer: usize) -> Result<()> {
        if std::mem::take(&mut self.blocked[balancer]) {
            self.net.unblock(&self.router, self.balancers[balancer].name())?;
        }
        std::mem::take(&mut self.rules[balancer]).change(&self.router, "delete")
    }

    /// The router's rules come before its routes, but after its own addresses: it still answers for itself.
    fn cut_from(&mut self, balancer: usize, (v4, v6): &(String, String)) -> Result<()> {
        let (own_v4, own_v6) = arm(balancer);
        let both = |own: &str, others: &str| {
            [(own, others), (others, own)]
                .map(|(from, to)| format!("preference {CUT} from {from} to {to} blackhole"))
        };
        self.add_rules(
            balancer,
            Rules { v4: both(&own_v4, v4).into(), v6: both(&own_v6, v6).into() },
        )
    }

    fn add_rules(&mut self, balancer: usize, rules: Rules) -> Result<()> {
        rules.change(&self.router, "add")?;
        self.rules[balancer].v4.extend(rules.v4);
        self.rules[balancer].v6.extend(rules.v6);
        Ok(())
    }

    fn add_routes(&mut self) -> Result<()> {
        let (v4, bits_v4) = Self::VIPS_V4;
        let (v6, bits_v6) = Self::VIPS_V6;
        let mut lines = Vec::new();
        for (number, host) in (1..).zip(&self.balancers) {
            let name = host.name();
            lines.push(format!("nexthop add id {} via {} dev {name}", HOP_V4 + number, host.v4));
            lines.push(format!("nexthop add id {} via {} dev {name}", HOP_V6 + number, host.v6));
        }
        self.router.ip(&lines.join("\n"))?;
        self.set_hops()?;
        // Where SYNs come from nobody is; errors about them are to go nowhere else.
        let (syns, bits_syns) = syns::SOURCES;
        self.router.ip(&format!(
            "route add {v4}/{bits_v4} nhid {ALL_V4}\nroute add {v6}/{bits_v6} nhid {ALL_V6}\n\
             route add blackhole {syns}/{bits_syns}"
        ))?;
        let mut rules = Rules::default();
        for balancer in 0..self.balancers.len() {
            let (v4, bits_v4) = Self::clients_v4(balancer);
            let (v6, bits_v6) = Self::clients_v6(balancer);
            let (syns, bits_syns) = Self::syn_sources(balancer);
            let table = STEERED + 1 + balancer;
            let rule = |from: String| format!("preference {table} from {from} lookup {table}");
            let (clients, syns) = (format!("{v4}/{bits_v4}"), format!("{syns}/{bits_syns}"));
            rules.v4.extend([rule(clients), rule(syns)]);
            rules.v6.push(rule(format!("{v6}/{bits_v6}")));
        }
        rules.change(&self.router, "add")
    }

    /// Has the router use the balancers that are not out.
    fn set_hops(&self) -> Result<()> {
        let numbers = (1..=self.out.len()).filter(|number| !self.out[number - 1]);
        let [v4, v6] = [HOP_V4, HOP_V6].map(|first| {
            let ids: Vec<_> = numbers.clone().map(|number| (first + number).to_string()).collect();
            ids.join("/")
        });
        // Replaced as a whole: no packet finds the route without one.
        self.router.ip(&format!(
            "nexthop replace id {ALL_V4} group {v4}\nnexthop replace id {ALL_V6} group {v6}"
        ))?;
        (0..self.steered.len()).try_for_each(|clients_of| self.set_steered(clients_of))
    }

    fn set_steered(&self, clients_of: usize) -> Result<()> {
        let to = self.steered[clients_of];
        let (v4, v6) =
            if self.out[to] { (ALL_V4, ALL_V6) } else { (HOP_V4 + 1 + to, HOP_V6 + 1 + to) };
        let (vips_v4, bits_v4) = Self::VIPS_V4;
        let (vips_v6, bits_v6) = Self::VIPS_V6;
        let table = STEERED + 1 + clients_of;
        self.router.ip(&format!(
            "route replace {vips_v4}/{bits_v4} table {table} nhid {v4}\n\
             route replace {vips_v6}/{bits_v6} table {table} nhid {v6}"
        ))
    }
}

/// Rules of the router.
#[derive(Clone, Debug, Default)]
struct Rules {
    v4: Vec<String>,
    v6: Vec<String>,
}

impl Rules {
    fn change(&self, router: &Node, verb: &str) -> Result<()> {
        let lines = |rules: &[String]| {
            let lines: Vec<_> = rules.iter().map(|rule| format!("rule {verb} {rule}")).collect();
            lines.join("\n")
        };
        router.ip(&lines(&self.v4))?;
        router.ip_v6(&lines(&self.v6))
    }
}

/// Addresses of a balancer by its number from 1.
const fn addresses(number: u8) -> (Ipv4Addr, Ipv6Addr) {
    let v6 = Ipv6Addr::new(0xfd00, 0, 0, number as u16, 0, 0, 0, 2);
    (Ipv4Addr::new(10, 0, number, 2), v6)
}

/// The subnets of a balancer's arm.
fn arm(balancer: usize) -> (String, String) {
    let number = 1 + balancer;
    (format!("10.0.{number}.0/24"), format!("fd00:0:0:{number}::/64"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Fabric;

    #[test]
    fn clients_of_balancers_are_the_clients_and_nobody_twice() {
        let holds = |(prefix, bits): (Ipv4Addr, u8), (inner, longer): (Ipv4Addr, u8)| {
            longer >= bits && (prefix.to_bits() ^ inner.to_bits()) >> (32 - bits) == 0
        };
        for balancer in 0..FleetFabric::MOST {
            assert!(holds(Fabric::CLIENTS_V4, FleetFabric::clients_v4(balancer)));
            assert!(holds(syns::SOURCES, FleetFabric::syn_sources(balancer)));
            for other in 0..balancer {
                let [own, others] = [balancer, other].map(FleetFabric::syn_sources);
                assert!(!holds(own, others) && own != others);
                assert_ne!(FleetFabric::clients_v4(balancer), FleetFabric::clients_v4(other));
                assert_ne!(FleetFabric::clients_v6(balancer), FleetFabric::clients_v6(other));
            }
        }
    }
}
