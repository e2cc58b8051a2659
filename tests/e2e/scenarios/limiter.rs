//! A limit holds at full speed: the kernel runs the loaded program on all CPUs at once, each SYN a new flow.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use aya::{Ebpf, maps::PerCpuArray, programs::ProgramFd};
use lb_common::abi::{capture::Capture, limiter::LimitWord};
use lb_e2e::harness::Case;
use lb_tests::packets::objects;
use lb_tests::sandbox::Sandbox;
use lb_tests::test_run::{
    fill::{self, LIMITERS, Situation, State},
    frame::{Packet, template},
    programs::{self, Settings},
};

const XDP_TX: u32 = 3;
/// How long the CPUs send.
const TIME: Duration = Duration::from_secs(1);
/// The limit, new connections a second. On a slow machine it is this part of the SYNs that come.
const RATE: u64 = 40_000;
const PART: u64 = 4;
/// SYNs of one call into the kernel.
const BATCH: u32 = 20_000;

pub(crate) const CASES: &[Case] = &[
    Case::alone("a_limit_holds_on_two_cpus_at_full_speed", two_cpus),
    Case::waits("the_first_that_overflows_is_the_first_over_the_limit", the_first_over),
    Case::waits("a_measurement_is_not_captured_because_the_last_one_was", not_captured),
];

fn not_captured(_: &Sandbox) -> Result<()> {
    let mut balancer = programs::load(&objects::directory(), "balancer.o")?;
    let quiet = State::new(1, Situation::Steady);
    let capture = Capture { until: u64::MAX, ..Capture::default() };
    for (state, expected) in [(State { capture, ..quiet }, true), (quiet, false)] {
        fill::fill(&mut balancer, &state)?;
        ensure!(fill::is_captured(&mut balancer)? == expected, "captured: {}", !expected);
    }
    Ok(())
}

/// Two CPUs, several times the limit: what the near region admits is the limit, with no more than the
/// burst above it and hardly anything below; all else goes to the far one. While others have both
/// CPUs for longer than the burst lasts nobody asks for what the limit allows, so one of ten runs
/// must come near it.
fn two_cpus(_: &Sandbox) -> Result<()> {
    let (mut rate, mut shares) = (RATE, Vec::new());
    for _ in 0..10 {
        let run = run_two(rate)?;
        // What comes no faster than it is admitted is no test.
        if run.sent as f64 > 1.5 * run.limit {
            shares.push(run.admitted as f64 / run.limit);
        }
        if shares.len() >= 3 && shares.iter().any(|share| *share > 0.97) {
            return Ok(());
        }
        rate = RATE.min((run.sent as f64 / run.seconds) as u64 / PART);
    }
    bail!("admitted of the limit: {shares:?}, the last one {rate} a second")
}

/// SYNs on two CPUs.
struct Run {
    seconds: f64,
    sent: u64,
    /// What the limit admits in this time, beside the burst.
    limit: f64,
    admitted: u64,
}

fn run_two(rate: u64) -> Result<Run> {
    let burst = rate / 10;
    let objects = objects::directory();
    let mut balancer = programs::load(&objects, "balancer.o")?;
    fill::fill(&mut balancer, &State::new(1, Situation::Limited))?;
    let interval = 1_000_000_000 * LimitWord::PER_NANOSECOND / rate;
    fill::limit(&mut balancer, LIMITERS[0], LimitWord::new(interval, burst as u32))?;
    let jump = &programs::program(&mut balancer, "balancer")?.fd()?.try_clone()?;
    let load = || programs::load(&objects, "bench.o");
    let benches = [(load()?, 1), (load()?, 3)];
    let begin = Instant::now();
    let sent = thread::scope(|scope| {
        let senders = benches
            .map(|(bench, sequence)| scope.spawn(move || send(jump, bench, begin, sequence)));
        let sent = senders.map(|sender| sender.join().map_err(|_| anyhow!("a sender failed")));
        sent.into_iter().try_fold(0, |sum, sent| Ok::<_, anyhow::Error>(sum + sent??))
    })?;
    let seconds = begin.elapsed().as_secs_f64();
    let limit = rate as f64 * seconds;
    let [near, far] = LIMITERS.map(|limiter| group(&balancer, limiter));
    let ([offered, admitted, _, out, ..], [_, far_admitted, far_in, ..]) = (near?, far?);
    // Flows are drawn at random: some come twice, and go where they went.
    let new = sent - event(&balancer, SYN_REPEATED)?;
    ensure!(offered == new && out == new - admitted, "{offered} offered, {out} out of {new}");
    ensure!(far_admitted == out && far_in == out, "{far_admitted} {far_in} of {out}");
    // A tick of the kernel's clock is at most 10 ms.
    let most = limit + (burst + rate / 100) as f64;
    ensure!((admitted as f64) < most, "{admitted} of {sent} admitted, at most {most:.0}");
    Ok(Run { seconds, sent, limit, admitted })
}

/// Sends SYNs of new flows until the time is over; answers how many.
fn send(jump: &ProgramFd, mut bench: Ebpf, begin: Instant, sequence: u64) -> Result<u64> {
    programs::set(&mut bench, settings(sequence))?;
    let frame = template((Packet::Syn, 1), 4, 20);
    let mut sent = 0;
    while begin.elapsed() < TIME {
        let (action, _) = programs::run(&mut bench, jump, &frame, BATCH)?;
        ensure!(action == XDP_TX, "action {action}");
        sent += u64::from(BATCH);
    }
    Ok(sent)
}

/// One at a time: as many as the burst stay near, the next one is the first that leaves.
fn the_first_over(_: &Sandbox) -> Result<()> {
    const BURST: u32 = 12;
    let mut balancer = programs::load(&objects::directory(), "balancer.o")?;
    fill::fill(&mut balancer, &State::new(1, Situation::Limited))?;
    // One a minute: none comes back while this runs.
    let interval = 60_000_000_000 * LimitWord::PER_NANOSECOND;
    fill::limit(&mut balancer, LIMITERS[0], LimitWord::new(interval, BURST))?;
    let jump = programs::program(&mut balancer, "balancer")?.fd()?.try_clone()?;
    let mut bench = programs::load(&objects::directory(), "bench.o")?;
    programs::set(&mut bench, settings(5))?;
    let frame = template((Packet::Syn, 1), 4, 20);
    for number in 1..=3 * u64::from(BURST) {
        programs::run(&mut bench, &jump, &frame, 1)?;
        let near = number.min(BURST.into());
        let [_, admitted, ..] = group(&balancer, LIMITERS[0])?;
        let [_, far, ..] = group(&balancer, LIMITERS[1])?;
        ensure!((admitted, far) == (near, number - near), "{number}: {admitted} near, {far} far");
    }
    Ok(())
}

const fn settings(sequence: u64) -> Settings {
    Settings { grown: 20, version: 4, flows: 1 << 32, services: 0, sequence }
}

/// Number of the event of a SYN that came again.
const SYN_REPEATED: u32 = 6;

fn event(balancer: &Ebpf, number: u32) -> Result<u64> {
    let map = balancer.map("EVENT_COUNTERS").context("no such map")?;
    let map = PerCpuArray::<_, u64>::try_from(map)?;
    Ok(map.get(&number, 0)?.iter().sum())
}

/// Offered, admitted, overflow in, overflow out, refused and over capacity of a group.
fn group(balancer: &Ebpf, limiter: u32) -> Result<[u64; 6]> {
    let map = balancer.map("GROUP_COUNTERS").context("no such map")?;
    let map = PerCpuArray::<_, [u64; 6]>::try_from(map)?;
    let mut total = [0; 6];
    for cpu in map.get(&limiter, 0)?.iter() {
        for (sum, part) in total.iter_mut().zip(cpu) {
            *sum += part;
        }
    }
    Ok(total)
}
