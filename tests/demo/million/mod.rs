//! A million requests a second: Google's experiment of 2013 done again, by packets.
//!
//! Clients and backends are not programs, since no machine of this size could run so many: a client is the six packets that
//! a real one sends, and a backend counts those that it gets. What is between is the real daemon and its program, natively
//! on a veth. Health checks are real: a web server answers for all backends.

mod churn;
mod exchange;
mod generator;
mod outcome;
mod setup;
mod site;
mod start;
mod steady;
mod tally;

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use nix::{
    sched::{CpuSet, sched_getaffinity},
    unistd::Pid,
};

use crate::shared::{Environment, Screen};

/// Backends of the service.
const BACKENDS: u8 = 200;
/// Those that fail and come back, the first ones.
const FAILING: u8 = 10;
/// Those that are added.
const ADDED: u8 = 20;
/// CPUs that send, balance and count.
const CPUS: usize = 2;
/// How long as many requests as possible are sent.
const STEADY: Duration = Duration::from_secs(60);

/// Between two events while backends fail, come back and are added.
const BETWEEN: Duration = Duration::from_secs(15);

/// How it is done.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Factor on how long requests are sent; all that must be so is checked all the same
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
}

impl Options {
    fn scaled(&self, time: Duration) -> Duration {
        time.mul_f64(self.scale)
    }

    /// A trial may share its machine: it is judged by what goes where, not by how much of it.
    fn is_trial(&self) -> bool {
        self.scale < 1.0
    }
}

/// Sets up, sends requests, and tells what came of it.
pub(crate) fn run(environment: &Environment, options: &Options, screen: &mut Screen) -> Result<()> {
    ensure!((0.05..=1.0).contains(&options.scale), "--scale: 0.05 to 1, not {}", options.scale);
    // Those that may be used at all: a quota of time makes them slow, not fewer.
    let ours = sched_getaffinity(Pid::this())?;
    let cpus = (0..CpuSet::count()).filter(|cpu| ours.is_set(*cpu) == Ok(true)).count();
    ensure!(cpus >= CPUS, "this needs {CPUS} CPUs; there are {cpus}");
    screen.title("Spillway: a million requests a second");
    let mut setup = setup::Setup::new(environment, screen)?;
    let start = start::measure(&mut setup, screen)?;
    let steady = steady::measure(&mut setup, options.scaled(STEADY), options.is_trial(), screen)?;
    let churn = churn::measure(&mut setup, options.scaled(BETWEEN), screen)?;
    outcome::conclude(environment, options, &outcome::Record { start, steady, churn }, screen)
}
