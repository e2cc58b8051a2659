//! Balancers that cannot join, cannot be reached, or have been removed: what they say, and that they change nothing.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{FleetFixture, FleetPlan};
use lb_tests::{
    daemon::answers::member,
    process::{PATIENCE, pause, until},
    sandbox::Sandbox,
    topology::Cut,
};

use super::calls::{
    CONFLICT, NOT_FOUND, USAGE, WHOLE, condition, ensure_refused, joined_as, portions, reweigh,
    text, wait_for_condition, wait_for_whole, wait_until_owned_by,
};
use super::members::{problems, status, wait_in_force};

const THREE: FleetPlan = FleetPlan { balancers: 3, etcd: 1, ..FleetPlan::FLEET };

/// What is wrong is said in a sentence, and nothing changes.
pub(super) fn wrong_joins(sandbox: &Sandbox) -> Result<()> {
    let mut fleet = FleetFixture::prepare(sandbox, "wrong", THREE)?;
    // One whose settings name no fleet.
    fleet.balancers[2].write_settings("")?;
    for balancer in &mut fleet.balancers {
        balancer.spawn()?;
    }
    for balancer in &mut fleet.balancers {
        balancer.wait_until_it_answers()?;
    }
    let text = text(&fleet)?;
    fleet.balancers[0].apply(&text)?;
    let is_member =
        |fleet: &FleetFixture, balancer| -> Result<bool> { Ok(status(fleet, balancer)?.member) };
    ensure!(!is_member(&fleet, 0)?, "a balancer is a member by itself");
    for verb in [
        &["leave", "--yes"][..],
        &["remove", "lb-2", "--yes"],
        &["restore", "--from=this", "--yes"],
    ] {
        let words = [&["fleet"], verb].concat();
        ensure_refused(
            &fleet,
            0,
            &words,
            (CONFLICT, &["no member of a fleet", "spillway fleet join"]),
        )?;
    }
    let founded = fleet.spillway(0, &["fleet", "join"])?;
    ensure!(founded.contains("founded fleet edge"), "{founded}");
    ensure_refused(
        &fleet,
        0,
        &["fleet", "join"],
        (CONFLICT, &["is a member of fleet edge already"]),
    )?;

    // The last one leaves, and joins again: the capacities are its own still.
    fleet.spillway(0, &["fleet", "leave", "--yes"])?;
    fleet.spillway(0, &["fleet", "join", "--yes"])?;
    wait_for_whole(&fleet, 0, &[0])?;

    // What is wrong with the settings is seen before anybody hears of it.
    for (wrong, words) in wrong_settings(&fleet)? {
        fleet.balancers[2].write_settings(&wrong)?;
        fleet.balancers[2].stop()?;
        fleet.balancers[2].start()?;
        for argument in ["--dry-run", "--yes"] {
            let output = fleet.balancers[2].try_cli(&["fleet", "join", argument], None)?;
            let said = String::from_utf8_lossy(&output.stderr);
            let has_words = said.contains(words) && said.contains("nothing was changed");
            ensure!(!output.status.success() && has_words, "{words}: {said}");
        }
        ensure!(!is_member(&fleet, 2)?);
    }
    let members = fleet.etcd.as_ref().context("there is no etcd")?;
    let members = members.ask(&["get", "--prefix", "--keys-only", "/spillway/edge/members/lb"])?;
    ensure!(members.trim() == "/spillway/edge/members/lb-1", "{members}");

    // A misspelled fleet is not founded beside the one that is there, unless that is meant.
    let table = fleet.fleet_table(2)?.replace("\"edge\"", "\"egde\"");
    fleet.balancers[2].write_settings(&table)?;
    fleet.balancers[2].stop()?;
    fleet.balancers[2].start()?;
    let words = ["etcd has no fleet egde, but it has edge", "--new"];
    for arguments in [&["--yes"][..], &["--dry-run"], &[]] {
        ensure_refused(&fleet, 2, &[&["fleet", "join"], arguments].concat(), (CONFLICT, &words))?;
    }
    ensure!(!is_member(&fleet, 2)?);
    fleet.spillway(2, &["fleet", "join", "--new"])?;
    ensure!(is_member(&fleet, 2)?);
    fleet.spillway(2, &["fleet", "leave", "--yes"])?;
    fleet.balancers[2].write_settings("")?;
    fleet.balancers[2].stop()?;
    fleet.balancers[2].start()?;

    let command = ["fleet", "join", "--yes"];
    ensure_refused(&fleet, 2, &command, (CONFLICT, &["the settings name no fleet", "[fleet]"]))?;

    // The name of a balancer that is alive.
    let table = fleet.fleet_table(0)?.replace("10.0.1.2:", "10.0.3.2:");
    fleet.balancers[2].write_settings(&table)?;
    fleet.balancers[2].stop()?;
    fleet.balancers[2].start()?;
    let words = ["lb-1 is a member of the fleet, and alive, at 10.0.1.2:7946"];
    ensure_refused(&fleet, 2, &command, (CONFLICT, &words))?;
    ensure!(!is_member(&fleet, 2)?);

    // Another configuration.
    let other = text.replacen("weight = 1", "weight = 7", 1);
    ensure!(other != text);
    fleet.balancers[1].apply(&other)?;
    let before = fleet.spillway(1, &["export"])?;
    let dry_run = fleet.spillway(1, &["fleet", "join", "--dry-run"])?;
    ensure!(dry_run.contains("weight") && dry_run.contains("dry run"), "{dry_run}");
    let words = ["the configuration of fleet edge would replace that of lb-2: ", "--yes"];
    ensure_refused(&fleet, 1, &["fleet", "join"], (USAGE, &words))?;
    ensure!(!is_member(&fleet, 1)? && fleet.spillway(1, &["export"])? == before);
    let members = status(&fleet, 0)?.members;
    ensure!(members.len() == 1, "{members:#?}");

    fleet.spillway(1, &command)?;
    ensure!(is_member(&fleet, 1)? && fleet.spillway(1, &["export"])? != before);
    ensure_refused(
        &fleet,
        0,
        &["fleet", "remove", "lb-2", "--yes"],
        (CONFLICT, &["lb-2 is alive"]),
    )?;
    ensure_refused(&fleet, 0, &["fleet", "remove", "lb-9", "--yes"], (NOT_FOUND, &["lb-9"]))?;
    ensure_refused(&fleet, 0, &["fleet", "remove", "lb-1", "--yes"], (USAGE, &["fleet leave"]))?;

    // What a fleet cannot have.
    let shares = format!("balancers = 2\n{text}");
    let output = fleet.balancers[0].try_cli(&["apply", "--yes", "-f", "-"], Some(&shares))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.code() == Some(6) && said.contains("balancers: must not be set"),
        "{output:?}"
    );
    wait_for_whole(&fleet, 0, &[0, 1])
}

/// Tables of the third balancer with a mistake, and what is said of each.
fn wrong_settings(fleet: &FleetFixture) -> Result<Vec<(String, &'static str)>> {
    let table = fleet.fleet_table(2)?;
    let other = fleet.fleet_table(0)?;
    let line = |table: &str, setting: &str| {
        let line = table.lines().find(|line| line.starts_with(setting));
        line.map(str::to_owned).with_context(|| format!("no {setting}: {table}"))
    };
    let replaced = |with: &[&str]| -> Result<String> {
        with.iter().try_fold(table.clone(), |table, setting| {
            Ok(table.replace(&line(&table, setting)?, &line(&other, setting)?))
        })
    };
    let etcd = line(&table, "etcd")?;
    let address = line(&table, "address")?;
    let port = "etcd = [\"https://10.0.9.2:1\"]";
    Ok(vec![
        (
            replaced(&["tls-cert", "tls-key"])?,
            "the certificate is of lb-1, but this balancer is lb-3",
        ),
        (replaced(&["tls-key"])?, "cannot be used: keys may not be consistent"),
        (
            replaced(&["address"])?,
            "10.0.1.2:7946: this host cannot listen for the other balancers there",
        ),
        (
            table.replace(&address, "address = \"127.0.0.1:7946\""),
            "127.0.0.1:7946: lb-1 cannot reach this host there",
        ),
        (table.replace(&etcd, port), "(etcd in the settings: https://10.0.9.2:1)"),
    ])
}

/// Traffic to a balancer that has no portions because no other one can reach it would be refused, so it is not ready.
pub(super) fn unreached(sandbox: &Sandbox) -> Result<()> {
    let mut fleet = FleetFixture::prepare(sandbox, "unreached", THREE)?;
    for balancer in &mut fleet.balancers {
        balancer.spawn()?;
    }
    for balancer in &mut fleet.balancers {
        balancer.wait_until_it_answers()?;
    }
    fleet.balancers[0].apply(&text(&fleet)?)?;
    for balancer in 0..2 {
        fleet.spillway(balancer, &["fleet", "join", "--yes"])?;
    }
    wait_for_whole(&fleet, 0, &[0, 1])?;
    fleet.fabric.cut(2, Cut::FromPeers)?;
    fleet.spillway(2, &["fleet", "join", "--yes"])?;
    // Longer than anything waits for portions.
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(12) {
        let own = status(&fleet, 2)?;
        ensure!(!member(&own, "lb-3")?.ready, "{own:#?}");
        let sum: f64 = portions(&status(&fleet, 0)?)?.values().sum();
        ensure!(sum > 2.0 - WHOLE && sum <= WHOLE, "{sum} of a capacity is owned");
        pause(Duration::from_millis(200));
    }
    let own = status(&fleet, 2)?;
    let cause = &member(&own, "lb-3")?.not_ready_cause;
    ensure!(cause.contains("no other balancer exchanges messages with it"), "{cause}");
    let problems = problems(&fleet, 2)?;
    let silent = problems.iter().filter(|it| it.reason == "silent");
    ensure!(silent.count() == 2, "{problems:#?}");
    ensure_refused(&fleet, 2, &["fleet", "status", "--check"], (1, &["10.0.3.2:7946"]))?;
    let seen = status(&fleet, 0)?;
    let said = &member(&seen, "lb-3")?.peer_problem;
    ensure!(said.contains("10.0.3.2:7946"), "{seen:#?}");

    fleet.fabric.heal(2)?;
    wait_for_whole(&fleet, 0, &[0, 1, 2])?;
    until(
        "it is ready",
        PATIENCE,
        || Ok((member(&status(&fleet, 2)?, "lb-3")?.ready).then_some(())),
    )
}

/// A balancer that etcd has as alive exchanges messages with nobody: all say so, and ending its daemon is the way out.
pub(super) fn mute(sandbox: &Sandbox) -> Result<()> {
    let mut fleet = joined_as(sandbox, "mute", THREE)?;
    wait_for_whole(&fleet, 0, &[0, 1, 2])?;
    fleet.fabric.cut(2, Cut::Peers)?;
    for (at, silent) in [(0, "lb-3"), (1, "lb-3"), (2, "lb-1, lb-2")] {
        let words = format!("no messages come from {silent}, although etcd says alive");
        wait_for_condition(&fleet, at, ("fleet peers", &words))?;
    }
    ensure!(member(&status(&fleet, 0)?, "lb-3")?.alive);
    let says = ["lb-3 is alive: stop it first"];
    ensure_refused(&fleet, 0, &["fleet", "remove", "lb-3", "--yes"], (CONFLICT, &says))?;
    // Another one is lost beside it.
    fleet.balancers[1].kill()?;
    wait_until_owned_by(&fleet, &[0, 2])?;
    fleet.balancers[2].stop()?;
    wait_until_owned_by(&fleet, &[0])?;
    until("the condition ends", PATIENCE, || {
        Ok(condition(&fleet, 0, "fleet peers")?.is_none().then_some(()))
    })?;
    fleet.spillway(0, &["fleet", "remove", "lb-3", "--yes"]).map(drop)
}

/// A member whose key was deleted has no portions: it says so, is not ready after a restart, and can leave and join again.
pub(super) fn unknown_to_etcd(sandbox: &Sandbox) -> Result<()> {
    let mut fleet = joined_as(sandbox, "unknown", THREE)?;
    let etcd = fleet.etcd.as_ref().context("there is no etcd")?;
    let deleted = etcd.ask(&["del", "/spillway/edge/members/lb-3"])?;
    ensure!(deleted.trim() == "1", "{deleted}");
    let words = "does not have this balancer among the members";
    wait_for_condition(&fleet, 2, ("fleet membership", words))?;
    fleet.balancers[2].kill()?;
    fleet.balancers[2].start()?;
    wait_for_condition(&fleet, 2, ("fleet membership", words))?;
    let ready = || -> Result<bool> {
        let seen = status(&fleet, 2)?;
        Ok(seen.members.iter().any(|it| it.name == "lb-3" && it.ready))
    };
    ensure!(!ready()?, "{:#?}", status(&fleet, 2)?);
    // It changes nothing, and each answer says what to do.
    let backend = fleet.fabric.backends[0].v4.to_string();
    let says = [words, "`spillway fleet leave`, and join again"];
    ensure_refused(&fleet, 2, &reweigh(&backend, "3"), (CONFLICT, &says))?;
    ensure_refused(&fleet, 2, &["backend", "drain", &backend, "--yes"], (CONFLICT, &says))?;
    ensure_refused(&fleet, 2, &["fleet", "join", "--yes"], (CONFLICT, &says))?;
    let check = ["fleet", "status", "--check"];
    ensure_refused(&fleet, 2, &check, (1, &["the fleet has removed lb-3", says[1]]))?;
    ensure!(status(&fleet, 0)?.generation == 1, "it was changed");
    fleet.spillway(2, &["fleet", "leave", "--yes"])?;
    ensure!(condition(&fleet, 2, "fleet membership")?.is_none(), "the condition stays");
    fleet.spillway(2, &["fleet", "join", "--yes"])?;
    wait_in_force(&fleet, 2, 1)?;
    Ok(())
}
