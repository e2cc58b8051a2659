//! The command line.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Parser, Subcommand};

use crate::setup::kernel::SERIES;

/// Sets up, builds, demonstrates, tests and measures Spillway.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Print what is missing, with size and reason, and install it
    Setup(SetupArgs),
    /// Build the packet programs and the host programs
    Build(BuildArgs),
    /// A Debian package and a tarball, in target/package
    Package(PackageArgs),
    /// Real daemon, real CLI, real HTTP traffic through namespaces on this machine
    Demo(DemoArgs),
    /// The same network, left running to try things in: lab, lab status, lab repair, lab down
    Lab(LabArgs),
    /// Format, lint and unit tests of what changed: a minute or two
    Check(CheckArgs),
    /// All tests, the longest of them in part; --long runs them whole
    Test(TestArgs),
    /// Measure the packet path
    Bench(BenchArgs),
    /// Simulate large fleets, or a month of a small one
    #[command(subcommand)]
    Simulate(Simulation),
    /// Give the packet path and the doors of configurations bytes that nobody thought of
    Fuzz(FuzzArgs),
    /// Generate the Rust code of the API again from its .proto files
    Proto,
    /// Run a program and end it with the one who asked for it (used by xtask itself, as root)
    #[command(hide = true)]
    Hold(HoldArgs),
}

#[derive(Args)]
pub(crate) struct SetupArgs {
    /// Only list what is missing
    #[arg(long)]
    pub(crate) no_install: bool,
}

#[derive(Args)]
pub(crate) struct BuildArgs {
    /// Optimised host programs (the packet programs always are)
    #[arg(long)]
    pub(crate) release: bool,
}

#[derive(Args)]
pub(crate) struct PackageArgs {
    /// Version of the packages [default: the tree's]
    #[arg(long, value_name = "VERSION")]
    pub(crate) version: Option<String>,
}

#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Only list what is missing, install nothing
    #[arg(long)]
    pub(crate) no_install: bool,
    /// What to show: nothing for the tour, or an experiment with its own options, `overflow`,
    /// `failover`, `million` or `profile` (`million --help`); all is passed on to the demo
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) args: Vec<OsString>,
}

#[derive(Args)]
pub(crate) struct LabArgs {
    /// Only list what is missing, install nothing
    #[arg(long)]
    pub(crate) no_install: bool,
    /// Passed on to the lab: nothing starts it, with --balancers NUMBER or --regions NUMBER; `status` shows it, `repair`
    /// starts again what ended in it, `down` removes it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) args: Vec<OsString>,
}

#[derive(Args)]
pub(crate) struct TestArgs {
    /// Everything at full size: hours, not minutes
    #[arg(long, conflicts_with = "commit")]
    pub(crate) long: bool,
    /// Sample what a run on this commit samples [default: HEAD]
    #[arg(long = "as", value_name = "COMMIT")]
    pub(crate) commit: Option<String>,
    /// Series of Debian's kernels to boot in QEMU [default: 6.1; with --long 6.1 and 6.12]
    #[arg(long = "kernel", value_name = "SERIES")]
    pub(crate) kernels: Vec<String>,
    /// How long each fuzz target runs (--long, or the step fuzz)
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub(crate) fuzz_seconds: u64,
    /// Names of steps (fmt, clippy-bpf, deny, alerts, build, clippy, doc, unit, races, root, mutants, package, fuzz,
    /// experiments), or parts of names of tests; nothing runs everything but the last two, which
    /// --long adds
    pub(crate) filter: Vec<String>,
}

impl TestArgs {
    /// The series of kernels to boot.
    pub(crate) fn kernels(&self) -> Vec<&str> {
        match (&self.kernels[..], self.long) {
            ([], false) => SERIES[..1].to_vec(),
            ([], true) => SERIES.to_vec(),
            (asked, _) => asked.iter().map(String::as_str).collect(),
        }
    }
}

#[derive(Args)]
pub(crate) struct CheckArgs {
    /// What changed since this revision [default: HEAD; the last commit if nothing changed since]
    #[arg(long, value_name = "REVISION")]
    pub(crate) since: Option<String>,
}

#[derive(Args)]
pub(crate) struct BenchArgs {
    /// Fewer packets, wider error
    #[arg(long)]
    pub(crate) quick: bool,
    /// Build another revision too, in target/against, and measure both by turns
    #[arg(long, value_name = "REVISION")]
    pub(crate) against: Option<String>,
    /// Measure Spillway beside others, and nothing else: nftables, haproxy and nginx, or another balancer's packet
    /// program, which a script loads (CONTRIBUTING.md)
    #[arg(long, value_name = "SCRIPT", num_args = 0..=1, conflicts_with = "against")]
    pub(crate) peers: Option<Option<PathBuf>>,
    /// Measure everything and write docs/performance.md
    #[arg(long, conflicts_with_all = ["against", "peers"])]
    pub(crate) document: bool,
    /// Only list what is missing, install nothing
    #[arg(long)]
    pub(crate) no_install: bool,
    /// Passed on to the bench: --realtime, --only WORD; `control` measures the daemon instead of the packet path, with
    /// options of its own (`control --help`)
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) args: Vec<OsString>,
}

#[derive(Subcommand)]
pub(crate) enum Simulation {
    /// Large fleets that share capacities, without packets, and what sharing costs each balancer as they grow
    Fleet(SimulateFleetArgs),
    /// A month of four balancers with packets and etcd: thousands of changes, and what happens to hosts, disks, clocks,
    /// certificates and etcd meanwhile (root)
    Month(SimulateMonthArgs),
}

#[derive(Args)]
pub(crate) struct SimulateFleetArgs {
    /// Fewer and smaller fleets, for a shorter time
    #[arg(long)]
    pub(crate) quick: bool,
    /// One size only: balancers, regions and pools, as in 100x1x10
    #[arg(long, value_name = "SIZE", conflicts_with = "document")]
    pub(crate) only: Option<String>,
    /// Write docs/fleet-size.md instead of printing it
    #[arg(long)]
    pub(crate) document: bool,
}

#[derive(Args)]
pub(crate) struct SimulateMonthArgs {
    /// What changes and happens follows from it
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    pub(crate) seed: u64,
    /// Changes of the configuration and of overrides
    #[arg(long, default_value_t = 3000, value_name = "NUMBER")]
    pub(crate) changes: u64,
}

#[derive(Args)]
pub(crate) struct FuzzArgs {
    /// One target only [default: all, one after the other]
    #[arg(long)]
    pub(crate) target: Option<String>,
    /// How long each target runs
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub(crate) seconds: u64,
    /// Only list what is missing, install nothing
    #[arg(long)]
    pub(crate) no_install: bool,
}

#[derive(Args)]
pub(crate) struct HoldArgs {
    /// The program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub(crate) command: Vec<OsString>,
}
