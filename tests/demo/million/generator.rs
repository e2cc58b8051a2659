//! Requests, by the packets that their clients send: each generator has a CPU and sends live frames.
//!
//! The packet program that the frames pass first decides which packet is due (lb-ebpf/src/bench/requests.rs): of the request
//! that is begun the first one, of one that was begun before it the second one, and so on. So many requests are open at a
//! time.

use std::{
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use aya::{
    Ebpf,
    maps::{Array, MapData},
    programs::{TestRun as _, TestRunAttrs, TestRunOptions},
};
use lb_tests::test_run::{programs::program, throughput::context};
use nix::{
    sched::{CpuSet, sched_setaffinity},
    time::{ClockId, clock_gettime},
    unistd::{Pid, gettid},
};

use super::{
    exchange::{Exchange, PACKETS},
    site::{Site, Through},
};

/// The least time from a request's first packet to its last one.
pub(crate) const OPEN: Duration = Duration::from_millis(100);
/// Frames the kernel sends at a time.
const BATCH: u32 = 64;
/// Frames of a call: it takes the kernel some 30 ms to end one.
const FRAMES: u32 = 1 << 22;
/// The same while most are dropped because no packet is due.
const FRAMES_PACED: u32 = 1 << 25;
/// Requests of a generator that backends remember; fewer are open.
const REMEMBERED: u64 = 1 << 17;
/// Requests of a generator that are open at least, if they are sent as fast as possible: more than it sends in [`OPEN`].
const MOST_OPEN: u64 = 100_000;
/// Words of a packet that a sender writes.
const HEAD: usize = 10;

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) through: Through,
    /// Requests that all generators together begin a second. `None`: as many as possible.
    pub(crate) rate: Option<f64>,
    /// Which clients: loads with other numbers have other ones.
    pub(crate) clients: u64,
}

/// What was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) requests: u64,
}

impl Sent {
    /// All their packets.
    pub(crate) const fn packets(self) -> u64 {
        self.requests * PACKETS as u64
    }
}

/// All of them.
pub(crate) struct Generators {
    all: Vec<Generator>,
}

/// What sends packets by one CPU.
pub(crate) struct Generator {
    cpu: usize,
    /// The longest packet of a client, which all others are cut from.
    frame: Vec<u8>,
    bench: Ebpf,
    schedule: Array<MapData, u64>,
    next: Array<MapData, u64>,
}

impl Generators {
    /// One on each of the first `count` CPUs.
    pub(crate) fn new(objects: &Path, exchange: &Exchange, count: usize) -> Result<Self> {
        let all = (0..count).map(|cpu| Generator::new(objects, exchange, cpu, cpu));
        Ok(Self { all: all.collect::<Result<_>>()? })
    }

    /// Sends until `meanwhile` returns, and then the last packets of what was begun.
    pub(crate) fn send<T>(
        &mut self,
        site: &Site,
        load: Load,
        meanwhile: impl FnOnce() -> Result<T>,
    ) -> Result<(T, Sent)> {
        let (is_over, count) = (&AtomicBool::new(false), self.all.len());
        thread::scope(|scope| {
            let sending: Vec<_> = self
                .all
                .iter_mut()
                .map(|generator| {
                    let send = move || generator.send(site, load, count, is_over);
                    scope.spawn(|| site.outside.enter(send)?)
                })
                .collect();
            let seen = meanwhile();
            is_over.store(true, Ordering::Relaxed);
            let mut requests = 0;
            for thread in sending {
                requests += thread.join().unwrap_or_else(|it| std::panic::resume_unwind(it))?;
            }
            Ok((seen?, Sent { requests }))
        })
    }
}

impl Generator {
    /// `number` tells its clients from those of the other ones, up to three.
    pub(crate) fn new(
        objects: &Path,
        exchange: &Exchange,
        cpu: usize,
        number: usize,
    ) -> Result<Self> {
        let mut bench = Ebpf::load_file(objects.join("bench.o")).context("bench.o")?;
        program(&mut bench, "request_sender")?.load().context("load request_sender")?;
        let mut take =
            |name: &str| bench.take_map(name).with_context(|| format!("bench.o has no {name}"));
        let mut heads: Array<_, [u64; HEAD]> = Array::try_from(take("HEADS")?)?;
        let mut lengths: Array<_, u64> = Array::try_from(take("LENGTHS")?)?;
        for (packet, frame) in (0..).zip(exchange) {
            let mut head = frame.clone();
            // The lowest bits of the client's port say which generator it is of.
            head[34..36].copy_from_slice(&u16::try_from(number)?.to_be_bytes());
            head.resize(8 * HEAD, 0);
            let words = head.as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes));
            let words = words.collect::<Vec<_>>();
            heads.set(packet, *words.first_chunk().context("a head is cut off")?, 0)?;
            lengths.set(packet, frame.len() as u64, 0)?;
        }
        let schedule = Array::try_from(take("SCHEDULE")?)?;
        let next = Array::try_from(take("NEXT_PACKET")?)?;
        let frame = exchange.iter().max_by_key(|frame| frame.len()).cloned().unwrap_or_default();
        Ok(Self { cpu, frame, bench, schedule, next })
    }

    /// Sends the part of one of `count` generators; returns how many requests that were.
    fn send(&mut self, site: &Site, load: Load, count: usize, is_over: &AtomicBool) -> Result<u64> {
        self.take_cpu()?;
        let interval = load.rate.map(|rate| (1e9 * count as f64 / rate) as u64);
        let packets_between = (PACKETS - 1) as u64;
        let open = interval.map_or(MOST_OPEN, |interval| OPEN.as_nanos() as u64 / interval);
        let between = open / packets_between + 1;
        ensure!(between * packets_between < REMEMBERED, "too many requests would be open");
        let start = now()?;
        let interval_or_none = interval.unwrap_or_default();
        let all = PACKETS as u64;
        self.plan([load.clients << 32, u64::MAX >> 1, between, start, interval_or_none, all])?;
        let frames = if interval.is_some() { FRAMES_PACED } else { FRAMES };
        let mut end = None;
        while end.is_none_or(|end| self.begun().is_ok_and(|begun| begun < end + open + between)) {
            self.run(site.end(load.through), frames)?;
            if end.is_none() && is_over.load(Ordering::Relaxed) {
                let begun = self.begun()? + 1;
                self.schedule.set(END, begun, 0)?;
                end = Some(begun);
            }
        }
        end.context("it has ended")
    }

    /// Sends one packet of each of so many flows, the same ones each time.
    pub(crate) fn send_probes(&mut self, interface: u32, count: u32) -> Result<()> {
        self.take_cpu()?;
        self.plan([FIRST_PROBE, count.into(), 0, 0, 0, PROBE])?;
        self.run(interface, count)
    }

    /// Begins anew: see `SCHEDULE` of the sender.
    fn plan(&mut self, words: [u64; 6]) -> Result<()> {
        for (index, word) in (0..).zip(words) {
            self.schedule.set(index, word, 0)?;
        }
        Ok(self.next.set(0, 0, 0)?)
    }

    /// Requests that were begun.
    fn begun(&self) -> Result<u64> {
        Ok(self.next.get(&0, 0)? / PACKETS as u64)
    }

    /// Has the kernel send so many frames, or drop them.
    fn run(&mut self, interface: u32, frames: u32) -> Result<()> {
        let context = context(self.frame.len() as u32, interface);
        let mut options = TestRunOptions::new();
        options.data_in = Some(&self.frame);
        options.ctx_in = Some(&context);
        options.repeat = frames;
        options.attrs = TestRunAttrs::new().xdp_live_frames(BATCH);
        program(&mut self.bench, "request_sender")?.test_run(options)?;
        Ok(())
    }

    /// This thread has the CPU whenever nothing else wants it: what it sends is balanced and counted at once, lest the
    /// queues between overflow.
    fn take_cpu(&self) -> Result<()> {
        let mut cpus = CpuSet::new();
        cpus.set(self.cpu)?;
        sched_setaffinity(Pid::from_raw(0), &cpus)?;
        let own = gettid().to_string();
        let status = Command::new("chrt").args(["--idle", "--pid", "0", &own]).status();
        let status = status.context("chrt")?;
        ensure!(status.success(), "chrt --idle: {status}");
        Ok(())
    }
}

/// Where a schedule says how many requests are begun.
const END: u32 = 1;
/// The number of the first probe.
const FIRST_PROBE: u64 = 1 << 37;
/// The packet that is sent of a probe: one of an open connection.
const PROBE: u64 = 1;

/// The clock of packet programs (`bpf_ktime_get_ns`), nanoseconds.
fn now() -> Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
    Ok(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}
