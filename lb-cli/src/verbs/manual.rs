//! `spillway completions` and `spillway man`: what follows from the definition of the command line.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::CommandFactory;
use clap_complete::Shell;
use lb_daemon::manual;

use crate::{
    exit::Exit,
    failure::{Failure, describe},
};

/// Options of `completions`.
#[derive(clap::Args, Debug)]
pub(crate) struct Completions {
    /// Whose
    shell: Shell,
}

/// Options of `man`.
#[derive(clap::Args, Debug)]
pub(crate) struct Man {
    /// Directory for the pages; it must be there
    directory: PathBuf,
}

/// Prints a shell's completions.
///
/// # Errors
/// Stdout cannot be written.
pub(crate) fn completions(arguments: &Completions) -> Result<(), Failure> {
    let script = manual::completions(crate::arguments::Arguments::command(), arguments.shell);
    match io::stdout().lock().write_all(&script) {
        // A reader that has seen enough is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Exit::Failure, format!("standard output: {}", describe(&error))))
        }
        _ => Ok(()),
    }
}

/// Writes the manual.
///
/// # Errors
/// The directory cannot be written.
pub(crate) fn man(arguments: &Man) -> Result<(), Failure> {
    let directory = &arguments.directory;
    manual::pages(crate::arguments::Arguments::command(), "1", directory)
        .map_err(|error| Failure::path(directory, &error).hint("name a directory that is there"))
}
