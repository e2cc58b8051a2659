//! `cargo xtask`: sets up, builds, demonstrates, tests and measures Spillway.
//!
//! Links no crate of the project and no C library, so that it builds first and alone. Runs as the
//! user; what needs root goes through [`root`] and says what for.

mod artifacts;
mod bench;
mod build;
mod cargo;
mod check;
mod cli;
mod demo;
mod fuzz;
mod hold;
mod idle;
mod lab;
mod package;
mod process;
mod programs;
mod progress;
mod proto;
mod root;
mod setup;
mod signals;
mod simulate;
mod test;
mod ui;
#[cfg(test)]
mod unit_graph;
mod workspace;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Verb};

fn main() -> ExitCode {
    let verb = Cli::parse().verb;
    // The holder stands between sudo and a program: it has its own way with signals.
    if let Verb::Hold(args) = verb {
        return hold::run(&args);
    }
    if let Err(error) = signals::install() {
        return fail(&error);
    }
    let outcome = match verb {
        Verb::Setup(args) => setup::run(&args),
        Verb::Build(args) => build::run(&args),
        Verb::Package(args) => package::run(&args),
        Verb::Demo(args) => demo::run(&args),
        Verb::Lab(args) => lab::run(&args),
        Verb::Check(args) => check::run(&args),
        Verb::Test(args) => test::run(&args),
        Verb::Bench(args) => bench::run(&args),
        Verb::Simulate(args) => simulate::run(&args),
        Verb::Fuzz(args) => fuzz::run(&args),
        Verb::Proto => proto::run(),
        Verb::Hold(_) => unreachable!("taken above"),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => fail(&error),
    }
}

fn fail(error: &anyhow::Error) -> ExitCode {
    match error.downcast_ref::<signals::Interrupted>() {
        Some(interrupted) => {
            eprintln!("xtask: {interrupted}");
            interrupted.exit_code()
        }
        None => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
