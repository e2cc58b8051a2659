//! Balancers of several versions in one fleet. What the others have written is put into etcd as their programs would.

use std::{fs::File, process::Command};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::{
    etcd::EtcdCluster,
    fixture::{FleetFixture, FleetPlan},
};
use lb_pieces::Digest;
use lb_tests::{
    daemon::printed::FleetReport,
    process::{PATIENCE, until},
    sandbox::Sandbox,
};
use serde_json::Value;

use super::calls::{
    CONFLICT, condition, ensure_refused, joined_as, reweigh, wait_for_condition, wait_until_well,
};
use super::members::{status, wait_in_force};
use super::traffic::Traffic;

const TWO: FleetPlan = FleetPlan { balancers: 2, etcd: 1, ..FleetPlan::FLEET };
const THREE: FleetPlan = FleetPlan { balancers: 3, ..TWO };

/// Where the fleet's keys are.
const PREFIX: &str = "/spillway/edge/";

fn etcd(fleet: &FleetFixture) -> Result<&EtcdCluster> {
    fleet.etcd.as_ref().context("there is no etcd")
}

fn etcdctl(fleet: &FleetFixture) -> Result<Command> {
    let etcd = etcd(fleet)?;
    Ok(etcd.etcdctl(&fleet.fabric.etcd[0].node, etcd.administrator()))
}

pub(super) fn put(fleet: &FleetFixture, key: &str, value: &str) -> Result<()> {
    etcd(fleet)?.ask(&["put", &format!("{PREFIX}{key}"), value]).map(drop)
}

pub(super) fn delete(fleet: &FleetFixture, key: &str) -> Result<()> {
    let deleted = etcd(fleet)?.ask(&["del", &format!("{PREFIX}{key}")])?;
    ensure!(deleted.trim() == "1", "{key}: {deleted}");
    Ok(())
}

/// A value byte by byte, which an argument or a text would not keep.
fn get_bytes(fleet: &FleetFixture, key: &str) -> Result<Vec<u8>> {
    let mut command = etcdctl(fleet)?;
    let output = command.args(["get", "--print-value-only", &format!("{PREFIX}{key}")]).output()?;
    ensure!(output.status.success(), "{output:?}");
    let mut bytes = output.stdout;
    ensure!(bytes.pop() == Some(b'\n') && !bytes.is_empty(), "{key} has no value");
    Ok(bytes)
}

fn put_bytes(fleet: &FleetFixture, key: &str, value: &[u8]) -> Result<()> {
    let file = fleet.fabric.etcd[0].node.directory().join("value");
    std::fs::write(&file, value)?;
    let mut command = etcdctl(fleet)?;
    command.args(["put", &format!("{PREFIX}{key}")]).stdin(File::open(&file)?);
    let output = command.output()?;
    ensure!(output.status.success(), "{output:?}");
    Ok(())
}

/// Balancers that understand no later schema revision, as `fleet status` of one of them finds.
fn held_back_by(fleet: &FleetFixture, at: usize) -> Result<Vec<String>> {
    let report: FleetReport = fleet.balancers[at].printed(&["fleet", "status"])?;
    Ok(report.held_back_by)
}

/// A member whose program has another version.
fn put_member(fleet: &FleetFixture, name: &str, program: &str) -> Result<()> {
    let value = format!(
        r#"{{"format":1,"address":"192.0.2.9:7946","region":null,"incarnation":1,"epoch":0,{program}}}"#
    );
    put(fleet, &format!("members/{name}"), &value)
}

/// Balancers that understand less refuse what they do not understand, and others wait for them.
pub(super) fn mixed(sandbox: &Sandbox) -> Result<()> {
    let fleet = joined_as(sandbox, "mixed", TWO)?;
    let backend = fleet.fabric.backends[1].v4.to_string();
    let wait_held_back = |at, expected: &[&str]| {
        until("the status says what is held back", PATIENCE, || {
            Ok((held_back_by(&fleet, at)? == expected).then_some(()))
        })
        .with_context(|| format!("{:#?}", status(&fleet, at)))
    };
    ensure!(held_back_by(&fleet, 0)?.is_empty());

    // An older one, from before the first schema revision: each configuration is too new for it.
    put_member(&fleet, "lb-9", r#""version":"0.0.9","schema":0"#)?;
    wait_held_back(1, &["lb-9"])?;
    let table = fleet.spillway(0, &["fleet", "status"])?;
    let words =
        ["held back  fields of schema revision 2 wait", "(version 0.0.9, schema revision 0)"];
    ensure!(words.iter().all(|word| table.contains(word)), "{table}");
    let sentence = "needs schema revision 1 at every balancer of the fleet";
    let words = [sentence, "lb-9 (version 0.0.9, schema revision 0, not alive)", "hint: "];
    for at in 0..2 {
        ensure_refused(&fleet, at, &reweigh(&backend, "3"), (CONFLICT, &words))?;
    }
    let dry_run = ["backend", "update", &backend, "--pool", "v4", "--weight", "3", "--dry-run"];
    ensure_refused(&fleet, 0, &dry_run, (CONFLICT, &words))?;
    // Alive, it says itself what it is.
    let alive =
        r#"{"format":1,"version":"0.0.8","schema":0,"revision":0,"tables":{},"conditions":[]}"#;
    put(&fleet, "alive/lb-9", alive)?;
    until("the refusal names what runs now", PATIENCE, || {
        let output = fleet.balancers[0].try_cli(&dry_run, None)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(said.contains("lb-9 (version 0.0.8, schema revision 0)").then_some(()))
    })?;
    let seen = status(&fleet, 1)?;
    ensure!(seen.generation == 1, "{seen:#?}");
    // What it understands goes on.
    fleet.spillway(0, &["backend", "drain", &backend, "--yes"])?;
    fleet.spillway(1, &["backend", "undrain", &backend])?;

    // It is upgraded: an entry of a newer program, with a field that is not known here.
    put(&fleet, "alive/lb-9", &alive.replace(r#""schema":0"#, r#""schema":7,"rack":4"#))?;
    wait_held_back(0, &["lb-1", "lb-2"])?;
    let changed = fleet.spillway(1, &reweigh(&backend, "3")[..7])?;
    ensure!(changed.contains("generation 2"), "{changed}");
    delete(&fleet, "alive/lb-9")?;
    delete(&fleet, "members/lb-9")?;
    wait_in_force(&fleet, 0, 2)?;
    wait_held_back(0, &[])?;
    wait_until_well(&fleet, 0..2)
}

/// Makes the configuration of the fleet one of a later schema revision, as a newer balancer commits it. Returns its number.
pub(super) fn commit_newer(fleet: &FleetFixture) -> Result<u64> {
    let current = get_bytes(fleet, "config/current")?;
    let mut generation: Value = serde_json::from_slice(&current)?;
    // The first one has field 1 of the shared configuration, which is its schema revision.
    let piece = generation["pieces"][0].as_str().context("no piece")?;
    let mut bytes = get_bytes(fleet, &format!("chunks/{piece}"))?;
    ensure!(bytes.starts_with(&[0x08, 0x01]), "{:?}", &bytes[..8]);
    bytes[1] = 3;
    let digest = Digest::new(&bytes).to_string();
    put_bytes(fleet, &format!("chunks/{digest}"), &bytes)?;
    let number = generation["number"].as_u64().context("no number")? + 1;
    generation["number"] = number.into();
    generation["pieces"][0] = digest.into();
    generation["parent"] = Digest::new(&current).to_string().into();
    generation["attempt"] = "00".repeat(16).into();
    let value = serde_json::to_vec(&generation)?;
    put_bytes(fleet, &format!("config/history/{number}"), &value)?;
    put_bytes(fleet, "config/current", &value)?;
    put(fleet, "changed", "")?;
    Ok(number)
}

fn is_ready(fleet: &FleetFixture, at: usize) -> Result<bool> {
    let mut members = status(fleet, at)?.members.into_iter();
    Ok(members.any(|it| it.name == fleet.name(at) && it.ready))
}

/// What a balancer has in force, without the line that says which generation it is.
fn configuration(fleet: &FleetFixture, at: usize) -> Result<String> {
    let export = fleet.spillway(at, &["export"])?;
    let (generation, text) = export.split_once('\n').context("an empty export")?;
    ensure!(generation.starts_with("# generation "), "{export}");
    Ok(text.to_owned())
}

/// What the fleet has is newer than its balancers: they keep what they have, and do not write over it.
pub(super) fn newer_configuration(sandbox: &Sandbox) -> Result<()> {
    let mut fleet = joined_as(sandbox, "newer", THREE)?;
    let backend = fleet.fabric.backends[1].v4.to_string();
    let traffic = Traffic::start(&fleet)?;
    fleet.spillway(2, &["fleet", "leave", "--yes"])?;
    let export = configuration(&fleet, 1)?;
    let newer = commit_newer(&fleet)?;
    let words = "older than the configuration of the fleet (schema revision 2, the fleet has 3)";
    for at in 0..2 {
        wait_for_condition(&fleet, at, ("fleet configuration", words))?;
        ensure!(is_ready(&fleet, at)?, "one that serves goes on");
        let refusal = ["would erase, because it is older", words, "hint: "];
        ensure_refused(&fleet, at, &reweigh(&backend, "3"), (CONFLICT, &refusal))?;
        let drain = ["backend", "drain", &backend, "--yes"];
        ensure_refused(&fleet, at, &drain, (CONFLICT, &refusal))?;
    }
    ensure!(status(&fleet, 0)?.generation == newer);

    // One that starts has what it had before, and is not ready.
    fleet.balancers[1].kill()?;
    fleet.balancers[1].start()?;
    wait_for_condition(&fleet, 1, ("fleet configuration", words))?;
    ensure!(!is_ready(&fleet, 1)?, "{:#?}", status(&fleet, 1)?);
    ensure!(configuration(&fleet, 1)? == export);
    // One that joins is told before anything changes.
    let join = ["fleet", "join", "--yes"];
    let refusal = ["the fleet's configuration cannot be used by this version", words];
    ensure_refused(&fleet, 2, &join, (CONFLICT, &refusal))?;
    ensure!(!status(&fleet, 2)?.member);
    ensure!(condition(&fleet, 2, "fleet configuration")?.is_none());
    traffic.goes_on()?;

    // Only a restore replaces it, because an operator says so.
    fleet.spillway(0, &["fleet", "restore", "--from=this", "--yes"])?;
    fleet.spillway(2, &join)?;
    wait_in_force(&fleet, 1, newer + 1)?;
    let restored = configuration(&fleet, 1)?;
    ensure!(restored == export, "{restored}\nnot\n{export}");
    ensure!(is_ready(&fleet, 1)?, "{:#?}", status(&fleet, 1)?);
    wait_until_well(&fleet, 0..3)?;
    traffic.finish(None)
}

/// An override of a newer format is not followed and not replaced, and is named.
pub(super) fn newer_override(sandbox: &Sandbox) -> Result<()> {
    const NEWER: &str = r#"{"format":2,"drains":"softly"}"#;
    let mut fleet = joined_as(sandbox, "softly", TWO)?;
    let backend = fleet.fabric.backends[1].v4.to_string();
    let key = "overrides/drain/pools/v4";
    put(&fleet, key, NEWER)?;
    put(&fleet, "changed", "")?;
    let words = "has format 2, and this version reads up to 1: upgrade this balancer";
    for at in 0..2 {
        wait_for_condition(&fleet, at, ("fleet values", words))?;
        let refusal = ["would erase, because it is older", key, "hint: "];
        ensure_refused(&fleet, at, &reweigh(&backend, "3"), (CONFLICT, &refusal))?;
        let listed = fleet.balancers[at].overrides()?;
        ensure!(listed.overrides.is_empty(), "{listed:#?}");
    }
    // Nothing says that it is in force.
    let seen = status(&fleet, 0)?;
    let revisions = (seen.revision_in_force, seen.revision);
    ensure!(revisions.0 < revisions.1, "{revisions:?}");
    fleet.balancers[1].kill()?;
    fleet.balancers[1].start()?;
    wait_for_condition(&fleet, 1, ("fleet values", words))?;
    ensure!(!is_ready(&fleet, 1)?, "{:#?}", status(&fleet, 1)?);
    ensure!(get_bytes(&fleet, key)? == NEWER.as_bytes(), "it was replaced");
    delete(&fleet, key)?;
    put(&fleet, "changed", "")?;
    until("all is well", PATIENCE, || {
        let is_well = condition(&fleet, 1, "fleet values")?.is_none() && is_ready(&fleet, 1)?;
        Ok(is_well.then_some(()))
    })?;
    fleet.spillway(1, &reweigh(&backend, "3"))?;
    wait_in_force(&fleet, 0, 2).map(drop)
}
