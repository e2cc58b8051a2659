//! The setup: network, backends, balancer, and what the balancer is told.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::Result;
use lb_tests::daemon::{Balancer, Check, Document, Member, Pool, Receiver, Service};
use lb_tests::report::Colour;
use lb_tests::topology::{Fabric, REGIONS};
use lb_tests::traffic::Nginx;

use crate::shared::{Environment, Screen, balancer, map, natives, receivers};

/// Backends of each region.
const PER_REGION: u8 = 3;

/// Everything that plays.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) servers: Vec<Nginx>,
    _receivers: Vec<Receiver>,
    pub(crate) balancer: Balancer,
    pub(crate) fabric: Fabric,
    /// One for each backend, in their order.
    pub(crate) colours: Vec<Colour>,
}

impl Setup {
    pub(crate) fn set(environment: &Environment, screen: &mut Screen) -> Result<Self> {
        screen.heading("The setup");
        let fabric = Fabric::new(&environment.sandbox, "demo", PER_REGION)?;
        screen.done("network: a client, a router, a balancer on one arm, two regions of three");
        screen.quote(&map());
        let servers = fabric
            .backends
            .iter()
            .map(|backend| Nginx::start(&backend.node))
            .collect::<Result<_>>()?;
        screen.done("nginx on every backend, the VIP on its lo: it answers the client directly");
        let receivers = receivers(environment, &fabric, screen)?;
        let balancer = balancer(environment, &fabric, screen)?;
        natives(&fabric, screen)?;
        let colours = (0..REGIONS.len())
            .flat_map(|region| (0..PER_REGION).map(move |n| Colour::of(region, n.into())))
            .collect();
        let setup = Self { servers, _receivers: receivers, balancer, fabric, colours };
        setup.configure(environment, screen)?;
        Ok(setup)
    }

    fn configure(&self, environment: &Environment, screen: &mut Screen) -> Result<()> {
        screen.heading("What the balancer is told");
        let document = document(&self.fabric).text();
        environment.write("web.toml", &document)?;
        screen.command("balancer", "spillway apply -f web.toml");
        screen.quote(&self.balancer.apply(&document)?);
        let all: Vec<IpAddr> = self.fabric.backends.iter().map(|b| b.v4.into()).collect();
        self.balancer.wait_up(&all, Duration::from_secs(10))?;
        screen.done("every backend has passed its first check");
        screen.command("balancer", "spillway status");
        screen.quote(&self.balancer.cli(&["status"])?);
        Ok(())
    }
}

fn document(fabric: &Fabric) -> Document {
    let member = |backend: &lb_tests::topology::Backend| Member {
        address: backend.v4.into(),
        region: backend.region.into(),
        weight: 1,
    };
    Document {
        hash_key: None,
        regions: REGIONS.map(String::from).to_vec(),
        checks: vec![Check {
            name: "page".into(),
            path: Some("/healthz".into()),
            port: 80,
            interval_ms: 200,
            fall: 2,
            is_tunnelled: true,
        }],
        pools: vec![Pool {
            name: "web".into(),
            checks: vec!["page".into()],
            members: fabric.backends.iter().map(member).collect(),
        }],
        services: vec![Service {
            name: "web".into(),
            address: Fabric::VIP_V4.into(),
            port: 80,
            protocol: "tcp",
            pool: "web".into(),
        }],
    }
}
