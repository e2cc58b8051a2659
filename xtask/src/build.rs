//! The packet programs, then the host programs that carry them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::artifacts::{self, Cost};
use crate::cargo::cargo;
use crate::cli::BuildArgs;
use crate::process::Background;
use crate::setup::toolchain::{TARGET, Toolchain};
use crate::setup::{self, Ready, Wants};
use crate::ui;
use crate::workspace;

/// The package of the packet programs.
const PACKET_PROGRAMS: &str = "lb-ebpf";

/// Where lb-daemon's build script looks for the objects that it embeds.
pub(crate) const OBJECTS_VARIABLE: &str = "SPILLWAY_BPF_OBJECTS";

/// `cargo xtask build`.
pub(crate) fn run(args: &BuildArgs) -> Result<ExitCode> {
    let ready = setup::ensure(&Wants::build(), false)?;
    everything(ready, args.release, Programs::All)?;
    println!("{}", workspace::binaries(args.release).display());
    Ok(ExitCode::SUCCESS)
}

/// Packages of host programs. Every build selects all of them, because cargo gives a dependency the features that any
/// selected package asks for: with another selection it would be compiled again, and so would all that stands on it.
const PACKAGES: [&str; 3] = ["lb-daemon", "lb-cli", "lb-tests"];

/// Which host programs a build makes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Programs {
    /// What is installed on hosts, and tested.
    Product,
    /// What the demo runs: the product, and the demo's own programs.
    Demo,
    /// The product, and what the lab runs beside it.
    Lab,
    /// What tests start: programs of demo and lab.
    Tested,
    /// All, the bench too.
    All,
}

impl Programs {
    fn select(self, command: &mut Command) {
        let names: &[&str] = match self {
            Self::Product => &["spillwayd", "spillway"],
            Self::Demo => &["spillwayd", "spillway", "demo", "webserver"],
            Self::Lab => &["spillwayd", "spillway", "lab", "webserver"],
            Self::Tested => &["spillwayd", "spillway", "demo", "lab", "webserver"],
            Self::All => {
                command.arg("--bins");
                return;
            }
        };
        names.iter().for_each(|name| {
            command.args(["--bin", name]);
        });
    }
}

/// Builds packet programs, and the host programs that carry them.
pub(crate) fn everything(ready: Ready, release: bool, programs: Programs) -> Result<()> {
    packet_programs(&ready.toolchain)?;
    host_programs(ready.begun_release, release, programs).map(drop)
}

/// Builds host programs, and returns what that took, with what was begun: no other build of a release works meanwhile.
pub(crate) fn host_programs(
    begun: Option<Background>,
    release: bool,
    programs: Programs,
) -> Result<Cost> {
    ui::heading("host programs");
    let cpu_time = begun.map_or(Ok(Duration::ZERO), Background::wait)?;
    let mut cost = artifacts::build(&mut host_command(release, programs))?.cost;
    cost.cpu_time += cpu_time;
    Ok(cost)
}

/// Builds into `target/bpf/NAME.o`. A file whose content is the same is left alone, so that what embeds it is not built
/// again.
pub(crate) fn packet_programs(toolchain: &Toolchain) -> Result<()> {
    ui::heading("packet programs");
    let mut command = packet_command(toolchain, "build")?;
    let built = artifacts::build(command.arg("--bins"))?.programs;
    ensure!(!built.is_empty(), "{PACKET_PROGRAMS}: has no programs");
    let dir = workspace::bpf_objects();
    fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
    let mut names = Vec::new();
    for program in built {
        let name = format!("{}.o", program.name);
        write_if_changed(&dir.join(&name), &fs::read(&program.executable)?)?;
        names.push(name);
    }
    remove_others(&dir, &names)?;
    ui::note(&format!("{} in {}", names.join(" "), dir.display()));
    Ok(())
}

/// Where cargo builds the packet programs of this tree, and nothing else.
pub(crate) fn packet_build() -> PathBuf {
    workspace::target().join("packet-build")
}

/// A cargo command on the packet programs.
pub(crate) fn packet_command(toolchain: &Toolchain, verb: &str) -> Result<Command> {
    let mut command = cargo();
    toolchain.equip(&mut command);
    // Beside the host's: the two compilers would push each other's results out.
    command.env("CARGO_TARGET_DIR", packet_build());
    let arch = std::env::consts::ARCH;
    let flags = [
        // What aya-build would set: whose registers kernel-side context types describe.
        format!("--cfg=bpf_target_arch=\"{arch}\""),
        // 32-bit operations and jumps (kernel 5.1), and words of a packet in one load: every
        // kernel that runs native XDP has them.
        "-Ctarget-cpu=v3".to_owned(),
        "-Clink-arg=--cpu-features=+allows-misaligned-mem-access".to_owned(),
        // BTF is made from debug information.
        "-Cdebuginfo=2".to_owned(),
        "-Clink-arg=--btf".to_owned(),
    ];
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    // A shell may ask for incremental compilation: it cuts programs into pieces that verifiers refuse.
    command.env("CARGO_INCREMENTAL", "0");
    command.args([verb, "--profile", "packet", "--package", PACKET_PROGRAMS, "--target", TARGET]);
    if !toolchain.has_core()? {
        command.args(["-Z", "build-std=core"]);
    }
    Ok(command)
}

/// The cargo command that builds host programs.
pub(crate) fn host_command(release: bool, programs: Programs) -> Command {
    let mut command = cargo();
    command.arg("build");
    select(&mut command, PACKAGES);
    programs.select(&mut command);
    if release {
        command.arg("--release");
    } else {
        select(&mut command, [FEATURES]);
    }
    with_objects(&mut command);
    command
}

/// Builds of a release what needs nothing that setup gets: the command line, which has neither packet programs nor a
/// client of etcd inside, and all that it stands on. What goes wrong is left for the build proper to say.
pub(crate) fn begin_release() -> Result<Background> {
    let mut command = cargo();
    command.args(["build", "--quiet", "--release", "--bin", "spillway"]);
    select(&mut command, PACKAGES);
    Background::start(command)
}

/// The package whose dependencies have the features of all development. A command for development that does not take
/// the whole workspace selects it too, so that it compiles nothing that another one has compiled. A release does not.
pub(crate) const FEATURES: &str = "lb-features";

/// Has cargo take these packages.
pub(crate) fn select<'a>(command: &mut Command, packages: impl IntoIterator<Item = &'a str>) {
    packages.into_iter().for_each(|package| {
        command.args(["--package", package]);
    });
}

/// Lets the daemon's build script embed the objects.
pub(crate) fn with_objects(command: &mut Command) {
    command.env(OBJECTS_VARIABLE, workspace::bpf_objects());
}

/// The same if there are some: what a plain cargo build has differs, and would be built anew each time.
pub(crate) fn with_objects_if_built(command: &mut Command) {
    if workspace::bpf_objects().is_dir() {
        with_objects(command);
    }
}

/// Tells programs of lb-tests where the programs under test are.
pub(crate) fn variables(release: bool) -> Vec<(String, OsString)> {
    vec![
        ("SPILLWAY_BIN_DIR".to_owned(), workspace::binaries(release).into()),
        (OBJECTS_VARIABLE.to_owned(), workspace::bpf_objects().into()),
    ]
}

fn write_if_changed(path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    // Under another name first: a build that is killed leaves no half of an object.
    let new = path.with_extension("new");
    fs::write(&new, content).with_context(|| new.display().to_string())?;
    fs::rename(&new, path).with_context(|| path.display().to_string())
}

/// Objects of programs that are no more must not be embedded by chance.
fn remove_others(dir: &Path, names: &[String]) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())?.flatten() {
        let stays = names.iter().any(|name| entry.file_name() == name.as_str());
        if !stays && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            fs::remove_file(entry.path()).with_context(|| entry.path().display().to_string())?;
        }
    }
    Ok(())
}

/// A program of lb-tests, built in release.
pub(crate) fn program(name: &str) -> Result<PathBuf> {
    let path = workspace::binaries(true).join(name);
    ensure!(path.is_file(), "{name}: lb-tests has no such program");
    Ok(path)
}
