//! The daemon's settings: the command line, and the settings file that it names.
//!
//! The file holds the flags of a component by their long names. It is checked against the definition of the command
//! line, so every flag is a setting with the same rules.

mod file;
mod merge;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::{
    ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches, Parser,
    error::{ContextKind, ContextValue, ErrorKind},
    parser::ValueSource,
};

use super::{
    Failure,
    arguments::{Arguments, Component},
};
use file::{SettingsFile, grouped, in_file};

/// Command line and settings file together.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) arguments: Arguments,
    pub(super) values: SettingValues,
    pub(super) names: FileNames,
}

/// Each setting that has a value, by its long name, as written.
#[derive(Clone, Debug, Default)]
pub(super) struct SettingValues(BTreeMap<String, Vec<OsString>>);

#[derive(Debug)]
pub(super) enum SettingsError {
    /// The command line alone is wrong, or asks for help.
    CommandLine(clap::Error),
    /// The settings file cannot be read, or a setting is wrong.
    File(Failure),
}

impl Settings {
    /// Reads a command line, the program's name first, and the file that it names with `--config`. The command line
    /// takes precedence.
    pub(super) fn read(line: &[OsString]) -> Result<Self, SettingsError> {
        let relaxed = merge::relaxed(Arguments::command());
        let alone =
            relaxed.clone().try_get_matches_from(line).map_err(SettingsError::CommandLine)?;
        let Some((component, given)) = alone.subcommand() else {
            // The definition requires one, so clap has an error for this.
            return Err(SettingsError::CommandLine(missing_component(line)));
        };
        let mut line = line.to_vec();
        if let Some(path) = given.get_one::<PathBuf>("config") {
            let file = SettingsFile::read(path).map_err(SettingsError::File)?;
            let mut mistakes = Vec::new();
            for setting in &file.settings {
                match merge::words(&relaxed, component, &file, setting) {
                    Err(mistake) => mistakes.push(mistake),
                    Ok((id, _)) if given.value_source(&id) == Some(ValueSource::CommandLine) => {}
                    Ok((_, words)) => line.extend(words),
                }
            }
            if !mistakes.is_empty() {
                // What is in the file is not missing, whatever it is.
                let there = |name: &str| file.settings.iter().any(|setting| setting.name == name);
                let error = Arguments::command().try_get_matches_from(&line).err();
                let missing = error.and_then(|error| missing_settings(&error, path, there));
                mistakes.extend(missing);
                if let Some(all) = Failure::all(mistakes) {
                    return Err(SettingsError::File(all));
                }
            }
        }
        let file = given.get_one::<PathBuf>("config");
        let matches = Arguments::command().try_get_matches_from(&line);
        let matches = matches.map_err(|error| {
            match file.and_then(|file| missing_settings(&error, file, |_| false)) {
                Some(missing) => SettingsError::File(missing),
                None => SettingsError::CommandLine(error),
            }
        })?;
        let arguments =
            Arguments::from_arg_matches(&matches).map_err(SettingsError::CommandLine)?;
        let names = FileNames::new(&relaxed, component, given);
        // A contradiction, such as a TLS listener without its files, is a mistake in the settings: another start
        // would fail too.
        match &arguments.component {
            Component::Balancer(balancer) => balancer.check(),
            Component::Receiver(receiver) => receiver.check(),
        }
        .map_err(|failure| SettingsError::File(names.spell(failure)))?;
        let values = SettingValues(merge::values_by_name(&Arguments::command(), &matches));
        Ok(Self { arguments, values, names })
    }
}

impl SettingValues {
    /// Names of the settings that differ in `now` and wait for the next start.
    pub(super) fn waiting(&self, now: &Settings) -> Vec<String> {
        let reloadable = reloadable(&now.arguments.component);
        let differing = self.differing(&now.values);
        differing.into_iter().filter(|name| !reloadable.contains(&name.as_str())).collect()
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

/// That settings are missing in the file, if clap says that flags are; but not those that are `there`.
fn missing_settings(
    error: &clap::Error,
    file: &Path,
    there: impl Fn(&str) -> bool,
) -> Option<Failure> {
    let missing = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::MissingRequiredArgument, Some(ContextValue::Strings(flags))) => flags,
        _ => return None,
    };
    let name = |flag: &String| {
        let name = flag.split(' ').next().unwrap_or_default();
        name.trim_start_matches('-').to_owned()
    };
    let names: Vec<_> = missing.iter().map(name).filter(|name| !there(name)).collect();
    let first = names.first()?;
    let (file, is_are) = (file.display(), if names.len() == 1 { "is" } else { "are" });
    let spelled: Vec<_> = names.iter().map(|name| in_file(name)).collect();
    let failure = Failure::new(format!("{file}: {} {is_are} not set", spelled.join(", ")));
    let value = if is_list(first) { "[\"…\"]" } else { "\"…\"" };
    let it_them = if names.len() == 1 { "it" } else { "them" };
    let (place, first) = match grouped(first) {
        Some((group, first)) => (format!("the table [{group}] of {file}"), first),
        None => (file.to_string(), first.as_str()),
    };
    Some(failure.hint(format!("set {it_them} in {place}, as `{first} = {value}`")))
}

/// Whether a setting may have several values.
fn is_list(name: &str) -> bool {
    let command = Arguments::command();
    let arguments = command.get_subcommands().flat_map(Command::get_arguments);
    let mut named = arguments.filter(|argument| argument.get_long() == Some(name));
    named.any(|argument| matches!(argument.get_action(), ArgAction::Append))
}

fn missing_component(line: &[OsString]) -> clap::Error {
    match Arguments::try_parse_from(line) {
        Err(error) => error,
        Ok(_) => Arguments::command().error(ErrorKind::MissingSubcommand, "no component"),
    }
}

/// Settings of the balancer that a reload changes. docs/settings.md, docs/install.md and the comments of
/// packaging/etc say the same, which a test compares.
const BALANCER: &[&str] = &["apply", "tls-client"];

/// The same of the receiver.
const RECEIVER: &[&str] = &["allow-source", "gue-port", "tunnel-endpoint", "vip"];

/// Names of the settings that a reload changes; all others wait for the next start.
pub(super) fn reloadable(component: &Component) -> &'static [&'static str] {
    match component {
        Component::Balancer(_) => BALANCER,
        Component::Receiver(_) => RECEIVER,
    }
}

/// Settings that a failure names as the settings file does: if there is a file, all that the command line does not
/// give, since the file is where to change them.
#[derive(Clone, Debug, Default)]
pub(super) struct FileNames(BTreeSet<String>);

impl FileNames {
    /// `given` is what the command line alone says.
    fn new(relaxed: &Command, component: &str, given: &ArgMatches) -> Self {
        if !given.contains_id("config") {
            return Self::default();
        }
        let in_the_file = merge::settings(relaxed, component).filter(|argument| {
            given.value_source(argument.get_id().as_str()) != Some(ValueSource::CommandLine)
        });
        Self(in_the_file.filter_map(|argument| argument.get_long()).map(str::to_owned).collect())
    }

    /// Replaces flags in a failure's texts by these names.
    pub(super) fn spell(&self, failure: Failure) -> Failure {
        failure.reworded(&|text: &str| self.without_dashes(text))
    }

    fn without_dashes(&self, text: &str) -> String {
        let mut parts = text.split("--");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |before, part| {
            let end = part.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
            let (name, rest) = part.split_at(end.unwrap_or(part.len()));
            match self.0.contains(name) {
                true => before + &in_file(name) + rest,
                false => before + "--" + part,
            }
        })
    }
}
