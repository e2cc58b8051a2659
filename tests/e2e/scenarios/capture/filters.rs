//! Each filter of a capture takes exactly the packets that meet its condition, out of a mix that has others too.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, Health, Tunnel};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::{Fabric, Node};
use lb_tests::traffic::name_over_udp;

use crate::capture::command::{RunningCapture, without_icmp_errors};

/// Where datagrams come from: two addresses of one /30, and one of another.
const NEAR: [Ipv4Addr; 2] = [Ipv4Addr::new(100, 64, 0, 1), Ipv4Addr::new(100, 64, 0, 2)];
const FAR: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 9);
/// A port that no service has.
const NOBODY: u16 = 9;

/// A datagram: from, to, its TTL at the client. Each has a source port of its own.
#[derive(Clone, Copy, Debug)]
struct Datagram {
    from: SocketAddr,
    to: SocketAddr,
    ttl: u32,
    /// What becomes of it.
    verdict: &'static str,
}

pub(crate) fn each(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "filters", Health::QUICK)?;
    without_icmp_errors(&mut fixture)?;
    leave_unserved_to_host(&fixture)?;
    let client = &fixture.fabric.client;
    let datagrams = datagrams();
    // Who has a flow, by whose name comes back.
    let backend = |datagram: &Datagram| -> Result<String> {
        let name = name_over_udp(client, datagram.from, datagram.to)?;
        let backend = &fixture.fabric.backends[fixture.number(&name)?];
        let is_v6 = datagram.to.ip() == Tunnel::Ip4In6.vip() || datagram.to.is_ipv6();
        let tunnel = if is_v6 { IpAddr::from(backend.v6) } else { backend.v4.into() };
        Ok(tunnel.to_string())
    };
    let mut backends = Vec::new();
    for datagram in &datagrams {
        let is_forwarded = datagram.verdict == "transmitted";
        backends.push(is_forwarded.then(|| backend(datagram)).transpose()?);
    }
    let one = backends.iter().flatten().next().context("somebody is forwarded")?;
    let others = backends.iter().flatten().filter(|backend| *backend != one).count();
    ensure!(others > 0, "all flows go to {one}");

    let vip = Tunnel::Ipip.vip();
    let mine = |ip: Ipv4Addr| move |d: &Datagram| d.from.ip() == ip;
    let near = |d: &Datagram| NEAR.iter().any(|near| d.from.ip() == *near);
    let with_port = format!("{vip}:{ECHO}");
    let v6 = Tunnel::Ip6Ip6.vip().to_string();
    let prefix = "2001:db8::/32";
    let takes = |name: &str, flags: &[&str], wanted: &[bool]| -> Result<()> {
        taken(&fixture, name, flags, &datagrams, &backends, wanted).with_context(|| name.to_owned())
    };
    let of = |wanted: &dyn Fn(&Datagram) -> bool| -> Vec<bool> {
        datagrams.iter().map(wanted).collect()
    };
    // The control of all: what goes between the daemon and its backends is no datagram.
    takes("all", &["--client", "100.64.0.0/10"], &of(&|d| d.from.is_ipv4()))?;
    takes("client", &["--client", "100.64.0.1"], &of(&mine(NEAR[0])))?;
    takes("prefix", &["--client", "100.64.0.0/30"], &of(&near))?;
    takes("v6", &["--client", prefix, "--vip", &v6], &of(&|d| d.to.is_ipv6()))?;
    takes("vip", &["--vip", &vip.to_string()], &of(&|d| d.to.ip() == vip))?;
    takes("port", &["--vip", &with_port], &of(&|d| d.to == Tunnel::Ipip.endpoint(ECHO)))?;
    let client = ["--client", "100.64.0.0/10"];
    let with = |more: &[&'static str]| [&client, more].concat();
    takes("dropped", &with(&["--dropped"]), &of(&|d| d.verdict == "hop_limit_exceeded"))?;
    takes("passed", &with(&["--verdict", "not_ours"]), &of(&|d| d.verdict == "not_ours"))?;
    let two = with(&["--verdict", "not_ours", "--verdict", "transmitted"]);
    takes("two", &two, &of(&|d| d.from.is_ipv4() && d.verdict != "hop_limit_exceeded"))?;
    let of_backend: Vec<_> = backends.iter().map(|backend| backend.as_ref() == Some(one)).collect();
    takes("backend", &["--backend", one], &of_backend)?;
    takes("nobody", &["--backend", "192.0.2.77", "--duration", "2s"], &of(&|_| false))
}

/// Otherwise nothing that this host gets would pass.
fn leave_unserved_to_host(fixture: &Fixture) -> Result<()> {
    let pass = "\n[[vip]]\nprefix = \"0.0.0.0/0\"\nunserved = \"pass\"\n";
    fixture.balancer.apply(&(fixture.balancer.cli(&["export"])? + pass))?;
    fixture.wait_up(&[])
}

/// In turn of all kinds.
fn datagrams() -> Vec<Datagram> {
    let mut datagrams = Vec::new();
    for round in 0..6 {
        let port = 41_000 + 10 * round;
        let v4 = [Tunnel::Ipip, Tunnel::Ip4In6][usize::from(round % 2)];
        let address = [NEAR[0], NEAR[1], FAR][usize::from(round % 3)];
        let from = |more| SocketAddr::new(address.into(), port + more);
        let v6 = SocketAddr::new(Fabric::CLIENT_V6.into(), port);
        let to = v4.endpoint(ECHO);
        let (forwarded, six) = ("transmitted", Tunnel::Ip6Ip6.endpoint(ECHO));
        datagrams.extend([
            Datagram { from: from(0), to, ttl: 64, verdict: forwarded },
            Datagram { from: from(1), to: v4.endpoint(NOBODY), ttl: 64, verdict: "not_ours" },
            // The router takes one.
            Datagram { from: from(2), to, ttl: 2, verdict: "hop_limit_exceeded" },
            Datagram { from: v6, to: six, ttl: 64, verdict: forwarded },
        ]);
    }
    datagrams
}

/// The sockets stay: without them answers would make the client send errors.
fn send(client: &Node, datagrams: &[Datagram]) -> Result<Vec<UdpSocket>> {
    client.enter(|| {
        let one = |datagram: &Datagram| {
            let socket = UdpSocket::bind(datagram.from)?;
            if datagram.from.is_ipv4() {
                socket.set_ttl(datagram.ttl)?;
            }
            socket.send_to(b"?", datagram.to)?;
            Ok(socket)
        };
        datagrams.iter().map(one).collect()
    })?
}

/// Of all datagrams exactly the wanted ones are taken down, in their order, as they came.
fn taken(
    fixture: &Fixture,
    name: &str,
    flags: &[&str],
    datagrams: &[Datagram],
    backends: &[Option<String>],
    wanted: &[bool],
) -> Result<()> {
    let all = datagrams.iter().zip(backends).zip(wanted);
    let expected: Vec<_> = all.filter(|(_, wanted)| **wanted).map(|(wanted, _)| wanted).collect();
    // It ends with the last wanted one; were others taken, it would end before.
    let count = expected.len().max(1).to_string();
    let flags = [flags, &["--count", &count]].concat();
    let running = RunningCapture::start(fixture, name, &flags)?;
    let _sockets = send(&fixture.fabric.client, datagrams)?;
    let (frames, said) = running.end()?;
    let fields = ["udp.srcport", "udp.dstport", "frame.comment"];
    let there: Vec<_> = frames
        .fields("frame.interface_name == \"eth0 in\"", fields)?
        .into_iter()
        .map(|[from, to, comment]| {
            // The number in front is the order, which is looked at by itself.
            let decided = comment.split_once(": ").map(|(_, decided)| decided.to_owned());
            (from, to, decided.unwrap_or(comment))
        })
        .collect();
    let words = |(datagram, backend): &(&Datagram, &Option<String>)| {
        let decided = match (datagram.verdict, backend) {
            ("transmitted", Some(backend)) => {
                format!("verdict transmitted (transmit), backend {backend}, before")
            }
            ("not_ours", _) => "verdict not_ours (pass)".into(),
            (other, _) => format!("verdict {other} (drop)"),
        };
        (datagram.from.port().to_string(), datagram.to.port().to_string(), decided)
    };
    let expected: Vec<_> = expected.iter().map(words).collect();
    ensure!(there == expected, "{there:?}\nexpected\n{expected:?}");
    let lost = format!("{} matched, 0 lost", expected.len());
    ensure!(said.contains(&lost), "{said}");
    Ok(())
}
