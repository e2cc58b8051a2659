//! What cargo would compile, by its own unit graphs: nothing is compiled twice.
//!
//! Cargo gives a dependency the features that any selected package asks for, so another selection of packages can be
//! another build of nearly everything. A unit with the same features whose dependency differs is compiled again too.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::hash::{Hash, Hasher};
use std::process::Command;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::build::{self, Programs};
use crate::cargo::cargo;
use crate::check::Packages;
use crate::process;
use crate::test::steps;
use crate::workspace;

#[derive(Deserialize)]
struct Graph {
    units: Vec<Unit>,
}

#[derive(Deserialize)]
struct Unit {
    pkg_id: String,
    target: Target,
    profile: Map<String, Value>,
    platform: Option<String>,
    mode: String,
    features: Vec<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Dependency {
    index: usize,
}

/// What is compiled: of a package one target, to run, to check or to document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Subject {
    package: String,
    target: String,
    kind: Vec<String>,
    mode: String,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let package = self.package.rsplit(['/', '#']).next().unwrap_or(&self.package);
        write!(f, "{package}: {} ({})", self.target, self.mode)
    }
}

/// The units of a build. A unit that two builds have is compiled once for both.
struct Units(BTreeMap<u64, (Subject, BTreeSet<String>)>);

impl Units {
    /// What a cargo command would compile, if nothing were there yet.
    fn of(command: &Command) -> Self {
        let mut planned = cargo();
        for (name, value) in command.get_envs().filter_map(|(name, value)| Some((name, value?))) {
            planned.env(name, value);
        }
        // What stands behind is for the program that cargo runs. Clippy calls `cargo check`.
        let own = command.get_args().take_while(|it| *it != "--");
        planned.args(own.map(|it| if it == "clippy" { "check".as_ref() } else { it }));
        planned.args(["-Z", "unstable-options", "--unit-graph"]).env("RUSTC_BOOTSTRAP", "1");
        let graph = process::read(&mut planned).unwrap();
        let graph: Graph = serde_json::from_str(&graph).unwrap();
        let mut identities = vec![None; graph.units.len()];
        for place in 0..graph.units.len() {
            graph.identity(place, &mut identities);
        }
        let units = graph.units.into_iter().zip(identities).map(|(unit, identity)| {
            let Unit { pkg_id: package, target, mode, .. } = unit;
            let subject = Subject { package, target: target.name, kind: target.kind, mode };
            (identity.unwrap(), (subject, unit.features.into_iter().collect()))
        });
        Self(units.collect())
    }

    fn subjects(&self) -> BTreeSet<&Subject> {
        self.0.values().map(|(subject, _)| subject).collect()
    }

    /// What `other` compiles although this build has it already, in another form.
    fn again<'a>(&self, other: &'a Units) -> BTreeMap<&'a Subject, String> {
        let there = self.subjects();
        let anew = other.0.iter().filter(|(identity, _)| !self.0.contains_key(identity));
        let again = anew.filter(|(_, (subject, _))| there.contains(subject));
        again
            .map(|(_, (subject, features))| (subject, self.difference(subject, features)))
            .collect()
    }

    /// What differs about the features of the form that is there.
    fn difference(&self, subject: &Subject, features: &BTreeSet<String>) -> String {
        let here = self.0.values().filter(|(it, _)| it == subject).map(|(_, features)| features);
        let differences: Vec<_> = here
            .map(|here| {
                let lacks: Vec<_> = here.difference(features).cloned().collect();
                let more: Vec<_> = features.difference(here).cloned().collect();
                format!("lacks [{}], has [{}] more", lacks.join(", "), more.join(", "))
            })
            .collect();
        differences.join("; or ")
    }
}

impl Graph {
    /// By what cargo tells units apart, those that a unit depends on among it.
    fn identity(&self, place: usize, known: &mut [Option<u64>]) -> u64 {
        if let Some(identity) = known[place] {
            return identity;
        }
        let unit = &self.units[place];
        let mut below: Vec<_> =
            unit.dependencies.iter().map(|it| self.identity(it.index, known)).collect();
        below.sort_unstable();
        // Not the name of a profile: `test` is `dev`.
        let profile: Vec<_> = unit.profile.iter().filter(|(name, _)| *name != "name").collect();
        let mut hasher = DefaultHasher::new();
        (&unit.pkg_id, &unit.target.name, &unit.target.kind, &unit.mode).hash(&mut hasher);
        (&unit.platform, &unit.features, format!("{profile:?}"), below).hash(&mut hasher);
        let identity = hasher.finish();
        known[place] = Some(identity);
        identity
    }
}

/// Nothing that `before` has is compiled again by the commands.
fn assert_compiles_nothing_again(before: &Units, commands: Vec<(String, Command)>) {
    let mut complaints = Vec::new();
    for (name, command) in &commands {
        let units = Units::of(command);
        assert!(!units.0.is_empty(), "{name}: would compile nothing at all");
        let again = before.again(&units);
        // What differs itself explains what stands on it.
        let itself =
            again.iter().filter(|(_, difference)| !difference.contains("lacks [], has [] more"));
        let lines: Vec<_> = itself.map(|(subject, it)| format!("  {subject}: {it}\n")).collect();
        if !again.is_empty() {
            complaints.push(format!("{name}: {} units again\n{}", again.len(), lines.concat()));
        }
    }
    assert!(
        complaints.is_empty(),
        "another selection has other features; tests/features/Cargo.toml has to name them, or for a release \
         xtask/Cargo.toml (for what proc macros and build scripts use under [build-dependencies]):\n{}",
        complaints.concat()
    );
}

/// Packages that have a compiler of their own, or no code.
const OTHERS: [&str; 2] = ["lb-ebpf", build::FEATURES];

#[test]
fn tests_after_the_demo_compile_no_release() {
    let demo = Units::of(&build::host_command(true, Programs::Demo));
    let product = Units::of(&build::host_command(true, Programs::Product));
    let missing: Vec<_> = product.0.iter().filter(|(it, _)| !demo.0.contains_key(it)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let own = demo.subjects().len() - product.subjects().len();
    assert!(own < 10, "the demo alone compiles {own} units");
}

#[test]
fn a_release_compiles_nothing_of_xtask_again() {
    let settings = workspace::root().join(".cargo/config.toml");
    let settings: toml::Value = toml::from_str(&fs::read_to_string(settings).unwrap()).unwrap();
    let alias = settings["alias"]["xtask"].as_str().unwrap();
    let mut xtask = cargo();
    xtask.args(alias.split(' ').map(|word| if word == "run" { "build" } else { word }));
    let demo = Units::of(&build::host_command(true, Programs::Demo));
    let shared = Units::of(&xtask).0.into_keys().filter(|it| demo.0.contains_key(it)).count();
    assert!(shared > 50, "{shared} units in common");
    assert_compiles_nothing_again(&demo, vec![("cargo xtask".to_owned(), xtask)]);
}

#[test]
fn development_compiles_each_unit_once() {
    let all = Units::of(&steps::test_programs());
    let packages = Packages::read().unwrap();
    let mut commands = vec![
        ("unit tests".to_owned(), steps::unit(None)),
        ("cargo xtask build".to_owned(), build::host_command(false, Programs::All)),
    ];
    for name in packages.all().into_iter().filter(|name| !OTHERS.contains(name)) {
        commands.extend(packages.unit_tests(name).map(|it| (format!("unit tests of {name}"), it)));
    }
    assert!(commands.len() > 20, "{} commands", commands.len());
    assert_compiles_nothing_again(&all, commands);
}

#[test]
fn what_is_checked_is_checked_once() {
    let all = Units::of(&steps::clippy_everything());
    let packages = Packages::read().unwrap();
    let mut commands = vec![("rustdoc".to_owned(), steps::doc())];
    for name in packages.all().into_iter().filter(|name| !OTHERS.contains(name)) {
        let command = steps::clippy_packages(&BTreeSet::from([name]));
        commands.push((format!("clippy of {name}"), command));
    }
    assert_compiles_nothing_again(&all, commands);
}

#[test]
fn a_daemon_without_packet_programs_compiles_what_embeds_them() {
    let (all, stub) = (Units::of(&steps::test_programs()), Units::of(&steps::stub()));
    let again: BTreeSet<_> = all.again(&stub).keys().map(|it| it.target.clone()).collect();
    let expected = ["build-script-build", "lb_daemon", "lb_programs", "spillwayd"];
    assert_eq!(again, expected.map(str::to_owned).into());
}
