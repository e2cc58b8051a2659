//! Two CPUs that write one line of handshake entries at the same time.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use anyhow::{Context as _, Result, anyhow, ensure};
use lb_common::abi::{connection::HandshakeEntry, limits::HANDSHAKE_LINES};
use lb_tests::packets::{
    balancer::Balancer,
    fixture::{MapFixture, Room},
    frames::{Flow, Packet},
};
use nix::{
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    unistd::Pid,
};

use super::flows::tcp_hash;

/// Pairs of new connections. A CPU reads the line and writes to it within some 50 ns of the microsecond that a test run
/// takes, so that some of them meet: as long as cells were stored without an exchange, 120 to 630 SYNs of a run lost their
/// entries.
const PAIRS: usize = 4_000;

/// The first region is full, so that SYNs go to the second one and need an entry. Each pair has a line of its own.
pub(crate) fn both_entries_stay() -> Result<()> {
    let pairs = pairs();
    ensure!(pairs.len() == PAIRS, "{} pairs", pairs.len());
    let mut fixture = MapFixture::new(4).and_region(4).room(0, Room::Full);
    for flow in pairs.iter().flatten() {
        for region in 0..2 {
            fixture = fixture.list(region, tcp_hash(flow), [0, 1, 2, 3]);
        }
    }
    let mut balancer = Balancer::load()?;
    balancer.show(&fixture)?;
    run_at_once(&balancer, &pairs)?;
    let mut lost = 0;
    for flow in pairs.iter().flatten() {
        let hash = tcp_hash(flow).bits();
        let entries = balancer.handshakes(line(flow));
        let is_its = |it: &HandshakeEntry| it.is_whole() && it.syn >> 32 == hash >> 32;
        lost += usize::from(!entries.iter().any(is_its));
    }
    ensure!(lost == 0, "of {} SYNs {lost} have no entry", 2 * PAIRS);
    Ok(())
}

/// The first pairs of flows that have one line, other than that of any pair before.
fn pairs() -> Vec<[Flow; 2]> {
    let mut waiting = HashMap::new();
    let mut pairs = Vec::new();
    for port in 1_024..=u16::MAX {
        let flow = Flow::new(&format!("192.0.2.9:{port}"), "198.51.100.1:80");
        match waiting.insert(line(&flow), Some(flow)) {
            Some(Some(other)) => {
                waiting.insert(line(&flow), None);
                pairs.push([other, flow]);
            }
            Some(None) => {
                waiting.insert(line(&flow), None);
            }
            None => {}
        }
    }
    pairs.truncate(PAIRS);
    pairs
}

/// The index of a flow's line.
fn line(flow: &Flow) -> u32 {
    tcp_hash(flow).bits() as u32 % HANDSHAKE_LINES
}

/// Sends a SYN of both flows of each pair at the same time.
fn run_at_once(balancer: &Balancer, pairs: &[[Flow; 2]]) -> Result<()> {
    let ours = sched_getaffinity(Pid::from_raw(0))?;
    let cpus: Vec<_> =
        (0..CpuSet::count()).filter(|cpu| ours.is_set(*cpu) == Ok(true)).take(2).collect();
    ensure!(cpus.len() == 2, "this needs two CPUs");
    let (arrived, failed) = (&AtomicUsize::new(0), &AtomicBool::new(false));
    let work = |side: usize, cpu: usize| {
        let mut only = CpuSet::new();
        only.set(cpu)?;
        sched_setaffinity(Pid::from_raw(0), &only).context("stay on a CPU")?;
        for (round, pair) in (1..).zip(pairs) {
            let frame = Packet::new(pair[side]).tcp("S");
            arrived.fetch_add(1, Ordering::AcqRel);
            // A CPU that waits in the kernel would be late.
            while arrived.load(Ordering::Acquire) < 2 * round {
                ensure!(!failed.load(Ordering::Relaxed), "the other CPU failed");
                std::hint::spin_loop();
            }
            balancer.run_beside_others(&frame)?;
        }
        Ok(())
    };
    let work = &work;
    thread::scope(|scope| {
        let running = [(0, cpus[0]), (1, cpus[1])].map(|(side, cpu)| {
            scope.spawn(move || {
                work(side, cpu).inspect_err(|_| failed.store(true, Ordering::Relaxed))
            })
        });
        let joined = running.map(|it| it.join().map_err(|_| anyhow!("it panicked")));
        joined.into_iter().try_for_each(|outcome| outcome?)
    })
}
