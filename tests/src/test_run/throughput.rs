//! Packets a second over veth pairs: live frames of one end are turned round, or redirected out of a second pair, by
//! the program at the other end.
//!
//! ```text
//! near ──── far   XDP_TX: back to near, whose sink counts
//!           exit ──── beyond   redirect: to beyond, whose sink counts
//! ```

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use aya::{
    maps::{PerCpuArray, xdp::DevMapHash},
    programs::{TestRun as _, TestRunAttrs, TestRunOptions, XdpMode},
};
use nix::net::if_::if_nametoindex;

use super::{
    fill::{self, Situation, State},
    frame::{Packet, template},
    programs::{Programs, Settings, Target, program},
};
use crate::process::until;

/// Frames the kernel sends at a time.
const BATCH: u32 = 64;

/// How frames leave the program that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By the interface that they came by.
    Transmit,
    /// By another one.
    Redirect,
}

/// The two pairs, in the network namespace of the thread that made them.
#[derive(Debug)]
pub struct Veths {
    near: u32,
    far: u32,
    exit: u32,
}

impl Veths {
    /// Makes them.
    ///
    /// # Errors
    /// What `ip` says.
    pub fn new() -> Result<Self> {
        for (one, other) in [("near", "far"), ("exit", "beyond")] {
            ip(&format!("link add {one} type veth peer name {other}"))?;
            ip(&format!("link set {one} up"))?;
            ip(&format!("link set {other} up"))?;
        }
        let [near, far, exit] = ["near", "far", "exit"].map(if_nametoindex);
        Ok(Self { near: near?, far: far?, exit: exit? })
    }

    /// Fills the maps for live frames of so many flows, and attaches sinks where frames arrive. They are detached when
    /// the programs are dropped.
    ///
    /// # Errors
    /// A program that is refused, or a link that is not native.
    pub fn prepare(&self, programs: &mut Programs, exit: Exit) -> Result<()> {
        let interface = match exit {
            Exit::Transmit => self.far,
            Exit::Redirect => self.exit,
        };
        let state = State::new(u16::try_from(interface)?, Situation::Steady);
        fill::fill(&mut programs.balancer, &state)?;
        fill::allow_redirect(&mut programs.balancer, interface)?;
        let map = programs.bench.map_mut("EXIT").context("bench.o has no exit")?;
        DevMapHash::try_from(map)?.insert(0, interface, None, 0)?;
        for end in ["near", "beyond"] {
            program(&mut programs.bench, "sink")?.attach(end, XdpMode::Driver)?;
        }
        Ok(())
    }

    /// Sends `frames` frames with a packet, of flows by `settings`, past a target and waits until they are there; answers millions a second.
    ///
    /// # Errors
    /// A program that is refused, a link that is not native, or frames that do not arrive.
    pub fn round(
        &self,
        programs: &mut Programs,
        target: Target,
        settings: Settings,
        (packet, frames): (Packet, u32),
    ) -> Result<f64> {
        programs.set(settings)?;
        let link = programs.program(target)?.attach("far", XdpMode::Driver)?;
        let rate = send(programs, self.near, packet, frames);
        programs.program(target)?.detach(link)?;
        rate
    }
}

/// Sends `frames` frames with a packet and waits until they are where they are counted; answers millions a second.
fn send(programs: &mut Programs, near: u32, packet: Packet, frames: u32) -> Result<f64> {
    let frame = template((packet, 1), 4, 0);
    let context = context(frame.len() as u32, near);
    let before = arrivals(programs)?;
    let start = Instant::now();
    let mut options = TestRunOptions::new();
    options.data_in = Some(&frame);
    options.ctx_in = Some(&context);
    options.repeat = frames;
    options.attrs = TestRunAttrs::new().xdp_live_frames(BATCH);
    program(&mut programs.bench, "sender")?.test_run(options)?;
    let mut there = 0;
    until("the last frames to arrive", Duration::from_secs(10), || {
        let now = arrivals(programs)? - before;
        let settled = now == there && now > 0;
        there = now;
        Ok(settled.then_some(()))
    })?;
    let elapsed = start.elapsed();
    // The sender may outrun the other end, whose ring then drops; what arrived is the rate.
    ensure!(there * 2 > u64::from(frames), "only {there} of {frames} frames arrived");
    Ok(there as f64 / elapsed.as_secs_f64() / 1e6)
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

fn ip(arguments: &str) -> Result<()> {
    let status = Command::new("ip").args(arguments.split(' ')).status().context("ip")?;
    ensure!(status.success(), "ip {arguments}: {status}");
    Ok(())
}
