//! `spillway region|pool|backend|health|service`: the objects of the configuration, one by one.
//!
//! The commands are written once for all kinds ([`crud`]); a kind brings its flags and columns, and its calls
//! are in [`calls`].

mod backend;
mod calls;
mod crud;
mod drain;
#[cfg(test)]
mod flag_tests;
mod health_check;
mod hints;
mod history;
mod input;
mod kind;
mod pool;
mod report;
mod service;
use clap::Subcommand;
use kind::Kind;
use spillway_proto::v1;

use crate::{arguments::Options, failure::Failure};

/// Commands that every kind has.
#[derive(Debug, Subcommand)]
pub(crate) enum ObjectCommand<K: Kind> {
    #[command(about = format!("List all {}", K::PLURAL))]
    List(crud::ListArguments<K>),
    #[command(about = format!("Print a {} in its file form, with its etag", K::NAME))]
    Get(crud::GetArguments<K>),
    #[command(about = format!("Create a {}; does nothing if an equal one exists", K::NAME))]
    Create(Box<crud::CreateArguments<K>>),
    #[command(about = format!("Change the given fields of a {}", K::NAME))]
    Update(Box<crud::UpdateArguments<K>>),
    #[command(about = format!("Delete a {}", K::NAME))]
    Delete(crud::DeleteArguments<K>),
}

#[derive(Debug, Subcommand)]
pub(crate) enum BackendCommand {
    #[command(flatten)]
    Any(ObjectCommand<v1::Backend>),
    /// Stop new connections; open ones stay while the host is reachable
    Drain(drain::BackendArguments),
    /// Allow traffic while the backend is healthy
    Enable(drain::BackendArguments),
    /// Stop all traffic; open connections move to other backends
    Disable(drain::BackendArguments),
    /// Print the last state changes of a pool's backends, with their reasons
    History(history::Arguments),
}

#[derive(Debug, Subcommand)]
pub(crate) enum PoolCommand {
    #[command(flatten)]
    Any(ObjectCommand<v1::Pool>),
    /// Stop new connections, in one region or in all; open ones stay
    Drain(drain::PoolArguments),
    /// Allow new connections again, in one region or in all, as before the drain
    Enable(drain::PoolArguments),
}

#[derive(Debug, Subcommand)]
pub(crate) enum RegionCommand {
    #[command(flatten)]
    Any(ObjectCommand<v1::Region>),
    /// Stop new connections to a region, in every pool; open ones stay
    Drain(drain::RegionArguments),
    /// Allow new connections to a region again, in every pool, as before the drain
    Enable(drain::RegionArguments),
}

impl<K: Kind> ObjectCommand<K> {
    /// # Errors
    /// The arguments are invalid, or the daemon refuses or does not answer.
    pub(crate) fn run(self, options: Options) -> Result<(), Failure> {
        match self {
            Self::List(arguments) => crud::list(options, &arguments),
            Self::Get(arguments) => crud::get(options, &arguments),
            Self::Create(arguments) => crud::create(options, &arguments),
            Self::Update(arguments) => crud::update(options, &arguments),
            Self::Delete(arguments) => crud::delete(options, &arguments),
        }
    }
}

impl BackendCommand {
    /// As [`ObjectCommand::run`].
    pub(crate) fn run(self, options: Options) -> Result<(), Failure> {
        match self {
            Self::Any(verb) => verb.run(options),
            Self::Drain(arguments) => {
                drain::set_admin_state(options, &arguments, v1::AdminState::Drain)
            }
            Self::Enable(arguments) => {
                drain::set_admin_state(options, &arguments, v1::AdminState::Active)
            }
            Self::Disable(arguments) => {
                drain::set_admin_state(options, &arguments, v1::AdminState::Disabled)
            }
            Self::History(arguments) => history::run(options, arguments),
        }
    }
}

impl PoolCommand {
    /// As [`ObjectCommand::run`].
    pub(crate) fn run(self, options: Options) -> Result<(), Failure> {
        match self {
            Self::Any(verb) => verb.run(options),
            Self::Drain(arguments) => {
                drain::drain_groups(options, &arguments, drain::DrainAction::Drain)
            }
            Self::Enable(arguments) => {
                drain::drain_groups(options, &arguments, drain::DrainAction::Enable)
            }
        }
    }
}

impl RegionCommand {
    /// As [`ObjectCommand::run`].
    pub(crate) fn run(self, options: Options) -> Result<(), Failure> {
        match self {
            Self::Any(verb) => verb.run(options),
            Self::Drain(arguments) => {
                drain::drain_groups(options, &arguments, drain::DrainAction::Drain)
            }
            Self::Enable(arguments) => {
                drain::drain_groups(options, &arguments, drain::DrainAction::Enable)
            }
        }
    }
}

#[cfg(test)]
mod tests;
