//! The demo: real parts in namespaces of this machine, by the program `demo` of lb-tests.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::build::{self, Programs};
use crate::cli::DemoArgs;
use crate::process;
use crate::root;
use crate::setup::{self, Purpose, Wants};
use crate::ui;
use crate::workspace;

/// `cargo xtask demo`.
pub(crate) fn run(args: &DemoArgs) -> Result<ExitCode> {
    // All that stands behind the word is passed on.
    let purpose = if args.args.is_empty() { Purpose::Demo } else { Purpose::Experiment };
    let ready = setup::ensure(&Wants::purpose(purpose), args.no_install)?;
    build::everything(ready, true, Programs::Demo)?;
    show(&args.args)
}

/// Runs the demo that was built, or one of its experiments.
pub(crate) fn show(args: &[OsString]) -> Result<ExitCode> {
    let what_for = "the demo: network namespaces, BPF programs, a file system for pins";
    let mut all = vec![OsString::from("--bin-dir"), workspace::binaries(true).into()];
    all.extend(args.iter().cloned());
    as_root("demo", what_for, &all)
}

/// Runs a program of lb-tests as root with `--out target/NAME`. What it leaves there belongs to
/// the user.
pub(crate) fn as_root(name: &str, what_for: &str, args: &[OsString]) -> Result<ExitCode> {
    let program = build::program(name)?;
    let out = workspace::target().join(name);
    fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
    let mut all = vec![OsString::from("--out"), out.clone().into()];
    all.extend(args.iter().cloned());
    ui::heading(name);
    let variables = build::variables(true);
    let status = process::run(root::job(what_for, &variables, program.as_os_str(), &all)?);
    if root::is_someone_else() {
        let what_for = format!("giving {} back to you", out.display());
        let args = [OsString::from("-R"), root::owner().into(), out.into()];
        process::check(root::job(&what_for, &[], OsStr::new("chown"), &args)?)?;
    }
    Ok(match status?.code() {
        Some(0) => ExitCode::SUCCESS,
        code => ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
    })
}
