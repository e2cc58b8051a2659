//! Two CPUs that take cells of one bucket of the flow table at the same time.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use anyhow::{Context as _, Result, anyhow, ensure};
use lb_tests::packets::{
    balancer::Balancer,
    fixture::{FLOW_BUCKETS, FLOW_SECRET, MapFixture, Room},
    flow_hash,
    frames::{Flow, Packet},
};
use nix::{
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    unistd::Pid,
};

use super::flows::tcp_hash;

/// Pairs of new connections of a round, and rounds. A CPU reads the bucket and writes to it within some 50 ns of the
/// microsecond that a test run takes, so that some of them meet.
const PAIRS: usize = 500;
const ROUNDS: u8 = 8;

/// The first region is full, so that SYNs go to the second one and need a cell. Each pair has a bucket of its own.
pub(crate) fn both_cells_stay() -> Result<()> {
    let mut balancer = Balancer::load()?;
    for round in 0..ROUNDS {
        let pairs = pairs(round);
        ensure!(pairs.len() == PAIRS, "{} pairs", pairs.len());
        let mut fixture = MapFixture::new(4).and_region(4).room(0, Room::Full);
        for flow in pairs.iter().flatten() {
            for region in 0..2 {
                fixture = fixture.list(region, tcp_hash(flow), [0, 1, 2, 3]);
            }
        }
        balancer.show(&fixture)?;
        balancer.forget()?;
        run_at_once(&balancer, &pairs)?;
        let tags: Vec<_> = balancer.cells().map(|(_, owner, _)| owner.0 >> 36).collect();
        let is_lost = |flow: &&Flow| !tags.contains(&(hash(flow) >> 36 | 1));
        let lost = pairs.iter().flatten().filter(is_lost).count();
        ensure!(lost == 0, "of {} SYNs {lost} have no cell", 2 * PAIRS);
        ensure!(tags.len() == 2 * PAIRS, "{} cells for {} SYNs", tags.len(), 2 * PAIRS);
    }
    Ok(())
}

/// The first pairs of flows that have one bucket first, other than that of any pair before.
fn pairs(round: u8) -> Vec<[Flow; 2]> {
    let mut waiting = HashMap::new();
    let mut pairs = Vec::new();
    for port in 1_024..=u16::MAX {
        let flow = Flow::new(&format!("192.0.2.{round}:{port}"), "198.51.100.1:80");
        let bucket = hash(&flow) as u32 % FLOW_BUCKETS;
        match waiting.insert(bucket, Some(flow)) {
            Some(Some(other)) => {
                waiting.insert(bucket, None);
                pairs.push([other, flow]);
            }
            Some(None) => {
                waiting.insert(bucket, None);
            }
            None => {}
        }
    }
    pairs.truncate(PAIRS);
    pairs
}

/// The hash that finds a flow's buckets.
fn hash(flow: &Flow) -> u64 {
    flow_hash::hash(flow, 6, false, FLOW_SECRET).bits()
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
