//! `cargo xtask test`: everything that proves the project, to the end even after a failure.

mod filter;
mod lanes;
mod mutants;
mod package;
mod skips;
mod steps;
mod tally;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use crate::artifacts::{self, Program};
use crate::build;
use crate::cli::TestArgs;
use crate::fuzz;
use crate::process::{self, Captured, Job};
use crate::root;
use crate::setup::{self, Ready, Wants};
use crate::ui;
use crate::workspace;
use filter::Filter;
use skips::Skips;
use steps::Step;
use tally::Tally;

/// A step that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(45 * 60);

/// How long each fuzz target runs, and with what.
const FUZZ: (Duration, fuzz::Begin) = (Duration::from_secs(10), fuzz::Begin::Anew(1));

/// `cargo xtask test`. The last line on standard output is the tally.
pub(crate) fn run(args: &TestArgs) -> Result<ExitCode> {
    let skips = Skips::load(&workspace::root().join("tests/skips.toml"))?;
    let mut run =
        Run { args, filter: Filter::new(&args.filter), total: Tally::default(), is_built: false };
    let ready = setup::ensure(&Wants::tests(&args.kernel), false)?;
    for step in Step::ALL {
        if run.filter.wants(step) {
            run.step(step, &ready)?;
        }
    }
    let mut total = run.total;
    for remark in skips.judge(&mut total) {
        ui::note(&remark);
    }
    if total == Tally::default() {
        ui::note("no test was run: a failure; see what the words chose");
        total.failed = 1;
    }
    println!("{} passed, {} failed, {} skipped", total.passed, total.failed, total.skipped.len());
    Ok(if total.is_failure() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

struct Run<'a> {
    args: &'a TestArgs,
    filter: Filter,
    total: Tally,
    /// Whether the build step succeeded: what an earlier one left is not to be tested.
    is_built: bool,
}

impl Run<'_> {
    fn step(&mut self, step: Step, ready: &Ready) -> Result<()> {
        match step {
            Step::Fmt => self.check(step.name(), steps::fmt()),
            Step::Clippy => self.check(step.name(), steps::clippy()),
            Step::ClippyBpf => match steps::clippy_bpf(&ready.toolchain)? {
                Some(command) => self.check(step.name(), command),
                None => {
                    ui::heading(step.name());
                    ui::note("the BPF toolchain that was named has no clippy");
                    self.total.skipped.push(step.name().to_owned());
                    Ok(())
                }
            },
            Step::Deny => self.check(step.name(), steps::deny(&setup::cargo_deny()?)),
            Step::Build => {
                let start = heading(step.name());
                let built = build::tested(&ready.toolchain);
                self.is_built = built.is_ok();
                self.conclude_call(start, &built)
            }
            Step::Unit => {
                let command = steps::unit(self.filter.tests());
                self.tests(step.name(), || Ok(command.into()))
            }
            Step::Root | Step::Package | Step::Mutants if !self.is_built => {
                let start = heading(step.name());
                self.conclude_call(start, &Err::<(), _>(anyhow!("not run: the build failed")))
            }
            Step::Root => self.root_tests(ready),
            Step::Package => self.package(ready),
            Step::Mutants => self.mutants(ready),
            Step::Fuzz => self.fuzz(),
        }
    }

    /// A step that is one test.
    fn check(&mut self, name: &str, job: impl Into<Job>) -> Result<()> {
        let start = heading(name);
        let captured = process::capture(job, LIMIT)?;
        let tally = Tally::step(captured.success());
        self.conclude(start, &captured, tally);
        Ok(())
    }

    /// A step that runs test programs.
    fn tests(&mut self, name: &str, job: impl FnOnce() -> Result<Job>) -> Result<()> {
        let start = heading(name);
        let captured = process::capture(job()?, LIMIT)?;
        let tally = Tally::read(&captured.output, captured.success());
        self.conclude(start, &captured, tally);
        Ok(())
    }

    /// Each test program of lb-tests, as root.
    fn root_tests(&mut self, ready: &Ready) -> Result<()> {
        let start = heading("test programs for root");
        let programs = artifacts::build(&mut steps::root_programs());
        let programs = programs.and_then(|programs| {
            ensure!(!programs.is_empty(), "lb-tests: has no test programs");
            Ok(programs)
        });
        let programs = match programs {
            Ok(programs) => programs,
            failed => return self.conclude_call(start, &failed),
        };
        let is_for_root = |it: &Program| it.is_test && it.name != package::PROGRAM;
        let (together, alone) = steps::root_lanes(programs.into_iter().filter(is_for_root));
        let (args, variables) = (self.filter.tests().to_vec(), self.variables(ready));
        let job = |executable: &Path| {
            let what_for = "tests in network namespaces, BPF programs";
            root::job(what_for, &variables, executable.as_os_str(), &args)
        };
        for Program { name, executable, .. } in alone {
            self.tests(&name, || job(&executable))?;
        }
        ui::heading("test programs for root that mostly wait, two at a time");
        let run = |program: &Program| {
            let start = Instant::now();
            let captured = job(&program.executable).and_then(|job| process::capture(job, LIMIT));
            (captured, start)
        };
        let mut failed = Ok(());
        lanes::each(&together, lanes::LANES, run, |program, (captured, start)| match captured {
            Ok(captured) => {
                let tally = Tally::read(&captured.output, captured.success());
                ui::heading(&program.name);
                self.conclude(start, &captured, tally);
            }
            Err(error) => failed = Err(error),
        });
        failed
    }

    /// The package, in a Debian.
    fn package(&mut self, ready: &Ready) -> Result<()> {
        let start = heading("packages of two versions");
        let (program, mut variables) = match package::prepare() {
            Ok(prepared) => prepared,
            failed => return self.conclude_call(start, &failed),
        };
        variables.extend(self.variables(ready));
        let what_for = "the package in containers: namespaces, BPF programs";
        let args: [&str; 0] = [];
        self.tests(package::PROGRAM, || root::job(what_for, &variables, program.as_os_str(), &args))
    }

    /// The packet table on each mutant: a test that passes if the table fails.
    fn mutants(&mut self, ready: &Ready) -> Result<()> {
        let start = heading(Step::Mutants.name());
        let prepared = artifacts::build(&mut steps::root_programs()).and_then(|programs| {
            let table = programs.into_iter().find(|program| program.name == "packet_table");
            let table = table.context("lb-tests: has no packet_table")?.executable;
            Ok((table, mutants::load()?, mutants::Copy::new()?))
        });
        let (table, mutants, copy) = match prepared {
            Ok(prepared) => prepared,
            failed => return self.conclude_call(start, &failed),
        };
        // The next one is built while the table is run on one.
        let (made, to_run) = channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                let made = made;
                for mutant in &mutants {
                    let built = copy.build(&ready.toolchain, mutant);
                    if made.send((mutant, built)).is_err() {
                        break;
                    }
                }
            });
            for (mutant, built) in to_run {
                let start = heading(&mutant.name);
                let seen = built.and_then(|objects| {
                    let captured = mutant.run(&table, &objects)?;
                    let rows = mutants::red_rows(&captured);
                    ensure!(rows > 0, "the packet table did not see it:\n{}", captured.output);
                    ui::note(&format!("{rows} rows saw it"));
                    Ok(())
                });
                self.conclude_call(start, &seen)?;
            }
            Ok(())
        })
    }

    /// Each fuzz target: a test that passes if nothing is found.
    fn fuzz(&mut self) -> Result<()> {
        let start = heading("fuzz targets");
        let targets = match fuzz::build() {
            Ok(targets) => targets,
            failed => return self.conclude_call(start, &failed),
        };
        let run = |target: &Program| (Instant::now(), fuzz::fuzz(target, FUZZ.0, FUZZ.1));
        let mut failed = Ok(());
        lanes::each(&targets, lanes::LANES, run, |target, (start, ran)| {
            ui::heading(&format!("fuzz {}", target.name));
            if let Ok(executions) = &ran {
                ui::note(&format!("{executions} executions"));
            }
            if let Err(error) = self.conclude_call(start, &ran) {
                failed = Err(error);
            }
        });
        failed
    }

    fn variables(&self, ready: &Ready) -> Vec<(String, OsString)> {
        let mut variables = build::variables(true);
        if self.args.quick {
            variables.push(("SPILLWAY_TEST_QUICK".to_owned(), "1".into()));
        }
        if let Some(python) = &ready.python {
            variables.push(("SPILLWAY_PYTHON".to_owned(), python.into()));
        }
        if let Some(kernel) = &ready.kernel {
            variables.push(("SPILLWAY_KERNEL".to_owned(), kernel.into()));
            variables.push(("SPILLWAY_KERNEL_SERIES".to_owned(), self.args.kernel.clone().into()));
        }
        variables
    }

    /// Ends a step that shows its own output.
    fn conclude_call<T>(&mut self, start: Instant, outcome: &Result<T>) -> Result<()> {
        crate::signals::check()?;
        match outcome {
            Ok(_) => ui::note(&format!("ok, {}", ui::elapsed(start.elapsed()))),
            Err(error) => {
                ui::note(&format!("FAILED after {}: {error:#}", ui::elapsed(start.elapsed())));
            }
        }
        self.total += Tally::step(outcome.is_ok());
        Ok(())
    }

    /// Ends a step whose output was kept: shown whole if it failed.
    fn conclude(&mut self, start: Instant, captured: &Captured, tally: Tally) {
        let time = ui::elapsed(start.elapsed());
        let counts = format!(
            "{} passed, {} failed, {} skipped",
            tally.passed,
            tally.failed,
            tally.skipped.len()
        );
        if tally.is_failure() {
            eprintln!("{}", captured.output.trim_end());
            let how = match captured.status {
                Some(status) => status.to_string(),
                None => format!("killed: took longer than {}", ui::elapsed(LIMIT)),
            };
            ui::note(&format!("FAILED ({how}), {time}: {counts}"));
        } else {
            ui::note(&format!("ok, {time}: {counts}"));
        }
        self.total += tally;
    }
}

fn heading(name: &str) -> Instant {
    ui::heading(name);
    Instant::now()
}
