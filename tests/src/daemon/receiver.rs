//! `spillwayd receiver` on a backend.

use std::net::IpAddr;

use anyhow::{Context as _, Result};
use lb_maps::{Component, Pins, links};

use super::Binaries;
use crate::process::{PATIENCE, Running, until};
use crate::sandbox::Sandbox;
use crate::topology::Node;

/// A running receiver on `eth0` of a node.
#[derive(Debug)]
pub struct Receiver {
    /// The process.
    pub running: Running,
}

impl Receiver {
    /// Starts it and waits until its program is attached.
    ///
    /// # Errors
    /// When that takes more than a minute.
    pub fn start(
        sandbox: &Sandbox,
        binaries: &Binaries,
        node: &Node,
        sources: &[IpAddr],
        vips: &[IpAddr],
    ) -> Result<Self> {
        Self::start_with(sandbox, binaries, node, sources, vips, &[])
    }

    /// The same with more arguments.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_with(
        sandbox: &Sandbox,
        binaries: &Binaries,
        node: &Node,
        sources: &[IpAddr],
        vips: &[IpAddr],
        more: &[&str],
    ) -> Result<Self> {
        let bpffs = sandbox.bpffs(node.namespace()).context("receiver: make a directory")?;
        let mut arguments = vec!["receiver".into(), "--interface".into(), "eth0".into()];
        arguments.extend(["--bpffs".into(), bpffs.display().to_string()]);
        for source in sources {
            let bits = if source.is_ipv4() { 32 } else { 128 };
            arguments.extend(["--allow-source".into(), format!("{source}/{bits}")]);
        }
        for vip in vips {
            arguments.extend(["--vip".into(), vip.to_string()]);
        }
        arguments.extend(more.iter().map(|&word| word.to_owned()));
        let mut running = node.spawn(&binaries.spillwayd, arguments)?;
        until("receiver is attached", PATIENCE, || {
            running.check()?;
            let links = node.enter(|| links(&Pins::new(&bpffs, Component::Receiver)))??;
            Ok(links.iter().any(|link| link.mode.is_some()).then_some(()))
        })?;
        Ok(Self { running })
    }
}
