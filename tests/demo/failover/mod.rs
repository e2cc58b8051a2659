//! A host falls silent: clients through a plain nginx as a reverse proxy beside clients through
//! Spillway.
//!
//! After "NGINX Consul Load Balancing" by Ethan Baron and Catherine Meadows (Advanced Networking,
//! George Washington University, 2020; gwadvnet20.github.io/wiki/nginxconsullb): three nodes whose
//! page names the node, a client that asks 100 times with a second's pause, one node offline, and a
//! histogram of the response times. There about a tenth of the requests through a plain nginx took
//! 60 seconds; the other histograms are pictures without figures.

mod clients;
mod outcome;
mod setup;

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;

use crate::shared::{Environment, Screen};

/// What nginx has by itself: how long it waits for a connection, and how long it leaves alone
/// whoever failed.
const NGINX: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(10));
/// What a health check has by itself: interval, which is its timeout too, and failures in a row.
const CHECK: (Duration, u32) = (Duration::from_secs(1), 3);
/// The client's pause after an answer.
const PAUSE: Duration = Duration::from_secs(1);

/// What can be chosen.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Shortens all times by this factor, 0.1 to 1: the clients' pause, nginx's timeouts and the
    /// health check's interval. The kernel's own second until a SYN is repeated stays
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Requests of each client, one after the other
    #[arg(long, default_value_t = 100)]
    requests: usize,
}

impl Options {
    fn scaled(&self, time: Duration) -> Duration {
        time.mul_f64(self.scale)
    }

    /// Answers after which the node is switched off.
    fn before(&self) -> usize {
        self.requests / 4
    }
}

/// Sets up, has both clients ask, and tells what came of it.
pub(crate) fn run(environment: &Environment, options: &Options, screen: &mut Screen) -> Result<()> {
    ensure!((0.1..=1.0).contains(&options.scale), "--scale: 0.1 to 1, not {}", options.scale);
    ensure!(options.requests >= 20, "--requests: at least 20, not {}", options.requests);
    screen.title("Spillway: a host falls silent; nginx as a proxy, and Spillway");
    let setup = setup::Setup::set(environment, options, screen)?;
    let record = clients::ask(&setup, options, screen)?;
    outcome::conclude(environment, options, &record, screen)
}
