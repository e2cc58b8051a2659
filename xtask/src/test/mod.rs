//! `cargo xtask test`: all tests, to the end even after a failure.
//!
//! What is built first is what all else needs. Then tests that mostly wait run several at a time, and beside them
//! unit tests, clippy, rustdoc, mutants and the package. Tests that measure come after that, at most two at a time.

mod clients;
mod filter;
pub(crate) mod mutants;
mod package;
mod report;
mod root_tests;
mod rotation;
mod skips;
mod slots;
pub(crate) mod steps;
mod tally;

use std::ffi::OsString;
use std::process::{Command, ExitCode};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail, ensure};
use nix::unistd::Pid;

use crate::artifacts::{self, Cost};
use crate::build;
use crate::cli::TestArgs;
use crate::demo;
use crate::fuzz;
use crate::idle;
use crate::process::{self, Background, Job};
use crate::progress::{Limits, cpu_time_of_children};
use crate::root;
use crate::setup::{self, Ready, Wants};
use crate::ui;
use crate::workspace;
use filter::Filter;
use report::{Report, Summary};
use root_tests::{Programs, Test, Variables};
use rotation::Rotation;
use skips::Skips;
use slots::Slots;
use steps::Step;
use tally::Tally;

/// Steps may wait long, for a download or for another cargo.
const LIMITS: Limits = Limits::stalled(Duration::from_secs(30 * 60));

/// The same for one case of `scenarios`, unless with `--long`, where one has an hour of work.
const CASE_LIMITS: Limits = Limits::stalled(Duration::from_secs(10 * 60));

/// Time between two looks at what still runs on idle CPU time when the tests have ended.
const LOOK: Duration = Duration::from_secs(1);

/// Of so many commits one has fleets on the newer etcd.
const ETCDS: u64 = 2;

/// Names a folder with another etcd to test programs.
const ETCD_DIRECTORY: &str = "SPILLWAY_ETCD_DIR";

/// Of so many mutants a sample has one.
const MUTANTS: u64 = 3;

/// Steps that run beside the tests in namespaces, each row in its order. What they build is built on idle CPU time.
/// The package comes after the unit tests: it leaves a `spillwayd` without packet programs in target/debug, which
/// they start.
const BACKGROUND: [&[Step]; 2] = [
    &[Step::Unit, Step::Clippy, Step::Doc, Step::Package],
    &[Step::ClippyBpf, Step::Mutants, Step::Deny, Step::Races],
];

/// Steps that run before the build and have the machine to themselves.
const FIRST: [Step; 2] = [Step::Fmt, Step::Alerts];

/// The same after all others.
const LAST: [Step; 2] = [Step::Fuzz, Step::Experiments];

/// `cargo xtask test`. The last line on standard output is the tally.
pub(crate) fn run(args: &TestArgs) -> Result<ExitCode> {
    let start = Instant::now();
    let skips = Skips::load(&workspace::root().join("tests/skips.toml"))?;
    let rotation = match args.long {
        true => None,
        false => Some(Rotation::from_revision(args.commit.as_deref().unwrap_or("HEAD"))?),
    };
    if let Some(rotation) = &rotation {
        ui::heading(&rotation.describe());
    }
    let filter = Filter::new(&args.filter, args.long);
    let kernels = args.kernels();
    let wants = Wants::tests(&kernels, args.long, filter.wants(Step::Build));
    let mut ready = setup::ensure(&wants, false)?;
    let begun_release = ready.begun_release.take();
    let report = Report::default();
    report.step("setup", start, Cost { units: 0, cpu_time: cpu_time_of_children() });
    let run = Run { args, filter, rotation, ready, slots: Slots::default(), report };
    run.run_steps(begun_release)?;
    let is_blind = !run.filter.tests().is_empty() && !run.report.has_tested();
    let Summary { mut total, slowest, steps, failures } = run.report.finish();
    ui::heading("what took longest: its time, CPU time");
    eprint!("{slowest}");
    ui::heading(
        "each step: its time, CPU time, and units that it compiled; steps from unit to root overlap",
    );
    eprint!("{steps}");
    if !failures.is_empty() {
        ui::heading("what failed, once more: the end of what it said");
        eprint!("{failures}");
    }
    if let Some(rotation) = &run.rotation {
        ui::note(&rotation.describe());
    }
    for remark in skips.judge(&mut total) {
        ui::note(&remark);
    }
    if is_blind || total == Tally::default() {
        ui::note("no test was run: a failure; no test has such a name");
        total.failed += 1;
    }
    let (time, cpu_time) = (ui::elapsed(start.elapsed()), ui::elapsed(cpu_time_of_children()));
    ui::note(&format!("{time} in all, {cpu_time} of CPU time"));
    println!("{total}");
    Ok(if total.is_failure() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

struct Run<'a> {
    args: &'a TestArgs,
    filter: Filter,
    /// None: everything is run.
    rotation: Option<Rotation>,
    ready: Ready,
    slots: Slots,
    report: Report,
}

impl Run<'_> {
    fn run_steps(&self, begun_release: Option<Background>) -> Result<()> {
        if self.filter.wants_test_programs() {
            root::ask("tests in network namespaces and containers, BPF programs")?;
        }
        self.run_in_order(&FIRST)?;
        let built = self.build(begun_release)?;
        let tests = match &built {
            Some(programs) if self.filter.wants(Step::Root) => {
                self.skip_missing_kernels();
                let variables = [self.variables(), self.clients()?].concat();
                let words = self.filter.tests();
                let mut tests = programs.tests(words, &self.ready.kernels, &variables)?;
                tests.extend(self.on_newer_etcd(programs, &variables)?);
                tests
            }
            _ => Vec::new(),
        };
        let (measuring, beside): (Vec<_>, Vec<_>) =
            tests.into_iter().partition(|test| test.is_measuring);
        thread::scope(|scope| {
            let (running, ended) = channel::<()>();
            let built = built.as_ref();
            let behind = BACKGROUND.map(|steps| {
                let running = running.clone();
                scope.spawn(move || {
                    let _until_they_end = running;
                    let mut wanted = steps.iter().filter(|&&step| self.filter.wants(step));
                    wanted.try_for_each(|&step| self.run_in_background(step, built))
                })
            });
            let start = Instant::now();
            let tested = self.run_in_parallel(&beside);
            let took = tested.map(|cost| self.report.step("root, beside the others", start, cost));
            // Nothing is left to be slowed by the others.
            drop(running);
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(LOOK) {
                idle::give_usual_priority(Pid::this())?;
            }
            behind.into_iter().map(join).fold(took, Result::and)
        })?;
        let start = Instant::now();
        let cost = self.run_in_parallel(&measuring)?;
        self.report.step("root, what measures", start, cost);
        self.run_in_order(&LAST)
    }

    fn skip_missing_kernels(&self) {
        let words = self.filter.tests();
        if !words.is_empty() && !words.iter().any(|word| word.contains("kernel")) {
            return;
        }
        for series in self.args.kernels() {
            if !self.ready.kernels.iter().any(|(found, _)| *found == series) {
                self.report
                    .skip(&format!("kernel {series}"), "apt offers no kernel of this series");
            }
        }
    }

    /// Steps one after the other, with the machine to themselves.
    fn run_in_order(&self, steps: &[Step]) -> Result<()> {
        steps.iter().filter(|&&step| self.filter.wants(step)).try_for_each(|&step| match step {
            Step::Fmt => self.check(step.name(), steps::fmt()),
            Step::Alerts => {
                steps::alerts().into_iter().try_for_each(|(name, job)| self.check(name, job))
            }
            Step::Fuzz => self.fuzz(),
            Step::Experiments => self.experiments(),
            other => bail!("step {}: runs in the background", other.name()),
        })
    }

    /// A step that runs beside tests.
    fn run_in_background(&self, step: Step, programs: Option<&Programs>) -> Result<()> {
        match (step, programs) {
            (Step::Clippy, _) => {
                self.check(step.name(), idle::at_idle_priority(&steps::clippy_everything()))
            }
            (Step::ClippyBpf, _) => match steps::clippy_bpf(&self.ready.toolchain)? {
                Some(command) => self.check(step.name(), idle::at_idle_priority(&command)),
                None => {
                    self.report.skip(step.name(), "the BPF toolchain that was named has no clippy");
                    Ok(())
                }
            },
            (Step::Deny, _) => self.deny(),
            (Step::Doc, _) => self.check(step.name(), idle::at_idle_priority(&steps::doc())),
            (Step::Races, _) => self.check(step.name(), idle::at_idle_priority(&steps::races())),
            (Step::Unit, _) => self.unit_tests(),
            (Step::Mutants, Some(programs)) => self.mutants(programs),
            (Step::Package, Some(programs)) => self.package(programs),
            _ => {
                let failed: Result<()> = Err(anyhow!("not run: the build failed"));
                self.report.conclude(step.name(), Instant::now(), &failed)
            }
        }
    }

    fn deny(&self) -> Result<()> {
        let start = Instant::now();
        let program = setup::cargo_deny();
        self.report.conclude("build of cargo-deny, if it was missing", start, &program)?;
        match program {
            Ok(program) => self.check(Step::Deny.name(), steps::deny(&program)),
            Err(_) => Ok(()),
        }
    }

    /// What is tested, and the test programs for root; none if building failed. The release and the test programs are
    /// compiled beside each other: either build ends with crates that keep one CPU busy.
    fn build(&self, begun_release: Option<Background>) -> Result<Option<Programs>> {
        if !self.filter.wants(Step::Build) {
            return Ok(None);
        }
        let start = self.report.begin("build");
        let packet_programs = build::packet_programs(&self.ready.toolchain);
        self.report.conclude("build of packet programs", start, &packet_programs)?;
        if packet_programs.is_err() {
            return Ok(None);
        }
        thread::scope(|scope| {
            let release = scope.spawn(|| {
                let start = Instant::now();
                let built = build::host_programs(begun_release, true, build::Programs::Product);
                self.report.step(
                    "build of the release",
                    start,
                    *built.as_ref().unwrap_or(&Cost::default()),
                );
                self.report.conclude("build of the release", start, &built)?;
                Ok(built.is_ok())
            });
            let programs = match self.filter.wants_test_programs() {
                true => self.build_test_programs(),
                false => Ok(None),
            };
            let is_released = join(release)?;
            Ok(programs?.filter(|_| is_released))
        })
    }

    fn build_test_programs(&self) -> Result<Option<Programs>> {
        let start = Instant::now();
        let programs = Programs::build();
        let cost = programs.as_ref().map_or(Cost::default(), |programs| programs.cost);
        self.report.step("build of test programs", start, cost);
        self.report.conclude("build of test programs", start, &programs)?;
        Ok(programs.ok())
    }

    /// The other etcd that tests of fleets are to use in this run.
    fn etcd(&self) -> Option<(String, OsString)> {
        let is_turn = self.rotation.as_ref().is_some_and(|rotation| rotation.has(1, ETCDS));
        let folder = self.ready.newer_etcd.as_ref().filter(|_| is_turn)?;
        Some((ETCD_DIRECTORY.to_owned(), folder.into()))
    }

    /// A run of everything has fleets on the system's etcd, and once more on the newer one: at the size of a plain run.
    fn on_newer_etcd(&self, programs: &Programs, variables: &Variables) -> Result<Vec<Test>> {
        let Some(folder) = self.ready.newer_etcd.as_ref().filter(|_| self.rotation.is_none())
        else {
            return Ok(Vec::new());
        };
        let mut variables = variables.clone();
        variables.retain(|(name, _)| name != rotation::VARIABLE);
        variables.push((rotation::VARIABLE.to_owned(), "0".into()));
        variables.push((ETCD_DIRECTORY.to_owned(), folder.into()));
        programs.cases_again("fleet::", "etcd 3.5", self.filter.tests(), &variables)
    }

    /// The example clients in Go, which only a long run has. Returns what tests are told.
    fn clients(&self) -> Result<Variables> {
        let Some(python) = self.ready.python.as_ref().filter(|_| self.args.long) else {
            return Ok(Variables::new());
        };
        let start = self.report.begin("example clients in Go");
        let prepared = clients::prepare(python);
        self.report.conclude("build of example clients", start, &prepared)?;
        Ok(prepared.unwrap_or_default())
    }

    /// A step that is one test.
    fn check(&self, name: &str, job: impl Into<Job>) -> Result<()> {
        let start = Instant::now();
        let mut captured = process::capture(job, LIMITS, name)?;
        let cost = artifacts::cost(&mut captured)?;
        self.report.ran(name, start, &captured, Tally::step(captured.success()));
        self.report.step(name, start, cost);
        Ok(())
    }

    /// `cargo test`, as the user. Once for each word: some test programs take but one. A run of everything has what starts
    /// etcd once more on the newer one.
    fn unit_tests(&self) -> Result<()> {
        let _taken = self.slots.take(2);
        let words = self.filter.tests().iter().map(|word| Some(word.as_str()));
        let words: Vec<_> = if words.len() == 0 { vec![None] } else { words.collect() };
        let name = Step::Unit.name();
        for word in &words {
            let mut command = steps::unit(*word);
            command.envs(self.etcd());
            self.cargo_test(name, command)?;
        }
        let newer = self.ready.newer_etcd.as_ref().filter(|_| self.rotation.is_none());
        for (word, folder) in words.iter().flat_map(|word| newer.map(|folder| (word, folder))) {
            let mut command = steps::unit_on_etcd(*word);
            command.env(ETCD_DIRECTORY, folder);
            self.cargo_test(&format!("{name}, etcd 3.5"), command)?;
        }
        Ok(())
    }

    fn cargo_test(&self, name: &str, mut command: Command) -> Result<()> {
        let start = Instant::now();
        command.envs([self.sample()]);
        let mut captured = process::capture(command, LIMITS, name)?;
        let cost = artifacts::cost(&mut captured)?;
        let tally = Tally::read(&captured.output, captured.success());
        for (program, time) in tally::times(&captured.output) {
            self.report.time(&format!("{name}: {program}"), time);
        }
        self.report.tested(name, start, &captured, tally);
        self.report.step(name, start, cost);
        Ok(())
    }

    /// Runs tests as root, begun in their order, as many at a time as there are slots for. Returns what they took.
    fn run_in_parallel(&self, tests: &[Test]) -> Result<Cost> {
        thread::scope(|scope| {
            let running = tests.iter().map(|test| {
                let taken = self.slots.take(test.slots);
                crate::signals::check()?;
                Ok(scope.spawn(move || {
                    let _taken = taken;
                    self.run(test)
                }))
            });
            // All of them are begun, as slots are given back, before the first is waited for.
            let running: Vec<Result<_>> = running.collect();
            running.into_iter().try_fold(Cost::default(), |mut cost, test| {
                cost.cpu_time += join(test?)?;
                Ok(cost)
            })
        })
    }

    /// Runs a test, and returns the CPU time that it took.
    fn run(&self, test: &Test) -> Result<Duration> {
        let start = Instant::now();
        let limits = if test.is_case && !self.args.long { CASE_LIMITS } else { LIMITS };
        let captured = process::capture(test.job()?, limits, &test.name)?;
        let mut tally = Tally::read(&captured.output, captured.success());
        if test.is_case && tally.count() == 0 {
            tally.failed = 1;
        }
        self.report.tested(&test.name, start, &captured, tally);
        Ok(captured.cpu_time)
    }

    /// The package, in a Debian.
    fn package(&self, programs: &Programs) -> Result<()> {
        let (name, start) = ("packages of two versions", Instant::now());
        let prepared = package::prepare();
        self.report.conclude(name, start, &prepared)?;
        let Ok((mut variables, mut cost)) = prepared else { return Ok(()) };
        variables.extend(self.variables());
        cost += self.run_in_parallel(&[programs.package(&variables)])?;
        self.report.step(Step::Package.name(), start, cost);
        Ok(())
    }

    /// The packet table on each mutant: a test that passes if the table fails.
    fn mutants(&self, programs: &Programs) -> Result<()> {
        let start = Instant::now();
        let prepared = mutants::load().and_then(|mutants| Ok((mutants, mutants::Copy::new()?)));
        let (mutants, copy) = match prepared {
            Ok(prepared) => prepared,
            failed => return self.report.conclude(Step::Mutants.name(), start, &failed),
        };
        let is_sampled = |place| self.rotation.as_ref().is_none_or(|it| it.has(place, MUTANTS));
        let (begun, mut cost) = (start, Cost::default());
        for (_, mutant) in mutants.iter().enumerate().filter(|(place, _)| is_sampled(*place)) {
            let start = Instant::now();
            let seen = copy.build(&self.ready.toolchain, mutant).and_then(|(objects, compiled)| {
                cost += compiled;
                let _taken = self.slots.take(2);
                let captured = mutant.run(programs.packet_table(), &objects)?;
                cost.cpu_time += captured.cpu_time;
                let rows = mutants::red_rows(&captured);
                ensure!(rows > 0, "the packet table did not see it:\n{}", captured.output);
                Ok(())
            });
            self.report.conclude(&format!("mutant: {}", mutant.name), start, &seen)?;
        }
        self.report.step(Step::Mutants.name(), begun, cost);
        Ok(())
    }

    /// Each fuzz target: a test that passes if nothing is found.
    fn fuzz(&self) -> Result<()> {
        let start = self.report.begin("fuzz targets");
        let targets = fuzz::build();
        self.report.conclude("build of fuzz targets", start, &targets)?;
        let Ok(targets) = targets else { return Ok(()) };
        let time = Duration::from_secs(self.args.fuzz_seconds);
        thread::scope(|scope| {
            let running: Vec<_> = targets
                .iter()
                .map(|target| {
                    // One busy CPU each.
                    let taken = self.slots.take(slots::ALL / 2);
                    scope.spawn(move || {
                        let _taken = taken;
                        let start = Instant::now();
                        let ran = fuzz::fuzz(target, time);
                        self.report.conclude(&format!("fuzz: {}", target.name), start, &ran)
                    })
                })
                .collect();
            running.into_iter().try_for_each(join)
        })
    }

    /// The experiments at their real size.
    fn experiments(&self) -> Result<()> {
        let start = self.report.begin("programs of the experiments");
        let built = build::packet_programs(&self.ready.toolchain)
            .and_then(|()| build::host_programs(None, true, build::Programs::Demo));
        self.report.conclude("build of the experiments", start, &built)?;
        if built.is_err() {
            return Ok(());
        }
        for experiment in ["overflow", "failover"] {
            let start = Instant::now();
            let shown = demo::show(&[experiment.into()]).and_then(|code| {
                ensure!(code == ExitCode::SUCCESS, "it failed, as it says above");
                Ok(())
            });
            self.report.conclude(&format!("experiment: {experiment}"), start, &shown)?;
        }
        Ok(())
    }

    /// What test programs are told to sample; nothing if they are to run everything.
    fn sample(&self) -> (String, OsString) {
        let everything = || (rotation::VARIABLE.to_owned(), OsString::new());
        self.rotation.as_ref().map_or_else(everything, Rotation::variable)
    }

    fn variables(&self) -> Variables {
        let mut variables = build::variables(true);
        variables.push(self.sample());
        variables.extend(self.etcd());
        if let Some(python) = &self.ready.python {
            variables.push(("SPILLWAY_PYTHON".to_owned(), python.into()));
        }
        variables
    }
}

/// How a thread ended.
fn join<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(anyhow!("a thread of the run panicked")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_has_one_place_in_a_run() {
        // Build and Root stand between those that come first and those that run beside tests.
        let planned = FIRST.iter().chain(&[Step::Build, Step::Root]);
        let planned = planned.chain(BACKGROUND.into_iter().flatten()).chain(&LAST);
        let mut planned: Vec<_> = planned.map(|step| step.name()).collect();
        let mut all = Step::ALL.map(Step::name);
        planned.sort_unstable();
        all.sort_unstable();
        assert_eq!(planned, all);
    }
}
