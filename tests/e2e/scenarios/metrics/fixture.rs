//! The standard network with a balancer and one receiver that serve their metrics.

use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};

use anyhow::Result;
use lb_e2e::fixture::{ECHO, HASH_KEY};
use lb_tests::daemon::{Balancer, Binaries, HTTP_ADDRESS, Receiver};
use lb_tests::sandbox::Sandbox;
use lb_tests::syns;
use lb_tests::topology::{Backend, Fabric, REGIONS};
use lb_tests::traffic::{Agent, Echo};

/// A second VIP.
pub(crate) const FAR: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
/// Port of the service that refuses what it has no room for.
pub(crate) const STRICT: u16 = 7002;
/// Port of the service that goes over its limit.
pub(crate) const OVER: u16 = 7003;

/// Port of the agents.
const AGENT: u16 = 9707;

/// The network at work.
#[derive(Debug)]
pub(crate) struct MetricsFixture {
    /// One for each backend.
    pub(crate) echoes: Vec<Option<Echo>>,
    /// One for each backend.
    pub(crate) agents: Vec<Agent>,
    _receivers: Vec<Receiver>,
    pub(crate) balancer: Balancer,
    pub(crate) fabric: Fabric,
}

impl MetricsFixture {
    pub(crate) fn start(sandbox: &Sandbox, name: &str) -> Result<Self> {
        let binaries = Binaries::find()?;
        let fabric = Fabric::new(sandbox, name, 3)?;
        fabric.route_vip(FAR.into())?;
        syns::forget(&fabric.backends)?;
        let vips: [IpAddr; 2] = [Fabric::VIP_V4.into(), FAR.into()];
        let (mut echoes, mut agents, mut receivers) = (Vec::new(), Vec::new(), Vec::new());
        let http = HTTP_ADDRESS.to_string();
        for backend in &fabric.backends {
            backend.add_vip(FAR.into())?;
            agents.push(Agent::start(&backend.node, AGENT)?);
            echoes.push(Some(Echo::start(&backend.node, &vips, ECHO)?));
            let sources = [Fabric::BALANCER_V4.into()];
            let (node, more) = (&backend.node, ["--http", &http]);
            receivers.push(Receiver::start_with(sandbox, &binaries, node, &sources, &vips, &more)?);
        }
        let mut balancer = Balancer::new(sandbox, &binaries, &fabric.balancer, REGIONS[0])?;
        balancer.more = vec!["--http".into(), http, "--status-page".into()];
        balancer.start()?;
        Ok(Self { echoes, agents, _receivers: receivers, balancer, fabric })
    }

    /// Sends so many SYNs, each of another client, to a port of a VIP.
    pub(crate) fn syns(&self, to: SocketAddrV4, seed: u64, number: usize) -> Result<()> {
        syns::send_all(&self.fabric.client, to, seed, number)
    }

    /// The configuration, before and after its change.
    pub(crate) fn configuration(&self, changed: bool) -> String {
        let mut text = format!(
            "hash_key = \"{HASH_KEY}\"\nbalancers = 2\n\
             [[region]]\nname = \"eu\"\noverflow_to = [\"us\"]\n[[region]]\nname = \"us\"\n\
             [[health_check]]\nname = \"open\"\nport = {ECHO}\ninterval = \"300ms\"\nfall = 3\ntcp = {{}}\n\
             [[health_check]]\nname = \"load\"\nport = {AGENT}\ninterval = \"300ms\"\nagent = {{}}\n"
        );
        let weight = |backend: &Backend| match (changed, backend.name()) {
            (true, "eu2") => "weight = 3\n",
            _ => "",
        };
        text += &self.pool(
            "even",
            "health_checks = [\"open\", \"load\"]\nsettle_time = \"1h\"\n",
            weight,
        );
        text += &self.pool("far", "group = [{ region = \"eu\", scaler = 0 }]\n", |_| "");
        let near = |backend: &Backend| backend.region == "eu";
        text += &self.some(
            "strict",
            "group = [{ region = \"eu\", capacity = \"6/m\" }]\n",
            near,
            |_| "",
        );
        text += &self.some("over", "", near, |_| "max_connection_rate = \"6/m\"\n");
        let wanted = |backend: &Backend| match (changed, backend.region) {
            (true, "eu") => "admin_state = \"disabled\"\n",
            _ => "",
        };
        text += &self.pool("away", "settle_time = \"1s\"\n", wanted);
        for (name, vip, port, protocol, pool, more) in [
            ("stream", Fabric::VIP_V4, ECHO, "tcp", "even", ""),
            ("datagrams", Fabric::VIP_V4, ECHO, "udp", "even", ""),
            ("far", FAR, ECHO, "tcp", "far", ""),
            ("strict", Fabric::VIP_V4, STRICT, "tcp", "strict", "when_full = \"reject\"\n"),
            ("over", Fabric::VIP_V4, OVER, "tcp", "over", ""),
            ("away", Fabric::VIP_V4, 7004, "tcp", "away", ""),
        ] {
            text += &format!(
                "[[service]]\nname = \"{name}\"\naddress = \"{vip}\"\nport = {port}\n\
                 protocol = \"{protocol}\"\npool = \"{pool}\"\n{more}"
            );
        }
        text
    }

    pub(crate) fn pool(
        &self,
        name: &str,
        more: &str,
        of: impl Fn(&Backend) -> &'static str,
    ) -> String {
        self.some(name, more, |_| true, of)
    }

    fn some(
        &self,
        name: &str,
        more: &str,
        which: impl Fn(&Backend) -> bool,
        of: impl Fn(&Backend) -> &'static str,
    ) -> String {
        let mut text = format!("[[pool]]\nname = \"{name}\"\nslots = 65537\n{more}");
        for backend in self.fabric.backends.iter().filter(|backend| which(backend)) {
            let (address, region) = (backend.v4, backend.region);
            text += &format!(
                "[[pool.backend]]\naddress = \"{address}\"\nregion = \"{region}\"\n{}",
                of(backend)
            );
        }
        text
    }
}
