//! The steps of `cargo xtask test`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::artifacts;
use crate::build;
use crate::cargo::cargo;
use crate::process;
use crate::setup::toolchain::Toolchain;

/// The steps, those that others need first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Formatting.
    Fmt,
    /// Clippy on the packet programs, with their own compiler.
    ClippyBpf,
    /// Licences, banned crates, sources.
    Deny,
    /// The alert rules, by promtool.
    Alerts,
    /// Packet programs and host programs.
    Build,
    /// Clippy on what runs on the host.
    Clippy,
    /// Rustdoc on what runs on the host: links of comments that lead nowhere.
    Doc,
    /// `cargo test`, as the user.
    Unit,
    /// CPUs at the flow table at once, in all orders (loom).
    Races,
    /// The test programs of lb-e2e, as root.
    Root,
    /// The packet table on programs with a mistake in them.
    Mutants,
    /// The Debian package in a Debian with systemd.
    Package,
    /// The fuzz targets; only with `--long` or by name.
    Fuzz,
    /// The experiments at their real size; only with `--long` or by name.
    Experiments,
}

impl Step {
    pub(crate) const ALL: [Self; 14] = [
        Self::Fmt,
        Self::ClippyBpf,
        Self::Deny,
        Self::Alerts,
        Self::Build,
        Self::Clippy,
        Self::Doc,
        Self::Unit,
        Self::Races,
        Self::Root,
        Self::Mutants,
        Self::Package,
        Self::Fuzz,
        Self::Experiments,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fmt => "fmt",
            Self::Clippy => "clippy",
            Self::ClippyBpf => "clippy-bpf",
            Self::Deny => "deny",
            Self::Alerts => "alerts",
            Self::Build => "build",
            Self::Doc => "doc",
            Self::Unit => "unit",
            Self::Races => "races",
            Self::Root => "root",
            Self::Package => "package",
            Self::Mutants => "mutants",
            Self::Fuzz => "fuzz",
            Self::Experiments => "experiments",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.name() == name)
    }

    /// Whether it takes what the build made: the daemon embeds the objects.
    pub(crate) fn takes_built(self) -> bool {
        matches!(self, Self::Clippy | Self::Unit | Self::Root | Self::Package | Self::Mutants)
    }

    /// Whether a plain run leaves it out.
    pub(crate) fn is_long(self) -> bool {
        matches!(self, Self::Fuzz | Self::Experiments)
    }

    pub(crate) fn runs_tests(self) -> bool {
        matches!(self, Self::Unit | Self::Root)
    }
}

pub(crate) fn fmt() -> Command {
    let mut command = cargo();
    command.args(["fmt", "--all", "--check"]);
    command
}

/// The feature of lb-fuzz that its programs want; it links nothing.
const FUZZ_TARGETS: &str = "lb-fuzz/targets";

/// Everything but the packet programs, which are no programs of the host's.
pub(crate) fn clippy_everything() -> Command {
    let mut command = cargo();
    command.args(["clippy", "--workspace", "--exclude", "lb-ebpf", "--all-targets"]);
    command.args(["--features", FUZZ_TARGETS]);
    build::with_objects(&mut command);
    artifacts::with_messages(&mut command);
    command.args(["--", "-D", "warnings"]);
    command
}

/// Some packages, for those of the host.
pub(crate) fn clippy_packages(packages: &BTreeSet<&str>) -> Command {
    let mut command = cargo();
    command.args(["clippy", "--all-targets"]);
    build::select(&mut command, packages.iter().copied().chain([build::FEATURES]));
    if packages.contains("lb-fuzz") {
        command.args(["--features", FUZZ_TARGETS]);
    }
    build::with_objects_if_built(&mut command);
    command.args(["--", "-D", "warnings"]);
    command
}

/// Private items too: comments are read in the code, and their links break as those of public items do. So a link from
/// public to private is none to refuse.
pub(crate) fn doc() -> Command {
    const RUSTDOC_FLAGS: &str = "-D warnings -A rustdoc::private-intra-doc-links";
    let mut command = cargo();
    command.args(["doc", "--workspace", "--exclude", "lb-ebpf", "--no-deps"]);
    command.arg("--document-private-items").env("RUSTDOCFLAGS", RUSTDOC_FLAGS);
    // What clippy has checked is not checked again.
    if let Some(clippy) = clippy_driver() {
        as_clippy(&mut command, &clippy);
    }
    artifacts::with_messages(&mut command);
    build::with_objects_if_built(&mut command);
    command
}

/// The program that `cargo clippy` has cargo call in place of the compiler.
fn clippy_driver() -> Option<PathBuf> {
    let mut command = Command::new("rustc");
    command.current_dir(crate::workspace::root()).args(["--print", "sysroot"]);
    let sysroot = process::read(&mut command).ok()?;
    Some(Path::new(sysroot.trim()).join("bin/clippy-driver")).filter(|driver| driver.is_file())
}

/// Has cargo check the workspace as `cargo clippy -- -D warnings` does.
fn as_clippy(command: &mut Command, driver: &Path) {
    command.env("RUSTC_WORKSPACE_WRAPPER", driver);
    command.env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
}

/// None: the toolchain has no clippy.
pub(crate) fn clippy_bpf(toolchain: &Toolchain) -> Result<Option<Command>> {
    let Some(clippy) = &toolchain.clippy else { return Ok(None) };
    let mut command = build::packet_command(toolchain, "check")?;
    as_clippy(command.arg("--bins"), clippy);
    Ok(Some(command))
}

/// In a folder of its own: what loom wants of other packages would have them built anew.
pub(super) fn races() -> Command {
    let mut command = cargo();
    command.args(["test", "--package", "lb-common", "--test", "flow_races"]);
    command.env("RUSTFLAGS", "--cfg loom");
    command.env("CARGO_TARGET_DIR", crate::workspace::target().join("loom"));
    artifacts::with_messages(&mut command);
    command
}

pub(super) fn deny(program: &Path) -> Command {
    let mut command = Command::new(program);
    crate::cargo::clean(&mut command);
    command.current_dir(crate::workspace::root());
    command.args(["--workspace", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"]);
    command
}

/// What promtool does with the alert rules: reads them, and runs the tests of what fires.
pub(super) fn alerts() -> [(&'static str, Command); 2] {
    let promtool = |verb, file| {
        let mut command = Command::new("promtool");
        command.current_dir(crate::workspace::root()).args([verb, "rules", file]);
        command
    };
    [
        ("alerts: rules", promtool("check", "packaging/observability/alerts.yaml")),
        ("alerts: tests", promtool("test", "tests/alerts.yaml")),
    ]
}

/// Unit tests that take long mostly wait for a time limit.
pub(crate) fn many_at_a_time(command: &mut Command) {
    command.env("RUST_TEST_THREADS", "8");
}

/// The packages that a plain `cargo test` runs, and the one whose tests want etcd; of their tests those whose names contain
/// `word`.
pub(crate) fn unit(word: Option<&str>) -> Command {
    let mut command = unit_of(&[]);
    command.arg("--").args(word);
    command
}

/// Of these, those of what fleets keep in etcd, which start it.
pub(super) fn unit_on_etcd(word: Option<&str>) -> Command {
    let mut command = unit_of(&["--test", "etcd"]);
    command.arg("--").args(word);
    command
}

fn unit_of(targets: &[&str]) -> Command {
    let mut command = cargo();
    command.args(["test", "--no-fail-fast", "--workspace"]);
    command.args(["--exclude", "lb-ebpf", "--exclude", "lb-tests", "--exclude", "lb-e2e"]);
    command.args(targets);
    artifacts::with_messages(&mut command);
    many_at_a_time(&mut command);
    build::with_objects(&mut command);
    command
}

/// The daemon as plain cargo builds it, without packet programs. What embeds them is built with a setting of its own, so
/// that the build with them is not thrown away; one that CI does not set.
pub(crate) fn stub() -> Command {
    let mut command = cargo();
    command.env_remove(build::OBJECTS_VARIABLE);
    command.args(["build", "--bin", "spillwayd"]);
    build::select(&mut command, ["lb-daemon", build::FEATURES]);
    command.args(["--config", "profile.dev.package.lb-programs.codegen-units=1"]);
    command
}

/// Builds all test programs without running them: at once, so that each dependency is built once, with the
/// features that any of them wants.
pub(crate) fn test_programs() -> Command {
    let mut command = cargo();
    command.args(["test", "--no-run", "--workspace", "--exclude", "lb-ebpf"]);
    build::with_objects(&mut command);
    command
}
