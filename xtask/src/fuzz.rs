//! The fuzz targets of lb-fuzz, built for libFuzzer and run.
//!
//! What `cargo fuzz` would set is set here: passes of the compiler that count which ways were taken, all of
//! them of the stable one. No sanitizer: there is hardly any unsafe code to watch, and without one a target
//! runs several times as often.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::artifacts::{self, Program};
use crate::build::OBJECTS_VARIABLE;
use crate::cargo::cargo;
use crate::cli::FuzzArgs;
use crate::process;
use crate::progress::Limits;
use crate::setup::{self, Purpose, Wants};
use crate::ui;
use crate::workspace;

const PACKAGE: &str = "lb-fuzz";

/// Longest input, bytes: two Ethernet frames of the usual size.
const LONGEST: u32 = 4_096;

/// Executions below this are none: a target that takes nothing in.
const FEWEST: u64 = 100;

/// `cargo xtask fuzz`.
pub(crate) fn run(args: &FuzzArgs) -> Result<ExitCode> {
    setup::ensure(&Wants::purpose(Purpose::Fuzz), args.no_install)?;
    let mut targets = build()?;
    if let Some(name) = &args.target {
        let names: Vec<_> = targets.iter().map(|target| target.name.clone()).collect();
        targets.retain(|target| target.name == *name);
        ensure!(!targets.is_empty(), "{name}: no such target; there are {}", names.join(", "));
    }
    let mut found = 0;
    for target in &targets {
        ui::heading(&target.name);
        match fuzz(target, Duration::from_secs(args.seconds)) {
            Ok(executions) => ui::note(&format!("{executions} executions, nothing found")),
            Err(error) => {
                ui::note(&format!("{error:#}"));
                found += 1;
            }
        }
    }
    println!("{} targets, {found} of them with something found", targets.len());
    Ok(if found == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Builds all targets, by name.
pub(crate) fn build() -> Result<Vec<Program>> {
    let mut command = cargo();
    // Beside the others: everything is built with other flags.
    command.env("CARGO_TARGET_DIR", folder()).env_remove(OBJECTS_VARIABLE);
    let flags = [
        "-Cpasses=sancov-module",
        "-Cllvm-args=-sanitizer-coverage-level=4",
        "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
        "-Cllvm-args=-sanitizer-coverage-pc-table",
        "-Cllvm-args=-sanitizer-coverage-trace-compares",
    ];
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    // With a target the flags are not those of build scripts, which have no libFuzzer.
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    command.args([
        "build",
        "--package",
        PACKAGE,
        "--bins",
        "--features",
        "libfuzzer",
        "--profile",
        "fuzz",
    ]);
    let mut targets = artifacts::build(command.args(["--target", &target]))?.programs;
    ensure!(!targets.is_empty(), "{PACKAGE}: has no targets");
    targets.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(targets)
}

/// Runs a target for a while, and says how often it ran.
pub(crate) fn fuzz(target: &Program, time: Duration) -> Result<u64> {
    let grown = made(folder().join("corpus").join(&target.name))?;
    let found = made(folder().join("found").join(&target.name))?;
    let corpus = workspace::root().join("tests/fuzz/corpus").join(&target.name);
    ensure!(corpus.is_dir(), "{}: nothing to begin with", corpus.display());
    // Where no disk is waited for; it goes even if the target cannot see to it.
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.into() } else { std::env::temp_dir() };
    let scratch = tempfile::tempdir_in(place).context("a folder for the target")?;
    let mut command = Command::new(&target.executable);
    command.current_dir(workspace::root()).env("TMPDIR", scratch.path()).arg(grown).arg(corpus);
    command.arg(format!("-artifact_prefix={}/", found.display()));
    command.arg(format!("-max_total_time={}", time.as_secs()));
    command.arg(format!("-max_len={LONGEST}"));
    command.args(["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"]);
    let start = Instant::now();
    // It ends by itself after its time; reading the corpus comes before that.
    let limits = Limits::stalled(time + Duration::from_secs(120));
    let captured = process::capture(command, limits, &target.name)?;
    let output = &captured.output;
    if !captured.success() {
        bail!("{}: found something, or broke, after {:?}:\n{output}", target.name, start.elapsed());
    }
    ensure!(output.contains("inline 8-bit counters"), "{}: counts no ways:\n{output}", target.name);
    let executions = executions(output).with_context(|| output.clone())?;
    ensure!(executions >= FEWEST, "{}: {executions} executions are none", target.name);
    Ok(executions)
}

/// `stat::number_of_executed_units: 1234`
fn executions(output: &str) -> Option<u64> {
    let line = output.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    line?.trim().parse().ok()
}

fn folder() -> PathBuf {
    workspace::target().join("fuzz")
}

fn made(folder: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_often_a_target_ran() {
        let output = "Done 4242 runs in 3 second(s)\nstat::number_of_executed_units: 4242\n\
                      stat::average_exec_per_sec:     1414\n";
        assert_eq!(executions(output), Some(4242));
        assert_eq!(executions("Done"), None);
    }

    #[test]
    fn every_target_has_something_to_begin_with() {
        let fuzz = workspace::root().join("tests/fuzz");
        let mut targets = 0;
        for entry in fs::read_dir(fuzz.join("targets")).unwrap() {
            let name = entry.unwrap().path().file_stem().unwrap().to_owned();
            let corpus = fs::read_dir(fuzz.join("corpus").join(&name)).unwrap();
            assert!(corpus.count() > 0, "{}", name.display());
            targets += 1;
        }
        assert_eq!(targets, 8);
    }
}
