//! `demo`: Spillway at work, with real parts.
//!
//! Each run lays out a network of namespaces, runs the real daemon, tells it what to do by the real
//! command line, sends real HTTP requests by Debian's tools, and holds what clients, backends and
//! balancer say against each other. When it ends, however it ends, all it made is gone.
//!
//! [`tour`] shows a failover in a few seconds. [`overflow`], [`failover`], [`million`] and [`profile`] are experiments
//! of others, done again with Spillway.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "its unit tests may be blunt")]

mod failover;
mod million;
mod overflow;
mod profile;
mod shared;
mod tour;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use lb_tests::sandbox::{self, Sandbox};

use crate::shared::{Environment, Screen};

/// Shows Spillway at work in network namespaces of this machine.
#[derive(Debug, Parser)]
struct Arguments {
    /// Where `spillwayd` and `spillway` are.
    #[arg(long, value_name = "DIR")]
    bin_dir: PathBuf,
    /// Where report and pictures go; the experiments have a directory of their own in it.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// What to show; the tour if nothing is said.
    #[command(subcommand)]
    run: Option<Run>,
}

#[derive(Debug, Subcommand)]
enum Run {
    /// One address, two regions, six backends: they fall and return under load
    Tour,
    /// Google's "Capacity management with load balancing": a full region overflows into the next
    Overflow(overflow::Options),
    /// A host falls silent: a plain nginx as the proxy beside Spillway
    Failover(failover::Options),
    /// Google's "a million requests a second": 200 backends behind one address, by packets
    Million(million::Options),
    /// What a balancer costs: fetches straight, through Spillway, nginx and haproxy, near and far
    Profile(profile::Options),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let sandbox = sandbox::enter();
    let mut screen = Screen::new();
    match run(&sandbox, &arguments, &mut screen) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            screen.failure(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(sandbox: &Sandbox, arguments: &Arguments, screen: &mut Screen) -> Result<()> {
    let bin_dir = std::path::absolute(&arguments.bin_dir).context("--bin-dir")?;
    let out = std::path::absolute(&arguments.out).context("--out")?;
    let environment = |name: &str| Environment::new(sandbox, &bin_dir, &out.join(name));
    match &arguments.run {
        None | Some(Run::Tour) => tour::run(&environment("")?, screen),
        Some(Run::Overflow(options)) => overflow::run(&environment("overflow")?, options, screen),
        Some(Run::Failover(options)) => failover::run(&environment("failover")?, options, screen),
        Some(Run::Million(options)) => million::run(&environment("million")?, options, screen),
        Some(Run::Profile(options)) => profile::run(&environment("profile")?, options, screen),
    }
}
