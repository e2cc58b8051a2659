//! ICMP errors about displaced connections reach the backend that has the connection.

use std::fs;
use std::net::UdpSocket;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, Health, Tunnel, configuration};
use lb_tests::process::{PATIENCE, until};
use lb_tests::random::Random;
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::{Backend, Fabric};
use lb_tests::traffic::Curl;

/// More than what is on its way at once: it does not arrive whole unless who sends it hears of the path.
const LARGE: usize = 1_000_003;
/// What the way to the client takes, though neither end knows of it.
const NARROW: u32 = 1300;
/// An answer to a datagram that does not find out.
const SECOND: Duration = Duration::from_secs(1);

/// Nearly all connections and flows go to the far region, for the near one takes six a minute; and the path back
/// to the client is narrow. The far backend that has the connection or the flow hears of that, and nobody else:
/// by its hash the near one would.
pub(crate) fn a_displaced_backend_hears_of_a_small_path_mtu(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::idle(sandbox, "away")?;
    let text = configuration(&fixture.fabric, Health::QUICK).text();
    let (pool, udp) = ("health_checks = [\"page\"]\n", "protocol = \"udp\"\n");
    let group = "[[pool.group]]\nregion = \"eu\"\ncapacity = \"6/m\"\n";
    let text = text.replace(pool, &format!("{pool}{group}"));
    fixture.balancer.apply(&text.replace(udp, &format!("{udp}udp = \"tracked\"\n")))?;
    fixture.wait_up(&[])?;
    // By routes: what comes from the client may be large.
    fixture.fabric.router.ip(&format!(
        "route add {} dev client mtu lock {NARROW}\nroute add {} dev client mtu lock {NARROW}",
        Fabric::CLIENT_V4,
        Fabric::CLIENT_V6
    ))?;
    for nginx in &fixture.servers {
        fs::write(nginx.files().join("away.bin"), Random::new(17).bytes(LARGE))?;
    }
    for tunnel in Tunnel::ALL {
        let what = |of| format!("{tunnel:?}: {of}");
        until(&what("a connection that is away"), PATIENCE, || {
            Ok(is_away(&fixture, tunnel, connection(&fixture, tunnel)?)?.then_some(()))
        })?;
        until(&what("a flow that is away"), PATIENCE, || {
            Ok(is_away(&fixture, tunnel, datagrams(&fixture, tunnel)?)?.then_some(()))
        })?;
    }
    Ok(())
}

/// Downloads, and answers which backend it was from.
fn connection(fixture: &Fixture, tunnel: Tunnel) -> Result<usize> {
    let back = fixture.fabric.client.directory().join("back");
    let before = fixture.logged(tunnel.vip())?;
    let url = format!("http://{}/files/away.bin", tunnel.endpoint(80));
    Curl::new(&fixture.fabric.client).download(&url, &back)?;
    ensure!(fs::read(&back)? == Random::new(17).bytes(LARGE), "the download differs");
    let total = before.iter().sum::<u64>() + 1;
    let after = crate::traffic::settled_log(fixture, tunnel, total)?;
    let has = before.iter().zip(after).position(|(before, after)| after > *before);
    has.context("nobody has it")
}

/// Has large datagrams answered, and answers by which backend. The first answers do not arrive, and bring an error
/// each; once who answers knows, they come in fragments.
fn datagrams(fixture: &Fixture, tunnel: Tunnel) -> Result<usize> {
    let to = tunnel.endpoint(ECHO);
    let socket = fixture.fabric.client.enter(|| -> std::io::Result<_> {
        let socket = UdpSocket::bind((client_of(tunnel), 0))?;
        socket.connect(to)?;
        Ok(socket)
    })??;
    socket.set_read_timeout(Some(SECOND))?;
    let answered = || fixture.echoes.iter().map(|echo| echo.datagrams()).collect::<Vec<_>>();
    let before = answered();
    let (mut asked, mut came) = (vec![b'='; 1400], [0; 2048]);
    until("a large answer", PATIENCE, || {
        *asked.last_mut().context("empty")? += 1;
        socket.send(&asked)?;
        let Ok(length) = socket.recv(&mut came) else { return Ok(None) };
        ensure!(came[..length] == asked, "another answer");
        Ok(Some(()))
    })?;
    let moved = before.iter().zip(answered()).map(|(before, after)| after > *before);
    let have: Vec<_> =
        moved.enumerate().filter_map(|(number, has)| has.then_some(number)).collect();
    ensure!(have.len() == 1, "backends {have:?} have the flow");
    Ok(have[0])
}

/// Whether who has a connection or a flow is far away. Nobody else knows of the narrow path, of which it does; then
/// all forget it.
fn is_away(fixture: &Fixture, tunnel: Tunnel, has: usize) -> Result<bool> {
    for (number, Backend { node, .. }) in fixture.fabric.backends.iter().enumerate() {
        let (to, from) = (client_of(tunnel).to_string(), tunnel.vip().to_string());
        let route = node.run("ip", ["route", "get", &to, "from", &from])?;
        let knows = route.contains(&format!("mtu {NARROW}"));
        ensure!(knows == (number == has), "{tunnel:?}: {}: {route}", node.name());
        node.run("ip", ["-4", "route", "flush", "cache"])?;
        node.run("ip", ["-6", "route", "flush", "cache"])?;
    }
    Ok(fixture.fabric.backends[has].region == "us")
}

fn client_of(tunnel: Tunnel) -> std::net::IpAddr {
    match tunnel.vip().is_ipv4() {
        true => Fabric::CLIENT_V4.into(),
        false => Fabric::CLIENT_V6.into(),
    }
}
