//! What happens to etcd, or to a certificate, stops changes and nothing else.

use std::{
    fs,
    net::IpAddr,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::{
    etcd::{EtcdCluster, EtcdOptions, Identity, field},
    fixture::{FleetFixture, FleetPlan},
    harness,
};
use lb_tests::{
    daemon::{answers::member, printed::Restored},
    process::{PATIENCE, pause, until},
    sample::Sample,
    sandbox::Sandbox,
};
use rcgen::date_time_ymd;
use spillway_proto::v1::BackendState;

use super::calls::{
    CONFLICT, UNAVAILABLE, WHOLE, condition, ensure_refused, joined_as, portions, reweigh,
    wait_for_condition, wait_for_whole, wait_until_well,
};
use super::members::{problems, status, wait_for_equal_tables, wait_in_force};
use super::traffic::Traffic;

/// Subject of the condition that new certificate files are not in use.
const TLS: &str = "TLS of etcd";

const THREE: FleetPlan = FleetPlan { balancers: 3, ..FleetPlan::FLEET };

/// How long a run of everything is without quorum.
const LONG_OUTAGE: Duration = Duration::from_secs(600);
const BETWEEN_LOOKS: Duration = Duration::from_secs(5);

pub(super) fn etcd(fleet: &mut FleetFixture) -> Result<&mut EtcdCluster> {
    fleet.etcd.as_mut().context("no etcd")
}

/// Without quorum changes are refused, and a daemon starts from its own store.
pub(super) fn quorum(sandbox: &Sandbox) -> Result<()> {
    let mut fleet = joined_as(sandbox, "quorum", THREE)?;
    let backend = fleet.fabric.backends[1].v4.to_string();
    let traffic = Traffic::start(&fleet)?;

    // The leader is gone: whatever that does to a change under way, soon they work again.
    let leader = etcd(&mut fleet)?.leader()?;
    etcd(&mut fleet)?.kill(leader)?;
    until("a change works without the first leader", PATIENCE, || {
        let output = fleet.balancers[0].try_cli(&reweigh(&backend, "2"), None)?;
        let exit = output.status.code();
        ensure!(matches!(exit, Some(0 | 3)), "{output:?}");
        Ok((exit == Some(0)).then_some(()))
    })?;
    wait_in_force(&fleet, 1, 2)?;
    wait_for_whole(&fleet, 2, &[0, 1, 2])?;

    // Another one: one of three is left.
    let next = etcd(&mut fleet)?.leader()?;
    etcd(&mut fleet)?.kill(next)?;
    let lost = Instant::now();
    for balancer in 0..3 {
        let begun = Instant::now();
        ensure_refused(
            &fleet,
            balancer,
            &reweigh(&backend, "3"),
            (UNAVAILABLE, &["etcd", "hint: "]),
        )?;
        harness::note(format!("without quorum a change is refused after {:.1?}", begun.elapsed()));
        wait_for_condition(&fleet, balancer, ("etcd", "etcd"))?;
        let status = status(&fleet, balancer)?;
        ensure!(!status.etcd_problem.is_empty() && status.member, "{status:#?}");
        let problems = problems(&fleet, balancer)?;
        ensure!(problems.iter().any(|it| it.reason == "etcd"), "{problems:#?}");
    }
    harness::note(format!("all three say so after {:.1?}", lost.elapsed()));
    traffic.goes_on()?;

    // A daemon starts from its own store.
    let before = portions(&status(&fleet, 1)?)?;
    fleet.balancers[1].kill()?;
    traffic.goes_on()?;
    fleet.balancers[1].start()?;
    until("the daemon is ready without etcd", PATIENCE, || {
        let status = status(&fleet, 1)?;
        let mut members = status.members.iter();
        let is_ready = members.any(|it| it.name == "lb-2" && it.ready && it.generation == 2);
        Ok((is_ready && !status.etcd_problem.is_empty()).then_some(()))
    })
    .with_context(|| format!("{:#?}", status(&fleet, 1)))?;
    wait_for_whole(&fleet, 1, &[0, 1, 2])?;
    let after = portions(&status(&fleet, 1)?)?;
    harness::note(format!("portions before and after a start without etcd: {before:?} {after:?}"));
    let moved = (before["lb-2"] - after["lb-2"]).abs();
    ensure!(moved < 0.15, "{before:?} {after:?}");
    ensure!(fleet.spillway(1, &["export"])?.contains("weight = 2"));
    ensure_refused(&fleet, 1, &reweigh(&backend, "3"), (UNAVAILABLE, &["etcd"]))?;

    // Health needs no etcd.
    let sick = fleet.fabric.backends[0].clone();
    fleet.backends.servers[0].be_sick(true)?;
    for balancer in &fleet.balancers {
        until("the sick backend is down", PATIENCE, || {
            let (status, address) = (balancer.status()?, sick.v4.to_string());
            let mut of_address = status.backends.iter().filter(|it| it.address == address);
            Ok(of_address.any(|it| it.state() == BackendState::Unhealthy).then_some(()))
        })?;
    }
    let down = Instant::now();
    traffic.goes_on()?;
    if Sample::from_environment().is_everything() {
        stay_without_quorum(&fleet, &traffic, lost)?;
    }

    // Without a hand.
    etcd(&mut fleet)?.start_all()?;
    wait_until_well(&fleet, 0..3)?;
    for balancer in 0..3 {
        ensure!(status(&fleet, balancer)?.etcd_problem.is_empty());
    }
    fleet.spillway(2, &reweigh(&backend, "3"))?;
    wait_in_force(&fleet, 1, 3)?;
    traffic.finish(Some((sick.name(), down)))
}

/// Time does not change that: packets, portions and what is in force stay.
fn stay_without_quorum(fleet: &FleetFixture, traffic: &Traffic, lost: Instant) -> Result<()> {
    let before = portions(&status(fleet, 0)?)?;
    while lost.elapsed() < LONG_OUTAGE {
        traffic.goes_on()?;
        for balancer in 0..fleet.balancers.len() {
            let status = status(fleet, balancer)?;
            let sum: f64 = portions(&status)?.values().sum();
            ensure!(sum <= WHOLE, "{sum} of the capacity is owned");
            let own = member(&status, fleet.name(balancer))?;
            ensure!(!status.etcd_problem.is_empty() && own.generation == 2, "{status:#?}");
        }
        pause(BETWEEN_LOOKS);
    }
    let after = portions(&status(fleet, 0)?)?;
    harness::note(format!(
        "portions after {:.0?} without quorum: {before:?} {after:?}",
        lost.elapsed()
    ));
    wait_for_whole(fleet, 0, &[0, 1, 2])
}

/// What is in force outlives an etcd that goes back in time; one command decides for all.
pub(super) fn restored(sandbox: &Sandbox) -> Result<()> {
    let mut fleet = joined_as(sandbox, "restored", THREE)?;
    let backend = fleet.fabric.backends[1].v4.to_string();
    let weight = |fleet: &FleetFixture, balancer: usize| -> Result<String> {
        let export = fleet.spillway(balancer, &["export"])?;
        let after = export.split_once(&format!("\"{backend}\"")).context("no backend")?.1;
        let backend = after.split("[[").next().unwrap_or_default();
        let line = backend.lines().find_map(|line| line.strip_prefix("weight = "));
        Ok(line.unwrap_or("1").to_owned())
    };
    let traffic = Traffic::start(&fleet)?;
    let backup = etcd(&mut fleet)?.save_snapshot("backup")?;
    fleet.spillway(1, &reweigh(&backend, "2"))?;
    fleet.spillway(2, &reweigh(&backend, "3"))?;
    wait_in_force(&fleet, 0, 3)?;

    let mut in_force = 3;
    for (identity, words) in
        [(Identity::Same, "restored from an old backup"), (Identity::New, "another cluster")]
    {
        etcd(&mut fleet)?.restore(&backup, identity)?;
        for balancer in 0..3 {
            until("the conflict is noticed", PATIENCE, || {
                let conflict = status(&fleet, balancer)?.conflict;
                ensure!(conflict.is_empty() || conflict.contains(words), "{conflict}");
                Ok((!conflict.is_empty()).then_some(()))
            })
            .with_context(|| format!("{:#?}", status(&fleet, balancer)))?;
            wait_for_condition(&fleet, balancer, ("fleet", words))?;
            ensure!(weight(&fleet, balancer)? == "3", "{} went back", fleet.name(balancer));
            let hint = "spillway fleet restore";
            ensure_refused(&fleet, balancer, &reweigh(&backend, "5"), (CONFLICT, &[words, hint]))?;
            ensure_refused(
                &fleet,
                balancer,
                &["backend", "drain", &backend, "--yes"],
                (CONFLICT, &[hint]),
            )?;
        }
        // A restart does not make it forget.
        fleet.balancers[2].kill()?;
        fleet.balancers[2].start()?;
        wait_for_condition(&fleet, 2, ("fleet", words))?;
        ensure!(weight(&fleet, 2)? == "3", "a restart went back");
        traffic.goes_on()?;

        let (from, kept) = match identity {
            Identity::Same => ("this", "3"),
            Identity::New => ("etcd", "1"),
        };
        let dry_run = fleet.spillway(1, &["fleet", "restore", "--from", from, "--dry-run"])?;
        ensure!(dry_run.contains("dry run"), "{dry_run}");
        let change = if kept == "1" { "weight: 3 -> 1" } else { "weight: 1 -> 3" };
        ensure!(dry_run.contains(change), "no {change}: {dry_run}");
        ensure!(weight(&fleet, 1)? == "3" && !status(&fleet, 1)?.conflict.is_empty());
        let restore = ["fleet", "restore", "--from", from, "--yes"];
        let Restored { fleet_generation: generation } = fleet.balancers[1].printed(&restore)?;
        ensure!(generation > in_force, "{generation} after {in_force}");
        wait_in_force(&fleet, 0, generation)?;
        wait_until_well(&fleet, 0..3)?;
        for balancer in 0..3 {
            ensure!(status(&fleet, balancer)?.conflict.is_empty());
            let there = weight(&fleet, balancer)?;
            ensure!(there == kept, "{}: weight {there}, not {kept}", fleet.name(balancer));
        }
        wait_for_whole(&fleet, 1, &[0, 1, 2])?;
        // Changes work again, anywhere.
        fleet.spillway(0, &reweigh(&backend, "4"))?;
        fleet.spillway(2, &reweigh(&backend, "3"))?;
        in_force = generation + 2;
        wait_in_force(&fleet, 1, in_force)?;
        // Until all of it is, a balancer keeps to the conflict that it had.
        for balancer in 0..3 {
            until("all of etcd is in force", PATIENCE, || {
                let status = status(&fleet, balancer)?;
                Ok((status.revision_in_force == status.revision).then_some(()))
            })?;
        }
    }
    wait_for_equal_tables(&fleet, 0)?;
    traffic.finish(None)
}

/// Without space in etcd changes are refused, until there is room.
pub(super) fn no_space(sandbox: &Sandbox) -> Result<()> {
    let etcd_options = EtcdOptions { quota: Some(8 << 20), retention: None };
    let mut fleet = joined_as(sandbox, "nospace", FleetPlan { etcd: 1, etcd_options, ..THREE })?;
    let backend = fleet.fabric.backends[1].v4.to_string();
    let traffic = Traffic::start(&fleet)?;
    etcd(&mut fleet)?.fill()?;
    let sentence = "etcd is out of space and takes no changes";
    for balancer in 0..3 {
        let begun = Instant::now();
        ensure_refused(&fleet, balancer, &reweigh(&backend, "2"), (UNAVAILABLE, &[sentence]))?;
        harness::note(format!("without space a change is refused after {:.1?}", begun.elapsed()));
        wait_for_condition(&fleet, balancer, ("etcd", sentence))?;
        let status = status(&fleet, balancer)?;
        ensure!(status.etcd_problem.contains(sentence), "{status:#?}");
        ensure!(status.generation == 1, "{status:#?}");
    }
    traffic.goes_on()?;
    etcd(&mut fleet)?.make_room()?;
    let begun = Instant::now();
    wait_until_well(&fleet, 0..3)?;
    harness::note(format!("room is noticed after {:.1?}", begun.elapsed()));
    fleet.spillway(1, &reweigh(&backend, "2"))?;
    wait_in_force(&fleet, 0, 2)?;
    traffic.finish(None)
}

/// A certificate that has expired is named; a new file is used without a restart.
pub(super) fn expired(sandbox: &Sandbox) -> Result<()> {
    let mut fleet = joined_as(sandbox, "expired", FleetPlan { etcd: 1, ..THREE })?;
    let backend = fleet.fabric.backends[1].v4.to_string();
    let host = &fleet.fabric.balancers[1];
    let addresses: [IpAddr; 2] = [host.v4.into(), host.v6.into()];
    let lease = |fleet: &FleetFixture, name: &str| -> Result<u64> {
        let etcd = fleet.etcd.as_ref().context("no etcd")?;
        field(&etcd.ask(&["get", "/spillway/edge/alive/lb-2", "--write-out=fields"])?, name)
    };
    let traffic = Traffic::start(&fleet)?;
    fleet.authority.issue_with("lb-2", &addresses, |params| {
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 1);
    })?;
    // What works is not given up for what does not.
    let before = lease(&fleet, "Lease")?;
    wait_for_condition(&fleet, 1, (TLS, "those from before stay in use"))?;
    ensure!(condition(&fleet, 1, TLS)?.is_some_and(|cause| cause.contains("expired at 2020")));
    ensure!(condition(&fleet, 1, "etcd")?.is_none() && lease(&fleet, "Lease")? == before);
    fleet.spillway(1, &["backend", "drain", &backend, "--yes"])?;
    fleet.spillway(1, &["backend", "undrain", &backend])?;
    // A start has nothing else.
    fleet.balancers[1].kill()?;
    fleet.balancers[1].start()?;
    wait_for_condition(&fleet, 1, ("etcd", "expired"))?;
    until("the status says so", PATIENCE, || {
        Ok(status(&fleet, 1)?.etcd_problem.contains("expired").then_some(()))
    })?;
    ensure_refused(&fleet, 1, &reweigh(&backend, "2"), (UNAVAILABLE, &["expired"]))?;
    // The others go on, and say who is missing.
    fleet.spillway(0, &["backend", "update", &backend, "--pool", "v4", "--weight", "2"])?;
    until("the others miss it", PATIENCE, || {
        Ok(problems(&fleet, 0)?
            .iter()
            .any(|it| it.balancer.as_deref() == Some("lb-2"))
            .then_some(()))
    })?;
    let sum: f64 = portions(&status(&fleet, 0)?)?.values().sum();
    ensure!(sum <= WHOLE, "{sum}");
    traffic.goes_on()?;

    let certificate = fs::read(&fleet.certificates[1].certificate)?;
    fleet.authority.issue("lb-2", &addresses)?;
    ensure!(fs::read(&fleet.certificates[1].certificate)? != certificate, "no other file");
    let begun = Instant::now();
    wait_until_well(&fleet, 0..3)?;
    harness::note(format!("a replaced certificate is used after {:.1?}", begun.elapsed()));
    wait_in_force(&fleet, 1, 2)?;
    wait_for_whole(&fleet, 0, &[0, 1, 2])?;
    until("messages get there", PATIENCE, || Ok(problems(&fleet, 0)?.is_empty().then_some(())))
        .with_context(|| format!("{:#?}", problems(&fleet, 0)))?;
    fleet.spillway(1, &reweigh(&backend, "3"))?;

    // One that is replaced in time: the balancer is alive all the while.
    let created = lease(&fleet, "CreateRevision")?;
    let renewed = |fleet: &FleetFixture| -> Result<()> {
        let before = lease(fleet, "Lease")?;
        fleet.authority.issue("lb-2", &addresses)?;
        until("the new file is used", PATIENCE, || {
            Ok((lease(fleet, "Lease")? != before).then_some(()))
        })
    };
    renewed(&fleet)?;
    // The key comes before its certificate.
    let files = fleet.certificates[1].clone();
    let (certificate, before) = (fs::read(&files.certificate)?, lease(&fleet, "Lease")?);
    fleet.authority.issue("lb-2", &addresses)?;
    let next = fs::read(&files.certificate)?;
    fs::write(&files.certificate, certificate)?;
    wait_for_condition(&fleet, 1, (TLS, "those from before stay in use"))?;
    ensure!(condition(&fleet, 1, "etcd")?.is_none() && lease(&fleet, "Lease")? == before);
    fs::write(&files.certificate, next)?;
    until("both are used", PATIENCE, || {
        let is_well = condition(&fleet, 1, TLS)?.is_none();
        Ok((is_well && lease(&fleet, "Lease")? != before).then_some(()))
    })?;
    ensure!(lease(&fleet, "CreateRevision")? == created, "it was not alive for a moment");
    traffic.finish(None)
}

/// A server of etcd that is silent holds up no change and no lease, and leaves none in doubt.
pub(super) fn silent_server(sandbox: &Sandbox) -> Result<()> {
    let fleet = joined_as(sandbox, "silent", THREE)?;
    let backend = fleet.fabric.backends[0].v4.to_string();
    let etcd = fleet.etcd.as_ref().context("no etcd")?;
    let leader = etcd.leader()?;
    let leases = || {
        let alive = ["get", "--prefix", "/spillway/edge/alive/", "--write-out=fields"];
        let alive = etcd.ask_at(leader, &alive)?;
        let leases = alive.lines().filter(|line| line.starts_with("\"Lease\""));
        anyhow::Ok(leases.map(str::to_owned).collect::<Vec<_>>())
    };
    let before = leases()?;
    ensure!(before.len() == 3, "{before:?}");
    let (mut generation, mut slowest) = (1, Duration::ZERO);
    let mut frozen = None;
    for _ in 0..2 {
        // One that is back may have been elected.
        let leader = etcd.leader()?;
        let mut others = (0..3).filter(|it| *it != leader && Some(*it) != frozen);
        let server = others.next().context("there are three servers")?;
        frozen = Some(server);
        etcd.freeze(server)?;
        for at in 0..3 {
            generation += 1;
            let weight = generation.to_string();
            let changes = [
                &["backend", "drain", &backend, "--yes"][..],
                &["backend", "undrain", &backend],
                &reweigh(&backend, &weight)[..7],
            ];
            for change in changes {
                let begin = Instant::now();
                fleet.spillway(at, change)?;
                slowest = slowest.max(begin.elapsed());
            }
        }
        etcd.thaw(server)?;
        until("the server is back", PATIENCE, || {
            Ok(etcd.ask_at(server, &["endpoint", "health"]).ok().map(drop))
        })?;
    }
    wait_in_force(&fleet, 0, generation)?;
    ensure!(leases()? == before, "{:?}, not {before:?}", leases()?);
    harness::note(format!("slowest of 18 changes with a silent server of etcd: {slowest:.1?}"));
    Ok(())
}
