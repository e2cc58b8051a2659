//! The source of tunnels: what the kernel says of the route, and what it says without the addresses of services.

use anyhow::{Result, ensure};
use lb_model::next_hop::NextHop;
use lb_tests::{sandbox::Sandbox, topology::Node};

use super::{hop, kernels_source, pair, resolver::Resolving};

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
