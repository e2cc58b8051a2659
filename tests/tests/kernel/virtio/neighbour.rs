//! The guest with a client and two backends, which are one host with two addresses.

use std::{
    fs::File,
    net::{IpAddr, SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use lb_tests::{
    daemon::{Binaries, Receiver, XdpMode, xdp_mode},
    process::until,
    sandbox::Sandbox,
    scene::{ECHO, HTTP},
    topology::{Node, Topology},
    traffic::{Echo, Stream, Work, name_over_http, serve},
};

use super::{BACKENDS, BALANCER_BACK, BALANCER_FRONT, CLIENT, DONE, LIMIT, REQUESTS, VIP};

/// How long a try to connect may take.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) fn run(sandbox: &Sandbox) -> Result<()> {
    let mut network = Topology::new(sandbox, "virtio")?;
    let backend = network.node("backend")?;
    network.adopt("eth0", &backend)?;
    for address in BACKENDS {
        backend.ip(&format!("address add {address}/24 dev eth0"))?;
    }
    backend.ip(&format!("address add {VIP}/32 dev lo\nroute add default via {BALANCER_BACK}"))?;
    let client = network.node("client")?;
    network.adopt("eth1", &client)?;
    client
        .ip(&format!("address add {CLIENT}/24 dev eth1\nroute add default via {BALANCER_FRONT}"))?;
    network.ready()?;

    let vips: [IpAddr; 1] = [VIP.into()];
    let _echo = Echo::start(&backend, &vips, ECHO)?;
    start_web(&backend)?;
    let sources = [IpAddr::from(BALANCER_BACK)];
    let more = ["--xdp-mode", "native"];
    let _receiver =
        Receiver::start_with(sandbox, &Binaries::find()?, &backend, &sources, &vips, &more)?;
    let mode = xdp_mode(&backend, "eth0")?;
    ensure!(mode == XdpMode::Native, "{mode:?}");

    let (from, web) = (SocketAddr::from((CLIENT, 0)), SocketAddr::from((VIP, HTTP)));
    let echo = SocketAddr::from((VIP, ECHO));
    until("the VIP answers", LIMIT, || {
        let connected = client.enter(|| TcpStream::connect_timeout(&echo, PATIENCE))?;
        Ok(connected.is_ok().then_some(()))
    })?;
    for number in 0..REQUESTS {
        let name = name_over_http(&client, from, web)
            .with_context(|| format!("request {number} of {REQUESTS}"))?;
        ensure!(name == "web", "{name}");
    }
    let said = client.run("ping", ["-n", "-c", "3", "-i", "0.2", "-W", "10", &VIP.to_string()])?;
    ensure!(said.contains(" 3 received"), "{said}");
    let stream = Stream::open(&client, echo, 7)?;
    Stream::all_go_on([&stream])?;
    Stream::finish_all([stream])?;
    let done = SocketAddr::from((BALANCER_FRONT, DONE));
    client.enter(|| TcpStream::connect_timeout(&done, LIMIT))?.context("tell the balancer")?;
    Ok(())
}

/// A web server on a thread that goes with the guest.
fn start_web(backend: &Node) -> Result<()> {
    let log = File::create(backend.directory().join("web.log"))?;
    let work = Work { time: Duration::ZERO, at_once: 4 };
    let node = backend.clone();
    std::thread::spawn(move || node.enter(|| serve(HTTP, "web", work, log)));
    Ok(())
}
