use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use lb_common::abi::{limits, member::MemberState};
use lb_daemon::{
    ids::{Ids, Named},
    model::{
        Affinity, Backend, Configuration, Fragments, Pool, Ports, Protocol, Region, Service,
        WantedState, WhenFull,
    },
    plan::{self, Sources},
    reconcile::{Applied, ReconcileError},
};
use lb_tests::sandbox::Sandbox;

use crate::reconcile::{
    generate::name,
    model,
    world::{OWN_KEY, World},
};

/// Pools of `members` each, all different, a service for each; `first` shifts all addresses.
pub(crate) fn many(pools: u16, members: u16, slots: u32, first: u16) -> Configuration {
    let mut configuration = Configuration::default();
    configuration.regions.insert(name("eu"), Region::default());
    for n in 0..pools {
        let mut pool = Pool { slots, ..Pool::default() };
        for member in 0..members {
            let [high, low] = (first + n + member).to_be_bytes();
            let backend = Backend {
                region: name("eu"),
                weight: 1,
                wanted: WantedState::Active,
                mtu: None,
                max_connection_rate: None,
            };
            pool.backends.insert([10, 1, high, low].into(), backend);
        }
        configuration.pools.insert(name(&format!("pool{n}")), pool);
        let service = Service {
            address: [192, 0, 2, 1].into(),
            ports: Ports::one(1000 + n),
            protocol: Protocol::Tcp,
            pool: name(&format!("pool{n}")),
            affinity: Affinity::Connection,
            when_full: WhenFull::Nearest,
            idle_timeout: None,
            fragments: Fragments::Dropped,
        };
        configuration.services.insert(name(&format!("service{n}")), service);
    }
    configuration
}

/// Each round takes a third of every map that two generations share: what is not given back fills it
/// in the fourth. What a restart forgot to take would be written over by the last round.
pub(crate) fn churn_leaks_nothing(sandbox: &Sandbox) -> Result<()> {
    let pools = limits::MAX_TABLES as u16 / 3;
    let members = (limits::MAX_MEMBERS / 3 / u32::from(pools)) as u16;
    let mut world = World::new(sandbox, "churn")?;
    for round in 0..5_u16 {
        world.configuration = many(pools, members, 131, 3 * (round % 2));
        world.apply()?;
        if round == 3 {
            world.restart()?;
        }
    }
    model::check(&world)?;
    world.configuration = Configuration::default();
    let applied = world.apply()?;
    ensure!(applied.pools_removed == usize::from(pools), "{applied:?}");
    ensure!(world.reconciler().named() == Named::default());
    ensure!(world.reconciler().maps().present_tables()?.is_empty());
    model::check(&world)
}

pub(crate) fn few_grace_periods(sandbox: &Sandbox) -> Result<()> {
    let mut world = World::new(sandbox, "grace")?;
    // Removed elements of an array of maps wait one by one: that is what must not happen.
    let mut grace = Duration::MAX;
    let single = world.plan()?;
    ensure!(world.reconciler().apply(&single)? == Applied::default());
    for _ in 0..3 {
        world.configuration = many(1, 2, 7, 0);
        world.apply()?;
        world.configuration = Configuration::default();
        let start = Instant::now();
        world.apply()?;
        grace = grace.min(start.elapsed());
    }
    world.configuration = many(1000, 3, 7, 0);
    let start = Instant::now();
    world.apply()?;
    let added = start.elapsed();
    world.configuration = Configuration::default();
    let start = Instant::now();
    world.apply()?;
    let removed = start.elapsed();
    model::check(&world)?;
    for (what, took) in [("adding", added), ("removing", removed)] {
        ensure!(
            took < 200 * grace,
            "{what} 1000 services took {took:?}; removing one, a grace period, takes {grace:?}"
        );
    }
    Ok(())
}

pub(crate) fn what_does_not_fit(sandbox: &Sandbox) -> Result<()> {
    let mut world = World::new(sandbox, "full")?;
    world.configuration = many(3, 5, 7, 0);
    world.apply()?;
    let kept = world.configuration.clone();
    let checksum = world.reconciler().checksum()?;
    // More tables than there are.
    world.configuration = many(limits::MAX_TABLES as u16 - 1, 1, 7, 100);
    let ids = world.ids.clone();
    let plan = world.plan()?;
    let refused = world.reconciler().check(&plan).unwrap_err();
    ensure!(matches!(refused, ReconcileError::Full(_)), "{refused}");
    ensure!(
        refused.to_string()
            == "tables of other sizes: 1 more are needed in one piece, the largest free one has 0"
    );
    ensure!(world.reconciler().apply(&plan).unwrap_err().to_string() == refused.to_string());
    (world.configuration, world.ids) = (kept, ids);
    ensure!(world.reconciler().checksum()? == checksum);
    model::check(&world)?;
    ensure!(world.apply()? == Applied::default());
    model::check(&world)
}

pub(crate) fn taken_number(sandbox: &Sandbox) -> Result<()> {
    let mut world = World::new(sandbox, "taken")?;
    world.configuration = many(1, 2, 7, 0);
    world.apply()?;
    world.set_state(&name("pool0"), [10, 1, 0, 0].into(), MemberState::Up);
    // A store that forgot the numbers gives them out again.
    let other = many(1, 2, 7, 50);
    let forgot = Ids::default().next(&other, &Default::default(), Instant::now())?;
    let plan = plan::build(&other, None, &forgot, OWN_KEY, Sources::default(), &BTreeMap::new())?;
    let refused = world.reconciler().apply(&plan).unwrap_err().to_string();
    ensure!(
        refused == "backend 10.1.0.50: its number 1 belongs to 10.1.0.0, which the maps still name",
        "{refused}"
    );
    model::check(&world)?;
    // One that asks the maps first does not.
    let named = world.reconciler().named();
    ensure!(named.backends == [(1, 0), (2, 0)].into());
    world.ids = Ids::reserving(&named);
    world.configuration = other;
    world.states.clear();
    world.apply()?;
    model::check(&world)
}
