//! Two hundred backends serve at once after the first configuration, evenly, each with a tunnel of its own.

use std::collections::{BTreeMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, HASH_KEY, HTTP};
use lb_e2e::harness::{self, Case};
use lb_tests::capture::Capture;
use lb_tests::daemon::{Balancer, Binaries, Check, Document, Member, Pool, Receiver, Service};
use lb_tests::process::{PATIENCE, until};
use lb_tests::random::Random;
use lb_tests::sandbox::Sandbox;
use lb_tests::statistics::ensure_even;
use lb_tests::topology::{Fabric, Node, REGIONS};
use lb_tests::traffic::{Echo, Nginx};

const BACKENDS: u8 = 200;
const FLOWS: usize = 100_000;
/// Datagrams that are under way at the same time.
const UNDER_WAY: u64 = 128;
/// Between two checks of a backend.
const INTERVAL: Duration = Duration::from_secs(60);
/// From the call of `spillway apply` until all are up: no backend has had a second check by then.
const AIM: Duration = Duration::from_secs(30);
/// Runs of which one must keep to it.
const RUNS: usize = 3;

pub(crate) const CASES: &[Case] = &[Case::works(
    "two_hundred_backends_serve_after_their_first_check_and_evenly",
    two_hundred_backends,
)];

/// One host with 200 addresses is 200 backends: each is probed, and each has a tunnel of its own.
#[derive(Debug)]
struct BackendFixture {
    _nginx: Nginx,
    echo: Echo,
    _receiver: Receiver,
    balancer: Balancer,
    fabric: Fabric,
    addresses: Vec<IpAddr>,
}

impl BackendFixture {
    fn start(sandbox: &Sandbox) -> Result<Self> {
        let binaries = Binaries::find()?;
        let mut fabric = Fabric::new(sandbox, "backends", 1)?;
        let node = fabric.net.node("backends")?;
        fabric.net.link(&node, "eth0", &fabric.router, "backends", 1600)?;
        fabric.router.ip("link set backends master eu")?;
        let addresses: Vec<_> =
            (0..BACKENDS).map(|n| IpAddr::from(Ipv4Addr::new(10, 1, 0, 20 + n))).collect();
        let lines: Vec<_> =
            addresses.iter().map(|address| format!("address add {address}/24 dev eth0")).collect();
        let vip = Fabric::VIP_V4;
        node.ip(&format!(
            "{}\naddress add {vip}/32 dev lo\nroute add default via 10.1.0.1",
            lines.join("\n")
        ))?;
        fabric.net.ready()?;
        let sources = [Fabric::BALANCER_V4.into()];
        Ok(Self {
            _nginx: Nginx::start(&node)?,
            echo: Echo::start(&node, &[vip.into()], ECHO)?,
            _receiver: Receiver::start(sandbox, &binaries, &node, &sources, &[vip.into()])?,
            balancer: Balancer::started(sandbox, &binaries, &fabric.balancer, REGIONS[0])?,
            fabric,
            addresses,
        })
    }

    fn configuration(&self) -> Document {
        let members = self.addresses.iter();
        let member =
            |address: &IpAddr| Member { address: *address, region: REGIONS[0].into(), weight: 1 };
        let service = |port, protocol: &'static str| Service {
            name: protocol.into(),
            address: Fabric::VIP_V4.into(),
            port,
            protocol,
            pool: "web".into(),
        };
        Document {
            hash_key: Some(HASH_KEY),
            regions: vec![REGIONS[0].into()],
            checks: vec![Check {
                name: "page".into(),
                path: Some("/healthz".into()),
                port: HTTP,
                interval_ms: INTERVAL.as_millis() as u32,
                fall: 3,
                is_tunnelled: false,
            }],
            pools: vec![Pool {
                name: "web".into(),
                checks: vec!["page".into()],
                members: members.map(member).collect(),
            }],
            services: vec![service(HTTP, "tcp"), service(ECHO, "udp")],
        }
    }
}

fn two_hundred_backends(sandbox: &Sandbox) -> Result<()> {
    let fixture = BackendFixture::start(sandbox)?;
    let mut times = Vec::new();
    // On a machine that has much else to do for a while a first check may fail.
    while times.iter().all(|all| *all > AIM) {
        ensure!(times.len() < RUNS, "all were up {times:?} after the call");
        fixture.balancer.apply("[[region]]\nname = \"eu\"\n")?;
        times.push(up_after_apply(&fixture)?);
    }
    spread_evenly(&fixture)
}

/// How long after the call of `spillway apply` all are up.
fn up_after_apply(fixture: &BackendFixture) -> Result<Duration> {
    let document = fixture.configuration().text();
    let waiting = AtomicBool::new(true);
    let (first, call) = std::thread::scope(|scope| -> Result<_> {
        let prober = scope.spawn(|| first_connection(&fixture.fabric.client, &waiting));
        let call = Instant::now();
        let applied = fixture.balancer.apply(&document);
        if applied.is_err() {
            waiting.store(false, Ordering::Relaxed);
        }
        let first = prober.join().ok().context("prober")??;
        applied?;
        Ok((first, call))
    })?;
    let first = first.context("no connection")?.duration_since(call);
    fixture.balancer.wait_up(&fixture.addresses, 4 * INTERVAL)?;
    let all = call.elapsed();
    harness::note(format!(
        "200 backends: first connection {first:?} after the call, all up within {all:?}"
    ));
    ensure!(first <= all, "no connection came before all were up: {first:?}, {all:?}");
    Ok(all)
}

/// When a connection to the VIP was first made; none if there is nothing to wait for any more.
fn first_connection(client: &Node, waiting: &AtomicBool) -> Result<Option<Instant>> {
    let to = SocketAddr::from((Fabric::VIP_V4, HTTP));
    client.enter(|| {
        let limit = Instant::now() + 4 * INTERVAL;
        while waiting.load(Ordering::Relaxed) && Instant::now() < limit {
            // Without a backend a SYN is dropped, and would be repeated after a second only.
            if TcpStream::connect_timeout(&to, Duration::from_millis(10)).is_ok() {
                return Some(Instant::now());
            }
        }
        None
    })
}

/// 100,000 datagrams of as many flows; where each went is read off the balancer's link.
fn spread_evenly(fixture: &BackendFixture) -> Result<()> {
    let filter = "ip proto 4 and src host 10.0.0.2";
    let capture = Capture::start(&fixture.fabric.router, "balancer", filter)?;
    fixture.fabric.client.enter(|| send_flows(&fixture.echo))??;
    let frames = capture.stop()?;
    frames.assert_faultless()?;
    let ends = frames.fields(&format!("udp.dstport == {ECHO}"), ["ip.dst"])?;
    ensure!(ends.len() == FLOWS, "{} of {FLOWS} datagrams were sent on", ends.len());
    let mut counts: BTreeMap<IpAddr, u64> = fixture.addresses.iter().map(|a| (*a, 0)).collect();
    for [destinations] in ends {
        let end: IpAddr = destinations.split(',').next().unwrap_or_default().parse()?;
        *counts.get_mut(&end).with_context(|| format!("sent to {end}"))? += 1;
    }
    let counts: Vec<_> = counts.into_values().collect();
    let (least, most) = (counts.iter().min().unwrap_or(&0), counts.iter().max().unwrap_or(&0));
    harness::note(format!("{FLOWS} flows over {BACKENDS} backends: least {least}, most {most}"));
    ensure_even(&counts, 4.0)
}

/// Sends each flow's datagram. A veth holds 256 frames, and what comes while it is full is lost: no more are
/// under way.
fn send_flows(echo: &Echo) -> Result<()> {
    let mut random = Random::new(5);
    let mut sent = HashSet::new();
    while sent.len() < FLOWS {
        let from = random.client(Fabric::VIP_V4.into());
        if !sent.insert(from) {
            continue;
        }
        let socket = UdpSocket::bind(from).with_context(|| format!("bind {from}"))?;
        socket.send_to(b"?", (Fabric::VIP_V4, ECHO))?;
        if sent.len().is_multiple_of(32) {
            until("datagrams under way arrive", PATIENCE, || {
                Ok((echo.datagrams() + UNDER_WAY >= sent.len() as u64).then_some(()))
            })?;
        }
    }
    Ok(())
}
