//! `kill -9` of the daemon in the middle of Apply, again and again, under load.
//!
//! Two services have pools without a common backend, and each configuration gives each pool another
//! part of its three. After every crash the daemon must be where it said it was, or where it was being
//! told to go; and until then no datagram may reach a backend that neither configuration gives to its
//! service.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, HASH_KEY, Tunnel};
use lb_e2e::harness::{self, Case};
use lb_tests::daemon::{Document, Member, Pool, Service};
use lb_tests::process::{PATIENCE, pause, until};
use lb_tests::random::Random;
use lb_tests::sample::Sample;
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::{Backend, REGIONS};

/// Where everything is run; a sample has a fifth of them, with moments of its own.
const CRASHES: u64 = 200;

/// Which of the six backends each configuration has: of the first three those of the first service,
/// of the others those of the second.
const MEMBERS: [[bool; 6]; 6] = [
    [true, true, false, false, true, true],
    [false, true, true, true, false, true],
    [true, false, true, true, true, false],
    [true, true, true, true, false, false],
    [true, false, false, true, true, true],
    [false, false, true, false, false, true],
];

pub(crate) const CASES: &[Case] =
    &[Case::works("two_hundred_crashes_during_apply", two_hundred_crashes)];

fn two_hundred_crashes(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::idle(sandbox, "crash")?;
    let texts: Vec<_> = MEMBERS.iter().map(|members| document(&fixture, members).text()).collect();
    let (checksums, apply_time) = rehearse(&fixture, &texts)?;
    let load = Load::default();
    let client = fixture.fabric.client.clone();
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| client.enter(|| load.send()));
        let crashes = crash_again_and_again(&mut fixture, &texts, &checksums, apply_time, &load);
        load.stop.store(true, Ordering::Relaxed);
        sender.join().ok().context("sender")???;
        crashes
    })
}

/// The checksum of each configuration, and how long an Apply takes.
fn rehearse(fixture: &Fixture, texts: &[String]) -> Result<(Vec<String>, Duration)> {
    let mut checksums = Vec::new();
    let start = Instant::now();
    for text in texts {
        fixture.balancer.apply(text)?;
        checksums.push(checksum(fixture)?);
    }
    let time = start.elapsed() / texts.len() as u32;
    let distinct: std::collections::HashSet<_> = checksums.iter().collect();
    ensure!(distinct.len() == texts.len(), "{checksums:?}");
    Ok((checksums, time))
}

fn crash_again_and_again(
    fixture: &mut Fixture,
    texts: &[String],
    checksums: &[String],
    apply_time: Duration,
    load: &Load,
) -> Result<()> {
    let sample = Sample::from_environment();
    let (crashes, mut random) = (sample.rounds(CRASHES, 5), Random::new(200 ^ sample.seed()));
    let mut current = texts.len() - 1;
    let (mut kept, mut moved, mut acknowledged) = (0, 0, 0);
    for crash in 0..crashes {
        load.ensure_flowing()?;
        let next = (current + 1 + random.below(texts.len() as u64 - 1) as usize) % texts.len();
        let before = counts(fixture);
        let mut apply = begin_apply(fixture, &texts[next])?;
        pause(Duration::from_nanos(random.below(apply_time.as_nanos() as u64 * 2)));
        fixture.balancer.kill()?;
        let confirmed = apply.wait()?.success();
        load.ensure_flowing()?;
        fixture.balancer.start()?;

        let now = checksum(fixture)?;
        let to_next = now == checksums[next];
        ensure!(
            to_next || (now == checksums[current] && !confirmed),
            "crash {crash}: from {} to {}, acknowledged: {confirmed}, but it is {now}",
            checksums[current],
            checksums[next]
        );
        ensure_only(fixture, &before, current, next).with_context(|| format!("crash {crash}"))?;
        kept += usize::from(!to_next);
        moved += usize::from(to_next && !confirmed);
        acknowledged += usize::from(confirmed);
        if to_next {
            current = next;
        }
    }
    harness::note(format!(
        "{crashes} crashes: {kept} stayed at the old generation, {moved} went to the new one \
         unacknowledged, {acknowledged} acknowledged"
    ));
    // The moments are spread over the whole of Apply only if all three happened.
    ensure!(kept > 0 && acknowledged > 0, "the moments were badly chosen");
    Ok(())
}

/// Nobody had a datagram who is in neither configuration.
fn ensure_only(fixture: &Fixture, before: &[u64], old: usize, new: usize) -> Result<()> {
    for (number, (before, now)) in before.iter().zip(counts(fixture)).enumerate() {
        if !MEMBERS[old][number] && !MEMBERS[new][number] {
            let name = fixture.fabric.backends[number].name();
            ensure!(now == *before, "{} datagrams reached {name}", now - before);
        }
    }
    Ok(())
}

fn counts(fixture: &Fixture) -> Vec<u64> {
    fixture.echoes.iter().map(lb_tests::traffic::Echo::datagrams).collect()
}

fn checksum(fixture: &Fixture) -> Result<String> {
    Ok(fixture.balancer.status()?.checksum)
}

fn begin_apply(fixture: &Fixture, text: &str) -> Result<Child> {
    let file = fixture.fabric.balancer.directory().join("next.toml");
    std::fs::write(&file, text)?;
    let mut command =
        fixture.balancer.command(&["apply", "--yes", "--force", "-f", &file.display().to_string()]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().context("start spillway apply")
}

/// A pool for each service, without checks: every member counts as healthy.
fn document(fixture: &Fixture, members: &[bool; 6]) -> Document {
    let backends: Vec<_> = fixture.fabric.backends.iter().zip(members).collect();
    let pool = |name: &str, part: std::ops::Range<usize>, address: fn(&Backend) -> IpAddr| Pool {
        name: name.into(),
        checks: vec![],
        members: backends[part]
            .iter()
            .filter(|(_, is_member)| **is_member)
            .map(|(backend, _)| Member {
                address: address(backend),
                region: backend.region.into(),
                weight: 1,
            })
            .collect(),
    };
    let service = |tunnel: Tunnel, pool: &str| Service {
        name: tunnel.name().into(),
        address: tunnel.vip(),
        port: ECHO,
        protocol: "udp",
        pool: pool.into(),
    };
    Document {
        hash_key: Some(HASH_KEY),
        regions: REGIONS.map(String::from).to_vec(),
        checks: vec![],
        pools: vec![pool("first", 0..3, |b| b.v4.into()), pool("second", 3..6, |b| b.v6.into())],
        services: vec![service(Tunnel::Ipip, "first"), service(Tunnel::Ip6Ip6, "second")],
    }
}

/// Datagrams of ever new flows to both services, and how many were answered.
#[derive(Debug, Default)]
struct Load {
    stop: AtomicBool,
    answered: AtomicU64,
}

impl Load {
    fn send(&self) -> Result<()> {
        let mut random = Random::new(1);
        let mut buffer = [0; 16];
        while !self.stop.load(Ordering::Relaxed) {
            for tunnel in [Tunnel::Ipip, Tunnel::Ip6Ip6] {
                let from: SocketAddr = random.client(tunnel.vip());
                let socket = UdpSocket::bind(from)?;
                // Nothing is under way any more when the next one is sent, but what is lost.
                socket.set_read_timeout(Some(Duration::from_millis(500)))?;
                socket.connect(tunnel.endpoint(ECHO))?;
                socket.send(b"?")?;
                if socket.recv(&mut buffer).is_ok() {
                    self.answered.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        Ok(())
    }

    /// Waits for ten more answers.
    fn ensure_flowing(&self) -> Result<()> {
        let goal = self.answered.load(Ordering::Relaxed) + 10;
        until("ten more answers", PATIENCE, || {
            Ok((self.answered.load(Ordering::Relaxed) >= goal).then_some(()))
        })
    }
}
