//! What cargo built, from its own messages.

use std::ops::AddAssign;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::process::{self, Captured};

/// Has cargo write a message for each unit to its standard output, and diagnostics to its standard error as ever.
const MESSAGES: &str = "--message-format=json-render-diagnostics";

/// What a cargo command made.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Built {
    pub(crate) programs: Vec<Program>,
    pub(crate) cost: Cost,
}

/// What a command took, beside the time that passed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Units that were compiled, those that were there already left out. A run of a build script is none.
    pub(crate) units: usize,
    /// Of the command and all that it started.
    pub(crate) cpu_time: Duration,
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.units += other.units;
        self.cpu_time += other.cpu_time;
    }
}

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
    #[serde(default)]
    fresh: bool,
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

/// Runs a cargo command and returns what it built. Its diagnostics are shown.
pub(crate) fn build(command: &mut Command) -> Result<Built> {
    command.arg(MESSAGES);
    let (output, cpu_time) = process::output(command)?;
    if !output.status.success() {
        bail!("cargo: {}", output.status);
    }
    let mut built = parse(&String::from_utf8_lossy(&output.stdout))?;
    built.cost.cpu_time = cpu_time;
    Ok(built)
}

/// Has a cargo command whose output is captured write messages; [`cost`] takes them out again. To be called before
/// arguments for what cargo runs are added.
pub(crate) fn with_messages(command: &mut Command) {
    command.arg(MESSAGES);
}

/// Takes cargo's messages out of the output, and returns what the command took.
pub(crate) fn cost(captured: &mut Captured) -> Result<Cost> {
    let is_message = |line: &&str| line.starts_with(r#"{"reason":""#);
    let (messages, rest): (Vec<_>, Vec<_>) =
        captured.output.split_inclusive('\n').partition(is_message);
    let (messages, rest) = (messages.concat(), rest.concat());
    captured.output = rest;
    Ok(Cost { cpu_time: captured.cpu_time, ..parse(&messages)?.cost })
}

/// What cargo's messages say was built. Lines that are not messages are passed over.
fn parse(messages: &str) -> Result<Built> {
    let mut built = Built::default();
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Message = serde_json::from_str(line).context("message of cargo")?;
        if message.reason != "compiler-artifact" {
            continue;
        }
        built.cost.units += usize::from(!message.fresh);
        if let (Some(target), Some(executable)) = (message.target, message.executable) {
            let is_test = message.profile.is_some_and(|profile| profile.test);
            let mut package = message.manifest_path.unwrap_or_default();
            package.pop();
            built.programs.push(Program { name: target.name, executable, package, is_test });
        }
    }
    Ok(built)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_executables_count() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"lb_tests","kind":["lib"]},"executable":null}
   Compiling something
{"reason":"compiler-artifact","manifest_path":"/w/tests/Cargo.toml","target":{"name":"demo","kind":["bin"]},"profile":{"test":false},"executable":"/t/debug/demo"}
{"reason":"compiler-artifact","manifest_path":"/w/tests/Cargo.toml","target":{"name":"packets","kind":["test"]},"profile":{"test":true},"fresh":true,"executable":"/t/debug/deps/packets-1"}
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
        // The library and the demo were compiled; the test program was there already.
        assert_eq!(
            parse(messages).unwrap(),
            Built { programs: expected.into(), cost: Cost { units: 2, cpu_time: Duration::ZERO } }
        );
    }

    #[test]
    fn messages_are_taken_out_of_what_is_shown() {
        let unit = r#"{"reason":"compiler-artifact","target":{"name":"a"},"fresh":false,"executable":null}"#;
        let output = format!("   Compiling a\n{unit}\n{{\"a test\": 1}}\n{unit}\ntest b ... ok");
        let (status, cpu_time) = (Ok(std::process::ExitStatus::default()), Duration::from_secs(3));
        let mut captured = Captured { status, output, cpu_time };
        assert_eq!(cost(&mut captured).unwrap(), Cost { units: 2, cpu_time });
        assert_eq!(captured.output, "   Compiling a\n{\"a test\": 1}\ntest b ... ok");
    }
}
