//! etcd loses what it had, and a balancer's own word becomes that of the fleet again.

use anyhow::{Context as _, Result, ensure};
use lb_e2e::{
    etcd::Identity,
    fixture::{FleetFixture, FleetPlan},
};
use lb_tests::{
    process::{PATIENCE, until},
    sandbox::Sandbox,
    topology::REGIONS,
};

use super::calls::{
    CONFLICT, condition, ensure_refused, join_all, reweigh, sum_of, text, wait_for_condition,
    wait_for_whole, wait_until_well,
};
use super::members::{status, wait_in_force};
use super::outages::etcd;
use super::traffic::Traffic;

const TWO: FleetPlan = FleetPlan { balancers: 2, etcd: 1, ..FleetPlan::FLEET };
const THREE: FleetPlan = FleetPlan { balancers: 3, etcd: 1, ..FleetPlan::FLEET };

/// From an etcd that knows nothing of the fleet: members, overrides, births and portions are as they were.
pub(super) fn emptied(sandbox: &Sandbox) -> Result<()> {
    let mut fleet = FleetFixture::start(sandbox, "emptied", THREE)?;
    let empty = etcd(&mut fleet)?.save_snapshot("empty")?;
    join_all(&mut fleet)?;
    let traffic = Traffic::start(&fleet)?;
    let backends = &fleet.fabric.backends;
    let (drained, other) = (backends[0].v4.to_string(), backends[1].v4.to_string());
    fleet.spillway(1, &["backend", "drain", &drained, "--yes"])?;
    wait_for_whole(&fleet, 0, &[0, 1, 2])?;

    etcd(&mut fleet)?.restore(&empty, Identity::New)?;
    for balancer in 0..3 {
        wait_for_condition(&fleet, balancer, ("fleet", "another cluster"))?;
    }
    traffic.goes_on()?;
    fleet.spillway(1, &["fleet", "restore", "--from", "this", "--yes"])?;
    let generation = status(&fleet, 1)?.generation;
    wait_in_force(&fleet, 0, generation)?;
    wait_until_well(&fleet, 0..3)?;
    for balancer in 0..3 {
        ensure!(condition(&fleet, balancer, "fleet membership")?.is_none());
        let overrides = fleet.balancers[balancer].overrides()?.overrides;
        let is_there = overrides.iter().any(|it| it.name.contains(&drained));
        ensure!(is_there, "the drain is gone: {overrides:#?}");
        let seen = status(&fleet, balancer)?;
        ensure!(seen.member && seen.epoch == 0, "a balancer was forgotten: {seen:#?}");
        wait_for_whole(&fleet, balancer, &[0, 1, 2])?;
    }
    // Changes work again, anywhere.
    fleet.spillway(2, &reweigh(&other, "2"))?;
    wait_in_force(&fleet, 0, generation + 1)?;
    traffic.finish(None)
}

/// A group that was removed and added again since the backup is the one that balancers own, not that of the backup.
pub(super) fn born_again(sandbox: &Sandbox) -> Result<()> {
    let mut fleet = FleetFixture::start(sandbox, "bornagain", THREE)?;
    join_all(&mut fleet)?;
    let without = text(&fleet)?;
    let extra = format!(
        "[[pool]]\nname = \"extra\"\nslots = 1009\n[[pool.backend]]\naddress = \"{}\"\nregion = \"{}\"\n",
        fleet.fabric.backends[0].v4, REGIONS[0],
    );
    let with = format!("{without}\n{extra}");
    let is_whole = |fleet: &FleetFixture, at: usize| -> Result<()> {
        until("the portions of the pool are one whole", PATIENCE, || {
            let sum = sum_of(&status(fleet, at)?, "extra");
            ensure!(sum < 1.0 + 1e-6, "{sum} of the group is owned");
            Ok((sum > 1.0 - 1e-6).then_some(()))
        })
        .with_context(|| format!("{:#?}", status(fleet, at).map(|it| it.groups)))
    };
    fleet.balancers[0].apply(&with)?;
    is_whole(&fleet, 1)?;
    let backup = etcd(&mut fleet)?.save_snapshot("backup")?;
    fleet.balancers[1].apply(&without)?;
    fleet.balancers[2].apply(&with)?;
    wait_in_force(&fleet, 0, 4)?;
    is_whole(&fleet, 1)?;

    etcd(&mut fleet)?.restore(&backup, Identity::Same)?;
    for balancer in 0..3 {
        wait_for_condition(&fleet, balancer, ("fleet", "restored from an old backup"))?;
    }
    fleet.spillway(2, &["fleet", "restore", "--from", "this", "--yes"])?;
    let generation = status(&fleet, 2)?.generation;
    wait_in_force(&fleet, 0, generation)?;
    wait_until_well(&fleet, 0..3)?;
    (0..3).try_for_each(|balancer| is_whole(&fleet, balancer))
}

/// What a restore replaces is compared with what it puts there, wherever the operator runs it.
pub(super) fn compared(sandbox: &Sandbox) -> Result<()> {
    let mut fleet = FleetFixture::start(sandbox, "compared", TWO)?;
    join_all(&mut fleet)?;
    let pool = |backends: u8| {
        let backend = |host| {
            let region = REGIONS[0];
            format!("[[pool.backend]]\naddress = \"192.0.2.{host}\"\nregion = \"{region}\"\n")
        };
        let backends: String = (1..=backends).map(backend).collect();
        format!("[[pool]]\nname = \"extra\"\nslots = 1009\n{backends}")
    };
    let text = text(&fleet)?;
    fleet.balancers[0].apply(&format!("{text}\n{}", pool(10)))?;
    wait_in_force(&fleet, 1, 2)?;
    let backup = etcd(&mut fleet)?.save_snapshot("backup")?;
    fleet.balancers[1].kill()?;
    for host in 6..=10 {
        let address = format!("192.0.2.{host}");
        fleet.spillway(0, &["backend", "delete", &address, "--pool=extra", "--force", "--yes"])?;
    }

    etcd(&mut fleet)?.restore(&backup, Identity::New)?;
    fleet.balancers[1].start()?;
    for balancer in 0..2 {
        wait_for_condition(&fleet, balancer, ("fleet", "another cluster"))?;
    }
    // One that was off meanwhile does not undo what the other one has done.
    let [this, etcd] = ["--from=this", "--from=etcd"];
    for from in [this, etcd] {
        let command = ["fleet", "restore", from, "--force", "--yes"];
        let words = "generation 2 is in force here, and generation 7 at balancer lb-1: run `spillway fleet restore` there";
        ensure_refused(&fleet, 1, &command, (CONFLICT, &[words]))?;
    }
    // Where the change was made it is shown, and as dangerous as it was.
    let dry_run = fleet.spillway(0, &["fleet", "restore", this, "--dry-run"])?;
    for host in 6..=10 {
        ensure!(dry_run.contains(&format!("192.0.2.{host}")), "{dry_run}");
    }
    ensure!(!dry_run.contains("192.0.2.5"), "{dry_run}");
    let words = ["pool extra loses 5 of 10 backends", "--force"];
    ensure_refused(&fleet, 0, &["fleet", "restore", this, "--yes"], (CONFLICT, &words))?;
    ensure!(condition(&fleet, 0, "fleet")?.is_some());
    fleet.spillway(0, &["fleet", "restore", this, "--force", "--yes"])?;
    let generation = status(&fleet, 0)?.generation;
    wait_in_force(&fleet, 1, generation)?;
    wait_until_well(&fleet, 0..2)?;
    let there = fleet.spillway(1, &["export"])?;
    ensure!(there.contains("192.0.2.5") && !there.contains("192.0.2.6"), "{there}");
    Ok(())
}

/// etcd goes on at other servers, as the documentation plans it: nobody loses anything, and nobody stops serving.
pub(super) fn moved(sandbox: &Sandbox) -> Result<()> {
    let mut fleet = FleetFixture::start(sandbox, "moved", TWO)?;
    join_all(&mut fleet)?;
    let traffic = Traffic::start(&fleet)?;
    let backends = [0, 1].map(|at: usize| fleet.fabric.backends[at].v4.to_string());
    fleet.spillway(0, &["backend", "drain", &backends[0], "--yes"])?;
    fleet.spillway(0, &reweigh(&backends[1], "3"))?;
    wait_in_force(&fleet, 1, 2)?;

    // The last word of the old servers; the new ones have another identity.
    let snapshot = etcd(&mut fleet)?.save_snapshot("move")?;
    etcd(&mut fleet)?.restore(&snapshot, Identity::New)?;
    for balancer in 0..2 {
        // New addresses are in the settings, which are read at the start.
        fleet.balancers[balancer].kill()?;
        fleet.balancers[balancer].start()?;
        wait_for_condition(&fleet, balancer, ("fleet", "another cluster"))?;
        until("it serves all the same", PATIENCE, || {
            // Right after its start it may not know the members yet.
            let (status, name) = (status(&fleet, balancer)?, fleet.name(balancer));
            let is_ready = status.members.iter().any(|it| it.name == name && it.ready);
            Ok(is_ready.then_some(()))
        })
        .with_context(|| format!("{:#?}", status(&fleet, balancer)))?;
        traffic.goes_on()?;
    }
    let plan = fleet.spillway(1, &["fleet", "restore", "--from=etcd", "--dry-run"])?;
    ensure!(plan.contains("nothing differs"), "{plan}");
    fleet.spillway(1, &["fleet", "restore", "--from=etcd", "--yes"])?;
    wait_in_force(&fleet, 0, 3)?;
    wait_until_well(&fleet, 0..2)?;
    for balancer in 0..2 {
        let overrides = fleet.balancers[balancer].overrides()?.overrides;
        let is_there = overrides.iter().any(|it| it.name.contains(&backends[0]));
        ensure!(is_there, "the drain is gone: {overrides:#?}");
        wait_for_whole(&fleet, balancer, &[0, 1])?;
    }
    fleet.spillway(0, &reweigh(&backends[1], "4"))?;
    wait_in_force(&fleet, 1, 4)?;
    traffic.finish(None)
}
