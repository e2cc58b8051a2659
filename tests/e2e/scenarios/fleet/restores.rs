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
    condition, join_all, reweigh, sum_of, text, wait_for_condition, wait_for_whole, wait_until_well,
};
use super::members::{status, wait_in_force};
use super::outages::etcd;
use super::traffic::Traffic;

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
