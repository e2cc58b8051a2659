//! Files that a command line names; `-` is standard input.

use std::{io::Read, path::Path};

use crate::{exit::Exit, failure::Failure};

/// What a file is called in messages.
pub(crate) fn name_of(file: &Path) -> String {
    if file == Path::new("-") { "standard input".into() } else { file.display().to_string() }
}

/// The text of a file, or of standard input.
///
/// # Errors
/// It cannot be read, or is no text.
pub(crate) fn read(file: &Path) -> Result<String, Failure> {
    let bytes = if file == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(file)
    };
    let bytes = bytes.map_err(|error| {
        Failure::path(Path::new(&name_of(file)), &error)
            .hint("give a readable file after -f, or - for standard input")
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::new(Exit::Invalid, format!("{}: byte {at} is not UTF-8", name_of(file)))
            .hint("a configuration is a TOML text")
    })
}
