//! The cases of lb-tests' program `scenarios`, each run in a process of its own.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::process;

use super::slots;

/// A case, and the slots it takes while it runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) slots: usize,
}

/// The cases whose names contain one of `words`, or all if there are none, in the program's order.
pub(super) fn list(program: &Path, words: &[String]) -> Result<Vec<Case>> {
    let mut cases = parse(&process::read(Command::new(program).arg("--list"))?)?;
    ensure!(!cases.is_empty(), "{}: has no cases", program.display());
    cases.retain(|case| words.is_empty() || words.iter().any(|word| case.name.contains(word)));
    Ok(cases)
}

/// Lines such as `[waits] gates::a_gate_closes: test`; the weights are those of lb-tests' `harness`.
fn parse(lines: &str) -> Result<Vec<Case>> {
    lines
        .lines()
        .map(|line| case(line).with_context(|| format!("list of cases: {line:?}")))
        .collect()
}

fn case(line: &str) -> Result<Case> {
    let named = line.strip_suffix(": test").context("not a test")?;
    let (weight, name) =
        named.strip_prefix('[').and_then(|it| it.split_once("] ")).context("no weight")?;
    let slots = match weight {
        "waits" => 1,
        "works" => 2,
        "alone" => slots::ALL,
        other => bail!("{other}: no such weight"),
    };
    Ok(Case { name: name.to_owned(), slots })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_has_a_weight() {
        let case = |name: &str, slots| Case { name: name.to_owned(), slots };
        let list = "[waits] a::b: test\n[works] a::c: test\n[alone] d::e: test\n";
        let cases = parse(list).unwrap();
        assert_eq!(cases, [case("a::b", 1), case("a::c", 2), case("d::e", 4)]);
        for wrong in ["a::b: test", "[sleeps] a::b: test", "[waits] a::b: benchmark"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
