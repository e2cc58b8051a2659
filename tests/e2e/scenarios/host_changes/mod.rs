//! What happens to a host while its daemon runs: addresses come and go, interfaces are made again, programs are taken
//! off. docs/operations.md has a table of it.

mod addresses;
mod interfaces;
mod receivers;

use std::collections::BTreeSet;

use crate::route_changes::streams;
use anyhow::{Context as _, Result, ensure};
use lb_e2e::{
    fixture::{Fixture, Health},
    harness::Case,
};
use lb_tests::{
    daemon::answers,
    process::{PATIENCE, until},
    sandbox::Sandbox,
};

pub(crate) const CASES: &[Case] = &[
    Case::waits("tunnels_never_come_from_a_services_address", addresses::services),
    Case::waits("tunnels_follow_a_renumbered_host", addresses::renumbered),
    Case::waits("an_address_of_the_settings_is_missed", addresses::of_settings),
    Case::waits("a_host_without_an_address_says_so", addresses::missing),
    Case::waits("an_interface_that_is_made_again_has_the_program", interfaces::made_again),
    Case::waits(
        "an_interface_that_is_made_again_holds_no_backend_down",
        interfaces::holds_nothing_down,
    ),
    Case::waits("an_interface_that_is_away_for_a_while_is_taken_back", interfaces::away),
    Case::waits("a_program_that_is_taken_off_is_back", interfaces::taken_off),
    Case::waits("another_program_is_named_until_it_is_gone", interfaces::another_program),
    Case::waits("an_interface_that_is_renamed_keeps_the_program", interfaces::renamed),
    Case::waits("interfaces_that_exchange_their_names_keep_the_program", interfaces::exchanged),
    Case::waits("an_interface_is_followed_by_its_other_name", interfaces::by_its_other_name),
    Case::waits("a_receiver_follows_its_interface", receivers::followed),
    Case::waits("the_table_of_the_documents_names_scenarios", documents),
    Case::waits("a_receiver_at_tc_follows_its_interface", receivers::followed_at_tc),
];

/// Checks that do not judge before a test has undone what it did: connections to a backend that is out move.
const PATIENT: Health = Health { interval_ms: 800, fall: 100 };

/// Each row of the table in docs/operations.md has a scenario, and each scenario here its row.
fn documents(_: &Sandbox) -> Result<()> {
    let page = include_str!("../../../../docs/operations.md");
    let (_, section) = page.split_once("## When the host changes").context("no such section")?;
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows: Vec<_> = section.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    ensure!(rows.len() > 10, "{rows:?}");
    let all: BTreeSet<String> = crate::MODULES
        .iter()
        .flat_map(|(module, cases)| {
            cases.iter().map(move |case| format!("{module}::{}", case.name()))
        })
        .collect();
    let mut named = BTreeSet::new();
    for row in &rows {
        let column = row.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
        let names: Vec<_> = column.split('`').filter(|name| name.contains("::")).collect();
        ensure!(!names.is_empty(), "no scenario: {row}");
        for name in names {
            ensure!(all.contains(name), "no scenario {name}");
            named.insert(name);
        }
    }
    let own = CASES.iter().map(|case| case.name()).filter(|name| !name.starts_with("the_table"));
    for name in own {
        ensure!(named.contains(&*format!("host_changes::{name}")), "no row for {name}");
    }
    Ok(())
}

/// Waits until the tunnels to all backends come from these addresses.
fn wait_for_sources(fixture: &Fixture, v4: &str, v6: &str) -> Result<()> {
    let mut last = Vec::new();
    until("the tunnels' sources", PATIENCE, || {
        let status = fixture.balancer.status()?;
        let source = |it: &spillway_proto::v1::BackendStatus| it.tunnel_source.clone();
        last = status.backends.iter().map(source).collect();
        let is_right = status.backends.iter().all(|backend| {
            backend.tunnel_source == if backend.address.contains(':') { v6 } else { v4 }
        });
        Ok((is_right && !last.is_empty()).then_some(()))
    })
    .with_context(|| format!("not {v4} and {v6}, but {last:?}"))
}

/// Waits for a condition with these words.
fn wait_for_condition(fixture: &Fixture, subject: &str, words: &str) -> Result<()> {
    let mut last = None;
    until(subject, PATIENCE, || {
        let status = fixture.balancer.status()?;
        last = answers::condition(&status, subject).map(str::to_owned);
        Ok(last.as_ref().filter(|text| text.contains(words)).map(drop))
    })
    .with_context(|| format!("{last:?}, not {words}"))
}

/// Waits until there is no condition.
fn wait_for_no_condition(fixture: &Fixture) -> Result<()> {
    let mut last = Vec::new();
    until("no condition", PATIENCE, || {
        last = fixture.balancer.status()?.conditions;
        Ok(last.is_empty().then_some(()))
    })
    .with_context(|| format!("{last:?}"))
}

/// Doctor finds no problem.
fn no_problem(fixture: &Fixture) -> Result<()> {
    let output = fixture.balancer.try_cli(&["doctor"], None)?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(!text.lines().any(|line| line.starts_with("problem ")), "{text}");
    Ok(())
}
