//! Counting what test programs report.

use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

/// What a step or a test program came to.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// Names of tests that were skipped; checked against the list of those that may be.
    pub(crate) skipped: Vec<String>,
}

impl Tally {
    /// One step that is one test.
    pub(crate) fn step(success: bool) -> Self {
        Self { passed: u64::from(success), failed: u64::from(!success), skipped: Vec::new() }
    }

    /// Reads the output of test programs: libtest's, or what imitates it. `success` is their exit
    /// status: a program that failed without a failed test counts as one.
    pub(crate) fn read(output: &str, success: bool) -> Self {
        let mut tally = Self::default();
        let mut results = 0;
        let mut named = Vec::new();
        let mut ignored = 0;
        for line in output.lines() {
            if let Some(name) = ignored_name(line) {
                named.push(name.to_owned());
            } else if let Some(result) = Outcome::parse(line) {
                results += 1;
                tally.passed += result.passed;
                tally.failed += result.failed;
                ignored += result.ignored;
            }
        }
        named.truncate(ignored);
        // Ignored, but its line did not come through whole: a skip without a name.
        named.resize(ignored, "a test that did not give its name".to_owned());
        tally.skipped = named;
        if tally.failed == 0 && (!success || results == 0) {
            tally.failed = 1;
        }
        tally
    }

    pub(crate) fn is_failure(&self) -> bool {
        self.failed > 0
    }

    /// Tests that were counted.
    pub(crate) fn count(&self) -> u64 {
        self.passed + self.failed + self.skipped.len() as u64
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed, skipped } = self;
        write!(f, "{passed} passed, {failed} failed, {} skipped", skipped.len())
    }
}

/// How long each program took of those that `cargo test` ran, by its own account: `Running unittests
/// src/lib.rs (target/debug/deps/lb_common-0123456789abcdef)`, then `finished in 0.01s`.
pub(crate) fn times(output: &str) -> Vec<(String, Duration)> {
    let mut times = Vec::new();
    let mut program = None;
    for line in output.lines() {
        if let Some(running) = line.trim_start().strip_prefix("Running ") {
            program = running.rsplit_once('/').and_then(|(_, file)| file.rsplit_once('-'));
        } else if let Some(name) = line.trim_start().strip_prefix("Doc-tests ") {
            program = Some((name, ""));
        } else if let Some((_, time)) = line.rsplit_once("; finished in ")
            && let Some(seconds) = time.strip_suffix('s').and_then(|it| it.parse().ok())
            && let Some((name, _)) = program.take()
        {
            times.push((name.to_owned(), Duration::from_secs_f64(seconds)));
        }
    }
    times
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped.extend(other.skipped);
    }
}

/// `test NAME ... ignored` or `test NAME ... ignored, reason`.
fn ignored_name(line: &str) -> Option<&str> {
    let (name, outcome) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let is_ignored = outcome == "ignored" || outcome.starts_with("ignored, ");
    is_ignored.then(|| name.trim_end())
}

/// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s`
struct Outcome {
    passed: u64,
    failed: u64,
    ignored: usize,
}

impl Outcome {
    fn parse(line: &str) -> Option<Self> {
        let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let count = |what: &str| -> Option<u64> {
            counts.split("; ").find_map(|part| part.strip_suffix(what)?.trim().parse().ok())
        };
        Some(Self {
            passed: count("passed")?,
            failed: count("failed")?,
            ignored: usize::try_from(count("ignored")?).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_PROGRAMS: &str = "\
     Running unittests src/lib.rs (target/debug/deps/lb_common-1)

running 3 tests
test abi::a ... ok
test abi::b ... ignored, needs a printer
test abi::c ... ok

test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 4 filtered out; finished in 0.00s

   Doc-tests lb_common

running 2 tests
test lb-common/src/lib.rs - x (line 3) ... ignored
test lb-common/src/lib.rs - y (line 9) ... ok

test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s
";

    #[test]
    fn results_of_several_programs_add_up() {
        assert_eq!(
            Tally::read(TWO_PROGRAMS, true),
            Tally {
                passed: 3,
                failed: 0,
                skipped: vec!["abi::b".into(), "lb-common/src/lib.rs - x (line 3)".into()],
            }
        );
    }

    #[test]
    fn each_program_has_its_time() {
        let time = |name: &str, millis| (name.to_owned(), Duration::from_millis(millis));
        assert_eq!(times(TWO_PROGRAMS), [time("lb_common", 0), time("lb_common", 100)]);
    }

    #[test]
    fn failures_are_counted_once() {
        let output = "test a ... FAILED\ntest b ... FAILED\n\
            test result: FAILED. 5 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s\n\
            error: test failed, to rerun pass `--lib`\n";
        assert_eq!(Tally::read(output, false), Tally { passed: 5, failed: 2, skipped: vec![] });
    }

    #[test]
    fn a_program_that_dies_or_says_nothing_has_failed() {
        let one = Tally { passed: 0, failed: 1, skipped: vec![] };
        assert_eq!(Tally::read("error: could not compile", false), one);
        assert_eq!(Tally::read("", true), one);
        let died = Tally { passed: 3, failed: 1, skipped: Tally::read(TWO_PROGRAMS, true).skipped };
        assert_eq!(Tally::read(TWO_PROGRAMS, false), died);
    }

    #[test]
    fn a_skip_cannot_hide_its_name() {
        let output = "test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(Tally::read(output, true).skipped, ["a test that did not give its name"]);
    }

    #[test]
    fn what_a_test_prints_is_no_result() {
        let output = "thread prints: test result: ok. 9 passed; 0 failed; 0 ignored\n\
            test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(Tally::read(output, true).passed, 1);
    }
}
