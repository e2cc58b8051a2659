//! `spillway region|pool|backend|health|service`: the objects of the configuration, one by one.
//!
//! The commands are written once for all kinds ([`crud`]); a kind brings its flags and columns, and its calls
//! are in [`calls`].

mod backend;
mod calls;
mod crud;
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
use lb_model::overrides::Kind as OverrideKind;
use spillway_proto::v1;

pub(crate) use hints::hint_for_missing_target;
pub(crate) use kind::parse_name;

use super::overrides::{
    self, BackendTarget, DisableOptions, DrainOptions, Ending, PercentOptions, PoolTarget,
    RegionTarget,
};
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
    Drain(Overriding<BackendTarget, DrainOptions>),
    /// End a drain
    Undrain(Overriding<BackendTarget, Ending>),
    /// Stop all traffic; open connections move to other backends
    Disable(Overriding<BackendTarget, DisableOptions>),
    /// End a disable or drain
    Enable(Overriding<BackendTarget, Ending>),
    /// Take a share of the configured weight
    Weight(Overriding<BackendTarget, PercentOptions>),
    /// Print the last state changes of a pool's backends, with their reasons
    History(history::Arguments),
}

#[derive(Debug, Subcommand)]
pub(crate) enum PoolCommand {
    #[command(flatten)]
    Any(ObjectCommand<v1::Pool>),
    /// Stop new connections, in one region or in all; open ones stay
    Drain(Overriding<PoolTarget, DrainOptions>),
    /// End a drain
    Undrain(Overriding<PoolTarget, Ending>),
    /// Use at most a share of the configured capacity, in one region or in all
    Scale(Overriding<PoolTarget, PercentOptions>),
}

#[derive(Debug, Subcommand)]
pub(crate) enum RegionCommand {
    #[command(flatten)]
    Any(ObjectCommand<v1::Region>),
    /// Stop new connections to a region, in every pool; open ones stay
    Drain(Overriding<RegionTarget, DrainOptions>),
    /// End a drain
    Undrain(Overriding<RegionTarget, Ending>),
    /// Use at most a share of the configured capacities of a region
    Scale(Overriding<RegionTarget, PercentOptions>),
}

/// An override of something.
#[derive(clap::Args, Debug)]
pub(crate) struct Overriding<T: clap::Args, O: clap::Args> {
    #[command(flatten)]
    target: T,
    #[command(flatten)]
    options: O,
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
            Self::Drain(it) => {
                overrides::set(options, &it.target, OverrideKind::Drain, &it.options)
            }
            Self::Undrain(it) => {
                overrides::end(options, &it.target, &[OverrideKind::Drain], &it.options)
            }
            Self::Disable(it) => overrides::disable(options, &it.target, &it.options),
            Self::Enable(it) => overrides::end(
                options,
                &it.target,
                &[OverrideKind::Disable, OverrideKind::Drain],
                &it.options,
            ),
            Self::Weight(it) => {
                overrides::set_percent(options, &it.target, OverrideKind::Weight, &it.options)
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
            Self::Drain(it) => {
                overrides::set(options, &it.target, OverrideKind::Drain, &it.options)
            }
            Self::Undrain(it) => {
                overrides::end(options, &it.target, &[OverrideKind::Drain], &it.options)
            }
            Self::Scale(it) => {
                overrides::set_percent(options, &it.target, OverrideKind::Scale, &it.options)
            }
        }
    }
}

impl RegionCommand {
    /// As [`ObjectCommand::run`].
    pub(crate) fn run(self, options: Options) -> Result<(), Failure> {
        match self {
            Self::Any(verb) => verb.run(options),
            Self::Drain(it) => {
                overrides::set(options, &it.target, OverrideKind::Drain, &it.options)
            }
            Self::Undrain(it) => {
                overrides::end(options, &it.target, &[OverrideKind::Drain], &it.options)
            }
            Self::Scale(it) => {
                overrides::set_percent(options, &it.target, OverrideKind::Scale, &it.options)
            }
        }
    }
}

#[cfg(test)]
mod tests;
