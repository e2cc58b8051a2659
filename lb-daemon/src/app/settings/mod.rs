//! What the daemon is told at its start: the command line, and the settings file it names.
//!
//! The file holds the flags of the role by their long names. It is read against the definition of
//! the command line itself, so a flag is a setting from the moment it is there, with the same rules.

mod file;
mod merge;
mod names;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf};

use clap::{
    CommandFactory, FromArgMatches, Parser,
    error::{ContextKind, ContextValue, ErrorKind},
    parser::ValueSource,
};

use super::{
    Failure,
    arguments::{Arguments, Role},
};
use file::File;
pub(super) use names::{Names, reloaded};

/// What was told, as one.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) arguments: Arguments,
    pub(super) told: Told,
    /// How failures call settings.
    pub(super) names: Names,
}

/// Each setting that has a value, by its long name, as written.
#[derive(Clone, Debug, Default)]
pub(super) struct Told(BTreeMap<String, Vec<OsString>>);

/// Why the daemon cannot be told so.
#[derive(Debug)]
pub(super) enum Unusable {
    /// The command line alone is wrong, or asks for help.
    CommandLine(clap::Error),
    /// The settings file cannot be read, or what it says is wrong.
    File(Failure),
}

impl Settings {
    /// Reads a command line, the program's name first, and the file it names with `--config`. What
    /// the command line says goes before what the file says.
    ///
    /// # Errors
    /// [`Unusable`].
    pub(super) fn read(line: &[OsString]) -> Result<Self, Unusable> {
        let relaxed = merge::relaxed(Arguments::command());
        let alone = relaxed.clone().try_get_matches_from(line).map_err(Unusable::CommandLine)?;
        let Some((role, given)) = alone.subcommand() else {
            // The definition asks for one, so this is an error that clap words.
            return Err(Unusable::CommandLine(wrong(line)));
        };
        let mut line = line.to_vec();
        if let Some(path) = given.get_one::<PathBuf>("config") {
            let file = File::read(path).map_err(Unusable::File)?;
            for setting in &file.settings {
                let (id, words) =
                    merge::words(&relaxed, role, &file, setting).map_err(Unusable::File)?;
                if given.value_source(&id) != Some(ValueSource::CommandLine) {
                    line.extend(words);
                }
            }
        }
        let file = given.get_one::<PathBuf>("config");
        let matches = Arguments::command().try_get_matches_from(&line);
        let matches = matches.map_err(|error| unset(error, file))?;
        let arguments = Arguments::from_arg_matches(&matches).map_err(Unusable::CommandLine)?;
        let names = Names::new(&relaxed, role, given);
        // What contradicts itself, as a door without its files, is told wrong: to start it again mends nothing.
        match &arguments.role {
            Role::Balancer(balancer) => balancer.agree(),
            Role::Receiver(receiver) => receiver.agree(),
        }
        .map_err(|failure| Unusable::File(names.spell(failure)))?;
        let told = Told(merge::told(&Arguments::command(), &matches));
        Ok(Self { arguments, told, names })
    }
}

impl Told {
    /// Names of the settings that differ in `now` and wait for the next start.
    pub(super) fn waiting(&self, now: &Settings) -> Vec<String> {
        let reloaded = reloaded(&now.arguments.role);
        let differing = self.differing(&now.told);
        differing.into_iter().filter(|name| !reloaded.contains(&name.as_str())).collect()
    }

    /// Names of the settings whose values differ.
    fn differing(&self, other: &Self) -> Vec<String> {
        let names = self.0.keys().chain(other.0.keys());
        let mut differing: Vec<_> =
            names.filter(|name| self.0.get(*name) != other.0.get(*name)).collect();
        differing.sort();
        differing.dedup();
        differing.into_iter().cloned().collect()
    }
}

/// What must be set and is not, said of the file that it is to be set in.
fn unset(error: clap::Error, file: Option<&PathBuf>) -> Unusable {
    let missing = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::MissingRequiredArgument, Some(ContextValue::Strings(flags))) => flags,
        _ => return Unusable::CommandLine(error),
    };
    let Some(file) = file else { return Unusable::CommandLine(error) };
    let name = |flag: &String| {
        let name = flag.split(' ').next().unwrap_or_default();
        name.trim_start_matches('-').to_owned()
    };
    let names: Vec<_> = missing.iter().map(name).collect();
    let (file, is_are) = (file.display(), if names.len() == 1 { "is" } else { "are" });
    let failure = Failure::new(format!("{file}: {} {is_are} not set", names.join(", ")));
    let first = names.first().map(String::as_str).unwrap_or_default();
    Unusable::File(failure.hint(format!(
        "set {} in {file}, as `{first} = [\"…\"]`",
        if names.len() == 1 { "it" } else { "them" }
    )))
}

fn wrong(line: &[OsString]) -> clap::Error {
    match Arguments::try_parse_from(line) {
        Err(error) => error,
        Ok(_) => Arguments::command().error(ErrorKind::MissingSubcommand, "no role"),
    }
}
