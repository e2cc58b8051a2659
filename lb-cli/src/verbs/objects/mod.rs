//! `spillway region|pool|backend|health|service`: the configuration in force, object by object.
//!
//! Verbs are written once for all kinds; what a kind brings is in `fields/`, its calls in `calls`.

mod advice;
mod answer;
mod calls;
mod create;
mod delete;
mod edit;
mod fields;
mod get;
mod kind;
mod list;
mod scale;
mod sent;
mod update;
mod wanted;
mod ways;

use clap::Subcommand;
use spillway_proto::v1;

use super::history;
use crate::{arguments::Options, failure::Failure};
use kind::Kind;

/// What can be done with an object of any kind.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb<K: Kind> {
    #[command(about = format!("Print all {}", K::WORDS))]
    List(list::Arguments<K>),
    #[command(about = format!("Print one {} as a file has it, with its etag", K::WORD))]
    Get(get::Arguments<K>),
    #[command(about = format!("Add a {}; one that is there and is equal stays", K::WORD))]
    Create(Box<create::Arguments<K>>),
    #[command(about = format!("Change the fields of a {} that are given", K::WORD))]
    Update(Box<update::Arguments<K>>),
    #[command(about = format!("Take a {} away", K::WORD))]
    Delete(delete::Arguments<K>),
}

/// What can be done with a backend.
#[derive(Debug, Subcommand)]
pub(crate) enum BackendVerb {
    #[command(flatten)]
    Any(Verb<v1::Backend>),
    /// No new connections; its open ones stay while its host lives
    Drain(wanted::Arguments),
    /// Traffic while it is healthy
    Enable(wanted::Arguments),
    /// Nothing at all; its open connections move
    Disable(wanted::Arguments),
    /// Print the last changes of state of a pool's backends, and why they came
    History(history::Arguments),
}

/// What can be done with a pool.
#[derive(Debug, Subcommand)]
pub(crate) enum PoolVerb {
    #[command(flatten)]
    Any(Verb<v1::Pool>),
    /// No new connections, in one region or in all; open ones stay
    Drain(scale::OfPool),
    /// New connections again, in one region or in all, as many as before the drain
    Enable(scale::OfPool),
}

/// What can be done with a region.
#[derive(Debug, Subcommand)]
pub(crate) enum RegionVerb {
    #[command(flatten)]
    Any(Verb<v1::Region>),
    /// No new connections there, in any pool; open ones stay
    Drain(scale::OfRegion),
    /// New connections there again, in every pool, as many as before the drain
    Enable(scale::OfRegion),
}

impl<K: Kind> Verb<K> {
    /// Asks the daemon and prints.
    ///
    /// # Errors
    /// The command line does not hold together, or the daemon refuses or does not answer.
    pub(crate) fn run(self, options: Options) -> Result<(), Failure> {
        match self {
            Self::List(arguments) => list::run(options, &arguments),
            Self::Get(arguments) => get::run(options, &arguments),
            Self::Create(arguments) => create::run(options, &arguments),
            Self::Update(arguments) => update::run(options, &arguments),
            Self::Delete(arguments) => delete::run(options, &arguments),
        }
    }
}

impl BackendVerb {
    /// As [`Verb::run`].
    pub(crate) fn run(self, options: Options) -> Result<(), Failure> {
        match self {
            Self::Any(verb) => verb.run(options),
            Self::Drain(arguments) => wanted::run(options, &arguments, v1::WantedState::Drain),
            Self::Enable(arguments) => wanted::run(options, &arguments, v1::WantedState::Active),
            Self::Disable(arguments) => wanted::run(options, &arguments, v1::WantedState::Disabled),
            Self::History(arguments) => history::run(options, arguments),
        }
    }
}

impl PoolVerb {
    /// As [`Verb::run`].
    pub(crate) fn run(self, options: Options) -> Result<(), Failure> {
        match self {
            Self::Any(verb) => verb.run(options),
            Self::Drain(arguments) => scale::run(options, &arguments, scale::Wish::Drain),
            Self::Enable(arguments) => scale::run(options, &arguments, scale::Wish::Enable),
        }
    }
}

impl RegionVerb {
    /// As [`Verb::run`].
    pub(crate) fn run(self, options: Options) -> Result<(), Failure> {
        match self {
            Self::Any(verb) => verb.run(options),
            Self::Drain(arguments) => scale::run(options, &arguments, scale::Wish::Drain),
            Self::Enable(arguments) => scale::run(options, &arguments, scale::Wish::Enable),
        }
    }
}

#[cfg(test)]
mod tests;
