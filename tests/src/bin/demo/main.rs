//! `demo`: Spillway at work in a few seconds, with real parts.
//!
//! It lays out a network of namespaces, runs the real daemon, tells it what to do by the real command
//! line, sends real HTTP requests by Debian's tools, takes backends away and brings them back, and
//! holds what clients, backends and balancer counted against each other. When it ends, however it
//! ends, all it made is gone.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "its unit tests may be blunt")]

mod act;
mod load;
mod outcome;
mod play;
mod screen;
mod stage;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser;
use lb_tests::sandbox::{self, Sandbox};

use crate::screen::Screen;

/// Shows Spillway at work in network namespaces of this machine.
#[derive(Debug, Parser)]
struct Arguments {
    /// Where `spillwayd` and `spillway` are.
    #[arg(long, value_name = "DIR")]
    bin_dir: PathBuf,
    /// Where report and picture go.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
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
    let out = std::path::absolute(&arguments.out).context("--out")?;
    std::fs::create_dir_all(&out).with_context(|| format!("make {}", out.display()))?;
    let bin_dir = std::path::absolute(&arguments.bin_dir).context("--bin-dir")?;
    screen.title();
    let mut stage = stage::Stage::set(sandbox, &bin_dir, &out, screen)?;
    let record = play::play(&mut stage, screen)?;
    outcome::conclude(&stage, &record, &out, screen)
}
