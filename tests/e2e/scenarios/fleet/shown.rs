//! A fleet as its metrics and the status page show it.

use anyhow::{Context as _, Result, ensure};
use lb_common::abi::{
    names,
    slot::{TABLE_HEAD, TableShape},
};
use lb_e2e::fixture::{FleetFixture, FleetPlan};
use lb_maps::{Component, Pins};
use lb_tests::{
    daemon::answers::member,
    daemon::{HTTP_ADDRESS, get, scrape},
    process::{PATIENCE, until},
    sandbox::Sandbox,
    topology::REGIONS,
};
use serde_json::Value;

use super::calls::{reweigh, text, wait_for_whole};
use super::members::{status, wait_in_force};
use crate::metrics::browser::{Between, Look};

const THREE: FleetPlan = FleetPlan { balancers: 3, etcd: 1, ..FleetPlan::FLEET };

const LOOK: Look = Look { name: "fleet", width: 1280, height: 2400, dark: false, path: "/" };
const PHONE: Look = Look { name: "fleet-phone", width: 500, height: 3000, path: "/phone", ..LOOK };

fn wait_for_levels(fleet: &FleetFixture, at: usize, levels: &[(&str, f64)]) -> Result<()> {
    let node = &fleet.fabric.balancers[at].node;
    let differs = || -> Result<Vec<String>> {
        let now = scrape(node)?;
        let value = |name: &str| now.value(&format!("spillway_{name}"), &[]);
        let wrong = levels.iter().filter(|(name, expected)| value(name) != Some(*expected));
        Ok(wrong.map(|(name, it)| format!("{name}: {:?}, not {it}", value(name))).collect())
    };
    let what = format!("the metrics of {} are {levels:?}", fleet.name(at));
    until(&what, PATIENCE, || Ok(differs()?.is_empty().then_some(())))
        .with_context(|| differs().unwrap_or_default().join("; "))
}

/// `mod_revision` of a key, from etcd itself.
fn changed_at(fleet: &FleetFixture) -> Result<f64> {
    let etcd = fleet.etcd.as_ref().context("there is no etcd")?;
    let answer = etcd.ask(&["get", "/spillway/edge/changed", "--write-out=fields"])?;
    let line = answer.lines().find_map(|line| line.strip_prefix("\"ModRevision\" : "));
    Ok(line.with_context(|| answer.clone())?.parse()?)
}

fn page_data(fleet: &FleetFixture, at: usize) -> Result<Value> {
    let (_, body) = get(&fleet.fabric.balancers[at].node, "/data.json")?;
    Ok(serde_json::from_str(&body)?)
}

pub(super) fn metrics_and_page(sandbox: &Sandbox) -> Result<()> {
    let mut fleet = FleetFixture::prepare(sandbox, "shown", THREE)?;
    for balancer in &mut fleet.balancers {
        balancer.more = vec!["--http".into(), HTTP_ADDRESS.to_string(), "--status-page".into()];
        balancer.spawn()?;
    }
    for balancer in &mut fleet.balancers {
        balancer.wait_until_it_answers()?;
    }
    let text = text(&fleet)?;
    fleet.balancers[0].apply(&text)?;
    let before = scrape(&fleet.fabric.balancers[0].node)?;
    let of_fleet = before.families.keys().filter(|name| name.starts_with("spillway_fleet_"));
    ensure!(of_fleet.clone().count() == 16, "{:?}", of_fleet.collect::<Vec<_>>());
    ensure!(before.value("spillway_fleet_ready", &[]).is_none(), "it is no member yet");
    ensure!(page_data(&fleet, 0)?["fleet"].is_null());
    for balancer in 0..3 {
        fleet.spillway(balancer, &["fleet", "join", "--yes"])?;
    }
    fleet.wait_up()?;
    wait_in_force(&fleet, 0, 1)?;
    wait_for_whole(&fleet, 0, &[0, 1, 2])?;

    let backend = fleet.fabric.backends[0].v4.to_string();
    fleet.spillway(1, &reweigh(&backend, "2"))?;
    let revision = changed_at(&fleet)?;
    for at in 0..3 {
        wait_for_levels(
            &fleet,
            at,
            &[
                ("fleet_ready", 1.0),
                ("fleet_balancers", 3.0),
                ("fleet_balancers_alive", 3.0),
                ("fleet_balancers_ready", 3.0),
                ("fleet_balancers_differing", 0.0),
                ("fleet_etcd_available", 1.0),
                ("fleet_etcd_quota_bytes", 2_147_483_648.0),
                ("fleet_conflict", 0.0),
                ("fleet_generation", 2.0),
                ("fleet_revision", revision),
                ("fleet_revision_in_force", revision),
                ("fleet_schema_revision", 2.0),
                ("fleet_epoch", 0.0),
                ("fleet_epoch_open", 0.0),
            ],
        )?;
    }
    let group = [("pool", "v4"), ("region", REGIONS[0])];
    let now = scrape(&fleet.fabric.balancers[0].node)?;
    let in_flight = now.value("spillway_group_in_flight_ratio", &group);
    ensure!(in_flight.is_some_and(|it| (0.0..1.0).contains(&it)), "{in_flight:?}");

    page(&fleet)?;

    // What goes wrong is seen.
    fleet.balancers[1].kill()?;
    spoil_newest_table(&fleet, 1)?;
    fleet.balancers[1].start()?;
    wait_for_levels(&fleet, 0, &[("fleet_balancers_differing", 1.0)])?;
    until("the pool is named", PATIENCE, || {
        let status = status(&fleet, 0)?;
        Ok((member(&status, "lb-2")?.differing_pools == ["v4"]).then_some(()))
    })?;
    let data = page_data(&fleet, 0)?;
    let second = &data["fleet"]["balancers"][1];
    ensure!(second["tables_agree"] == false, "{second:#}");
    let table = fleet.spillway(0, &["fleet", "status"])?;
    ensure!(table.contains("lb-2: pool v4 has other tables than here"), "{table}");
    // What docs/fleet.md says helps.
    fleet.balancers[1].kill()?;
    fleet.balancers[1].cli(&["detach", "--yes"])?;
    fleet.balancers[1].start()?;
    wait_for_levels(
        &fleet,
        0,
        &[("fleet_balancers_differing", 0.0), ("fleet_balancers_ready", 3.0)],
    )?;
    wait_in_force(&fleet, 0, 2)?;
    fleet.balancers[1].kill()?;
    // Its portions go to the others, in an epoch.
    wait_for_levels(&fleet, 0, &[("fleet_epoch", 1.0), ("fleet_epoch_open", 0.0)])?;
    fleet.balancers[1].start()?;
    wait_in_force(&fleet, 0, 2)?;
    wait_for_levels(&fleet, 0, &[("fleet_balancers_ready", 3.0)])?;
    fleet.etcd.as_mut().context("there is no etcd")?.kill_all()?;
    wait_for_levels(
        &fleet,
        0,
        &[("fleet_etcd_available", 0.0), ("fleet_revision_in_force", revision)],
    )?;
    ensure!(page_data(&fleet, 0)?["fleet"]["etcd_problem"].is_string());
    Ok(())
}

/// What the page gets, and what a browser makes of it.
fn page(fleet: &FleetFixture) -> Result<()> {
    let data = page_data(fleet, 0)?;
    let shown = &data["fleet"];
    ensure!(shown["fleet"] == "edge" && shown["balancer"] == "lb-1", "{shown:#}");
    let names: Vec<_> = shown["balancers"].as_array().into_iter().flatten().collect();
    for (number, member) in (1..).zip(&names) {
        ensure!(member["name"] == format!("lb-{number}") && member["ready"] == true, "{member:#}");
        ensure!(member["version"].as_str().is_some_and(|it| !it.is_empty()), "{member:#}");
        ensure!(member["generation"] == 2 && member["compared_with"] == "lb-1", "{member:#}");
    }
    ensure!(names.len() == 3, "{shown:#}");
    let groups = shown["groups"].as_array().context("no groups")?;
    let group = groups.iter().find(|it| it["pool"] == "v4" && it["region"] == REGIONS[0]);
    let group = group.with_context(|| format!("{shown:#}"))?;
    ensure!(group["capacity"] == 1000.0, "{group:#}");
    ensure!(group["shares"].as_array().is_some_and(|it| it.len() == 3), "{group:#}");

    let between = Between::start(&fleet.fabric.balancers[0].node)?;
    for look in [LOOK, PHONE] {
        let page = until("the page is drawn", PATIENCE, || {
            let page = between.document(look)?;
            Ok(page.contains("data-drawn=\"twice\"").then_some(page))
        })?;
        ensure!(page.contains("data-over=\"0\""), "{}: wider than its window\n{page}", look.name);
        ensure!(!page.contains("data-error") && !page.contains("data-refused"), "{page}");
        between.picture(look)?;
        if look.path == "/" {
            let words = [
                "Fleet edge, as lb-1 sees it",
                "etcd has generation 2, revision ",
                ", in force here",
                "same tables",
                "capacity 1000 connections/s",
            ];
            for word in words {
                ensure!(page.contains(word), "no {word} in\n{page}");
            }
            for number in 1..=3 {
                ensure!(page.contains(&format!(">lb-{number}</td>")), "no lb-{number} in\n{page}");
            }
        }
    }
    Ok(())
}

/// Gives two slots of the table that was written last each other's lists, as no daemon would.
fn spoil_newest_table(fleet: &FleetFixture, at: usize) -> Result<()> {
    let node = &fleet.fabric.balancers[at].node;
    let bpftool = |line: String| node.run("bpftool", line.split(' '));
    let pin = Pins::new(&fleet.balancers[at].bpffs, Component::Balancer).map(names::TABLES);
    let chunk = bpftool(format!("map dump pinned {}", pin.display()))?;
    let chunk = values(&chunk).next().with_context(|| chunk.clone())?;
    let dump = bpftool(format!("map dump id {chunk}"))?;
    let words: Vec<u64> = values(&dump).collect();
    // Tables stand one after the other behind the chunk's first word.
    let mut first = None;
    let mut next = 1;
    while let Some(&head) = words.get(next + TABLE_HEAD as usize - 1).filter(|head| **head != 0) {
        first = Some(next + TABLE_HEAD as usize);
        next += TableShape { slots: head as u32, members: (head >> 32) as u32 }.words() as usize;
    }
    let first = first.context("there are no tables")?;
    let other = (first..next).find(|at| words[*at] != words[first]).context("slots are alike")?;
    for (index, list) in [(first, words[other]), (other, words[first])] {
        let bytes = |bytes: &[u8]| bytes.iter().map(|byte| format!(" {byte}")).collect::<String>();
        let (key, value) = (bytes(&(index as u32).to_ne_bytes()), bytes(&list.to_ne_bytes()));
        bpftool(format!("map update id {chunk} key{key} value{value}"))?;
    }
    Ok(())
}

/// The values in a map that bpftool printed: `key: 00 00 00 00  value: 28 1a 09 00`, lowest byte first.
fn values(dump: &str) -> impl Iterator<Item = u64> {
    let values = dump.lines().filter_map(|line| line.split_once("value:"));
    values.map(|(_, bytes)| {
        let bytes = bytes.split_whitespace().rev();
        bytes.fold(0, |value, byte| value << 8 | u64::from_str_radix(byte, 16).unwrap_or(0))
    })
}
