//! A packet whose TTL ends at the balancer is answered as every router answers it, so that traceroute and mtr see it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{Fixture, Health, Tunnel};
use lb_tests::process::PATIENCE;
use lb_tests::sandbox::Sandbox;
use socket2::{Domain, Protocol, Socket, Type};

/// Hops to the balancer, behind the router, and to a backend.
const BALANCER: u32 = 2;
const BACKEND: u32 = 3;

/// The client's kernel takes the balancer's error for one about its connection, of which it has only the quote to go by. It
/// checks the checksums first.
pub(crate) fn a_balancer_is_a_hop_of_traceroute(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "traceroute", Health::QUICK)?;
    let mut told = 0;
    for tunnel in Tunnel::ALL {
        let vip = tunnel.endpoint(80);
        let ended = connect(&fixture, vip, BALANCER)?.err();
        let ended = ended.with_context(|| format!("{vip} is reached in {BALANCER} hops"))?;
        ensure!(ended.kind() == io::ErrorKind::HostUnreachable, "{vip}: {ended}");
        // The kernel may repeat a SYN before it has looked at the answer to the first.
        let answered = fixture.balancer.packets("answered_time_exceeded")?;
        ensure!(answered > told, "{vip}: {answered} answered, {told} before");
        told = answered;
        connect(&fixture, vip, BACKEND)?.with_context(|| format!("{vip} in {BACKEND} hops"))?;
    }
    // A port that is not served is the host's, which has no such address.
    let other = SocketAddr::new(Tunnel::Ipip.vip(), 81);
    ensure!(connect(&fixture, other, BALANCER)?.is_err(), "a port without a service answers");
    ensure!(fixture.balancer.packets("answered_time_exceeded")? == told, "of no service");
    Ok(())
}

/// Opens a connection of which no packet goes further than so many hops.
fn connect(fixture: &Fixture, vip: SocketAddr, hops: u32) -> Result<io::Result<()>> {
    let wait = if vip.port() == 80 { PATIENCE } else { Duration::from_millis(300) };
    fixture.fabric.client.enter(|| {
        let socket = Socket::new(Domain::for_address(vip), Type::STREAM, Some(Protocol::TCP))?;
        match vip {
            SocketAddr::V4(_) => socket.set_ttl_v4(hops)?,
            SocketAddr::V6(_) => socket.set_unicast_hops_v6(hops)?,
        }
        Ok(socket.connect_timeout(&vip.into(), wait))
    })?
}
