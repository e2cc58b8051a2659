//! Simulations: of large fleets by the program `simulate` of lb-simulate, of a month by a scenario.

use std::{
    env,
    process::{Command, ExitCode},
};

use anyhow::{Result, ensure};

use crate::cargo::{self, cargo};
use crate::cli::{SimulateFleetArgs, SimulateMonthArgs, Simulation};
use crate::process;
use crate::ui;
use crate::workspace;

const PACKAGE: &str = "lb-simulate";
const PROGRAM: &str = "simulate";

/// The scenario of a month, and the variables that it reads.
const MONTH: &str = "fleet::a_month_passes";
const MONTH_SEED: &str = "SPILLWAY_MONTH_SEED";
const MONTH_CHANGES: &str = "SPILLWAY_MONTH_CHANGES";

/// `cargo xtask simulate`.
pub(crate) fn run(what: &Simulation) -> Result<ExitCode> {
    match what {
        Simulation::Fleet(args) => run_fleet(args),
        Simulation::Month(args) => run_month(args),
    }
}

/// Runs the scenario at full size, with its settings in the environment.
fn run_month(args: &SimulateMonthArgs) -> Result<ExitCode> {
    let mut command = Command::new(env::current_exe()?);
    command.args(["test", "--long", "root", MONTH]);
    command.env(MONTH_SEED, args.seed.to_string()).env(MONTH_CHANGES, args.changes.to_string());
    process::check(command)?;
    Ok(ExitCode::SUCCESS)
}

/// It needs neither root nor packet programs, so nothing but it is built: protoc has to be there, as
/// for a plain `cargo test`.
fn run_fleet(args: &SimulateFleetArgs) -> Result<ExitCode> {
    let mut build = cargo();
    build.args(["build", "--release", "--package", PACKAGE]);
    process::check(build)?;
    let program = workspace::binaries(true).join(PROGRAM);
    ensure!(program.is_file(), "{PACKAGE} has no program {PROGRAM}");
    let mut command = Command::new(program);
    cargo::clean(&mut command);
    let date = process::read(Command::new("date").args(["--utc", "+%Y-%m-%d"]))?;
    command.args(["--command", &words(args).join(" "), "--date", date.trim()]);
    if args.quick {
        command.arg("--quick");
    }
    if let Some(size) = &args.only {
        command.args(["--only", size]);
    }
    let page = workspace::root().join("docs/fleet-size.md");
    if args.document {
        command.arg("--document").arg(&page);
    }
    ui::heading("simulation of fleets");
    process::check(command)?;
    if args.document {
        ui::note(&format!("{} is written", page.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// The command as the page names it.
fn words(args: &SimulateFleetArgs) -> Vec<&'static str> {
    let mut words = vec!["cargo xtask simulate fleet"];
    words.extend(args.quick.then_some("--quick"));
    words.extend(args.document.then_some("--document"));
    words
}
