//! The command at work.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use aya::maps::{Array, Map, MapData};
use lb_daemon::dataplane::{Pins, Role};
use lb_tests::capture::Frames;
use lb_tests::process::{PATIENCE, Running, until};
use lb_tests::scene::Scene;
use lb_tests::topology::Node;

/// `spillway capture`, while it is on.
pub(crate) struct Taking {
    pub(crate) running: Running,
    file: PathBuf,
    node: Node,
    /// Bytes of the file before any packet.
    empty: u64,
}

impl Taking {
    /// Begins a capture; nothing that comes later is missed.
    pub(crate) fn start(scene: &Scene, name: &str, arguments: &[&str]) -> Result<Self> {
        let node = scene.fabric.balancer.clone();
        let file = node.directory().join(format!("{name}.pcapng"));
        let path = file.display().to_string();
        let all: Vec<_> = ["capture", "-w", &path].iter().chain(arguments).copied().collect();
        let log = node.directory().join(format!("{name}.log"));
        let mut running = Running::start("spillway", &mut scene.balancer.command(&all), &log)?;
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
pub(crate) fn word(scene: &Scene) -> Result<u64> {
    let pin = Pins::new(&scene.balancer.bpffs, Role::Balancer).map("CAPTURE");
    let map = Map::from_map_data(MapData::from_pin(&pin).context("the pin")?)?;
    let map: Array<_, [u64; 16]> = Array::try_from(map)?;
    Ok(map.get(&0, 0)?[0])
}
