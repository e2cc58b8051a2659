//! `webserver`: a web server of known capacity, as a backend of the experiments.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Parser;
use lb_tests::traffic::{Work, serve};

/// Serves HTTP on a port; each request takes a fixed time, only so many at once.
#[derive(Debug, Parser)]
struct Arguments {
    /// Port, on all addresses.
    #[arg(long, default_value_t = 80)]
    port: u16,
    /// What the page says.
    #[arg(long)]
    name: String,
    /// Work of a request, microseconds.
    #[arg(long)]
    work_us: u64,
    /// Requests worked on at the same time.
    #[arg(long)]
    at_a_time: usize,
    /// Where requests are written down.
    #[arg(long)]
    log: PathBuf,
}

fn main() -> Result<()> {
    let Arguments { port, name, work_us, at_a_time, log } = Arguments::parse();
    let log = File::options()
        .create(true)
        .append(true)
        .open(&log)
        .with_context(|| format!("open {}", log.display()))?;
    serve(port, &name, Work { time: Duration::from_micros(work_us), at_a_time }, log)
}
