//! `spillway diff`: what a configuration file would change.

use std::path::PathBuf;

use serde::Serialize;

use super::{
    apply::{File, How},
    change::Changes,
};
use crate::{
    arguments::Options,
    daemon::{Daemon, converse},
    exit::Exit,
    failure::Failure,
    output::{Report, print},
};

/// Options of `diff`.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// The configuration, a TOML file; `-` reads standard input
    #[arg(long, short, value_name = "FILE")]
    file: PathBuf,
}

/// The answer.
#[derive(Serialize)]
struct Differences {
    generation: u64,
    different: bool,
    changes: Vec<super::change::Change>,
    #[serde(skip)]
    file: String,
}

/// Asks the daemon and prints. The exit status says whether anything differs.
///
/// # Errors
/// The file cannot be read or is no configuration, or the daemon refuses or does not answer.
pub(crate) fn run(options: Options, arguments: &Arguments) -> Result<Exit, Failure> {
    let file = File::read(&arguments.file)?;
    // What an apply would do that takes the file as it is.
    let how = How { dry_run: true, expected_generation: None, any_schema: true };
    let Changes { generation, changes, .. } =
        converse(async { file.apply(&mut Daemon::open(&options).await?, how).await })?;
    let different = !changes.is_empty();
    print(&Differences { generation, different, changes, file: file.name }, options.output)?;
    Ok(if different { Exit::Different } else { Exit::Success })
}

impl Report for Differences {
    fn table(&self) -> String {
        let Self { generation, file, changes, .. } = self;
        if changes.is_empty() {
            return format!("generation {generation} and {file} are equal\n");
        }
        let lines: String = changes.iter().map(super::change::Change::lines).collect();
        format!("from generation {generation} to {file}:\n{lines}")
    }
}
