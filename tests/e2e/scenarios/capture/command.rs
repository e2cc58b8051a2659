//! `spillway capture` as the tests run it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use aya::maps::{Array, Map, MapData};
use lb_common::abi::capture::Capture;
use lb_e2e::fixture::Fixture;
use lb_maps::{Component, Pins};
use lb_tests::capture::Frames;
use lb_tests::process::{PATIENCE, Running, until};
use lb_tests::topology::Node;

/// `spillway capture`, while it is on.
pub(crate) struct RunningCapture {
    pub(crate) running: Running,
    file: PathBuf,
    node: Node,
    /// Bytes of the file before any packet.
    empty: u64,
}

impl RunningCapture {
    /// Begins a capture; nothing that comes later is missed.
    pub(crate) fn start(fixture: &Fixture, name: &str, arguments: &[&str]) -> Result<Self> {
        Self::by(fixture.balancer.command(&[]), &fixture.fabric.balancer, name, arguments)
    }

    /// Begins a capture by a `spillway` on a node.
    pub(crate) fn by(
        mut spillway: Command,
        node: &Node,
        name: &str,
        arguments: &[&str],
    ) -> Result<Self> {
        let node = node.clone();
        let file = node.directory().join(format!("{name}.pcapng"));
        spillway.args(["capture", "-w"]).arg(&file).args(arguments);
        let log = node.directory().join(format!("{name}.log"));
        let mut running = Running::start("spillway", &mut spillway, &log)?;
        let empty = until("the capture is on", PATIENCE, || {
            running.check()?;
            Ok(fs::metadata(&file).ok().map(|file| file.len()).filter(|length| *length > 0))
        })?;
        Ok(Self { running, file, node, empty })
    }

    /// Waits until a packet is written.
    pub(crate) fn has_some(&mut self) -> Result<()> {
        until("a packet is written", PATIENCE, || {
            self.running.check()?;
            Ok((fs::metadata(&self.file)?.len() > self.empty).then_some(()))
        })
    }

    /// Waits until it has ended by itself; answers its frames, and what it said.
    pub(crate) fn end(mut self) -> Result<(Frames, String)> {
        let status = until("the capture ends", PATIENCE, || self.running.ended())?;
        let said = self.running.output();
        ensure!(status.success(), "spillway capture: {status}\n{said}");
        Ok((Frames::new(self.node.clone(), self.file.clone()), said))
    }
}

/// The word by which the packet program knows that somebody captures.
pub(crate) fn word(fixture: &Fixture) -> Result<u64> {
    let pin = Pins::new(&fixture.balancer.bpffs, Component::Balancer).map("CAPTURE");
    let map = Map::from_map_data(MapData::from_pin(&pin).context("the pin")?)?;
    const WORDS: usize = size_of::<Capture>() / size_of::<u64>();
    let map: Array<_, [u64; WORDS]> = Array::try_from(map)?;
    Ok(map.get(&0, 0)?[0])
}

/// Restarts the balancer without ICMP errors: packets at their last hop are then dropped, not answered.
pub(super) fn without_icmp_errors(fixture: &mut Fixture) -> Result<()> {
    fixture.balancer.more.extend(["--icmp-errors".into(), "0".into()]);
    fixture.balancer.stop()?;
    fixture.balancer.start()?;
    fixture.wait_up(&[])
}
