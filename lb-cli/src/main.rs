//! `spillway`: the command line of the Spillway load balancer.
//!
//! Answers go to stdout, everything else to stderr. `apply`, `export`, `status` and `watch` ask the
//! daemon over its socket; `stats`, `table` and `explain` read the pinned maps and need no daemon;
//! `regions` does both.

mod arguments;
mod daemon;
mod endpoint;
mod exit;
mod failure;
mod names;
mod output;
mod pinned;
mod role;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

use crate::{
    arguments::{Arguments, Verb},
    exit::Exit,
    failure::Failure,
};

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => Exit::Success.into(),
        Err(failure) => {
            eprintln!("{failure}");
            failure.exit.into()
        }
    }
}

fn run(Arguments { options, verb }: Arguments) -> Result<(), Failure> {
    match verb {
        Verb::Apply(arguments) => verbs::apply::run(options, arguments),
        Verb::Export => verbs::export::run(options),
        Verb::Status => verbs::status::run(options),
        Verb::Watch => verbs::watch::run(options),
        Verb::Regions(arguments) => verbs::regions::run(&options, &arguments),
        Verb::Stats(arguments) => verbs::stats::run(&options, &arguments),
        Verb::Table(arguments) => verbs::table::run(&options, &arguments),
        Verb::Explain(arguments) => verbs::explain::run(&options, &arguments),
        Verb::Detach(arguments) => verbs::detach::run(&options, &arguments),
        Verb::Verdicts => verbs::verdicts::run(&options),
    }
}
