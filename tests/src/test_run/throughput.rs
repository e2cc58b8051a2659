//! Packets a second over a veth pair: live frames of one end are turned round by the program at the
//! other end, the balancer and its floor in turn.

use std::time::Instant;

use anyhow::{Context as _, Result};
use aya::{
    maps::PerCpuArray,
    programs::{TestRun as _, TestRunAttrs, TestRunOptions, XdpMode},
};
use serde_json::{Value, json};

use super::{
    fill::{self, Situation, State},
    frame::{Packet, template},
    programs::{Programs, Settings, Target, program},
};
use crate::{process::until, statistics::median};

/// Flows of the frames that are sent.
const FLOWS: u64 = 100_000;
/// Frames the kernel sends at a time.
const BATCH: u32 = 64;

/// Millions of packets a second, medians.
#[derive(Clone, Copy, Debug)]
pub struct Throughput {
    /// Turned round by the balancer.
    pub mpps: f64,
    /// Turned round by the floor.
    pub floor_mpps: f64,
}

impl Throughput {
    /// As it stands in the report.
    pub fn to_json(&self) -> Value {
        json!({
            "case": "veth, ipv4 tcp established", "mpps": self.mpps,
            "floor_mpps": self.floor_mpps, "ratio": self.mpps / self.floor_mpps,
        })
    }
}

/// Measures over the pair `near` and `far`, interfaces of this network namespace: frames leave
/// `near`, and what comes back is counted there.
///
/// # Errors
/// A program that is refused, a link that is not native, or frames that do not come back.
pub fn measure(
    programs: &mut Programs,
    (near, far): (&str, &str),
    rounds: usize,
    frames: u32,
) -> Result<Throughput> {
    let (near_index, far_index) =
        (nix::net::if_::if_nametoindex(near)?, nix::net::if_::if_nametoindex(far)?);
    let interface = u16::try_from(far_index)?;
    fill::fill(&mut programs.balancer, &State::new(interface, Situation::Steady))?;
    programs.set(Settings { grown: 20, version: 4, flows: FLOWS, sequence: 1 })?;
    program(&mut programs.bench, "sink")?.attach(near, XdpMode::Driver)?;
    let (mut balancer, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        for (target, rates) in [(Target::Balancer, &mut balancer), (Target::Floor, &mut floor)] {
            let (object, name) = match target {
                Target::Balancer => (&mut programs.balancer, "balancer"),
                Target::Floor => (&mut programs.bench, "floor"),
            };
            let link = program(object, name)?.attach(far, XdpMode::Driver)?;
            rates.push(one_round(programs, near_index, frames)?);
            let object = match target {
                Target::Balancer => &mut programs.balancer,
                Target::Floor => &mut programs.bench,
            };
            program(object, name)?.detach(link)?;
        }
    }
    Ok(Throughput { mpps: median(&mut balancer), floor_mpps: median(&mut floor) })
}

/// Sends `frames` frames and waits until they are back; answers millions a second.
fn one_round(programs: &mut Programs, near: u32, frames: u32) -> Result<f64> {
    let frame = template((Packet::Open, 1), 4, 0);
    let context = context(frame.len() as u32, near);
    let before = arrivals(programs)?;
    let start = Instant::now();
    let mut options = TestRunOptions::new();
    options.data_in = Some(&frame);
    options.ctx_in = Some(&context);
    options.repeat = frames;
    options.attrs = TestRunAttrs::new().xdp_live_frames(BATCH);
    program(&mut programs.bench, "sender")?.test_run(options)?;
    let mut back = 0;
    until("the last frames to come back", std::time::Duration::from_secs(10), || {
        let now = arrivals(programs)? - before;
        let settled = now == back && now > 0;
        back = now;
        Ok(settled.then_some(()))
    })?;
    let elapsed = start.elapsed();
    // The sender may outrun the other end, whose ring then drops; what came back is the rate.
    anyhow::ensure!(back * 2 > u64::from(frames), "only {back} of {frames} frames came back");
    Ok(back as f64 / elapsed.as_secs_f64() / 1e6)
}

/// `struct xdp_md` of a test run: the frame's bounds and the interface it is run on.
pub fn context(length: u32, interface: u32) -> [u8; 24] {
    let mut context = [0; 24];
    context[4..8].copy_from_slice(&length.to_ne_bytes());
    context[12..16].copy_from_slice(&interface.to_ne_bytes());
    context
}

fn arrivals(programs: &Programs) -> Result<u64> {
    let map = programs.bench.map("ARRIVALS").context("bench.o counts no arrivals")?;
    Ok(PerCpuArray::<_, u64>::try_from(map)?.get(&0, 0)?.iter().sum())
}
