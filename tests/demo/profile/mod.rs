//! What a balancer costs: Colt McAnlis' "Profiling GCP's Load Balancers" (2017) done again.
//!
//! There curl fetched a page 500 times from a machine on another continent: straight, by a network load balancer, and by
//! an HTTP load balancer. Here fetches go to one web server straight, through Spillway, through proxies of connections,
//! and through a proxy of HTTP that keeps its connections to the server: on links without a delay, and with a long way
//! before or behind the balancer.

mod measure;
mod outcome;
mod site;

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;

use crate::shared::{Environment, Screen};

/// What a round trip takes longer on a long way.
const ROUND_TRIP: Duration = Duration::from_millis(100);
/// Rounds, in each of which every way has its turn.
const ROUNDS: usize = 9;
/// Fetches of a way in a round.
const FETCHES: usize = 560;

/// How it is done.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Factor on rounds, fetches and times, 0.05 to 1. Below 1 nothing is held to a ratio of times
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
}

impl Options {
    /// So many, at least `least`.
    fn scaled(&self, count: usize, least: usize) -> usize {
        ((count as f64 * self.scale).round() as usize).max(least)
    }

    /// A trial may share its machine, so its times say little.
    fn is_trial(&self) -> bool {
        self.scale < 1.0
    }
}

/// How a fetch gets to the web server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Direct,
    /// Through a node in the balancer's place that only forwards.
    Hop,
    Spillway,
    NginxStream,
    Haproxy,
    NginxHttp,
}

impl Way {
    /// All, in the order of tables.
    const ALL: [Self; 6] = [
        Self::Direct,
        Self::Hop,
        Self::Spillway,
        Self::NginxStream,
        Self::Haproxy,
        Self::NginxHttp,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Hop => "one router more",
            Self::Spillway => "Spillway",
            Self::NginxStream => "nginx, stream",
            Self::Haproxy => "haproxy, TCP",
            Self::NginxHttp => "nginx, HTTP",
        }
    }

    /// Whether it carries connections of any kind, not only HTTP.
    fn is_l4(self) -> bool {
        self != Self::NginxHttp
    }
}

/// Where the long way is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Distance {
    Near,
    FarClient,
    FarServer,
}

impl Distance {
    const ALL: [Self; 3] = [Self::Near, Self::FarClient, Self::FarServer];

    const fn name(self) -> &'static str {
        match self {
            Self::Near => "links without a delay",
            Self::FarClient => "100 ms between client and balancer",
            Self::FarServer => "100 ms between balancer and server",
        }
    }
}

/// Sets up, measures by turns, and tells what came of it.
pub(crate) fn run(environment: &Environment, options: &Options, screen: &mut Screen) -> Result<()> {
    ensure!((0.05..=1.0).contains(&options.scale), "--scale: 0.05 to 1, not {}", options.scale);
    screen.title("Spillway: what a balancer costs");
    let site = site::Site::new(environment, screen)?;
    let record = measure::measure(&site, options, screen)?;
    outcome::conclude(environment, options, &record, screen)
}
