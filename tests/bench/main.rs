//! `cargo xtask bench`: measures the packet programs, in a sandbox of its own.
//!
//! Every figure is taken in turn with its floor, in one run, and is a median: machines are noisy.
#![allow(clippy::print_stdout, reason = "a table is what it is for")]

mod cases;
mod report;
mod requests;

use std::{
    hint::black_box,
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use clap::Parser;
use lb_model::maglev::{BuildError, Member, TableSpec};
use lb_tests::{
    daemon::Binaries,
    sandbox,
    test_run::{programs::Programs, throughput},
};

use report::Report;

#[derive(Parser)]
#[command(about = "Measures the packet programs against their floor, in turn, in one run")]
struct Arguments {
    /// Where datapath.json goes.
    #[arg(long)]
    out: PathBuf,
    /// Folder with balancer.o and bench.o.
    #[arg(long, env = "SPILLWAY_BPF_OBJECTS")]
    objects: PathBuf,
    /// Fewer and shorter rounds: figures for a glance, not for a document.
    #[arg(long)]
    quick: bool,
}

fn main() -> Result<()> {
    let sandbox = sandbox::enter();
    let arguments = Arguments::parse();
    let (rounds, repeat, frames) =
        if arguments.quick { (5, 200_000, 500_000) } else { (15, 2_000_000, 5_000_000) };
    let mut programs = Programs::load(&arguments.objects)?;
    let mut timings = Vec::new();
    for &case in cases::CASES {
        eprintln!("{}, {} flows", case.name, case.flows);
        timings.push(cases::time(&mut programs, case, rounds, repeat)?);
    }
    eprintln!("packets a second over a veth pair");
    veth("near", "far")?;
    let throughput = throughput::measure(&mut programs, ("near", "far"), rounds.min(7), frames)?;
    eprintln!("fresh connections by curl");
    let connections = if arguments.quick { 100 } else { 500 };
    let requests = requests::measure(&sandbox, &Binaries::find()?, connections)?;
    let tables = [10, 100, 1000]
        .into_iter()
        .map(|members| Ok((members, build_time(members, 65_537, rounds)?)))
        .collect::<Result<_>>()?;
    let report = Report { timings, throughput, requests, tables };
    println!("{}", report.table());
    report.write(&arguments.out)
}

/// A veth pair in the sandbox's own network namespace, both ends up.
fn veth(near: &str, far: &str) -> Result<()> {
    for arguments in [
        format!("link add {near} type veth peer name {far}"),
        format!("link set {near} up"),
        format!("link set {far} up"),
    ] {
        let status = Command::new("ip").args(arguments.split(' ')).status().context("ip")?;
        anyhow::ensure!(status.success(), "ip {arguments}: {status}");
    }
    Ok(())
}

/// Median time of `repeats` builds (one at least) of a table of equal members, from unsorted members
/// to finished words.
fn build_time(members: u16, slots: u32, repeats: usize) -> Result<Duration, BuildError> {
    let group: Vec<_> = (0..members)
        .rev()
        .map(|n| Member {
            key: IpAddr::from(Ipv4Addr::from_bits(0x0a00_0000 + u32::from(n))).into(),
            weight: 1,
        })
        .collect();
    let mut times = Vec::new();
    for _ in 0..repeats.max(1) {
        let begin = Instant::now();
        black_box(TableSpec::new(black_box(&group), slots)?.build());
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}
