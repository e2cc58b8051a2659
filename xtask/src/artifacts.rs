//! What cargo built, from its own messages.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::process;

/// A program that cargo built.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// Name of the target.
    pub(crate) name: String,
    pub(crate) executable: PathBuf,
    /// The package's folder.
    pub(crate) package: PathBuf,
    /// Whether it runs tests; cargo builds ordinary programs beside, for tests to start.
    pub(crate) is_test: bool,
}

#[derive(Deserialize)]
struct Message {
    reason: String,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

/// Runs a cargo command and returns the programs it built. Its diagnostics are shown.
pub(crate) fn build(command: &mut Command) -> Result<Vec<Program>> {
    command.arg("--message-format=json-render-diagnostics");
    let output = process::output(command)?;
    if !output.status.success() {
        bail!("cargo: {}", output.status);
    }
    parse(&String::from_utf8_lossy(&output.stdout))
}

/// The executables among cargo's messages. Lines that are not messages are passed over.
pub(crate) fn parse(messages: &str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Message = serde_json::from_str(line).context("message of cargo")?;
        if message.reason != "compiler-artifact" {
            continue;
        }
        if let (Some(target), Some(executable)) = (message.target, message.executable) {
            let is_test = message.profile.is_some_and(|profile| profile.test);
            let mut package = message.manifest_path.unwrap_or_default();
            package.pop();
            programs.push(Program { name: target.name, executable, package, is_test });
        }
    }
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_executables_count() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"lb_tests","kind":["lib"]},"executable":null}
   Compiling something
{"reason":"compiler-artifact","manifest_path":"/w/tests/Cargo.toml","target":{"name":"demo","kind":["bin"]},"profile":{"test":false},"executable":"/t/debug/demo"}
{"reason":"compiler-artifact","manifest_path":"/w/tests/Cargo.toml","target":{"name":"packets","kind":["test"]},"profile":{"test":true},"executable":"/t/debug/deps/packets-1"}
{"reason":"build-finished","success":true}
"#;
        let program = |name: &str, executable: &str, is_test| Program {
            name: name.into(),
            executable: executable.into(),
            package: "/w/tests".into(),
            is_test,
        };
        let expected = [
            program("demo", "/t/debug/demo", false),
            program("packets", "/t/debug/deps/packets-1", true),
        ];
        assert_eq!(parse(messages).unwrap(), expected);
    }
}
