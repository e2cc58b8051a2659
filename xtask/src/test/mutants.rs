//! Mistakes made on purpose in a copy of the tree: the packet table must see each.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::artifacts::{self, Cost};
use crate::build;
use crate::idle;
use crate::process::{self, Captured};
use crate::root;
use crate::setup::toolchain::Toolchain;
use crate::workspace;

use super::LIMITS;
use super::tally::Tally;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    mutant: Vec<Mutant>,
}

/// One wrong line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mutant {
    pub(super) name: String,
    /// Whose rows must see it.
    #[serde(default)]
    program: PacketProgram,
    file: PathBuf,
    find: String,
    replace: String,
}

/// A program that the table has rows of.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PacketProgram {
    #[default]
    Balancer,
    Receiver,
}

impl PacketProgram {
    fn name(self) -> &'static str {
        match self {
            Self::Balancer => "balancer",
            Self::Receiver => "receiver",
        }
    }
}

/// The mutants of the tree.
pub(super) fn load() -> Result<Vec<Mutant>> {
    let path = workspace::root().join("tests/mutants.toml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let list: List = toml::from_str(&text).with_context(|| path.display().to_string())?;
    ensure!(!list.mutant.is_empty(), "{}: no mutants", path.display());
    Ok(list.mutant)
}

/// Whether each mutant finds the text that it changes, in the tree as it is.
///
/// # Errors
/// Names each that does not.
pub(crate) fn check_places() -> Result<()> {
    let lost = load()?.into_iter().filter_map(|mutant| {
        let source = fs::read_to_string(workspace::root().join(&mutant.file));
        let applied = source.map_err(anyhow::Error::from).and_then(|it| mutant.applied(&it));
        applied.err().map(|error| format!("{}: {error:#}", mutant.name))
    });
    let lost: Vec<_> = lost.collect();
    ensure!(lost.is_empty(), "tests/mutants.toml: {}", lost.join("\n"));
    Ok(())
}

impl Mutant {
    /// The file with the mistake in it.
    fn applied(&self, source: &str) -> Result<String> {
        let places = source.matches(&self.find).count();
        ensure!(places == 1, "{}: {places} places of {:?}", self.file.display(), self.find);
        Ok(source.replace(&self.find, &self.replace))
    }
}

/// A copy of the tree, with a folder of its own to build in. Cargo names what it makes of a package by its place in the
/// workspace: in the folder of the packet programs a mistake would take the place of what it was made from, and stay there.
pub(super) struct Copy {
    tree: PathBuf,
    target: PathBuf,
    objects: PathBuf,
}

impl Copy {
    fn at(here: &Path) -> Self {
        Self { tree: here.join("tree"), target: here.join("build"), objects: here.join("objects") }
    }

    pub(super) fn new() -> Result<Self> {
        let copy = Self::at(&workspace::target().join("mutants"));
        if copy.tree.exists() {
            fs::remove_dir_all(&copy.tree).context("mutants: remove the old copy")?;
        }
        copy_directory(workspace::root(), &copy.tree)?;
        fs::create_dir_all(&copy.objects).context("mutants: make a folder")?;
        if !copy.target.exists() {
            // With its times: what was built of other packages need not be built again.
            let mut copying = Command::new("cp");
            copying.arg("--archive").arg(build::packet_build()).arg(&copy.target);
            process::check(copying)?;
        }
        Ok(copy)
    }

    /// Builds the packet program with a mistake in it, and returns the folder that it is in, and what that
    /// took; the copy is as before afterwards.
    pub(super) fn build(&self, toolchain: &Toolchain, mutant: &Mutant) -> Result<(PathBuf, Cost)> {
        let path = self.tree.join(&mutant.file);
        let source = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        fs::write(&path, mutant.applied(&source)?).with_context(|| path.display().to_string())?;
        let built = self.packet_program(toolchain, mutant);
        fs::write(&path, source).with_context(|| path.display().to_string())?;
        built
    }

    fn packet_program(&self, toolchain: &Toolchain, mutant: &Mutant) -> Result<(PathBuf, Cost)> {
        let mut command = build::packet_command(toolchain, "build")?;
        command.current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.target);
        // A folder for each: the table may still be run on the one before.
        let objects = self.objects.join(mutant.name.replace(['/', ' ', ':', ',', '\''], "-"));
        fs::create_dir_all(&objects).with_context(|| objects.display().to_string())?;
        let command = idle::at_idle_priority(command.args(["--bin", mutant.program.name()]));
        let built = artifacts::build(&mut { command })?;
        for built in built.programs {
            let object = objects.join(format!("{}.o", built.name));
            fs::copy(&built.executable, &object).with_context(|| object.display().to_string())?;
        }
        Ok((objects, built.cost))
    }
}

impl Mutant {
    /// Runs the rows of its program on what was built.
    pub(super) fn run(&self, packet_table: &Path, objects: &Path) -> Result<Captured> {
        let variables = [(build::OBJECTS_VARIABLE.to_owned(), OsString::from(objects))];
        // Without those of the whole table, which take both programs, and of which some see any difference.
        let (rows, others) = match self.program {
            PacketProgram::Balancer => ("balancer: ", "receiver: "),
            PacketProgram::Receiver => ("receiver: ", "balancer: "),
        };
        let args = [rows, "--skip", others, "--skip", "differential: ", "--skip", "whole: "];
        let job = root::announced_job(&variables, packet_table.as_os_str(), &args)?;
        process::capture(job, LIMITS, &self.name)
    }
}

/// Rows that saw the mistake. None where the table did not come to an end by itself, or where no row
/// passed: a program that the kernel refuses is no mutant.
pub(super) fn red_rows(captured: &Captured) -> u64 {
    let is_row = |line: &str| {
        ["test balancer: ", "test receiver: "].iter().any(|head| line.starts_with(head))
    };
    let mut lines = captured.output.lines();
    let loaded = lines.any(|line| is_row(line) && line.trim_end().ends_with("... ok"));
    let ended = captured.status.is_ok() && captured.output.contains("test result: FAILED.");
    if loaded && ended { Tally::read(&captured.output, captured.success()).failed } else { 0 }
}

/// Copies what is source.
fn copy_directory(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        if kind.is_dir() && name != "target" && name != ".git" {
            copy_directory(&entry.path(), &to.join(name))?;
        } else if kind.is_file() {
            let to = to.join(name);
            fs::copy(entry.path(), &to).with_context(|| to.display().to_string())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::progress::Exceeded;

    #[test]
    fn every_mutant_finds_its_place_in_the_tree() {
        let mutants = load().unwrap();
        assert!(mutants.len() >= 10);
        for mutant in mutants {
            let source = fs::read_to_string(workspace::root().join(&mutant.file)).unwrap();
            assert_ne!(mutant.applied(&source).unwrap(), source, "{}", mutant.name);
        }
    }

    #[test]
    fn no_mistake_gets_into_the_packet_programs() {
        let copy = Copy::at(Path::new("/mutants"));
        assert!(!copy.target.starts_with(build::packet_build()), "{}", copy.target.display());
        assert!(!build::packet_build().starts_with(&copy.target), "{}", copy.target.display());
    }

    #[test]
    fn a_table_that_did_not_end_or_did_not_load_saw_nothing() {
        const RESULT: &str = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured";
        const ROW: &str = "test balancer: ARP ... ok";
        let red = |status, lines: [&str; 2]| {
            red_rows(&Captured { status, output: lines.join("\n"), cpu_time: Duration::ZERO })
        };
        let failed = Ok(std::os::unix::process::ExitStatusExt::from_raw(1 << 8));
        let killed = Err(Exceeded::Hard(Duration::from_secs(60)));
        assert_eq!(red(failed, [ROW, RESULT]), 2);
        assert_eq!(red(killed, [ROW, RESULT]), 0);
        assert_eq!(red(failed, ["test receiver: ARP ... ok", RESULT]), 2);
        assert_eq!(red(failed, ["test balancer: ARP ... FAILED", RESULT]), 0);
        assert_eq!(red(failed, [ROW, "killed"]), 0);
    }
}
