//! `lab`: the README's network of namespaces with everything running, which stays when the command ends.
//!
//! A lab is namespaces named `spillway-lab-…`, the processes in them, and the folder `/run/spillway-lab` with its
//! files and its BPF file system. `lab down` looks for all of these by name and by namespace, and needs no record of
//! them: it also removes what a lab left that was half built, or of which somebody removed a part.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "its unit tests may be blunt")]

mod down;
mod files;
mod guide;
mod network;
mod programs;
mod settings;
mod up;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Parser, Subcommand};

use crate::files::Place;

/// A lab of Spillway in network namespaces of this machine, which stays until `lab down`
#[derive(Debug, Parser)]
#[command(name = "cargo xtask lab", bin_name = "cargo xtask lab")]
struct Arguments {
    #[command(flatten)]
    up: UpArguments,
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Where `spillwayd`, `spillway` and `webserver` are; set by xtask
    #[arg(long, value_name = "DIR", hide = true, global = true, default_value = "target/release")]
    bin_dir: PathBuf,
    /// User who may open the balancers' sockets, and who needs sudo for all else; set by xtask
    #[arg(long, value_name = "UID", hide = true, global = true)]
    user: Option<u32>,
    /// Sets a lab apart from others on this machine: letters and digits
    #[arg(long, value_name = "NAME", hide = true, global = true)]
    #[arg(env = "SPILLWAY_LAB", default_value = "lab")]
    name: String,
}

/// What a lab is made of.
#[derive(Args, Clone, Copy, Debug)]
struct UpArguments {
    /// Balancers; more than one are a fleet, with etcd
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=3))]
    balancers: u8,
    /// Regions of two backends each: eu, where the balancers are, and us
    #[arg(long, value_name = "NUMBER", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=2))]
    regions: u8,
}

#[derive(Clone, Copy, Debug, Subcommand)]
enum Verb {
    /// Remove it: processes, namespaces, pinned programs, files
    Down,
    /// Show what runs in it, and the commands to try
    Status,
    /// Start again what has ended, and plug in what was unplugged
    Repair,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            files::complain(&format!("lab: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    if !nix::unistd::geteuid().is_root() {
        bail!("namespaces need root; `cargo xtask lab` asks for it");
    }
    // What a user is to read is for everybody, whatever root's own habit.
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o022));
    let place = Place::new(&arguments.name)?;
    match arguments.verb {
        None => {
            let bin_dir = std::path::absolute(&arguments.bin_dir).context("--bin-dir")?;
            up::up(&place, arguments.up, &bin_dir, arguments.user)
        }
        Some(Verb::Down) => down::down(&place),
        Some(Verb::Status) => up::status(&place),
        Some(Verb::Repair) => up::repair(&place),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Arguments::command().debug_assert();
    }
}
