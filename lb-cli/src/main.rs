//! `spillway`: the command line of the Spillway load balancer.
//!
//! Answers go to stdout, everything else to stderr. `stats`, `table`, `explain` and `detach` read the
//! pins and need no daemon; `regions` and `doctor` do what they can without one; `validate` and
//! `verdicts` need neither. All other commands ask the daemon, over its socket or over TLS.

mod arguments;
mod client;
mod commands;
mod contexts;
mod failure;
mod origin;
mod output;
mod pinned;

use std::{
    env,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;
use spillway_proto::v1;

use crate::{
    arguments::{Options, with_joined_wait},
    commands::{
        apply, capture,
        context::ContextCommand,
        detach, diff, doctor, drops, edit, explain, export,
        fleet::FleetCommand,
        history,
        objects::{BackendCommand, ObjectCommand, PoolCommand, RegionCommand},
        overrides::OverrideCommand,
        regions, reload, rollback, stats, status, table, top, validate, verdicts, watch,
    },
    failure::{Exit, Failure, describe},
};

/// Control and inspect the Spillway load balancer.
#[derive(Debug, Parser)]
#[command(name = "spillway", version, max_term_width = 80, after_help = EXIT_STATUS)]
struct Cli {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: Command,
}

const EXIT_STATUS: &str = "\
Exit status:
  0  success
  1  failure that no other status covers; `fleet status --check` found something
     wrong; balancers lag at the end of --wait
  2  wrong usage, or --yes is missing
  3  the daemon, or the etcd of its fleet, does not answer, or no packet program
     is pinned
  4  permission denied
  5  a named file, object or pin does not exist
  6  the configuration is invalid, or on a reload the settings; what was in
     force stays in force
  7  conflict: another generation or etag is in force, the object exists already
     or is in use, another capture is running, the daemon is running, or the
     balancer is, or is not, a member of a fleet, or in conflict with it
  8  `diff`: the configurations differ
  9  `doctor` found problems";

/// Each command's arguments are defined in its own module.
#[derive(Debug, Subcommand)]
enum Command {
    /// Put a configuration file in force; it replaces the whole configuration, as one generation
    Apply(apply::Arguments),
    /// Check a configuration file, and print all its mistakes (no daemon needed)
    Validate(validate::Arguments),
    /// Show what differs between generations, or what a configuration file would change; exit status 8 if anything
    Diff(diff::Arguments),
    /// Print the configuration in force
    Export,
    /// List the last generations, with who applied them and why
    History,
    /// Put the configuration of an earlier generation in force again, as a new generation
    Rollback(rollback::Arguments),
    /// Edit the configuration in force with $VISUAL or $EDITOR, then apply it
    Edit(edit::Arguments),
    /// Manage regions
    Region(Nested<RegionCommand>),
    /// Manage pools
    Pool(Nested<PoolCommand>),
    /// Manage backends
    Backend(Nested<BackendCommand>),
    /// List and remove overrides: drains, disables, weights and scales beside the configuration
    Override(Nested<OverrideCommand>),
    /// Manage health checks
    Health(Nested<ObjectCommand<v1::HealthCheck>>),
    /// Manage services
    Service(Nested<ObjectCommand<v1::Service>>),
    /// Join, see and leave a fleet: several balancers with one configuration and one set of capacities
    Fleet(Nested<FleetCommand>),
    /// Show the state of the daemon, its services and its backends
    Status(status::Arguments),
    /// Reload the daemon's settings and its configuration file; fails if the daemon refuses them
    Reload(reload::Arguments),
    /// Print each change of generation, health, next hop or capacity as it happens
    Watch,
    /// Show demand and capacity of each region (the daemon is needed only for the capacity)
    Regions(regions::Arguments),
    /// Show regions, services, backends and drops, live
    Top(top::Arguments),
    /// Print the packet counters (no daemon needed)
    Stats(stats::Arguments),
    /// Show which backends own the slots of a pool's tables (no daemon needed)
    Table(table::Arguments),
    /// Explain which backend a packet goes to, and why (no daemon needed)
    Explain(explain::Arguments),
    /// Write packets, as received and as sent, with their verdicts to a pcap-ng file
    Capture(capture::Arguments),
    /// Print dropped packets as they arrive, with the reason
    Drops(drops::Arguments),
    /// Give daemons names, and choose the one to ask
    Context(Nested<ContextCommand>),
    /// Check this host, and print each problem with the command that fixes it
    Doctor(doctor::Arguments),
    /// Remove packet programs and pins; packets are then no longer balanced
    Detach(detach::Arguments),
    /// List every verdict that a packet can get, with its meaning
    Verdicts,
    /// Print a completion script for a shell
    Completions(CompletionsArguments),
    /// Write the manual, one page per command
    #[command(hide = true)]
    Man(ManArguments),
}

impl Command {
    /// Whether it neither asks a daemon nor looks at the host, so that no context concerns it.
    fn asks_nobody(&self) -> bool {
        matches!(
            self,
            Self::Context(_)
                | Self::Validate(_)
                | Self::Verdicts
                | Self::Completions(_)
                | Self::Man(_)
        )
    }
}

/// A command that has subcommands of its own.
#[derive(Args, Debug)]
struct Nested<C: Subcommand> {
    #[command(subcommand)]
    command: C,
}

#[derive(Args, Debug)]
struct CompletionsArguments {
    /// Shell to complete for
    shell: Shell,
}

#[derive(Args, Debug)]
struct ManArguments {
    /// Existing directory to write the pages to
    directory: PathBuf,
}

fn main() -> ExitCode {
    let cli = Cli::parse_from(with_joined_wait(env::args_os()));
    match run(cli) {
        Ok(exit) => exit.into(),
        Err(failure) => output::print_failure(failure).exit.into(),
    }
}

fn run(Cli { options, command }: Cli) -> Result<Exit, Failure> {
    let options = match command.asks_nobody() {
        true => options,
        false => options.with_context()?,
    };
    let done = match command {
        Command::Context(Nested { command }) => command.run(&options),
        Command::Diff(arguments) => return diff::run(options, arguments),
        Command::Edit(arguments) => edit::run(options, &arguments),
        Command::Apply(arguments) => apply::run(options, arguments),
        Command::Validate(arguments) => validate::run(&options, &arguments),
        Command::Export => export::run(options),
        Command::History => history::run(options),
        Command::Rollback(arguments) => rollback::run(options, &arguments),
        Command::Region(Nested { command }) => command.run(options),
        Command::Pool(Nested { command }) => command.run(options),
        Command::Backend(Nested { command }) => command.run(options),
        Command::Override(Nested { command }) => command.run(options),
        Command::Health(Nested { command }) => command.run(options),
        Command::Service(Nested { command }) => command.run(options),
        Command::Fleet(Nested { command }) => command.run(options),
        Command::Status(arguments) => status::run(options, &arguments),
        Command::Reload(arguments) => reload::run(options, &arguments),
        Command::Watch => watch::run(options),
        Command::Regions(arguments) => regions::run(&options, &arguments),
        Command::Top(arguments) => top::run(options, &arguments),
        Command::Stats(arguments) => stats::run(&options, &arguments),
        Command::Table(arguments) => table::run(&options, &arguments),
        Command::Explain(arguments) => explain::run(&options, &arguments),
        Command::Capture(arguments) => capture::run(options, arguments),
        Command::Drops(arguments) => drops::run(options, arguments),
        Command::Detach(arguments) => detach::run(&options, &arguments),
        Command::Doctor(arguments) => doctor::run(&options, &arguments),
        Command::Verdicts => verdicts::run(&options),
        Command::Completions(arguments) => print_completions(&arguments),
        Command::Man(arguments) => write_manual(&arguments),
    };
    done.map(|()| Exit::Success)
}

fn print_completions(arguments: &CompletionsArguments) -> Result<(), Failure> {
    let script = lb_manual::completions(Cli::command(), arguments.shell);
    match io::stdout().lock().write_all(&script) {
        // A reader that stops early (`| head`) is not an error.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Exit::Failure, format!("standard output: {}", describe(&error))))
        }
        _ => Ok(()),
    }
}

fn write_manual(arguments: &ManArguments) -> Result<(), Failure> {
    let directory = &arguments.directory;
    lb_manual::write_pages(Cli::command(), "1", directory)
        .map_err(|error| Failure::path(directory, &error).hint("name an existing directory"))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::{Cli, EXIT_STATUS};
    use crate::{arguments::with_joined_wait, failure::Exit};

    /// clap finds flags that are defined twice and groups that do not exist.
    #[test]
    fn every_command_is_consistent() {
        Cli::command().debug_assert();
    }

    /// `drain --wait` is another one: it waits until there are no packets.
    #[test]
    fn every_change_of_the_configuration_can_wait_for_the_fleet() {
        for line in [
            "apply -f web.toml",
            "edit",
            "rollback 3",
            "region create eu",
            "pool update web --slots 31",
            "backend delete 10.0.0.1",
            "health create page --port 80",
            "service delete web",
            "backend drain 10.0.0.1",
            "pool drain web",
            "region drain eu",
        ] {
            for wait in [&["--wait"][..], &["--wait=2m"], &["--wait", "2m"]] {
                let words = ["spillway"].into_iter().chain(line.split(' '));
                let words = with_joined_wait(words.chain(wait.iter().copied()).map(Into::into));
                let words = words.into_iter();
                assert!(Cli::try_parse_from(words.clone()).is_ok(), "{line} {wait:?}");
                let dry = words.chain(["--dry-run".into()]);
                assert!(Cli::try_parse_from(dry).is_err(), "{line} {wait:?} --dry-run");
            }
        }
    }

    #[test]
    fn every_exit_status_is_documented() {
        for exit in [
            Exit::Success,
            Exit::Failure,
            Exit::Usage,
            Exit::Unavailable,
            Exit::Permission,
            Exit::NotFound,
            Exit::Invalid,
            Exit::Conflict,
            Exit::Different,
            Exit::Problems,
        ] {
            let line = format!("\n  {}  ", exit as u8);
            assert!(EXIT_STATUS.contains(&line), "{exit:?}");
        }
    }
}
