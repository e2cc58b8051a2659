//! `spillway fleet`: several balancers with one configuration and one set of capacities.

mod generations;
mod join;
mod leave;
mod problems;
mod render;
mod restore;
mod status;
#[cfg(test)]
mod tests;
mod wait;

use clap::Subcommand;
use spillway_proto::v1;

pub(crate) use generations::BalancerGenerations;
pub(crate) use wait::{WaitArgument, parse_wait, spell_wait};

use super::{changes::Changes, confirm::require_terminal};
use crate::{
    arguments::Options,
    failure::Failure,
    output::{Report as _, print_stderr},
};

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Show the balancers of the fleet, how they share capacities, and where they differ
    Status(status::Arguments),
    /// Make this balancer a member of the fleet in its settings
    ///
    /// The fleet's configuration replaces that of this balancer. If the fleet has none yet, it gets that of this
    /// balancer.
    Join(join::Arguments),
    /// Make this balancer independent again, with the configuration that it has
    Leave(leave::LeaveArguments),
    /// Remove another balancer, which is gone for good, from the fleet
    Remove(leave::RemoveArguments),
    /// Decide which configuration the fleet has, if etcd and this balancer are in conflict
    Restore(restore::Arguments),
}

impl FleetCommand {
    /// # Errors
    /// The balancer is, or is not, a member, the user does not agree, or the daemon refuses or does not answer.
    pub(crate) fn run(self, options: Options) -> Result<(), Failure> {
        match self {
            Self::Status(arguments) => status::run(options, &arguments),
            Self::Join(arguments) => join::run(options, &arguments),
            Self::Leave(arguments) => leave::leave(options, &arguments),
            Self::Remove(arguments) => leave::remove(options, &arguments),
            Self::Restore(arguments) => restore::run(options, &arguments),
        }
    }
}

/// Whether a command asks.
#[derive(clap::Args, Clone, Copy, Debug)]
struct Consent {
    /// Only check, and print what would happen
    #[arg(long)]
    dry_run: bool,
    /// Do not ask; needed if standard input is not a terminal
    #[arg(long, short, conflicts_with = "dry_run")]
    yes: bool,
}

impl Consent {
    /// Whether the command has to ask before it changes anything.
    fn asks(self) -> bool {
        !self.yes && !self.dry_run
    }

    /// For a command that always asks.
    ///
    /// # Errors
    /// It cannot ask.
    fn require(self, name: &str, command: &str) -> Result<(), Failure> {
        match self.asks() {
            true => require_terminal(name, command),
            false => Ok(()),
        }
    }
}

/// How this balancer and its fleet are called in sentences.
struct Names {
    fleet: String,
    balancer: String,
}

impl Names {
    fn new(status: &v1::FleetStatus) -> Self {
        let fleet = match &*status.fleet {
            "" => "the fleet".into(),
            name => format!("fleet {name}"),
        };
        let balancer = match &*status.balancer {
            "" => "this balancer".into(),
            name => name.to_owned(),
        };
        Self { fleet, balancer }
    }
}

/// Prints what a dry run found to standard error, before a question about it.
fn show(changes: &Changes) {
    print_stderr(changes.table().trim_end());
    changes.warnings().iter().for_each(|warning| print_stderr(&format!("warning: {warning}")));
}
