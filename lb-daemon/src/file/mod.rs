//! The door for a configuration file: TOML in, [`crate::command`] out.

mod error;
mod followed;
#[cfg(test)]
mod tests;

use std::path::Path;

pub use error::FileError;
pub use followed::Followed;

use crate::{
    access::Actor,
    api::convert,
    command::{Applied, Apply, Commands},
    document::{self, Document},
    model::Configuration,
};

/// What is wanted of a file, for the log of changes.
const WANTED: &str = "the configuration of the file";

/// Puts the configuration of a file in force, as any other door does.
///
/// # Errors
/// [`FileError`]: what was in force stays in force, but for [`crate::command::Refusal::Behind`].
pub async fn apply(path: &Path, commands: &Commands) -> Result<Applied, FileError> {
    let actor = Actor::File(path.into());
    let read = tokio::fs::read_to_string(path).await.map_err(FileError::Unreadable);
    let configuration = read.and_then(|text| configuration(&text)).inspect_err(|error| {
        commands.audit().refused(&actor, WANTED, &error.to_string());
    })?;
    let wanted = WANTED.to_owned();
    let apply = Apply { configuration, actor, wanted, ..Apply::default() };
    Ok(commands.apply(apply).await??)
}

/// What a file's text says.
fn configuration(text: &str) -> Result<Configuration, FileError> {
    let document = Document::parse(text).map_err(FileError::Document)?;
    convert::configuration(&document.into()).map_err(|invalid| FileError::Invalid {
        place: document::place(text, &invalid.path()),
        invalid,
    })
}
