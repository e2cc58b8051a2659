//! A capture of connections has what tcpdump saw on the wire to and from the balancer.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{Fixture, HTTP, Health, Tunnel};
use lb_tests::capture::{Capture, Frames};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::Fabric;
use lb_tests::traffic::name_over_http;

use crate::capture::command::RunningCapture;

/// What tells a frame from any other.
const FIELDS: [&str; 10] = [
    "eth.src",
    "eth.dst",
    "ip.src",
    "ip.dst",
    "ip.checksum",
    "ipv6.src",
    "ipv6.hlim",
    "tcp.seq_raw",
    "tcp.checksum",
    "tcp.payload",
];

pub(crate) fn of_connections(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "pairs", Health::QUICK)?;
    for (number, tunnel) in Tunnel::ALL.into_iter().enumerate() {
        one(&fixture, tunnel, 40_000 + number as u16).with_context(|| tunnel.name().to_owned())?;
    }
    Ok(())
}

fn one(fixture: &Fixture, tunnel: Tunnel, port: u16) -> Result<()> {
    let address: IpAddr = match tunnel.vip() {
        IpAddr::V4(_) => Fabric::CLIENT_V4.into(),
        IpAddr::V6(_) => Fabric::CLIENT_V6.into(),
    };
    let (from, to) = (SocketAddr::new(address, port), tunnel.endpoint(HTTP));
    // The packets of a connection to here: SYN, ACK, request, ACKs, FIN. How many ACKs there are is the
    // kernel's affair, so that the capture ends by its time.
    let (client, vip) = (from.ip().to_string(), to.to_string());
    let flags = ["--client", &client, "--vip", &vip, "--snap", "2000", "--duration", "5s"];
    let wire = Capture::start(&fixture.fabric.router, "balancer", "")?;
    let running = RunningCapture::start(fixture, tunnel.name(), &flags)?;
    let name = name_over_http(&fixture.fabric.client, from, to)?;
    let (taken, said) = running.end()?;
    let wire = wire.stop()?;

    let in_tunnel = tunnel.filter();
    let came = format!("tcp.port == {port} && !({in_tunnel})");
    let left = format!("tcp.port == {port} && {in_tunnel}");
    let packets = compare(&wire, &taken, &came, "eth0 in")?;
    ensure!(packets >= 4, "a connection of {packets} packets");
    ensure!(compare(&wire, &taken, &left, "eth0 out")? == packets, "pairs");
    ensure!(taken.count("frame")? == 2 * packets, "nothing else is there");
    taken.assert_faultless()?;

    let backend = tunnel.end(&fixture.fabric.backends[fixture.number(&name)?]);
    comments(&taken, &backend.to_string())?;
    times(&wire, &taken, &came)?;
    ensure!(said.contains(&format!("{packets} packets in ")), "{said}");
    ensure!(said.ends_with(&format!("; {packets} matched, 0 lost\n")), "{said}");
    Ok(())
}

/// What the wire has and what was taken down of an interface are equal, frame by frame.
fn compare(wire: &Frames, taken: &Frames, filter: &str, interface: &str) -> Result<usize> {
    let expected = wire.fields(filter, FIELDS)?;
    let there = taken.fields(&format!("frame.interface_name == \"{interface}\""), FIELDS)?;
    ensure!(there == expected, "{interface}:\n{there:?}\nthe wire has\n{expected:?}");
    Ok(there.len())
}

/// Each packet stands there twice, one after the other, with what was decided.
fn comments(taken: &Frames, backend: &str) -> Result<()> {
    let fields = ["frame.interface_name", "frame.packet_id", "frame.comment"];
    for (index, [interface, id, comment]) in taken.fields("frame", fields)?.iter().enumerate() {
        let number = index / 2 + 1;
        let (way, place) = if index % 2 == 0 { ("in", "before") } else { ("out", "after") };
        ensure!(*interface == format!("eth0 {way}") && *id == number.to_string(), "{index}: {id}");
        let expected =
            format!("packet {number}: verdict transmitted (transmit), backend {backend}, {place}");
        ensure!(*comment == expected, "{comment}");
    }
    Ok(())
}

/// A frame was taken down shortly after it was on the wire.
fn times(wire: &Frames, taken: &Frames, filter: &str) -> Result<()> {
    let seconds = |frames: &Frames, filter: &str| -> Result<Vec<f64>> {
        let times = frames.fields(filter, ["frame.time_epoch"])?;
        times.iter().map(|[time]| time.parse().with_context(|| time.clone())).collect()
    };
    let wire = seconds(wire, filter)?;
    let taken = seconds(taken, "frame.interface_name == \"eth0 in\"")?;
    ensure!(taken.is_sorted(), "{taken:?}");
    for (wire, taken) in wire.iter().zip(&taken) {
        // The two read their clocks at two places, and neither is set meanwhile.
        ensure!((taken - wire).abs() < 0.5, "{taken} is not {wire}");
    }
    Ok(())
}
