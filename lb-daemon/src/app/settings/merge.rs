//! Turns settings of a file into words of a command line.

use std::{collections::BTreeMap, error::Error, ffi::OsString};

use clap::{
    Arg, ArgAction, ArgMatches, Command,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::file::{FileSetting, HINT, SettingsFile, Value, grouped};
use crate::app::Failure;

const NOT_SETTINGS: [&str; 3] = ["config", "help", "version"];

/// The definition of the command line without required flags: they may be set in the file.
pub(super) fn relaxed(command: Command) -> Command {
    command.mut_subcommands(|component| component.mut_args(|argument| argument.required(false)))
}

pub(super) fn settings<'c>(
    relaxed: &'c Command,
    component: &str,
) -> impl Iterator<Item = &'c Arg> + use<'c> {
    let arguments = relaxed.find_subcommand(component).into_iter().flat_map(Command::get_arguments);
    arguments.filter(|argument| !NOT_SETTINGS.contains(&argument.get_id().as_str()))
}

/// Finds the flag of a setting and checks its values: the flag's id, and its words on a command line.
pub(super) fn words(
    relaxed: &Command,
    component: &str,
    file: &SettingsFile,
    setting: &FileSetting,
) -> Result<(String, Vec<OsString>), Failure> {
    values(relaxed, component, file, setting, argument(relaxed, component, file, setting)?)
}

/// The flag of a setting.
fn argument<'c>(
    relaxed: &'c Command,
    component: &str,
    file: &SettingsFile,
    setting: &FileSetting,
) -> Result<&'c Arg, Failure> {
    let flag_of = |component: &str| {
        settings(relaxed, component)
            .find(|argument| argument.get_long() == Some(setting.name.as_str()))
    };
    if let Some(argument) = flag_of(component) {
        return Ok(argument);
    }
    let other = relaxed
        .get_subcommands()
        .map(Command::get_name)
        .find(|component| flag_of(component).is_some());
    // What belongs above a table, or has the table's name once more, is not misspelled.
    let misplaced = grouped(&setting.name).and_then(|(group, name)| {
        let flag = settings(relaxed, component).find(|it| it.get_long() == Some(name))?;
        Some((group, flag.get_long()?))
    });
    let similar = similar(relaxed, component, &setting.name);
    let hint = match (misplaced, other, similar.as_deref()) {
        (Some((group, name)), ..) if grouped(name).is_none() => {
            format!("`{name}` is in no table: it stands above the line `[{group}]`")
        }
        (Some((_, name)), ..) | (None, None, Some(name)) => {
            format!("did you mean `{}`?", grouped(name).map_or(name, |(_, name)| name))
        }
        (None, Some(other), _) => format!("it is one of `spillwayd {other}`"),
        (None, None, None) => {
            format!("`spillwayd {component} --help` lists them, without their dashes")
        }
    };
    Err(file.at(setting, &format!("no such setting of the {component}")).hint(hint))
}

/// The flag's id and its words, each of which clap accepts.
fn values(
    relaxed: &Command,
    component: &str,
    file: &SettingsFile,
    setting: &FileSetting,
    argument: &Arg,
) -> Result<(String, Vec<OsString>), Failure> {
    let flag = format!("--{}", setting.name);
    let switch = matches!(argument.get_action(), ArgAction::SetTrue);
    let words = match &setting.value {
        Some(Value::Switch(true)) if switch => vec![flag],
        Some(Value::Switch(false)) if switch => vec![],
        Some(Value::Words(words)) if !switch => {
            words.iter().map(|word| format!("{flag}={word}")).collect()
        }
        None => {
            let cause = "neither text, number, true, false, list nor table";
            return Err(file.at(setting, cause).hint(HINT));
        }
        Some(Value::Switch(_)) => {
            return Err(file.at(setting, "takes a value, not true or false").hint(help(argument)));
        }
        Some(Value::Words(_)) => {
            return Err(file.at(setting, "takes true or false").hint(help(argument)));
        }
    };
    let line = ["spillwayd", component].into_iter().chain(words.iter().map(String::as_str));
    match relaxed.clone().try_get_matches_from(line) {
        Err(error) if error.kind() != ErrorKind::MissingRequiredArgument => {
            Err(file.at(setting, &cause(&error)).hint(help(argument)))
        }
        _ => Ok((argument.get_id().to_string(), words.into_iter().map(OsString::from).collect())),
    }
}

/// The settings of a whole command line, by their long names. Leaves out what clap adds, such as groups of flags under
/// the names of structs.
pub(super) fn values_by_name(
    command: &Command,
    matches: &ArgMatches,
) -> BTreeMap<String, Vec<OsString>> {
    let Some((component, matches)) = matches.subcommand() else { return BTreeMap::new() };
    let flags = command.find_subcommand(component).into_iter().flat_map(Command::get_arguments);
    let values = flags.filter_map(|flag| {
        let name = flag.get_long().filter(|name| !NOT_SETTINGS.contains(name))?;
        let words = matches.try_get_raw(flag.get_id().as_str()).ok()??;
        Some((name.to_owned(), words.map(ToOwned::to_owned).collect()))
    });
    values.collect()
}

fn help(argument: &Arg) -> String {
    let name = argument.get_long().unwrap_or_default();
    let text = argument.get_help().map(ToString::to_string).unwrap_or_default();
    format!("--help says of `{name}`: {text}")
}

/// The flag that a misspelled name may mean.
fn similar(relaxed: &Command, component: &str, name: &str) -> Option<String> {
    let line = ["spillwayd".to_owned(), component.to_owned(), format!("--{name}")];
    let error = relaxed.clone().try_get_matches_from(line).err()?;
    match error.get(ContextKind::SuggestedArg)? {
        ContextValue::String(flag) => flag.strip_prefix("--").map(str::to_owned),
        _ => None,
    }
    .filter(|name| !NOT_SETTINGS.contains(&name.as_str()))
}

/// What clap says is wrong with a value.
fn cause(error: &clap::Error) -> String {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
        _ => None,
    };
    let value = text(ContextKind::InvalidValue).unwrap_or_default();
    match (error.source(), text(ContextKind::ValidValue)) {
        (Some(source), _) => format!("{value:?}: {source}"),
        (None, Some(valid)) if !valid.is_empty() => format!("{value:?} is none of {valid}"),
        _ if error.kind() == ErrorKind::ArgumentConflict
            || error.kind() == ErrorKind::TooManyValues
            || error.kind() == ErrorKind::WrongNumberOfValues =>
        {
            "takes one value".into()
        }
        _ => format!("{value:?} cannot be used"),
    }
}
