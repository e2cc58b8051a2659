//! `spillwayd man` and `spillwayd completions`: what packaging makes of the command line's definition.
//! They are no roles, so help does not show them.

use std::{
    ffi::OsString,
    io::{self, Write},
    path::PathBuf,
};

use clap::{CommandFactory, Parser};
use clap_complete::Shell;

use super::{Failure, arguments::Arguments};
use lb_base::manual;

#[derive(Debug, Parser)]
#[command(name = "spillwayd")]
enum Documents {
    /// Write the manual into a directory, a page for each role
    Man {
        /// The directory; it must be there
        directory: PathBuf,
    },
    /// Print a shell's completions of this command line
    Completions {
        /// Whose
        shell: Shell,
    },
}

/// Does what the command line asks for; `None`: it asks for a role.
pub(super) fn run(line: &[OsString]) -> Option<Result<(), Failure>> {
    let verb = line.get(1)?.to_str()?;
    ["man", "completions"].contains(&verb).then(|| match Documents::parse_from(line) {
        Documents::Man { directory } => manual::pages(Arguments::command(), "8", &directory)
            .map_err(|error| Failure::of(&directory.display().to_string(), &error)),
        Documents::Completions { shell } => {
            let script = manual::completions(Arguments::command(), shell);
            io::stdout().write_all(&script).map_err(|error| Failure::of("stdout", &error))
        }
    })
}
