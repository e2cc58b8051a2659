//! Runs cases, each in a process and a sandbox of its own, with the arguments of `cargo test`.
//!
//! With `--exact NAME` this process becomes the one of that case. Otherwise it starts itself again for
//! each case that was chosen, one after the other. `cargo xtask test` runs several at a time: it reads the
//! names with `--list`, where each case's weight stands in brackets, and calls them by `--exact`.

use std::process::{Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};
use libtest_mimic::{Arguments, Failed, Trial};

use lb_tests::sandbox::{self, Sandbox};

/// What a case does: `Err` or a panic fails it.
pub type Run = fn(&Sandbox) -> Result<()>;

/// How much of the machine a case takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    /// Mostly waits for something: four may run at a time.
    Waits,
    /// Keeps a CPU busy: counts as two that wait.
    Works,
    /// Asserts rates, with bounds that one other such case beside it keeps.
    Measures,
    /// Asserts times: has the machine to itself.
    Alone,
}

impl Weight {
    /// As `--list` prints it in brackets; `xtask/src/test/root_tests.rs` reads it.
    const fn label(self) -> &'static str {
        match self {
            Self::Waits => "waits",
            Self::Works => "works",
            Self::Measures => "measures",
            Self::Alone => "alone",
        }
    }
}

/// A test in namespaces of its own.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    name: &'static str,
    weight: Weight,
    run: Run,
    /// Without this variable the case does not exist.
    variable: Option<&'static str>,
}

impl Case {
    /// One that mostly waits, and asserts no times.
    pub const fn waits(name: &'static str, run: Run) -> Self {
        Self::new(name, Weight::Waits, run)
    }

    /// One that keeps a CPU busy, and asserts no times.
    pub const fn works(name: &'static str, run: Run) -> Self {
        Self::new(name, Weight::Works, run)
    }

    /// One that asserts rates, beside another one at most.
    pub const fn measures(name: &'static str, run: Run) -> Self {
        Self::new(name, Weight::Measures, run)
    }

    /// One that asserts times.
    pub const fn alone(name: &'static str, run: Run) -> Self {
        Self::new(name, Weight::Alone, run)
    }

    const fn new(name: &'static str, weight: Weight, run: Run) -> Self {
        Self { name, weight, run, variable: None }
    }

    /// The same, in runs that set this variable; others do not list it, as they lack what it takes.
    #[must_use]
    pub const fn only_with(self, variable: &'static str) -> Self {
        Self { variable: Some(variable), ..self }
    }

    /// Its name, without its module's.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    fn exists(&self) -> bool {
        self.variable.is_none_or(|variable| std::env::var_os(variable).is_some())
    }
}

/// How a line of what was measured begins.
const MEASURED: &str = "  measured: ";

static NOTES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Has something that was measured printed when the case has run.
pub fn note(text: String) {
    NOTES.lock().unwrap_or_else(PoisonError::into_inner).push(text);
}

/// Runs those of the cases that the command line chooses; their names begin with their module's.
pub fn run(modules: &[(&str, &[Case])]) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let all = modules.iter().flat_map(|(module, cases)| {
        let cases = cases.iter().filter(|case| case.exists());
        cases.map(move |case| (format!("{module}::{}", case.name), *case))
    });
    let is_chosen = |name: &str| arguments.exact && arguments.filter.as_deref() == Some(name);
    let conclusion = match all.clone().find(|(name, _)| !arguments.list && is_chosen(name)) {
        Some((name, case)) => {
            let sandbox = sandbox::enter();
            let trial = Trial::test(name, move || (case.run)(&sandbox).map_err(failed));
            libtest_mimic::run(&arguments, vec![trial])
        }
        None => {
            let again = |(name, case): (String, Case)| {
                let own = name.clone();
                let trial =
                    Trial::test(name, move || run_in_own_process(&own)?.map_err(Failed::from));
                trial.with_kind(case.weight.label())
            };
            libtest_mimic::run(&arguments, all.map(again).collect())
        }
    };
    for note in NOTES.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        println!("{MEASURED}{note}");
    }
    conclusion.exit_code()
}

/// Runs a case in a process of its own; `Err` inside is what it printed when it failed.
fn run_in_own_process(name: &str) -> Result<Result<(), String>, Failed> {
    let run = || -> Result<_> {
        let program = std::env::current_exe().context("find our own program")?;
        // However this process ends, the supervisor of the sandbox is told to end.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "--"]).arg(program);
        command.args(["--exact", name, "--color", "never"]).stdin(Stdio::null());
        command.output().context("start our own program")
    };
    let output = run().map_err(failed)?;
    let printed = String::from_utf8_lossy(&output.stdout);
    printed.lines().filter_map(|line| line.strip_prefix(MEASURED)).for_each(|it| note(it.into()));
    if output.status.success() {
        return Ok(Ok(()));
    }
    // Indented: who counts results by their lines has one of this case from us.
    let said = String::from_utf8_lossy(&output.stderr);
    let lines = printed.lines().chain(said.lines()).map(|line| format!("\n  {line}"));
    Ok(Err(format!("{}{}", output.status, lines.collect::<String>())))
}

fn failed(error: anyhow::Error) -> Failed {
    Failed::from(format!("{error:#}"))
}
