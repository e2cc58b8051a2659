//! Frames as they passed a link, taken down by tcpdump and read by tshark: neither shares code with
//! us.

mod frames;

use std::path::PathBuf;

use anyhow::Result;
use nix::sys::signal::Signal;

pub use frames::Frames;

use crate::process::{PATIENCE, Running, eventually, until};
use crate::topology::Node;

/// A capture that goes on.
#[derive(Debug)]
pub struct Capture {
    running: Running,
    file: PathBuf,
    node: Node,
}

impl Capture {
    /// Begins to take down the frames (of at most 2048 bytes) of an interface that match `filter` (in tcpdump's language;
    /// empty: all), both ways. Returns when none can be missed any more.
    ///
    /// # Errors
    /// When tcpdump does not begin within a minute.
    pub fn start(node: &Node, interface: &str, filter: &str) -> Result<Self> {
        let file = node.directory().join(format!("{interface}.pcap"));
        let path = file.display().to_string();
        let log = node.directory().join("tcpdump.log");
        let begun =
            std::fs::read_to_string(log).unwrap_or_default().matches("listening on").count();
        let mut running = node.spawn(
            "tcpdump",
            [
                "-i",
                interface,
                "-s2048",
                "-B65536",
                "-nn",
                "-Zroot",
                "--nano",
                "-U",
                "--immediate-mode",
                "-w",
                &path,
                filter,
            ],
        )?;
        until("tcpdump listens", PATIENCE, || {
            running.check()?;
            let now = running.output().matches("listening on").count();
            Ok((now > begun).then_some(()))
        })?;
        Ok(Self { running, file, node: node.clone() })
    }

    /// Ends it once every frame so far is written down.
    ///
    /// # Errors
    /// When tcpdump missed frames or does not end.
    pub fn stop(mut self) -> Result<Frames> {
        self.settle()?;
        self.running.signal(Signal::SIGINT)?;
        let status = self.running.wait()?;
        let output = self.running.output();
        anyhow::ensure!(status.success(), "tcpdump: {status}\n{output}");
        let dropped = output.lines().rev().find(|line| line.contains("dropped by kernel"));
        anyhow::ensure!(
            dropped.is_some_and(|line| line.starts_with("0 ")),
            "tcpdump: missed frames\n{output}"
        );
        Ok(Frames::new(self.node.clone(), self.file.clone()))
    }

    /// On a signal tcpdump leaves what it has not read. It sleeps only when it has read, and written
    /// down, all there was.
    fn settle(&self) -> Result<()> {
        let stat = format!("/proc/{}/stat", self.running.id());
        eventually("tcpdump has written all", PATIENCE, || {
            std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") S "))
        })
    }
}
