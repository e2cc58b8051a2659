//! The setup: six web servers in two regions, and the balancer.

use std::net::IpAddr;
use std::ops::Range;
use std::time::Duration;

use anyhow::{Context as _, Result};
use lb_tests::daemon::{Balancer, Receiver};
use lb_tests::topology::{Backend, Fabric};
use lb_tests::traffic::{Httperf, WebServer, Work};

use super::WORK;
use super::document::document;
use super::scale::Scale;
use crate::shared::{Environment, Screen, balancer, map, natives, receivers};

/// Servers of each region.
const PER_REGION: u8 = 3;
/// When a client gives up, in the tutorial's time. It says nothing, which is never.
const PATIENCE: Duration = Duration::from_secs(300);

/// Everything that plays.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) servers: Vec<WebServer>,
    _receivers: Vec<Receiver>,
    pub(crate) balancer: Balancer,
    pub(crate) fabric: Fabric,
    pub(crate) scale: Scale,
    requests: u32,
    file: std::path::PathBuf,
}

impl Setup {
    pub(crate) fn set(
        environment: &Environment,
        scale: Scale,
        requests: u32,
        screen: &mut Screen,
    ) -> Result<Self> {
        screen.heading("The setup");
        let fabric = Fabric::new(&environment.sandbox, "overflow", PER_REGION)?;
        screen.done("network: a client, a router, a balancer on one arm, two regions of three");
        screen.quote(&map());
        let work = Work { time: scale.shorter(WORK.time), ..WORK };
        let servers = fabric.backends.iter().map(|backend| WebServer::start(&backend.node, work));
        let servers = servers.collect::<Result<_>>()?;
        screen.done(&format!(
            "a web server on every backend: {:.1} ms of work a request, {} at once: {:.2} a second",
            work.time.as_secs_f64() * 1e3,
            work.at_a_time,
            work.capacity()
        ));
        let receivers = receivers(environment, &fabric, screen)?;
        let balancer = balancer(environment, &fabric, screen)?;
        natives(&fabric, screen)?;
        let file = environment.file("web.toml");
        Ok(Self { servers, _receivers: receivers, balancer, fabric, scale, requests, file })
    }

    /// Puts a configuration in force and waits until all its backends are up. Capacities are the
    /// tutorial's, by region.
    pub(crate) fn configure(&self, capacities: &[Option<f64>], screen: &mut Screen) -> Result<()> {
        let faster = |capacity: &Option<f64>| capacity.map(|rate| self.scale.faster(rate));
        let ours: Vec<_> = capacities.iter().map(faster).collect();
        let document = document(&self.fabric, &ours);
        std::fs::write(&self.file, &document).context("write web.toml")?;
        screen.command("balancer", "spillway apply -f web.toml");
        self.balancer.apply(&document)?;
        self.wait_up(0..usize::from(PER_REGION) * capacities.len())
    }

    /// Waits until these backends are up, and no others.
    pub(crate) fn wait_up(&self, numbers: Range<usize>) -> Result<()> {
        let backends = self.fabric.backends[numbers].iter();
        let up: Vec<IpAddr> = backends.map(|backend| backend.v4.into()).collect();
        self.balancer.wait_up(&up, Duration::from_secs(15))
    }

    /// The backends of the first region.
    pub(crate) fn first_region(&self) -> &[Backend] {
        &self.fabric.backends[..PER_REGION.into()]
    }

    /// A run of httperf at a rate of the tutorial's.
    pub(crate) fn httperf(&self, rate: f64) -> Httperf {
        Httperf {
            connections: self.requests,
            rate: self.scale.faster(rate),
            timeout: self.scale.shorter(PATIENCE),
        }
    }
}
