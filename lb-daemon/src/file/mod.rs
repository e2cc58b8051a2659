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

/// Puts the configuration of a file in force, as any other door does.
///
/// # Errors
/// [`FileError`]: what was in force stays in force, but for [`crate::command::Refusal::Behind`].
pub async fn apply(path: &Path, commands: &Commands) -> Result<Applied, FileError> {
    let text = tokio::fs::read_to_string(path).await.map_err(FileError::Unreadable)?;
    let configuration = configuration(&text)?;
    let actor = Actor::File(path.into());
    let apply = Apply { configuration, dry_run: false, expected_generation: None, actor };
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
