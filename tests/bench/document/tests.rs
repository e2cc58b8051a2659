use std::fs;
use std::path::Path;
use std::time::Duration;

use super::*;
use crate::cases::Case;
use crate::peers::{Peer, PeerFigures};
use crate::report::Timing;
use crate::tables::{MEMBERS, SLOTS, TableTime};

/// What stands for the machine and the commit.
const FACT: &str = "(a fact)";

/// A run in which everything took a bit.
fn report() -> Report {
    let median = Sample { value: 2.0, floor: 1.0 };
    let timing = |name| Timing { name, median };
    let table = |members| TableTime { members, slots: SLOTS, time: Duration::from_millis(1) };
    let peer = |peer| PeerFigures {
        peer,
        connections: 1.0,
        failed: 0,
        connection_cpu_us: 1.0,
        gigabits: 1.0,
        gigabyte_cpu_ms: 1.0,
        connections_ratio: 1.0,
        upload_ratio: 1.0,
    };
    Report {
        timings: CASES.iter().map(Case::name).map(timing).collect(),
        tables: MEMBERS.map(table).to_vec(),
        peers: Peer::ALTERNATIVES.map(peer).to_vec(),
    }
}

fn generated(quick: bool) -> String {
    let some = || FACT.to_owned();
    let facts = Facts {
        cpu: some(),
        cpus: some(),
        kernel: some(),
        date: some(),
        commit: some(),
        command: some(),
    };
    Document { quick, facts, report: &report() }.text()
}

fn is_number(cell: &str) -> bool {
    cell.replace(',', "").parse::<f64>().is_ok_and(f64::is_finite)
}

/// Columns of numbers that are no figures.
fn names_a_row(head: &str) -> bool {
    ["flows", "members", "slots"].contains(&head)
}

/// Whether a row has what the bench would write there, but for figures and facts.
fn is_row(row: &str, generated: &str, heads: &[&str]) -> bool {
    let (row, generated) = (cells(row), cells(generated));
    row.len() == generated.len()
        && row.iter().zip(&generated).zip(heads).all(|((found, expected), head)| {
            let is_figure = is_number(expected) && !names_a_row(head);
            let is_fact = *expected == FACT;
            found == expected || is_figure && is_number(found) || is_fact && !found.is_empty()
        })
}

fn cells(line: &str) -> Vec<&str> {
    line.split('|').map(str::trim).collect()
}

/// The first line of a page that differs from a generated one by more than figures and facts.
fn difference(page: &str, generated: &str) -> Option<String> {
    let mut heads: Option<Vec<&str>> = None;
    let mut lines = page.lines();
    for expected in generated.lines() {
        let line = lines.next().unwrap_or_default();
        heads = expected.starts_with('|').then(|| heads.unwrap_or_else(|| cells(expected)));
        let same = match &heads {
            Some(heads) => is_row(line, expected, heads),
            None => line == expected,
        };
        if !same {
            return Some(format!("{line:?} instead of {expected:?}"));
        }
    }
    lines.next().map(|line| format!("{line:?} is too much"))
}

#[test]
fn the_page_is_one_that_the_bench_would_write() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/performance.md");
    let page = fs::read_to_string(&path).unwrap();
    let found = difference(&page, &generated(page.contains(QUICK)));
    assert_eq!(found, None, "run `cargo xtask bench --document`");
}

#[test]
fn only_figures_and_facts_may_differ() {
    let page = generated(true);
    assert!(page.contains(QUICK) && !generated(false).contains(QUICK));
    assert_eq!(difference(&page, &page), None);
    let figure = page.replace("| 2 | 1 | 1 |", "| 1,234 | 55 | 1,179 |");
    assert_ne!(figure, page);
    assert_eq!(difference(&figure, &page), None);
    assert_eq!(difference(&page.replace(FACT, "another"), &page), None);
    for (what, by) in [
        ("| udp | 100,000 |", "| udp | 100,001 |"),
        ("| udp | 100,000 | 2 |", "| udp | 100,000 | NaN |"),
        ("| haproxy, TCP mode |", "| haproxy |"),
        ("machines are noisy", "machines are quiet"),
        ("| Linux | (a fact) |", "| Linux |  |"),
    ] {
        assert!(page.contains(what), "{what}");
        assert!(difference(&page.replace(what, by), &page).is_some(), "{by}");
    }
    let shorter = page.trim_end().rsplit_once('\n').unwrap().0;
    assert!(difference(shorter, &page).is_some());
    assert!(difference(&format!("{page}more\n"), &page).is_some());
}
