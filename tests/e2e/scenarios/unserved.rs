//! Packets for a VIP that no service of it takes: dropped or answered by the host, as the configuration says, and else as the
//! host has to do with the VIP.

use std::{
    io::ErrorKind,
    net::{SocketAddr, TcpStream, UdpSocket},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::{
    fixture::{ECHO, Fixture, Health, Tunnel, configuration},
    harness::Case,
};
use lb_tests::{
    process::{PATIENCE, until},
    sandbox::Sandbox,
    traffic::Stream,
};
use serde_json::{Value, json};

pub(crate) const CASES: &[Case] = &[
    Case::waits("the_configuration_says_what_is_left_to_the_host", configured),
    Case::waits("by_default_the_host_gets_what_it_has_to_do_with", by_host),
];

/// No service has it, and nothing on the host listens there.
const UNKNOWN: u16 = 4711;
/// An answer would be there by then.
const SILENCE: Duration = Duration::from_millis(500);
/// How long a change of the host may take to be in force.
const SOON: Duration = Duration::from_secs(2);
const TUNNELS: [Tunnel; 2] = [Tunnel::Ipip, Tunnel::Ip6Ip6];

/// Four services with connections through everything, on a host that forwards nothing.
fn start(sandbox: &Sandbox, name: &str) -> Result<(Fixture, Vec<Stream>)> {
    let fixture = Fixture::start(sandbox, name, Health::QUICK)?;
    set_forwarding(&fixture, false)?;
    let client = &fixture.fabric.client;
    let streams = TUNNELS.into_iter().zip(0..);
    let streams = streams.map(|(tunnel, seed)| Stream::open(client, tunnel.endpoint(ECHO), seed));
    let streams = streams.collect::<Result<_>>()?;
    Ok((fixture, streams))
}

fn set_forwarding(fixture: &Fixture, forwards: bool) -> Result<()> {
    let value = if forwards { "1" } else { "0" };
    let balancer = &fixture.fabric.balancer;
    balancer.sysctls(&[
        ("net.ipv4.conf.all.forwarding", value),
        ("net.ipv6.conf.all.forwarding", value),
    ])
}

/// Puts the services in force with these ranges of VIPs.
fn apply(fixture: &Fixture, ranges: &[(&str, &str)]) -> Result<()> {
    let ranges = ranges.iter().map(|(prefix, unserved)| {
        format!("\n[[vip]]\nprefix = {prefix:?}\nunserved = {unserved:?}\n")
    });
    let text = configuration(&fixture.fabric, Health::QUICK).text();
    let text = [text].into_iter().chain(ranges).collect::<String>();
    fixture.balancer.apply(&text).map(drop)
}

/// What a client sees of a SYN and of a datagram to a port that no service has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// A RST, and "port unreachable".
    Refused,
    Silence,
}

fn seen(fixture: &Fixture, tunnel: Tunnel) -> Result<Seen> {
    let to = tunnel.endpoint(UNKNOWN);
    let [syn, datagram] = fixture.fabric.client.enter(|| [connect(to), send(to)])?;
    let (syn, datagram) = (syn?, datagram?);
    ensure!(syn == datagram, "{to}: the SYN sees {syn:?}, the datagram {datagram:?}");
    Ok(syn)
}

fn connect(to: SocketAddr) -> Result<Seen> {
    match TcpStream::connect_timeout(&to, SILENCE) {
        Ok(_) => anyhow::bail!("{to} accepts connections"),
        Err(error) => of_error(&error),
    }
}

fn send(to: SocketAddr) -> Result<Seen> {
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any)?;
    socket.connect(to)?;
    socket.set_read_timeout(Some(SILENCE))?;
    socket.send(b"?")?;
    match socket.recv(&mut [0; 16]) {
        Ok(_) => anyhow::bail!("{to} answers datagrams"),
        Err(error) => of_error(&error),
    }
}

fn of_error(error: &std::io::Error) -> Result<Seen> {
    match error.kind() {
        ErrorKind::ConnectionRefused => Ok(Seen::Refused),
        ErrorKind::TimedOut | ErrorKind::WouldBlock => Ok(Seen::Silence),
        _ => anyhow::bail!("{error}"),
    }
}

/// What `explain` says of a SYN: its verdict, and why.
fn explained(fixture: &Fixture, tunnel: Tunnel) -> Result<(String, Value)> {
    let to = tunnel.endpoint(UNKNOWN).to_string();
    let from = if tunnel.vip().is_ipv4() { "198.51.100.2:40000" } else { "[2001:db8:c::2]:40000" };
    let said: Value = fixture.balancer.printed(&["explain", from, &to])?;
    let verdict = said["verdict"].as_str().context("no verdict")?.to_owned();
    Ok((verdict, said["unserved"].clone()))
}

/// Waits until explain says this of a VIP, and ensures that packets are treated so, and connections of services go on.
fn ensure_is(
    fixture: &Fixture,
    streams: &[Stream],
    (tunnel, cause, prefix): (Tunnel, &str, Option<&str>),
    expected: Seen,
) -> Result<()> {
    let drops = expected == Seen::Silence && cause != "forwards";
    let verdict = if drops { "unserved" } else { "not_ours" };
    let unserved = json!({ "drops": drops, "cause": cause, "prefix": prefix });
    let wanted = (verdict.to_owned(), unserved);
    let begun = Instant::now();
    let what = format!("{}: {wanted:?}", tunnel.vip());
    until(&what, PATIENCE, || Ok((explained(fixture, tunnel)? == wanted).then_some(())))
        .with_context(|| format!("{:?}", explained(fixture, tunnel)))?;
    ensure!(begun.elapsed() < SOON, "{what}: after {:?}", begun.elapsed());
    let before = fixture.balancer.packets("unserved")?;
    let seen = seen(fixture, tunnel)?;
    ensure!(seen == expected, "{what}: the client sees {seen:?}");
    let counted = fixture.balancer.packets("unserved")? - before;
    ensure!((counted >= 2) == drops, "{what}: {counted} are counted");
    Stream::all_go_on(streams).with_context(|| what)
}

fn set_on_host(fixture: &Fixture, tunnel: Tunnel, verb: &str) -> Result<()> {
    let bits = if tunnel.vip().is_ipv4() { 32 } else { 128 };
    fixture.fabric.balancer.ip(&format!("address {verb} {}/{bits} dev lo", tunnel.vip()))
}

fn configured(sandbox: &Sandbox) -> Result<()> {
    let (fixture, streams) = start(sandbox, "unserved")?;
    for tunnel in TUNNELS {
        set_on_host(&fixture, tunnel, "add")?;
    }
    let [v4, v6] = TUNNELS;
    apply(&fixture, &[("203.0.113.0/24", "drop"), ("2001:db8:f::/48", "drop")])?;
    ensure_is(&fixture, &streams, (v4, "configured", Some("203.0.113.0/24")), Seen::Silence)?;
    ensure_is(&fixture, &streams, (v6, "configured", Some("2001:db8:f::/48")), Seen::Silence)?;

    // The longest prefix counts, also where a shorter one says something else.
    let longer = [("203.0.113.1", "pass"), ("2001:db8:f::/64", "pass")];
    apply(
        &fixture,
        &[&[("203.0.113.0/24", "drop"), ("2001:db8:f::/48", "drop")], &longer[..]].concat(),
    )?;
    ensure_is(&fixture, &streams, (v4, "configured", Some("203.0.113.1/32")), Seen::Refused)?;
    ensure_is(&fixture, &streams, (v6, "configured", Some("2001:db8:f::/64")), Seen::Refused)?;

    // What is left to a host that has not the VIP, it drops itself.
    set_on_host(&fixture, v4, "del")?;
    apply(&fixture, &[("0.0.0.0/0", "drop"), ("203.0.113.1", "auto")])?;
    ensure_is(&fixture, &streams, (v4, "not_of_host", None), Seen::Silence)?;
    ensure_is(&fixture, &streams, (v6, "own_address", None), Seen::Refused)?;
    Stream::finish_all(streams)
}

fn by_host(sandbox: &Sandbox) -> Result<()> {
    let (mut fixture, streams) = start(sandbox, "by-host")?;
    for tunnel in TUNNELS {
        ensure_is(&fixture, &streams, (tunnel, "not_of_host", None), Seen::Silence)?;
        set_on_host(&fixture, tunnel, "add")?;
        ensure_is(&fixture, &streams, (tunnel, "own_address", None), Seen::Refused)?;
        set_on_host(&fixture, tunnel, "del")?;
        ensure_is(&fixture, &streams, (tunnel, "not_of_host", None), Seen::Silence)?;
    }
    // The host sends them on to where its route leads, which is no host that answers.
    let balancer = fixture.fabric.balancer.clone();
    balancer.ip(&format!(
        "route add blackhole {}/32\nroute add blackhole {}/128",
        TUNNELS[0].vip(),
        TUNNELS[1].vip()
    ))?;
    set_forwarding(&fixture, true)?;
    for tunnel in TUNNELS {
        ensure_is(&fixture, &streams, (tunnel, "forwards", None), Seen::Silence)?;
    }
    // What changes while no daemon runs is in force with the next one.
    fixture.balancer.kill()?;
    set_forwarding(&fixture, false)?;
    fixture.balancer.start()?;
    for tunnel in TUNNELS {
        ensure_is(&fixture, &streams, (tunnel, "not_of_host", None), Seen::Silence)?;
    }
    Stream::finish_all(streams)
}
