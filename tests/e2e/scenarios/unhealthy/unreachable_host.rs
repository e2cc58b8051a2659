//! When a host is unreachable, its connections move, and no others.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, Health, Tunnel};
use lb_tests::daemon::printed::Explained;
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::traffic::Stream;
use spillway_proto::v1::BackendState;

use super::wait_for;

/// One whose check had failed, and one that was up: both are unreachable when they answer nothing any more,
/// and packets of their connections go to others, who know nothing of these and say so. Nobody else's
/// connection is touched.
pub(crate) fn unhealthy_first(sandbox: &Sandbox) -> Result<()> {
    let health = Health { interval_ms: 500, fall: 3 };
    let mut fixture = Fixture::start(sandbox, "vanish", health)?;
    let client = fixture.fabric.client.clone();
    let to = Tunnel::Ipip.endpoint(ECHO);
    let (unhealthy, up) = ("eu2", "eu3");
    let mut streams = Vec::new();
    for seed in 0..24 {
        streams.push(Stream::open(&client, to, seed)?);
    }
    let others = |streams: &[Stream]| streams.iter().filter(|s| s.backend() == "eu1").count();
    ensure!(others(&streams) > 0, "no stream on eu1");
    let mut on_unhealthy = held(&fixture, unhealthy)?;
    let mut on_up = held(&fixture, up)?;

    let number = fixture.number(unhealthy)?;
    fixture.servers[number].kill()?;
    wait_for(&fixture, unhealthy, BackendState::Unhealthy, "connection refused")?;
    Stream::all_go_on(&streams)?;
    exchange(&mut on_unhealthy)?;
    ensure!(
        owner(&fixture, &on_unhealthy, true)? == unhealthy,
        "an open connection left an unhealthy host"
    );
    ensure!(
        owner(&fixture, &on_unhealthy, false)? != unhealthy,
        "a new connection goes to an unhealthy host"
    );

    fixture.fabric.backends[number].unplug()?;
    let other = fixture.number(up)?;
    fixture.fabric.backends[other].unplug()?;
    // What says that the host is gone: this host's patience, or the router's word.
    wait_for(&fixture, unhealthy, BackendState::Unreachable, "and the host is silent")?;
    wait_for(&fixture, up, BackendState::Unreachable, "and the host is silent")?;
    for (name, held) in [(unhealthy, &mut on_unhealthy), (up, &mut on_up)] {
        ensure!(
            owner(&fixture, held, true)? != name,
            "an open connection stayed at an unreachable host"
        );
        let error = exchange(held).err().context("it went on without its host")?;
        let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        ensure!(kind == Some(ErrorKind::ConnectionReset), "{name}: {error:#}");
    }
    Stream::all_go_on(
        streams.iter().filter(|stream| ![unhealthy, up].contains(&stream.backend())),
    )?;

    // There again, its application not yet: unhealthy first.
    fixture.fabric.backends[number].plug_in()?;
    wait_for(&fixture, unhealthy, BackendState::Unhealthy, "connection refused")?;
    fixture.fabric.backends[other].plug_in()?;
    fixture.servers[number].restart()?;
    fixture.wait_up(&[])?;
    Stream::all_go_on(
        streams.iter().filter(|stream| ![unhealthy, up].contains(&stream.backend())),
    )?;
    streams.retain(|stream| ![unhealthy, up].contains(&stream.backend()));
    Stream::finish_all(streams)
}

/// A connection to a backend on which nothing is said unasked.
fn held(fixture: &Fixture, backend: &str) -> Result<BufReader<TcpStream>> {
    until(&format!("a connection to {backend}"), PATIENCE, || {
        let to = Tunnel::Ipip.endpoint(ECHO);
        let stream =
            fixture.fabric.client.enter(|| TcpStream::connect_timeout(&to, PATIENCE))??;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut stream = BufReader::new(stream);
        let mut name = String::new();
        stream.read_line(&mut name)?;
        Ok((name.trim_end() == backend).then_some(stream))
    })
}

/// Sends something and has it back.
fn exchange(held: &mut BufReader<TcpStream>) -> Result<()> {
    held.get_mut().write_all(b"still there?")?;
    let mut back = [0; 12];
    held.read_exact(&mut back)?;
    ensure!(&back == b"still there?", "came back as {back:?}");
    Ok(())
}

/// Who has packets of a connection, open or new, as explained from the maps.
fn owner(fixture: &Fixture, held: &BufReader<TcpStream>, open: bool) -> Result<String> {
    let from: SocketAddr = held.get_ref().local_addr()?;
    let (from, to) = (from.to_string(), Tunnel::Ipip.endpoint(ECHO).to_string());
    let mut arguments = vec!["explain", &from, &to, "--protocol", "tcp"];
    arguments.extend(open.then_some("--open"));
    let explained: Explained = fixture.balancer.printed(&arguments)?;
    Ok(fixture.at(explained.backend()?)?.name().to_owned())
}
