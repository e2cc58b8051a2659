//! `spillway`: the command line of the Spillway load balancer.
//!
//! Answers go to stdout, everything else to stderr. `stats`, `table`, `explain` and `detach` open the
//! pins and need no daemon; `regions` and `doctor` do without it as far as they can; `verdicts` asks
//! nobody. All others ask the daemon, over its socket or over TLS.

mod arguments;
mod command_line;
mod daemon;
mod endpoint;
mod exit;
mod failure;
mod names;
mod origin;
mod output;
mod pinned;
mod receiver;
mod rights;
mod role;
mod source;
mod tls;
mod verbs;

use std::process::ExitCode;

use crate::{
    arguments::{Arguments, Objects, Verb},
    exit::Exit,
    failure::Failure,
};

fn main() -> ExitCode {
    match run(Arguments::read()) {
        Ok(exit) => exit.into(),
        Err(failure) => failure.told().exit.into(),
    }
}

fn run(Arguments { options, verb }: Arguments) -> Result<Exit, Failure> {
    let done = match verb {
        Verb::Diff(arguments) => return verbs::diff::run(options, &arguments),
        Verb::Edit(arguments) => verbs::edit::run(options, &arguments),
        Verb::Apply(arguments) => verbs::apply::run(options, arguments),
        Verb::Export => verbs::export::run(options),
        Verb::Region(Objects { verb }) => verb.run(options),
        Verb::Pool(Objects { verb }) => verb.run(options),
        Verb::Backend(Objects { verb }) => verb.run(options),
        Verb::Health(Objects { verb }) => verb.run(options),
        Verb::Service(Objects { verb }) => verb.run(options),
        Verb::Status => verbs::status::run(options),
        Verb::Reload(arguments) => verbs::reload::run(options, &arguments),
        Verb::Watch => verbs::watch::run(options),
        Verb::Regions(arguments) => verbs::regions::run(&options, &arguments),
        Verb::Top(arguments) => verbs::top::run(options, &arguments),
        Verb::Stats(arguments) => verbs::stats::run(&options, &arguments),
        Verb::Table(arguments) => verbs::table::run(&options, &arguments),
        Verb::Explain(arguments) => verbs::explain::run(&options, &arguments),
        Verb::Capture(arguments) => verbs::capture::run(options, arguments),
        Verb::Drops(arguments) => verbs::capture::drops::run(options, arguments),
        Verb::Detach(arguments) => verbs::detach::run(&options, &arguments),
        Verb::Doctor(arguments) => verbs::doctor::run(&options, &arguments),
        Verb::Verdicts => verbs::verdicts::run(&options),
        Verb::Completions(arguments) => verbs::manual::completions(&arguments),
        Verb::Man(arguments) => verbs::manual::man(&arguments),
    };
    done.map(|()| Exit::Success)
}
