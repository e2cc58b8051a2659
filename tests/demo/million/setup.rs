//! The setup: a site, a daemon with an empty store, and a web server that answers the checks of all backends.

use std::{
    net::{IpAddr, Ipv4Addr},
    ops::Range,
    path::PathBuf,
    time::Duration,
};

use anyhow::Result;
use lb_tests::{
    daemon::{Balancer, Check, Document, Member, Pool, Service},
    packets::objects,
    process::{PATIENCE, until},
    topology::REGIONS,
    traffic::Nginx,
};

use super::{
    ADDED, BACKENDS, CPUS, exchange,
    generator::{Generator, Generators},
    site::{Site, VIP},
};
use crate::shared::{Environment, Screen};

/// How long open connections stay at their previous home.
pub(crate) const SETTLE: Duration = Duration::from_secs(10);
/// Cells of the flow table. While slots move or backends are away, each new connection of theirs takes one and has it for two
/// minutes after its end, so that the usual number is too small for so many connections (docs/operations.md, "How many").
const FLOWS: u32 = 1 << 23;

/// The longest time until nothing is known of the connections of a service that is gone: 64 s after the last SYN that was
/// displaced, and some rounds of the daemon.
const FORGOTTEN: Duration = Duration::from_secs(120);

/// Everything that plays.
pub(crate) struct Setup {
    pub(crate) generators: Generators,
    /// Send probes beside them, each of other flows.
    pub(crate) probes: [Generator; 2],
    pub(crate) balancer: Balancer,
    pub(crate) site: Site,
    /// The file that is applied.
    pub(crate) file: PathBuf,
    _server: Nginx,
}

/// The numbers of backends: of those that are there from the beginning, or with those that are added.
pub(crate) const fn backends(with_added: bool) -> Range<u8> {
    if with_added { 1..BACKENDS + ADDED + 1 } else { 1..BACKENDS + 1 }
}

/// The numbers of those that are added.
pub(crate) const fn added() -> Range<u8> {
    BACKENDS + 1..BACKENDS + ADDED + 1
}

impl Setup {
    pub(crate) fn new(environment: &Environment, screen: &mut Screen) -> Result<Self> {
        screen.heading("The setup");
        let exchange = exchange::record(&environment.sandbox)?;
        let lengths = exchange.each_ref().map(|frame| frame.len().to_string());
        screen.done(&format!(
            "a request: the packets that curl sends, of {} bytes",
            lengths.join(", ")
        ));
        let objects = objects::directory();
        let site = Site::new(&environment.sandbox, &objects, CPUS)?;
        site.switch_on(backends(true))?;
        screen.done(&format!(
            "a link with {CPUS} queues, and {} backends behind it: native XDP counts what they get",
            backends(true).len()
        ));
        let server = Nginx::start(&site.outside)?;
        screen.done("nginx answers the health checks of all backends");
        let generators = Generators::new(&objects, &exchange, CPUS)?;
        let probe = |number| Generator::new(&objects, &exchange, 0, number);
        let probes = [probe(CPUS)?, probe(CPUS + 1)?];
        let (sandbox, binaries) = (&environment.sandbox, &environment.binaries);
        let mut balancer = Balancer::new(sandbox, binaries, &site.balancer, REGIONS[0])?;
        balancer.write_settings(&format!("flows = {FLOWS}\n"))?;
        balancer.start()?;
        screen.done("the balancer's daemon, with an empty store");
        let file = environment.file("web.toml");
        Ok(Self { generators, probes, balancer, site, file, _server: server })
    }

    /// Takes the service away, and all that is remembered of its connections with it, and waits until it is back.
    pub(crate) fn forget_connections(&self) -> Result<()> {
        self.balancer.apply("# nothing")?;
        self.balancer.apply(&file(backends(false)))?;
        self.balancer.wait_up(&addresses(backends(false)), PATIENCE)?;
        until("no connection is displaced", FORGOTTEN, || {
            let remembered = self.balancer.stats()?.remembered;
            Ok(remembered.pools_with_displaced.is_empty().then_some(()))
        })
    }
}

/// The configuration file, with these backends.
pub(crate) fn file(backends: Range<u8>) -> String {
    // Far less than the usual ten minutes, so that it passes here.
    let pool = "[[pool]]\nname = \"web\"\n";
    document(backends)
        .text()
        .replace(pool, &format!("{pool}settle_time = \"{}s\"\n", SETTLE.as_secs()))
}

fn document(backends: Range<u8>) -> Document {
    let member = |number| Member {
        address: Site::backend(number).into(),
        region: REGIONS[0].into(),
        weight: 1,
    };
    Document {
        regions: vec![REGIONS[0].into()],
        checks: vec![Check {
            name: "page".into(),
            path: Some("/healthz".into()),
            port: 80,
            interval_ms: 1000,
            fall: 3,
            is_tunnelled: false,
        }],
        pools: vec![Pool {
            name: "web".into(),
            checks: vec!["page".into()],
            members: backends.map(member).collect(),
        }],
        services: vec![Service {
            name: "web".into(),
            address: VIP.into(),
            port: 80,
            protocol: "tcp",
            pool: "web".into(),
        }],
        ..Document::default()
    }
}

/// The addresses of backends.
pub(crate) fn addresses(backends: Range<u8>) -> Vec<IpAddr> {
    backends.map(Site::backend).map(|address: Ipv4Addr| address.into()).collect()
}
