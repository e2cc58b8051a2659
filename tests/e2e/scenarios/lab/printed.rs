//! What a lab prints.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::harness::note;
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;

use super::shell::Shell;

/// A fleet of a founder and one that joins, for a user other than root.
const FLEET: &str = "cargo xtask lab --balancers 2 --regions 1 --user 65534";

pub(super) fn with_one_balancer(sandbox: &Sandbox) -> Result<()> {
    let mut shell = Shell::new(sandbox, "lab")?;
    let start = Instant::now();
    let said = shell.run("cargo xtask lab")?;
    note(format!("a lab of one balancer: {:.1} s", start.elapsed().as_secs_f64()));
    // Twice is as good as once; another one is not what is there.
    let again = shell.run("cargo xtask lab")?;
    ensure!(again.starts_with("the lab is running already") && commands(&again) == commands(&said));
    let (succeeded, other) = shell.attempt("cargo xtask lab --balancers 2")?;
    ensure!(!succeeded && other.contains("(balancers: 1, regions: 2)"), "{other}");
    ensure!(shell.run("cargo xtask lab status")?.matches(" runs\n").count() == 1 + 4 * 2);
    try_all(&mut shell, &said, 12)
}

pub(super) fn with_a_fleet(sandbox: &Sandbox) -> Result<()> {
    let mut shell = Shell::new(sandbox, "fleet")?;
    let said = shell.run(FLEET)?;
    let second = "spillway --socket /run/spillway-fleet/lb-2/spillwayd.sock";
    let owner = fs::metadata("/run/spillway-fleet/lb-2/spillwayd.sock")?.uid();
    ensure!(owner == 65534, "the socket is of {owner}");
    ensure!(said.contains("  sudo ip netns exec spillway-fleet-client curl "), "{said}");
    ensure!(said.contains(&format!("lb-2: {second} …")), "{said}");
    ensure!(!said.contains("us1"), "{said}");
    shell.run(". /run/spillway-fleet/env")?;
    let [first, second] =
        ["spillway", second].map(|ask| shell.attempt(&format!("{ask} backend list -o yaml")));
    let (first, second) = (first?, second?);
    ensure!(first.0 && first == second, "the balancers differ: {first:?} {second:?}");
    try_all(&mut shell, &said, 13)
}

/// Runs the commands that are printed, the last of which removes the lab.
fn try_all(shell: &mut Shell, printed: &str, least: usize) -> Result<()> {
    let commands = commands(printed);
    ensure!(commands.len() >= least, "{commands:?}");
    let pinned = shell.pinned();
    ensure!(pinned.len() > 20, "{} pins", pinned.len());
    for command in &commands {
        let said = match command.as_str() {
            // It wants a terminal, and ends by a key.
            "spillway top" => shell.run("(sleep 1; echo q) | script -qec 'spillway top' /dev/null"),
            // Until health checks have noticed what was killed.
            "cargo xtask lab repair" => {
                shell.wait_for("spillway status", "unhealthy")?;
                shell.run(command)
            }
            command => shell.run(command),
        }?;
        if command.contains("curl") {
            let answers = said.lines().filter(|line| line.starts_with("eu")).count();
            ensure!(answers == 8, "{command}: {said}");
        }
        if command.ends_with("repair") {
            ensure!(said.contains("webserver of eu1"), "{said}");
            shell.wait_for("spillway status", "10.1.0.11  eu      up")?;
        }
    }
    ensure!(commands.last().is_some_and(|last| last == "cargo xtask lab down"), "{commands:?}");
    shell.nothing_is_left(&pinned)
}

/// The commands among what is printed: indented lines with an explanation.
fn commands(printed: &str) -> Vec<String> {
    let lines = printed.lines().filter_map(|line| line.strip_prefix("  ")?.split_once("  # "));
    lines.map(|(command, _)| command.trim_end().to_owned()).collect()
}

impl Shell {
    /// Asks until the answer has these words.
    fn wait_for(&self, command: &str, words: &str) -> Result<()> {
        let mut last = String::new();
        let seen = until(&format!("{command} says {words:?}"), PATIENCE, || {
            last = self.attempt(command)?.1;
            Ok(last.contains(words).then_some(()))
        });
        seen.with_context(|| last.clone())
    }
}
