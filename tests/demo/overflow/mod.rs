//! A full region overflows into the next: Google's "Capacity management with load balancing", done
//! again.
//!
//! The tutorial (docs.cloud.google.com/load-balancing/docs/tutorials/
//! capacity-management-with-load-balancing, of 2018) measures a web server that computes for 385 ms
//! a request by siege and httperf, then three of them, then three in each of two regions with a
//! capacity of 10 requests a second a region. Here the servers are processes in namespaces whose work
//! is waiting, and Spillway stands where Google's load balancer stood.

mod document;
mod outcome;
mod pictures;
mod regions;
mod round;
mod scale;
mod setup;
mod shares;
mod single;
mod tutorial;

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use lb_tests::traffic::Work;

use crate::shared::{Environment, Screen};
use scale::Scale;

/// Work of a request, and how many are worked on at the same time: about 5 requests a second.
const WORK: Work = Work { time: Duration::from_millis(385), at_a_time: 2 };

/// What can be chosen.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Shortens all times and raises all rates by this factor, 0.02 to 1: the work of a request, the
    /// rates of the load, the capacities
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Requests of each run of httperf
    #[arg(long, default_value_t = 500)]
    requests: u32,
    /// Rounds at each rate with two regions
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// Measures one server, one region and two, and tells what came of it.
pub(crate) fn run(environment: &Environment, options: &Options, screen: &mut Screen) -> Result<()> {
    ensure!((0.02..=1.0).contains(&options.scale), "--scale: 0.02 to 1, not {}", options.scale);
    ensure!(options.requests >= 200, "--requests: at least 200, not {}", options.requests);
    ensure!(options.rounds >= 1, "--rounds: at least 1");
    screen.title("Spillway: a full region overflows into the next");
    let scale = Scale(options.scale);
    if options.scale < 1.0 {
        screen.line(&format!(
            "Scaled by {}: a request takes {:.1} ms, rates and capacities are {} times as high. Figures \
             are told as at scale 1.",
            options.scale,
            scale.shorter(WORK.time).as_secs_f64() * 1e3,
            scale.faster(1.0)
        ));
    }
    let setup = setup::Setup::set(environment, scale, options.requests, screen)?;
    let single = single::measure(&setup, screen)?;
    let region = regions::one_region(&setup, screen)?;
    let overflow = regions::two_regions(&setup, options.rounds, screen)?;
    outcome::conclude(environment, &setup, &outcome::Record { single, region, overflow }, screen)
}
