//! `cargo xtask test`: everything that proves the project, to the end even after a failure.

mod filter;
mod mutants;
mod package;
mod skips;
mod steps;
mod tally;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use crate::artifacts::{self, Program};
use crate::build;
use crate::cli::TestArgs;
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
                let built = build::everything(&ready.toolchain, true);
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
        let mut programs: Vec<_> = programs.into_iter().filter(is_for_root).collect();
        programs.sort_by(|a, b| a.name.cmp(&b.name));
        for Program { name, executable, .. } in programs {
            let what_for = "tests in network namespaces, BPF programs";
            let args = self.filter.tests().to_vec();
            let variables = self.variables(ready);
            self.tests(&name, || root::job(what_for, &variables, executable.as_os_str(), &args))?;
        }
        Ok(())
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
        for mutant in mutants {
            let start = heading(&mutant.name);
            let seen = copy.build(&ready.toolchain, &mutant).and_then(|()| {
                let captured = copy.run(&table)?;
                let rows = mutants::red_rows(&captured);
                ensure!(rows > 0, "the packet table did not see it:\n{}", captured.output);
                ui::note(&format!("{rows} rows saw it"));
                Ok(())
            });
            self.conclude_call(start, &seen)?;
        }
        Ok(())
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
            let series = self.args.kernel.replace('.', "_");
            variables.push((format!("SPILLWAY_KERNEL_{series}"), kernel.into()));
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
