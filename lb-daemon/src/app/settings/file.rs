//! A settings file: names with values, and the position of each.

use std::{fs, path::Path};

use toml::de::{DeTable, DeValue};

use crate::app::Failure;
use lb_config::document::{line_and_column, typographic};

#[derive(Debug)]
pub(super) struct SettingsFile {
    name: String,
    text: String,
    pub(super) settings: Vec<FileSetting>,
}

#[derive(Debug)]
pub(super) struct FileSetting {
    pub(super) name: String,
    /// Byte at which it begins.
    at: usize,
    /// `None`: none that a setting can have.
    pub(super) value: Option<Value>,
}

/// A value, in the form that it has on a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// `true` or `false`.
    Switch(bool),
    /// A text or a number, a list of them, or a table as `name=value`s.
    Words(Vec<String>),
}

/// Tables that group settings: `name` in `[fleet]` is the setting `fleet-name`.
const GROUPS: [&str; 1] = ["fleet"];

/// The group of a setting, and its name there.
pub(super) fn grouped(name: &str) -> Option<(&'static str, &str)> {
    GROUPS.iter().find_map(|group| Some((*group, name.strip_prefix(group)?.strip_prefix('-')?)))
}

/// A setting as a settings file has it: `fleet-name` is `name in [fleet]`.
pub(super) fn in_file(name: &str) -> String {
    match grouped(name) {
        Some((group, name)) => format!("{name} in [{group}]"),
        None => name.to_owned(),
    }
}

pub(super) const HINT: &str = "a settings file is TOML, one `setting = value` a line; /usr/share/doc/spillway/docs/settings.md lists them";

impl SettingsFile {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let text = fs::read_to_string(path)
            .map_err(|e| Failure::about(&name, &e).hint("give a readable file after --config"))?;
        let mut file = Self { name, text, settings: Vec::new() };
        let (table, errors) = DeTable::parse_recoverable(&file.text);
        let wrong = errors.iter().map(|error| {
            let at = error.span().map(|span| span.start);
            let cause = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
            let typographic = at.and_then(|at| typographic(&file.text, at, &cause));
            let cause = typographic.unwrap_or(cause);
            file.wrong(at, &cause).hint(HINT)
        });
        if let Some(wrong) = Failure::all(wrong) {
            return Err(wrong);
        }
        let entries = entries(table.get_ref()).into_iter();
        let settings =
            entries.map(|(name, at, value)| FileSetting { name, at, value: value_of(value) });
        let mut settings: Vec<_> = settings.collect();
        settings.sort_by_key(|setting| setting.at);
        drop(table);
        file.settings = settings;
        Ok(file)
    }

    /// `FILE: line 3, column 1: cause`.
    pub(super) fn at(&self, setting: &FileSetting, cause: &str) -> Failure {
        self.wrong(Some(setting.at), &format!("{}: {cause}", in_file(&setting.name)))
    }

    fn wrong(&self, at: Option<usize>, cause: &str) -> Failure {
        let place = at.and_then(|at| line_and_column(&self.text, at));
        let place = place.map(|(line, column)| format!("line {line}, column {column}: "));
        Failure::new(format!("{}: {}{cause}", self.name, place.unwrap_or_default()))
    }
}

/// Each setting with the byte at which it begins. What is in a table of [`GROUPS`] is a setting with the table's name first.
fn entries<'t>(table: &'t DeTable<'_>) -> Vec<(String, usize, &'t DeValue<'t>)> {
    let mut entries = Vec::new();
    for (key, value) in table {
        let (name, at) = (key.get_ref().to_string(), key.span().start);
        match value.get_ref() {
            DeValue::Table(inner) if GROUPS.contains(&name.as_str()) => {
                let inner = inner.iter().map(|(key, value)| {
                    (format!("{name}-{}", key.get_ref()), key.span().start, value.get_ref())
                });
                entries.extend(inner);
            }
            value => entries.push((name, at, value)),
        }
    }
    entries
}

fn value_of(value: &DeValue<'_>) -> Option<Value> {
    match value {
        DeValue::Boolean(switch) => Some(Value::Switch(*switch)),
        DeValue::Array(items) => {
            let words: Option<_> = items.iter().map(|item| word(item.get_ref())).collect();
            words.map(Value::Words)
        }
        DeValue::Table(entries) => {
            let words = entries
                .iter()
                .map(|(key, value)| Some(format!("{}={}", key.get_ref(), word(value.get_ref())?)));
            words.collect::<Option<_>>().map(Value::Words)
        }
        value => word(value).map(|word| Value::Words(vec![word])),
    }
}

fn word(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        _ => None,
    }
}
