//! The source of tunnels: what the kernel says of the route, and what it says without the addresses of services.

use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use fastrand::Rng;
use lb_model::next_hop::{GivenSources, NextHop};
use lb_net::SourceRules;
use lb_tests::{sample::Sample, sandbox::Sandbox, topology::Node};
use tokio::sync::watch;

use super::{
    hop, kernels_source, pair,
    resolver::{Resolving, in_runtime},
};

const BACKENDS: [&str; 2] = ["198.51.100.7", "2001:db8:64::7"];
const GATEWAYS: [&str; 2] = ["192.0.2.2", "2001:db8::2"];
const VIPS: [&str; 2] = ["192.0.2.80", "2001:db8:64::80"];

/// Two nodes, a resolver in one, and its next hops to both backends.
struct Hops {
    a: Node,
    resolving: Resolving,
    hops: [NextHop; 2],
    _net: Box<dyn std::any::Any>,
}

impl Hops {
    fn start(sandbox: &Sandbox, name: &str) -> Result<Self> {
        let (net, a, b) = pair(sandbox, name)?;
        let mut resolving = Resolving::start(&a, &BACKENDS)?;
        let mut hops = Vec::new();
        for (backend, gateway) in BACKENDS.into_iter().zip(GATEWAYS) {
            let hop = hop((&a, "eth0"), gateway, (&b, "eth0"))?;
            resolving.expect(backend, Ok(hop))?;
            hops.push(hop);
        }
        Ok(Self { a, resolving, hops: [hops[0], hops[1]], _net: Box::new((net, b)) })
    }

    /// Tunnels to a backend come from an address next.
    fn expect(&mut self, which: usize, source: Option<&str>) -> Result<()> {
        let source = source.map(str::parse).transpose()?;
        self.resolving.expect(BACKENDS[which], Ok(NextHop { source, ..self.hops[which] }))
    }
}

pub(super) fn but_no_services(sandbox: &Sandbox) -> Result<()> {
    let mut hops = Hops::start(sandbox, "services")?;
    // Before anything knows that it is a service's, the kernel's choice stands.
    hops.a.ip("address add 2001:db8:64::80/128 dev eth0 nodad")?;
    ensure!(kernels_source(&hops.a, BACKENDS[1])? == VIPS[1], "the kernel prefers the VIP");
    hops.expect(1, Some(VIPS[1]))?;
    hops.resolving.set_services(&VIPS)?;
    hops.expect(1, Some("2001:db8::1"))?;
    // The `src` of a route is no better, and without another address there is none.
    hops.a.ip("address add 192.0.2.80/32 dev lo\n\
               route change 198.51.100.0/24 via 192.0.2.2 src 192.0.2.80")?;
    ensure!(kernels_source(&hops.a, BACKENDS[0])? == VIPS[0], "the route says so");
    hops.resolving.expect_nothing_more()?;
    hops.a.ip("address del 2001:db8::1/64 dev eth0\n\
               route add 2001:db8::/64 dev eth0\nroute replace 2001:db8:64::/64 via 2001:db8::2")?;
    hops.resolving.expect_finally(BACKENDS[1], Ok(NextHop { source: None, ..hops.hops[1] }))?;
    // An address of another interface is better than none, and one that is not used yet counts as none.
    hops.a.ip("address add 2001:db8:5::1/128 dev lo")?;
    hops.expect(1, Some("2001:db8:5::1"))?;
    hops.resolving.set_services(&[])?;
    hops.expect(0, Some(VIPS[0]))?;
    hops.resolving
        .expect_finally(BACKENDS[1], Ok(NextHop { source: Some(VIPS[1].parse()?), ..hops.hops[1] }))
}

pub(super) fn follows(sandbox: &Sandbox) -> Result<()> {
    let mut hops = Hops::start(sandbox, "renumber")?;
    // Renumbered, make before break.
    hops.a.ip("address add 192.0.2.22/24 dev eth0")?;
    hops.resolving.expect_nothing_more()?;
    hops.a.sysctls(&[("net.ipv4.conf.all.promote_secondaries", "1")])?;
    hops.a.ip("address del 192.0.2.1/24 dev eth0\n\
               route replace 198.51.100.0/24 via 192.0.2.2")?;
    let source = Some("192.0.2.22".parse()?);
    hops.resolving.expect_finally(BACKENDS[0], Ok(NextHop { source, ..hops.hops[0] }))?;
    // And break before make.
    hops.a.ip("address add 192.0.2.23/32 dev lo\nroute change 198.51.100.0/24 via 192.0.2.2 src 192.0.2.23")?;
    hops.expect(0, Some("192.0.2.23"))?;
    hops.a.ip("route add 198.51.100.0/24 via 192.0.2.2 src 192.0.2.22 table 7\n\
               rule add to 198.51.100.7 table 7")?;
    hops.expect(0, Some("192.0.2.22"))?;
    // A deprecated address is the last.
    hops.a.ip("address add 2001:db8::9/64 dev eth0 nodad\n\
               address change 2001:db8::1/64 dev eth0 preferred_lft 0")?;
    let expected = kernels_source(&hops.a, BACKENDS[1])?;
    ensure!(expected == "2001:db8::9", "{expected}");
    let source = Some(expected.parse()?);
    hops.resolving.expect_finally(BACKENDS[1], Ok(NextHop { source, ..hops.hops[1] }))
}

/// Rounds of random addresses for each IP version.
const ROUNDS: u64 = 120;

/// Puts random addresses on the interfaces, asks for the source while the route prefers a service's address, and asks the
/// kernel once that address is gone.
pub(super) fn as_the_kernel_without_the_service(sandbox: &Sandbox) -> Result<()> {
    let (_net, a, _b) = pair(sandbox, "random")?;
    a.sysctls(&[("net.ipv4.conf.all.promote_secondaries", "1")])?;
    a.ip("address flush dev eth0 scope global\n\
          link add eth1 type veth peer name peer1\nlink set eth1 up\nlink set peer1 up")?;
    let seed = Sample::from_environment().seed();
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    for round in 0..ROUNDS {
        for host in [random_v4(&mut rng), random_v6(&mut rng)] {
            host.check(&a).with_context(|| format!("round {round} of seed {seed}: {host:?}"))?;
        }
    }
    Ok(())
}

/// An address as it is added.
#[derive(Debug)]
struct RandomAddress {
    /// With its prefix's length.
    address: String,
    interface: &'static str,
    more: &'static str,
}

/// Addresses in the order in which they are added, and a route.
#[derive(Debug)]
struct RandomHost {
    addresses: Vec<RandomAddress>,
    /// Its place among them.
    vip: usize,
    to: &'static str,
    /// Without a source.
    route: String,
}

impl RandomHost {
    fn check(&self, node: &Node) -> Result<()> {
        let Self { addresses, vip, to, route } = self;
        let add = |it: &RandomAddress| {
            let RandomAddress { address, interface, more } = it;
            format!("address add {address} dev {interface} {more}\n")
        };
        let delete =
            |it: &RandomAddress| format!("address del {} dev {}\n", it.address, it.interface);
        let (service, _) = addresses[*vip].address.split_once('/').context("a prefix")?;
        let added: String = addresses.iter().map(add).collect();
        node.ip(&format!("{added}route add {route} src {service}"))?;
        ensure!(kernels_source(node, to)? == service, "the kernel prefers the service's address");

        let services = BTreeSet::from([service.parse()?]);
        let services = watch::Sender::new(Arc::new(services)).subscribe();
        let rules = SourceRules::new(GivenSources::default(), services);
        let to_ip: IpAddr = to.parse()?;
        let chosen = in_runtime(node, || async move { rules.of_own_packets(to_ip).await })??;

        // With the last address of its interface the route goes too.
        node.ip(&format!("{}route replace {route}", delete(&addresses[*vip])))?;
        let answer = &node.ip_json(&format!("route get {to}"))?[0];
        // A link-local address is of no use as the source of a tunnel.
        let expected = answer["prefsrc"].as_str().filter(|it| !it.starts_with("fe80:"));
        let others = addresses.iter().enumerate().filter(|(place, _)| place != vip);
        let deleted: String = others.map(|(_, it)| delete(it)).collect();
        node.ip(&format!("route del {to}\n{deleted}"))?;
        let chosen = chosen.map(|it| it.to_string());
        ensure!(chosen.as_deref() == expected, "chosen: {chosen:?}, the kernel: {expected:?}");
        Ok(())
    }
}

fn one_of<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.usize(..of.len())]
}

fn interface(rng: &mut Rng) -> &'static str {
    one_of(rng, &["eth0", "eth0", "eth0", "eth1", "lo"])
}

/// Last parts of addresses, different ones; none is a gateway's or the service's.
fn last_parts(rng: &mut Rng) -> Vec<u8> {
    let mut parts: Vec<_> = (10..90).collect();
    rng.shuffle(&mut parts);
    parts.truncate(rng.usize(4..8));
    parts
}

fn random_v4(rng: &mut Rng) -> RandomHost {
    let address = |last: u8, rng: &mut Rng| {
        // Addresses of one subnet and interface have one scope.
        let (subnet, more) = match rng.usize(..8) {
            0 => ("169.254.7", "scope link noprefixroute"),
            1 => ("10.5.5", "scope host noprefixroute"),
            2 => ("10.6.6", "scope site noprefixroute"),
            _ => (one_of(rng, &["10.0.0", "10.0.1", "10.1.0", "192.0.2"]), "noprefixroute"),
        };
        let prefix = one_of(rng, &[24, 24, 25, 32]);
        let address = format!("{subnet}.{last}/{prefix}");
        RandomAddress { address, interface: interface(rng), more }
    };
    let mut addresses: Vec<_> =
        last_parts(rng).into_iter().map(|last| address(last, rng)).collect();
    let vip = rng.usize(..addresses.len());
    let subnet = one_of(rng, &["10.0.0", "203.0.113"]);
    let service = format!("{subnet}.100/{}", one_of(rng, &[24, 32]));
    addresses[vip] =
        RandomAddress { address: service, interface: interface(rng), more: "noprefixroute" };
    let next_hops = ["via 10.0.0.1 dev eth0 onlink", "via 10.0.1.5 dev eth0 onlink", "dev eth0"];
    let to = "198.51.100.7";
    RandomHost { addresses, vip, to, route: format!("{to} {}", one_of(rng, &next_hops)) }
}

fn random_v6(rng: &mut Rng) -> RandomHost {
    let subnets = [
        "fd00:1",
        "fd00:1:0:1",
        "fd00:2",
        "fdff",
        "2001:db8:1",
        "2001:db8:1:1",
        "2001:db8:2",
        "2002:c000:201",
        "2001:0",
        "fec0",
        "2001:10",
        "3ffe",
    ];
    let address = |last: u8, rng: &mut Rng| {
        let (subnet, prefix) = (one_of(rng, &subnets), one_of(rng, &[48, 64, 64, 124, 128]));
        let more = match rng.usize(..6) {
            0 => "nodad noprefixroute preferred_lft 0",
            _ => "nodad noprefixroute",
        };
        let address = format!("{subnet}::{last}/{prefix}");
        RandomAddress { address, interface: interface(rng), more }
    };
    let mut addresses: Vec<_> =
        last_parts(rng).into_iter().map(|last| address(last, rng)).collect();
    let vip = rng.usize(..addresses.len());
    let service = "2001:db8:80::1/128".to_owned();
    addresses[vip] =
        RandomAddress { address: service, interface: interface(rng), more: "nodad noprefixroute" };
    let to = one_of(rng, &["fd00:1::7", "2001:db8:1::7", "2002:c000:201::7"]);
    RandomHost { addresses, vip, to, route: format!("{to} via fe80::99 dev eth0") }
}
