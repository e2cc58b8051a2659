//! A balancer's host and a backend's, and what every step checks on them.

use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use lb_e2e::container::Container;
use lb_tests::{
    process::until,
    topology::{Backend, Fabric},
    traffic::{Requests, ensure_answered},
};

pub(crate) const BALANCER: &str = "spillway-balancer.service";
pub(crate) const SOCKET: &str = "spillway-balancer.socket";
pub(crate) const RECEIVER: &str = "spillway-receiver.service";

/// How long systemd may take to do what it was asked.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// The hosts.
pub(crate) struct PackageFixture {
    pub(crate) balancer: Container,
    pub(crate) receiver: Container,
    pub(crate) fabric: Fabric,
    pub(crate) backend: Backend,
}

impl PackageFixture {
    pub(crate) fn hosts(&self) -> [&Container; 2] {
        [&self.balancer, &self.receiver]
    }

    pub(crate) fn services(&self) -> [(&Container, &'static str); 2] {
        [(&self.balancer, BALANCER), (&self.receiver, RECEIVER)]
    }

    /// Writes the configuration: one service with one backend, checked on a port.
    pub(crate) fn configure(&self, service_port: u16) -> Result<()> {
        let (vip, backend) = (Fabric::VIP_V4, self.backend.v4);
        let text = format!(
            "[[region]]\nname = \"eu\"\n\
             [[health_check]]\nname = \"web\"\nport = 80\nhttp = {{ path = \"/healthz\" }}\n\
             [[pool]]\nname = \"web\"\nhealth_checks = [\"web\"]\n\
             [[pool.backend]]\naddress = \"{backend}\"\nregion = \"eu\"\n\
             [[service]]\nname = \"web\"\naddress = \"{vip}\"\nport = {service_port}\n\
             protocol = \"tcp\"\npool = \"web\"\n"
        );
        self.balancer.write("/etc/spillway/configuration.toml", text)
    }

    fn status(&self) -> Result<serde_json::Value> {
        let text = self.balancer.run(["spillway", "--output", "json", "status"])?;
        serde_json::from_str(&text).with_context(|| text)
    }

    pub(crate) fn generation(&self) -> Result<u64> {
        self.status()?["generation"].as_u64().context("status: no generation")
    }

    pub(crate) fn wait_up(&self) -> Result<()> {
        let address = IpAddr::from(self.backend.v4).to_string();
        let waited = until("the backend is up", LIMIT, || {
            let status = self.status()?;
            let backends = status["backends"].as_array().context("status: no backends")?;
            let up = backends.iter().any(|it| {
                it["address"] == *address && it["state"] == "up" && it["next_hop_resolved"] == true
            });
            Ok(up.then_some(()))
        });
        waited.with_context(|| format!("{:?}", self.balancer.output(["spillway", "status"])))
    }

    /// Requests through the VIP, before, while and after something is done, of which none fails.
    pub(crate) fn under_load(&self, done: impl FnOnce() -> Result<()>) -> Result<usize> {
        let begun = Instant::now();
        let to = (IpAddr::from(Fabric::VIP_V4), 80).into();
        let requests = Requests::start(&self.fabric.client, to, 4, Duration::from_millis(2));
        requests.wait_for(50)?;
        done()?;
        requests.wait_for(50)?;
        let attempts = requests.finish()?;
        ensure_answered(&attempts, begun, Instant::now(), &[])
    }
}
