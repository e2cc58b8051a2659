//! What each kind of object brings: its words, its flags, its file form, its columns.

use std::fmt::{Debug, Display};

use clap::Args;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::calls::{ListFilter, ObjectCalls};
use crate::client::DaemonClient;
use crate::commands::confirm::Force;
use crate::failure::{Exit, Failure};

/// A column of `list`: its heading, and its cell from the object as JSON.
pub(crate) type ListColumn = (&'static str, fn(&Value) -> String);

/// A kind of configuration object, implemented by its API message.
pub(crate) trait Kind: ObjectCalls + 'static {
    /// Singular, for messages.
    const NAME: &'static str;
    /// Plural, for messages.
    const PLURAL: &'static str;
    /// Its subcommand of `spillway`.
    const COMMAND: &'static str;
    /// Field names in JSON answers: of one object, and of a list.
    const KEYS: (&'static str, &'static str);
    /// Columns of `list`, at most 80 characters wide.
    const COLUMNS: &'static [ListColumn];
    /// Columns that `-o wide` adds.
    const WIDE_COLUMNS: &'static [ListColumn];
    /// Arguments that select objects for `list`.
    type Filter: Args + Debug + Selector;
    /// Arguments that select one object.
    type Target: Args + Debug + Selector;
    /// Arguments that select one object, unless a file names it.
    type TargetOrFile: Args + Debug + Selector;
    /// A flag per field.
    type Fields: Fields<Self>;
    /// Its form in configuration files.
    type File: Serialize + DeserializeOwned + Default + Into<Self> + TryFrom<Self, Error: Display>;
    /// Whether its creation can need force.
    type CreateForce: Force;
    /// Whether an update of it can.
    type UpdateForce: Force;
    /// Whether its deletion can.
    type DeleteForce: Force;

    /// Adds to the rows of a list what its columns have beside the configuration.
    ///
    /// # Errors
    /// The daemon does not answer.
    async fn complete_rows(_: &mut DaemonClient, _: &mut [Value]) -> Result<(), Failure> {
        Ok(())
    }

    /// The name; the address of a backend.
    fn name(&self) -> &str;

    fn rename(&mut self, name: &str);
}

/// Arguments that select objects.
pub(crate) trait Selector {
    /// The name; the address of a backend.
    fn name(&self) -> Option<&str> {
        None
    }

    /// The pool of the object.
    fn pool(&self) -> PoolArgument<'_> {
        PoolArgument::NotInPool
    }

    /// Which objects are listed.
    fn filter(&self) -> ListFilter {
        ListFilter::default()
    }
}

/// The pool of an object on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolArgument<'a> {
    /// Objects of this kind are not in pools.
    NotInPool,
    /// No pool is given.
    Missing,
    Named(&'a str),
}

/// Flags of the fields of a kind.
pub(crate) trait Fields<K: Kind>: Args + Debug {
    /// Whether evaluating the given flags needs the current object.
    fn needs_current(&self) -> bool {
        false
    }

    /// Writes the given fields and their paths into a patch. `current` is the object in force if
    /// [`Self::needs_current`].
    ///
    /// # Errors
    /// Flags conflict.
    fn write(&self, patch: &mut Patch<K>, current: Option<&K>) -> Result<(), Failure>;
}

#[derive(Args, Debug)]
pub(crate) struct NameArgument {
    /// Name
    #[arg(value_parser = parse_name)]
    name: String,
}

#[derive(Args, Debug)]
pub(crate) struct NameOrFileArgument {
    /// Name
    #[arg(required_unless_present = "file", value_parser = parse_name)]
    name: Option<String>,
}

/// Refuses an empty name, which a script with an unset variable gives.
pub(crate) fn parse_name(text: &str) -> Result<String, String> {
    match text {
        "" => Err("the name is empty".into()),
        name => Ok(name.into()),
    }
}

/// `list` prints all objects.
#[derive(Args, Debug)]
pub(crate) struct NoFilter {}

impl Selector for NoFilter {}

impl Selector for NameArgument {
    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

impl Selector for NameOrFileArgument {
    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

/// A JSON value as a cell: lists separated by commas, `-` for missing values.
pub(crate) fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "-".into(),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Flags whose name differs from the API field, because their value includes its unit.
const RENAMED: [(&str, &str); 1] = [("max_connection_rate", "max_connection_rate_per_second")];

/// The fields of an object that the command line gives.
#[derive(Debug, Default)]
pub(crate) struct Patch<K> {
    /// An object with the given fields.
    pub(crate) object: K,
    /// The API paths of the given fields.
    pub(crate) paths: Vec<String>,
}

impl<K> Patch<K> {
    /// Sets a field if its flag is given.
    pub(crate) fn set<T: Clone>(
        &mut self,
        path: &str,
        flag: Option<&T>,
        write: impl FnOnce(&mut K, T),
    ) {
        if let Some(value) = flag {
            write(&mut self.object, value.clone());
            self.paths.push(path.into());
        }
    }

    /// Sets a list if its flag is given; a single empty value empties the list.
    pub(crate) fn list(
        &mut self,
        path: &str,
        flag: &[String],
        write: impl FnOnce(&mut K, Vec<String>),
    ) {
        let values = match flag {
            [] => return,
            [empty] if empty.is_empty() => Vec::new(),
            values => values.to_vec(),
        };
        write(&mut self.object, values);
        self.paths.push(path.into());
    }

    /// Adds the paths of fields to reset.
    ///
    /// # Errors
    /// A field is both set and unset.
    pub(crate) fn unset(&mut self, fields: &[String]) -> Result<(), Failure> {
        for field in fields {
            let path = field.replace('-', "_");
            let renamed = RENAMED.iter().find(|(flag, _)| *flag == path);
            let path = renamed.map_or(path, |(_, path)| (*path).into());
            if self.paths.contains(&path) {
                return Err(Failure::new(Exit::Usage, format!("{field}: both set and unset"))
                    .hint("use either its flag or --unset"));
            }
            self.paths.push(path);
        }
        Ok(())
    }
}
