//! The steps of `cargo xtask test`.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::artifacts::Program;
use crate::build::{self, with_objects};
use crate::cargo::cargo;
use crate::setup::toolchain::Toolchain;

/// In the order they are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Formatting.
    Fmt,
    /// Clippy on the packet programs, with their own compiler.
    ClippyBpf,
    /// Licences, banned crates, sources.
    Deny,
    /// Packet programs and host programs.
    Build,
    /// Clippy on what runs on the host.
    Clippy,
    /// `cargo test`, as the user.
    Unit,
    /// The test programs of lb-tests, as root.
    Root,
    /// The packet table on programs with a mistake in them.
    Mutants,
    /// The fuzz targets, each for a short while.
    Fuzz,
    /// The Debian package in a Debian with systemd. Last, since it leaves a daemon without packet
    /// programs among the debug builds.
    Package,
}

impl Step {
    pub(crate) const ALL: [Self; 10] = [
        Self::Fmt,
        Self::ClippyBpf,
        Self::Deny,
        Self::Build,
        Self::Clippy,
        Self::Unit,
        Self::Root,
        Self::Mutants,
        Self::Fuzz,
        Self::Package,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fmt => "fmt",
            Self::Clippy => "clippy",
            Self::ClippyBpf => "clippy-bpf",
            Self::Deny => "deny",
            Self::Build => "build",
            Self::Unit => "unit",
            Self::Root => "root",
            Self::Package => "package",
            Self::Mutants => "mutants",
            Self::Fuzz => "fuzz",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.name() == name)
    }

    /// Whether it takes what the build made: the daemon embeds the objects.
    pub(crate) fn takes_built(self) -> bool {
        matches!(self, Self::Clippy | Self::Unit | Self::Root | Self::Package | Self::Mutants)
    }

    pub(crate) fn runs_tests(self) -> bool {
        matches!(self, Self::Unit | Self::Root)
    }
}

pub(super) fn fmt() -> Command {
    let mut command = cargo();
    command.args(["fmt", "--all", "--check"]);
    command
}

/// Everything but the packet programs, which are no programs of the host's.
pub(super) fn clippy() -> Command {
    let mut command = cargo();
    command.args(["clippy", "--workspace", "--exclude", "lb-ebpf", "--all-targets"]);
    with_objects(&mut command);
    command.args(["--", "-D", "warnings"]);
    command
}

/// None: the toolchain has no clippy.
pub(super) fn clippy_bpf(toolchain: &Toolchain) -> Result<Option<Command>> {
    let Some(clippy) = &toolchain.clippy else { return Ok(None) };
    let mut command = build::packet_command(toolchain, "check")?;
    command.arg("--bins").env("RUSTC_WORKSPACE_WRAPPER", clippy);
    command.env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
    Ok(Some(command))
}

pub(super) fn deny(program: &Path) -> Command {
    let mut command = Command::new(program);
    crate::cargo::clean(&mut command);
    command.current_dir(crate::workspace::root());
    command.args(["--workspace", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"]);
    command
}

/// The packages that a plain `cargo test` runs.
pub(super) fn unit(filter: &[String]) -> Command {
    let mut command = cargo();
    command.args(["test", "--no-fail-fast"]);
    with_objects(&mut command);
    command.arg("--").args(filter);
    command
}

/// The daemon as plain cargo builds it, without packet programs. In the same place as the other, which
/// the next build that needs it puts there again.
pub(super) fn stub() -> Command {
    let mut command = cargo();
    command.env_remove(build::OBJECTS_VARIABLE);
    command.args(["build", "--package", "lb-daemon"]);
    command
}

/// Test programs that mostly wait and promise nothing of times, so that others may run beside them. Long ones
/// first. The others have the machine to themselves.
const TOGETHER: [&str; 26] = [
    "kernel",
    "reconcile",
    "seeing",
    "homes",
    "rpcs",
    "crash",
    "doors",
    "doctor",
    "gates",
    "unfit",
    "next_hops",
    "explain",
    "ports",
    "objects_cli",
    "ways",
    "receiver",
    "dataplane",
    "top",
    "direct",
    "through",
    "tc",
    "python",
    "packet_table",
    "sandbox",
    "capture",
    "topology",
];

/// Those of the programs that others may run beside, and those that run alone.
pub(super) fn root_lanes(programs: impl Iterator<Item = Program>) -> (Vec<Program>, Vec<Program>) {
    let place = |program: &Program| TOGETHER.iter().position(|name| *name == program.name);
    let (mut together, mut alone): (Vec<_>, Vec<_>) =
        programs.partition(|program| place(program).is_some());
    together.sort_by_key(place);
    alone.sort_by(|a, b| a.name.cmp(&b.name));
    (together, alone)
}

/// Builds the test programs of lb-tests without running them.
pub(super) fn root_programs() -> Command {
    let mut command = cargo();
    command.args(["test", "--package", "lb-tests", "--no-run"]);
    with_objects(&mut command);
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    #[test]
    fn what_runs_beside_others_is_there_and_all_else_runs_alone() {
        let tests = workspace::root().join("tests/tests");
        for name in TOGETHER {
            let is_there = [format!("{name}.rs"), format!("{name}/main.rs")];
            assert!(is_there.iter().any(|file| tests.join(file).is_file()), "{name}: no program");
        }
        let program =
            |name: &str| Program { name: name.into(), executable: name.into(), is_test: true };
        let all = ["rpcs", "new", "kernel", "failover"].map(program);
        let (together, alone) = root_lanes(all.into_iter());
        assert_eq!(together, ["kernel", "rpcs"].map(program));
        assert_eq!(alone, ["failover", "new"].map(program));
    }
}
