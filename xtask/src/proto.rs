//! The generated code of the API, made again from its .proto files.

use std::process::ExitCode;

use anyhow::Result;

use crate::cargo::cargo;
use crate::process;
use crate::ui;

/// `cargo xtask proto`. That the code checked in is what this makes is a test of the package's own.
pub(crate) fn run() -> Result<ExitCode> {
    ui::heading("generated code of the API");
    let mut command = cargo();
    command.args(["run", "--package", "spillway-proto", "--example", "regenerate"]);
    process::check(command)?;
    Ok(ExitCode::SUCCESS)
}
