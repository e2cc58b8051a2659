//! The slow path, a program of its own, is there for as long as the fast path jumps into it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use aya::programs::{TestRun as _, TestRunOptions, Xdp};
use aya_obj::programs::XdpAttachType;
use lb_maps::{Component, Dataplane, Pins, XdpMode};
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;

use super::{link, options, pair};

/// Actions (`enum xdp_action`, include/uapi/linux/bpf.h).
const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;

pub(super) fn stays(sandbox: &Sandbox) -> Result<()> {
    pair("sa", "sb")?;
    let bpffs = sandbox.bpffs("slow-path")?;
    let options = options(&bpffs, &["sa"], XdpMode::Native);
    let pins = Pins::new(&bpffs, Component::Balancer);
    drop(Dataplane::open(&options)?);
    // Nobody holds it now, as after a kill.
    let (_, first) = link(&bpffs, Component::Balancer, "sa")?;
    ensure!(arrays(&pins)? == [first] && ping(&pins)? == XDP_PASS, "{:?}", arrays(&pins)?);

    let running = Dataplane::open(&options)?;
    let (_, second) = link(&bpffs, Component::Balancer, "sa")?;
    ensure!(second != first && arrays(&pins)? == [second], "{first}, {:?}", arrays(&pins)?);
    ensure!(ping(&pins)? == XDP_PASS);
    drop(running);
    ensure!(ping(&pins)? == XDP_PASS);

    // Without its pin it goes: the ping does take the slow path.
    fs::remove_file(directory(&pins).join(second.to_string()))?;
    until("the slow path is gone", PATIENCE, || Ok((ping(&pins)? == XDP_DROP).then_some(())))
}

fn directory(pins: &Pins) -> PathBuf {
    pins.root().join("slow-paths")
}

/// The fast paths that have an array of programs, by id.
fn arrays(pins: &Pins) -> Result<Vec<u32>> {
    let mut programs = Vec::new();
    for entry in fs::read_dir(directory(pins))? {
        programs.push(entry?.file_name().to_str().context("a number")?.parse()?);
    }
    programs.sort_unstable();
    Ok(programs)
}

/// What the pinned program does with a ping of somebody else in a VLAN, whose tag the slow path takes off.
fn ping(pins: &Pins) -> Result<u32> {
    let mut frame = [0; 18 + 20 + 8];
    // A tag; IPv4; 20 bytes of header; 28 bytes in all; TTL 64, ICMP; echo request.
    for (at, value) in
        [(12, 0x81), (15, 7), (16, 8), (18, 0x45), (21, 28), (26, 64), (27, 1), (38, 8)]
    {
        frame[at] = value;
    }
    let path: &Path = &pins.program();
    let program = Xdp::from_pin(path, XdpAttachType::Interface)?;
    let options = TestRunOptions { data_in: Some(&frame), ..TestRunOptions::default() };
    Ok(program.test_run(options)?.return_value)
}
