//! Settings of a file as words of a command line.

use std::{collections::BTreeMap, error::Error, ffi::OsString};

use clap::{
    Arg, ArgAction, ArgMatches, Command,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::file::{File, Given, Value};
use crate::app::Failure;

/// Flags that are not settings.
const NO_SETTINGS: [&str; 3] = ["config", "help", "version"];

/// The command line where nothing is missing yet: what must be set may be set in the file.
pub(super) fn relaxed(command: Command) -> Command {
    command.mut_subcommands(|role| role.mut_args(|argument| argument.required(false)))
}

/// The flags of a role that are settings.
pub(super) fn settings<'c>(
    relaxed: &'c Command,
    role: &str,
) -> impl Iterator<Item = &'c Arg> + use<'c> {
    let arguments = relaxed.find_subcommand(role).into_iter().flat_map(Command::get_arguments);
    arguments.filter(|argument| !NO_SETTINGS.contains(&argument.get_id().as_str()))
}

/// The flag that a setting of the file is: its id, and its words, each of which it takes.
pub(super) fn words(
    relaxed: &Command,
    role: &str,
    file: &File,
    setting: &Given,
) -> Result<(String, Vec<OsString>), Failure> {
    values(relaxed, role, file, setting, argument(relaxed, role, file, setting)?)
}

/// The flag that a setting of the file is.
fn argument<'c>(
    relaxed: &'c Command,
    role: &str,
    file: &File,
    setting: &Given,
) -> Result<&'c Arg, Failure> {
    let of = |role: &str| {
        settings(relaxed, role).find(|argument| argument.get_long() == Some(setting.name.as_str()))
    };
    if let Some(argument) = of(role) {
        return Ok(argument);
    }
    let other = relaxed.get_subcommands().map(Command::get_name).find(|role| of(role).is_some());
    let hint = match (other, similar(relaxed, role, &setting.name)) {
        (Some(other), _) => format!("it is one of `spillwayd {other}`"),
        (None, Some(name)) => format!("did you mean `{name}`?"),
        (None, None) => format!("`spillwayd {role} --help` lists them, without their dashes"),
    };
    Err(file.at(setting, &format!("no such setting of the {role}")).hint(hint))
}

/// The flag's id and its words, each of which it takes.
fn values(
    relaxed: &Command,
    role: &str,
    file: &File,
    setting: &Given,
    argument: &Arg,
) -> Result<(String, Vec<OsString>), Failure> {
    let flag = format!("--{}", setting.name);
    let switch = matches!(argument.get_action(), ArgAction::SetTrue);
    let words = match &setting.value {
        Value::Switch(true) if switch => vec![flag],
        Value::Switch(false) if switch => vec![],
        Value::Words(words) if !switch => {
            words.iter().map(|word| format!("{flag}={word}")).collect()
        }
        Value::Switch(_) => {
            return Err(file.at(setting, "takes a value, not true or false").hint(help(argument)));
        }
        Value::Words(_) => {
            return Err(file.at(setting, "takes true or false").hint(help(argument)));
        }
    };
    let line = ["spillwayd", role].into_iter().chain(words.iter().map(String::as_str));
    match relaxed.clone().try_get_matches_from(line) {
        Err(error) if error.kind() != ErrorKind::MissingRequiredArgument => {
            Err(file.at(setting, &cause(&error)).hint(help(argument)))
        }
        _ => Ok((argument.get_id().to_string(), words.into_iter().map(OsString::from).collect())),
    }
}

/// The settings that a whole command line told, by their long names. What clap itself adds, such as groups of
/// flags under the names of structs, is left out.
pub(super) fn told(command: &Command, matches: &ArgMatches) -> BTreeMap<String, Vec<OsString>> {
    let Some((role, matches)) = matches.subcommand() else { return BTreeMap::new() };
    let flags = command.find_subcommand(role).into_iter().flat_map(Command::get_arguments);
    let told = flags.filter_map(|flag| {
        let name = flag.get_long().filter(|name| !NO_SETTINGS.contains(name))?;
        let words = matches.try_get_raw(flag.get_id().as_str()).ok()??;
        Some((name.to_owned(), words.map(ToOwned::to_owned).collect()))
    });
    told.collect()
}

/// What a flag is for, in its own words.
fn help(argument: &Arg) -> String {
    let name = argument.get_long().unwrap_or_default();
    let text = argument.get_help().map(ToString::to_string).unwrap_or_default();
    format!("--help says of `{name}`: {text}")
}

/// The flag that somebody may have meant.
fn similar(relaxed: &Command, role: &str, name: &str) -> Option<String> {
    let line = ["spillwayd".to_owned(), role.to_owned(), format!("--{name}")];
    let error = relaxed.clone().try_get_matches_from(line).err()?;
    match error.get(ContextKind::SuggestedArg)? {
        ContextValue::String(flag) => flag.strip_prefix("--").map(str::to_owned),
        _ => None,
    }
    .filter(|name| !NO_SETTINGS.contains(&name.as_str()))
}

/// What clap found wrong with a value.
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
