//! Modules of Python, with which the example client is tried: an environment of its own. Needed by the
//! tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use super::cache::{self, Entry};
use crate::process;
use crate::ui;
use crate::workspace;

/// What is to be in it, with versions; another text is another environment.
const REQUIREMENTS: &str =
    include_str!("../../../docs/examples/python/requirements.txt").trim_ascii_end();

/// `3.11`; the modules are of the interpreter's version. `None`: there is no interpreter yet.
fn version() -> Option<String> {
    let text = process::read(Command::new("python3").arg("--version")).ok()?;
    minor(&text)
}

/// `Python 3.11.7` is 3.11.
fn minor(version: &str) -> Option<String> {
    let mut numbers = version.trim().strip_prefix("Python ")?.split('.');
    Some(format!("{}.{}", numbers.next()?, numbers.next()?))
}

fn entry(version: &str) -> Result<Entry> {
    Ok(Entry::new(&cache::root()?, &format!("python-{version}-client"), REQUIREMENTS))
}

/// Whether it must be made.
pub(super) fn is_missing() -> Result<bool> {
    let Some(version) = version() else { return Ok(true) };
    Ok(!entry(&version)?.is_finished())
}

pub(super) fn print() {
    ui::note(&format!(
        "{:<18} {:>8}  compiles the API for the example in Python, and speaks it; with pip",
        "grpcio-tools", "15 MB"
    ));
}

/// The environment's interpreter; made first if it is missing.
pub(super) fn ensure() -> Result<PathBuf> {
    let Some(version) = version() else { bail!("python3: not there, though installed") };
    let entry = entry(&version)?;
    if !entry.is_finished() {
        entry.fill(|dir| {
            ui::heading("modules of Python");
            let requirements = workspace::root().join("docs/examples/python/requirements.txt");
            // Without a pip of its own, for which Debian wants one package more.
            process::check(python(&["-m", "venv", "--without-pip"], &[dir]))?;
            let interpreter = interpreter(dir);
            let mut pip = python(&["-m", "pip", "--python"], &[&interpreter]);
            pip.args(["install", "--quiet", "--disable-pip-version-check", "--requirement"]);
            pip.arg(&requirements);
            process::check(pip)
        })?;
    }
    Ok(interpreter(&entry.path))
}

fn python(words: &[&str], paths: &[&Path]) -> Command {
    let mut command = Command::new("python3");
    command.args(words).args(paths);
    command
}

fn interpreter(environment: &Path) -> PathBuf {
    environment.join("bin/python")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_of_one_minor_version() {
        assert_eq!(minor("Python 3.11.7\n").as_deref(), Some("3.11"));
        assert_eq!(minor("Python 3.13.0rc2").as_deref(), Some("3.13"));
        assert_eq!(minor("3.11.7"), None);
    }

    #[test]
    fn every_module_has_its_version() {
        let modules = REQUIREMENTS.lines().filter(|line| !line.starts_with('#'));
        let modules: Vec<_> = modules.map(|line| line.split_once("==")).collect();
        assert!(modules.len() > 2 && modules.iter().all(Option::is_some), "{REQUIREMENTS}");
    }
}
