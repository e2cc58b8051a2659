//! The simulation of large fleets, by the program `simulate` of lb-simulate.

use std::process::{Command, ExitCode};

use anyhow::{Result, ensure};

use crate::cargo::{self, cargo};
use crate::cli::{SimulateArgs, Simulation};
use crate::process;
use crate::ui;
use crate::workspace;

const PACKAGE: &str = "lb-simulate";
const PROGRAM: &str = "simulate";

/// `cargo xtask simulate`. It needs neither root nor packet programs, so nothing but it is built: protoc has to be there, as
/// for a plain `cargo test`.
pub(crate) fn run(args: &SimulateArgs) -> Result<ExitCode> {
    let Simulation::Fleet = args.what;
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
fn words(args: &SimulateArgs) -> Vec<&'static str> {
    let mut words = vec!["cargo xtask simulate fleet"];
    words.extend(args.quick.then_some("--quick"));
    words.extend(args.document.then_some("--document"));
    words
}
