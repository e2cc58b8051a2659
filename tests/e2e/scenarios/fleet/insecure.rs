//! A fleet on one trusted network, without certificates, and what it says without its etcd or its settings.

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{FleetFixture, FleetPlan};
use lb_tests::{
    process::{PATIENCE, until},
    sandbox::Sandbox,
};

use super::calls::{UNAVAILABLE, condition, joined_as, refused};
use super::members::{status, wait_in_force};

const INSECURE: FleetPlan = FleetPlan { balancers: 2, etcd: 1, has_tls: false, ..FleetPlan::FLEET };

/// The subject of the condition.
const CERTIFICATES: &str = "fleet certificates";

/// The first line of a balancer's `fleet status` that begins with a word.
fn line(fleet: &FleetFixture, balancer: usize, word: &str) -> Result<Option<String>> {
    let table = fleet.spillway(balancer, &["fleet", "status"])?;
    Ok(table.lines().find(|line| line.starts_with(word)).map(str::to_owned))
}

/// That there are no certificates is said at each balancer until it leaves; the hints are right while etcd is stopped.
pub(super) fn says_so(sandbox: &Sandbox) -> Result<()> {
    let mut fleet = FleetFixture::start(sandbox, "plain", INSECURE)?;
    ensure!(condition(&fleet, 0, CERTIFICATES)?.is_none(), "it has not joined yet");
    super::calls::join_all(&mut fleet)?;
    for balancer in 0..2 {
        let said = condition(&fleet, balancer, CERTIFICATES)?.context("no condition")?;
        ensure!(said.contains("insecure"), "{said}");
        ensure!(status(&fleet, balancer)?.insecure);
        let line = line(&fleet, balancer, "insecure")?.context("no line")?;
        ensure!(line.contains("no certificates"), "{line}");
    }
    until("nothing is wrong with the fleet", PATIENCE, || {
        let checked = fleet.balancers[0].try_cli(&["fleet", "status", "--check"], None)?;
        Ok(checked.status.success().then_some(()))
    })?;

    // While etcd is stopped, again and again, also at the moment when it ends.
    let backend = fleet.fabric.backends[0].v4.to_string();
    let endpoint = fleet.etcd.as_ref().context("no etcd")?.endpoints()[0].clone();
    fleet.etcd.as_mut().context("no etcd")?.kill_all()?;
    for _ in 0..10 {
        let drain = ["backend", "drain", &backend, "--yes"];
        let (exit, said) = refused(&fleet, 0, &drain, None)?;
        ensure!(exit == UNAVAILABLE && said.contains("--local"), "{exit}: {said}");
        ensure!(!said.contains("spillway history") && !said.contains("h2"), "{said}");
    }
    until("the condition names the server", PATIENCE, || {
        let said = condition(&fleet, 0, "etcd")?.unwrap_or_default();
        ensure!(!said.contains("h2 protocol error"), "{said}");
        Ok((said.contains(&endpoint) && said.contains("Connection refused")).then_some(()))
    })
    .with_context(|| format!("{:?}", condition(&fleet, 0, "etcd")))?;
    fleet.spillway(0, &["backend", "drain", &backend, "--local", "--yes"])?;

    fleet.etcd.as_mut().context("no etcd")?.start_all()?;
    super::calls::wait_until_well(&fleet, 0..2)?;
    fleet.spillway(1, &["fleet", "leave", "--yes"])?;
    ensure!(condition(&fleet, 1, CERTIFICATES)?.is_none(), "it has left");
    Ok(())
}

/// A member that is started without the settings of its fleet says what helps while no daemon runs, and that helps.
pub(super) fn without_settings(sandbox: &Sandbox) -> Result<()> {
    let mut fleet = joined_as(sandbox, "forgetful", INSECURE)?;
    let balancer = &mut fleet.balancers[1];
    balancer.kill()?;
    balancer.write_settings("")?;
    let refused = balancer.start().err().context("it starts without its fleet")?;
    let said = format!("{refused:#}");
    let file = balancer.node().directory().join("settings.toml");
    let set = format!("the table [fleet] of {}, as they were", file.display());
    let record = "fleet.json away: it then starts as an independent balancer";
    for words in [
        "this balancer has joined as lb-2 of fleet edge, but the settings say no fleet",
        "set `name = \"edge\"` and `balancer = \"lb-2\"`",
        &set,
        record,
    ] {
        ensure!(said.contains(words), "no {words:?} in: {said}");
    }

    // With its settings it goes on as the member that it was.
    fleet.write_settings(1, "")?;
    fleet.balancers[1].start()?;
    wait_in_force(&fleet, 0, 1)?;
    ensure!(status(&fleet, 1)?.member);

    // Without its record it is independent.
    let balancer = &mut fleet.balancers[1];
    balancer.kill()?;
    balancer.write_settings("")?;
    let path = said.split_once(", or move ").and_then(|(_, rest)| rest.split_once(" away"));
    let (path, _) = path.with_context(|| said.clone())?;
    std::fs::rename(path, format!("{path}.old")).with_context(|| path.to_owned())?;
    balancer.start()?;
    ensure!(!status(&fleet, 1)?.member);
    ensure!(fleet.spillway(1, &["export"])?.contains("[[pool]]"), "its configuration stays");
    Ok(())
}
