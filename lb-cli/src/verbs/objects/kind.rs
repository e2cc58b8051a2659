//! What each kind of object brings: its words, its flags, its file form, its columns.

use std::fmt::{Debug, Display};

use clap::Args;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{calls::Calls, edit::Edit};
use crate::failure::Failure;

/// A column of a list: its heading, and its cell from the object as JSON has it.
pub(crate) type Column = (&'static str, fn(&Value) -> String);

/// A kind of object of the configuration; the message of the API is its type.
pub(crate) trait Kind: Calls + 'static {
    /// What one is called.
    const WORD: &'static str;
    /// What many are called.
    const WORDS: &'static str;
    /// The verb of `spillway` that is about it.
    const VERB: &'static str;
    /// Its field in answers as JSON, and that of its list.
    const KEYS: (&'static str, &'static str);
    /// Columns of `list`, within 80 characters.
    const COLUMNS: &'static [Column];
    /// Columns that `-o wide` adds.
    const MORE: &'static [Column];
    /// Which of them `list` prints.
    type Filter: Args + Debug + Which;
    /// Which one, where it must be said.
    type One: Args + Debug + Which;
    /// Which one, where a file may say it.
    type Named: Args + Debug + Which;
    /// A flag for each field.
    type Fields: Fields<Self>;
    /// Its form in a file.
    type File: Serialize + DeserializeOwned + Into<Self> + TryFrom<Self, Error: Display>;

    /// The name that it gives itself; of a backend its address.
    fn name(&self) -> &str;

    /// Gives it a name.
    fn rename(&mut self, name: &str);
}

/// Which object a command line means.
pub(crate) trait Which {
    /// Its name; of a backend its address.
    fn name(&self) -> Option<&str> {
        None
    }

    /// The pool that it is in.
    fn pool(&self) -> InPool<'_> {
        InPool::Never
    }
}

/// The pool that an object is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InPool<'a> {
    /// Its kind is in none.
    Never,
    /// It is not said.
    Unsaid,
    /// The one of this name.
    Named(&'a str),
}

/// Flags of the fields of a kind.
pub(crate) trait Fields<K: Kind>: Args + Debug {
    /// Whether what they say can only be told from the object as it is.
    fn wants_current(&self) -> bool {
        false
    }

    /// Writes the fields that were given into an object, and their paths. `current` is the object in
    /// force where [`Self::wants_current`].
    ///
    /// # Errors
    /// Flags do not go together.
    fn write(&self, edit: &mut Edit<K>, current: Option<&K>) -> Result<(), Failure>;
}

/// By its name.
#[derive(Args, Debug)]
pub(crate) struct Name {
    /// Its name
    #[arg(value_parser = named)]
    name: String,
}

/// By its name, or by that in its file.
#[derive(Args, Debug)]
pub(crate) struct NameOrFile {
    /// Its name
    #[arg(required_unless_present = "file", value_parser = named)]
    name: Option<String>,
}

/// A name of the command line, which a variable of a script may have left empty.
pub(crate) fn named(text: &str) -> Result<String, String> {
    match text {
        "" => Err("the name is empty".into()),
        name => Ok(name.into()),
    }
}

/// All of them.
#[derive(Args, Debug)]
pub(crate) struct All {}

impl Which for All {}

impl Which for Name {
    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

impl Which for NameOrFile {
    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

/// A value of JSON in a cell: lists by commas, what is missing as `-`.
pub(crate) fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "-".into(),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
