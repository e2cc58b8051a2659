//! The tests that are run as root: the test programs of lb-e2e, and of `scenarios` each case by itself.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::artifacts::{self, Built, Cost, Program};
use crate::build;
use crate::process::{self, Job};
use crate::root;
use crate::workspace;

use super::{slots, steps};

/// Environment variables, by name.
pub(super) type Variables = Vec<(String, OsString)>;

/// The test programs of lb-e2e.
pub(super) struct Programs {
    scenarios: PathBuf,
    packet_table: PathBuf,
    kernel: PathBuf,
    package: PathBuf,
    /// Unit tests of lb-e2e and lb-tests themselves.
    unit_tests: Vec<Program>,
    /// What building them took.
    pub(super) cost: Cost,
}

/// A program to run as root.
pub(super) struct Test {
    pub(super) name: String,
    /// What it takes of the machine while it runs.
    pub(super) slots: usize,
    /// Whether it asserts times or rates: only such tests run beside it, if any.
    pub(super) is_measuring: bool,
    /// Whether it is one case of `scenarios`.
    pub(super) is_case: bool,
    program: PathBuf,
    arguments: Vec<String>,
    variables: Variables,
}

impl Programs {
    /// Builds them, and with them all other test programs, and demo and lab, which some cases start.
    pub(super) fn build() -> Result<Self> {
        let Built { programs: mut built, mut cost } =
            artifacts::build(&mut steps::test_programs())?;
        let others = artifacts::build(&mut build::host_command(false, build::Programs::Tested))?;
        cost += others.cost;
        let folders = ["tests", "tests/e2e"].map(|folder| workspace::root().join(folder));
        built.retain(|program| program.is_test && folders.contains(&program.package));
        let mut find = |name: &str| -> Result<PathBuf> {
            let place = built.iter().position(|program| program.name == name);
            let place = place.with_context(|| format!("lb-e2e: has no program {name}"))?;
            Ok(built.swap_remove(place).executable)
        };
        let [scenarios, packet_table, kernel, package] =
            [find("scenarios")?, find("packet_table")?, find("kernel")?, find("package")?];
        Ok(Self { scenarios, packet_table, kernel, package, unit_tests: built, cost })
    }

    /// The program of the packet table.
    pub(super) fn packet_table(&self) -> &Path {
        &self.packet_table
    }

    /// The test of the package.
    pub(super) fn package(&self, variables: &Variables) -> Test {
        Test::busy("package", &self.package, None, variables)
    }

    /// All others whose names contain one of `words`, or all if there are none. Long ones come first. `kernels`
    /// are folders by series.
    pub(super) fn tests(
        &self,
        words: &[String],
        kernels: &[(String, PathBuf)],
        variables: &Variables,
    ) -> Result<Vec<Test>> {
        let mut tests = Vec::new();
        let mut add = |name: &str, program: &Path, variables: &Variables| {
            if is_wanted(name, words) {
                tests.push(Test::busy(name, program, None, variables));
            } else {
                let some = |word| Test::busy(name, program, Some(word), variables);
                tests.extend(words.iter().map(some));
            }
        };
        for (series, folder) in kernels {
            let mut variables = variables.clone();
            variables.push(("SPILLWAY_KERNEL".to_owned(), folder.into()));
            variables.push(("SPILLWAY_KERNEL_SERIES".to_owned(), series.into()));
            add(&format!("kernel {series}"), &self.kernel, &variables);
        }
        add("packet_table", &self.packet_table, variables);
        for Program { name, executable, .. } in &self.unit_tests {
            add(&format!("unit tests of {name}"), executable, variables);
        }
        let cases = self.cases(variables)?;
        let wanted = cases.into_iter().filter(|case| is_wanted(&case.name, words));
        tests.extend(wanted.map(|case| self.case(case, variables)));
        Ok(tests)
    }

    /// Cases that run a second time with other variables: those that assert no times, and whose names begin so. `what`
    /// says what is different.
    pub(super) fn cases_again(
        &self,
        prefix: &str,
        what: &str,
        words: &[String],
        variables: &Variables,
    ) -> Result<Vec<Test>> {
        let cases = self.cases(variables)?.into_iter();
        let again = cases.filter(|it| it.name.starts_with(prefix) && !it.is_measuring);
        let tests = again.map(|case| {
            let test = self.case(case, variables);
            Test { name: format!("{}, {what}", test.name), ..test }
        });
        Ok(tests.filter(|test| is_wanted(&test.name, words)).collect())
    }

    fn cases(&self, variables: &Variables) -> Result<Vec<Case>> {
        let mut list = Command::new(&self.scenarios);
        list.arg("--list").envs(variables.iter().cloned());
        let cases = parse(&process::read(&mut list)?)?;
        ensure!(!cases.is_empty(), "{}: has no cases", self.scenarios.display());
        Ok(cases)
    }

    fn case(&self, case: Case, variables: &Variables) -> Test {
        let Case { name, slots, is_measuring } = case;
        let arguments = ["--exact", &name].map(Into::into).into();
        let (program, variables) = (self.scenarios.clone(), variables.clone());
        Test { name, slots, is_measuring, is_case: true, program, arguments, variables }
    }
}

impl Test {
    /// A program that keeps a CPU busy; of its tests those whose names contain `word`.
    fn busy(name: &str, program: &Path, word: Option<&String>, variables: &Variables) -> Self {
        let own = word.map_or_else(|| name.to_owned(), |word| format!("{name}, {word}"));
        let arguments = word.into_iter().cloned().collect();
        Self {
            name: own,
            slots: 2,
            is_measuring: false,
            is_case: false,
            program: program.into(),
            arguments,
            variables: variables.clone(),
        }
    }

    /// To be run after [`root::ask`].
    pub(super) fn job(&self) -> Result<Job> {
        root::announced_job(&self.variables, self.program.as_os_str(), &self.arguments)
    }
}

/// Whether a test is among those that were asked for; without words all are.
fn is_wanted(name: &str, words: &[String]) -> bool {
    words.is_empty() || words.iter().any(|word| name.contains(word))
}

/// A case of `scenarios`, and the slots it takes.
#[derive(Debug, PartialEq, Eq)]
struct Case {
    name: String,
    slots: usize,
    is_measuring: bool,
}

/// Lines such as `[waits] displaced::many_entries: test`; the weights are those of lb-e2e's `harness`.
fn parse(lines: &str) -> Result<Vec<Case>> {
    lines
        .lines()
        .map(|line| case(line).with_context(|| format!("list of cases: {line:?}")))
        .collect()
}

fn case(line: &str) -> Result<Case> {
    let named = line.strip_suffix(": test").context("not a test")?;
    let labelled = named.strip_prefix('[').and_then(|it| it.split_once("] "));
    let (weight, name) = labelled.context("no weight")?;
    let (slots, is_measuring) = match weight {
        "waits" => (1, false),
        "works" => (2, false),
        "measures" => (slots::ALL / 2, true),
        "alone" => (slots::ALL, true),
        other => bail!("{other}: no such weight"),
    };
    Ok(Case { name: name.to_owned(), slots, is_measuring })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_has_a_weight() {
        let case =
            |name: &str, slots, is_measuring| Case { name: name.into(), slots, is_measuring };
        let list = "[waits] a::b: test\n[works] a::c: test\n";
        assert_eq!(parse(list).unwrap(), [case("a::b", 1, false), case("a::c", 2, false)]);
        let list = "[measures] a::d: test\n[alone] d::e: test\n";
        assert_eq!(parse(list).unwrap(), [case("a::d", 2, true), case("d::e", 4, true)]);
        for wrong in ["a::b: test", "[sleeps] a::b: test", "[waits] a::b: benchmark"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
