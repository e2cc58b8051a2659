//! The guest with a client and two backends, which are one host with two addresses.

use std::{
    fs::File,
    net::{IpAddr, SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, HTTP};
use lb_tests::{
    daemon::{Binaries, Receiver, XdpMode, xdp_mode},
    process::until,
    sandbox::Sandbox,
    topology::{Node, Topology},
    traffic::{Echo, Stream, Work, name_over_http, serve},
};

use super::{BACKENDS, BALANCER_BACK, BALANCER_FRONT, CLIENT, DONE, LIMIT, REQUESTS, VIP};

/// How long a try to connect may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The nodes of a client and of two backends.
pub(super) struct Site {
    _network: Topology,
    pub(super) backend: Node,
    pub(super) client: Node,
    _echo: Echo,
}

impl Site {
    pub(super) fn new(sandbox: &Sandbox) -> Result<Self> {
        let mut network = Topology::new(sandbox, "virtio")?;
        let backend = network.node("backend")?;
        network.adopt("eth0", &backend)?;
        for address in BACKENDS {
            backend.ip(&format!("address add {address}/24 dev eth0"))?;
        }
        backend
            .ip(&format!("address add {VIP}/32 dev lo\nroute add default via {BALANCER_BACK}"))?;
        let client = network.node("client")?;
        network.adopt("eth1", &client)?;
        client.ip(&format!(
            "address add {CLIENT}/24 dev eth1\nroute add default via {BALANCER_FRONT}"
        ))?;
        network.ready()?;
        let echo = Echo::start(&backend, &[VIP.into()], ECHO)?;
        start_web(&backend)?;
        Ok(Self { _network: network, backend, client, _echo: echo })
    }

    /// A receiver in front of the backends, in this mode.
    pub(super) fn receive(
        &self,
        sandbox: &Sandbox,
        asked: &str,
        wanted: XdpMode,
    ) -> Result<Receiver> {
        let (sources, vips) = ([IpAddr::from(BALANCER_BACK)], [IpAddr::from(VIP)]);
        let (binaries, more) = (Binaries::find()?, ["--xdp-mode", asked]);
        let receiver =
            Receiver::start_with(sandbox, &binaries, &self.backend, &sources, &vips, &more)?;
        let mode = xdp_mode(&self.backend, "eth0")?;
        ensure!(mode == wanted, "{mode:?}");
        Ok(receiver)
    }

    /// Waits until a connection to the VIP can be made.
    pub(super) fn is_served(&self) -> Result<()> {
        until("the VIP answers", LIMIT, || {
            let connected = self.client.enter(|| TcpStream::connect_timeout(&echo(), PATIENCE))?;
            Ok(connected.is_ok().then_some(()))
        })
    }

    /// Tells the balancer's guest that all is done.
    pub(super) fn tell(&self) -> Result<TcpStream> {
        let done = SocketAddr::from((BALANCER_FRONT, DONE));
        let told = self.client.enter(|| TcpStream::connect_timeout(&done, LIMIT))?;
        told.context("tell the balancer")
    }
}

fn echo() -> SocketAddr {
    SocketAddr::from((VIP, ECHO))
}

pub(super) fn run(sandbox: &Sandbox) -> Result<()> {
    let site = Site::new(sandbox)?;
    let _receiver = site.receive(sandbox, "native", XdpMode::Native)?;
    let (from, web) = (SocketAddr::from((CLIENT, 0)), SocketAddr::from((VIP, HTTP)));
    let client = &site.client;
    site.is_served()?;
    for number in 0..REQUESTS {
        let name = name_over_http(client, from, web)
            .with_context(|| format!("request {number} of {REQUESTS}"))?;
        ensure!(name == "web", "{name}");
    }
    let said = client.run("ping", ["-n", "-c", "3", "-i", "0.2", "-W", "10", &VIP.to_string()])?;
    ensure!(said.contains(" 3 received"), "{said}");
    let stream = Stream::open(client, echo(), 7)?;
    Stream::all_go_on([&stream])?;
    Stream::finish_all([stream])?;
    site.tell().map(drop)
}

/// A web server on a thread that goes with the guest.
fn start_web(backend: &Node) -> Result<()> {
    let log = File::create(backend.directory().join("web.log"))?;
    let work = Work { time: Duration::ZERO, at_a_time: 4 };
    let node = backend.clone();
    std::thread::spawn(move || node.enter(|| serve(HTTP, "web", work, log)));
    Ok(())
}
