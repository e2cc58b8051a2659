//! `spillwayd man` and `spillwayd completions`: packaging makes manuals and completions of the command line's
//! definition. `--help` does not show them, since they are no components.

use std::{
    ffi::OsString,
    io::{self, Write},
    path::PathBuf,
};

use clap::{CommandFactory, Parser};
use clap_complete::Shell;

use super::{Failure, arguments::Arguments};

#[derive(Debug, Parser)]
#[command(name = "spillwayd")]
enum Documents {
    /// Write the manual into a directory, a page for each component
    Man {
        /// The directory, which must exist
        directory: PathBuf,
    },
    /// Print a shell's completions of this command line
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// Runs one of these commands; `None`: the command line is not one of them.
pub(super) fn run(line: &[OsString]) -> Option<Result<(), Failure>> {
    let verb = line.get(1)?.to_str()?;
    ["man", "completions"].contains(&verb).then(|| match Documents::parse_from(line) {
        Documents::Man { directory } => {
            lb_manual::write_pages(Arguments::command(), "8", &directory)
                .map_err(|error| Failure::about(&directory.display().to_string(), &error))
        }
        Documents::Completions { shell } => {
            let script = lb_manual::completions(Arguments::command(), shell);
            io::stdout().write_all(&script).map_err(|error| Failure::about("stdout", &error))
        }
    })
}
