//! The door for a configuration file: TOML in, [`lb_control::command`] out.

mod error;
#[cfg(test)]
mod tests;

use std::path::Path;

use crate::audit::Audit;

pub use error::FileError;

use lb_config::document::{self, Document};
use lb_control::command::{Actor, Applied, Apply, Commands};
use lb_model::Configuration;

/// What is wanted of a file, for the log of changes.
const WANTED: &str = "the configuration of the file";

/// Puts the configuration of a file in force, as any other door does.
///
/// # Errors
/// [`FileError`]: what was in force stays in force, but for [`lb_control::command::Refusal::Behind`].
pub async fn apply(path: &Path, commands: &Commands, audit: &Audit) -> Result<Applied, FileError> {
    let actor = Actor::File(path.into());
    let read = tokio::fs::read_to_string(path).await.map_err(FileError::Unreadable);
    let configuration = read.and_then(|text| configuration(&text)).inspect_err(|error| {
        audit.refused(&actor, WANTED, &error.to_string());
    })?;
    let wanted = WANTED.to_owned();
    let apply = Apply { configuration, actor, request: wanted, ..Apply::default() };
    Ok(audit.apply(commands, apply).await??)
}

/// What a file's text says.
fn configuration(text: &str) -> Result<Configuration, FileError> {
    let document = Document::parse(text).map_err(FileError::Document)?;
    lb_config::validate(&document.into()).map_err(|invalid| FileError::Invalid {
        place: document::place(text, &invalid.path()),
        invalid,
    })
}
