//! Thousands of objects are published with few grace periods, leak nothing, and change nothing where they do not fit.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use anyhow::{Result, ensure};
use lb_common::abi::{member::Accepts, sizes::MapSizes};
use lb_e2e::harness::note;
use lb_model::{
    AdminState, Affinity, Backend, Configuration, Fragments, Pool, Ports, Protocol, Region,
    Service, WhenFull,
    ids::{Ids, Named},
    plan::{self, PlanInputs},
};
use lb_publish::{
    publisher::PacketPath as _,
    reconcile::{ApplySummary, ReconcileError},
};
use lb_tests::sandbox::Sandbox;
use nix::sys::resource::{UsageWho, getrusage};

use crate::reconcile::{
    fake_daemon::{FakeDaemon, OWN_KEY},
    model,
    random::name,
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
                admin_state: AdminState::Active,
                mtu: None,
                max_connection_rate: None,
            };
            pool.backends.insert([10, 1, high, low].into(), backend);
        }
        configuration.pools.insert(name(&format!("pool{n}")), pool.into());
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

/// Each round takes a third of the members, and of the first chunk of tables: what is not given back fills the former in
/// the fourth round, and takes another chunk. What a restart forgot to take would be written over by the last round.
pub(crate) fn churn_leaks_nothing(sandbox: &Sandbox) -> Result<()> {
    let pools = 1_365;
    let members = (MapSizes::DEFAULT.members() / 3 / u32::from(pools)) as u16;
    let mut daemon = FakeDaemon::new(sandbox, "churn")?;
    for round in 0..5_u16 {
        daemon.configuration = many(pools, members, 131, 3 * (round % 2));
        daemon.apply()?;
        if round == 3 {
            daemon.restart()?;
        }
    }
    model::check(&daemon)?;
    ensure!(*daemon.reconciler().maps().chunks() == BTreeSet::from([0]));
    daemon.configuration = Configuration::default();
    let applied = daemon.apply()?;
    ensure!(applied.pools_removed == usize::from(pools), "{applied:?}");
    ensure!(daemon.reconciler().named() == Named::default());
    model::check(&daemon)
}

/// How often this process waits for something, such as a grace period, while it does something. Having to wait for a CPU
/// does not count.
pub(crate) fn waits<T>(act: impl FnOnce() -> Result<T>) -> Result<(T, u64)> {
    let count =
        || Ok::<_, nix::Error>(getrusage(UsageWho::RUSAGE_SELF)?.voluntary_context_switches());
    let before = count()?;
    let done = act()?;
    Ok((done, u64::try_from(count()? - before)?))
}

pub(crate) fn few_grace_periods(sandbox: &Sandbox) -> Result<()> {
    let mut daemon = FakeDaemon::new(sandbox, "grace")?;
    // Elements of an array of maps that are set or removed wait one by one: that is what must not happen.
    let single = daemon.plan()?;
    ensure!(daemon.publish(&single)? == ApplySummary::default());
    let mut apply = |configuration| -> Result<u64> {
        daemon.configuration = configuration;
        Ok(waits(|| daemon.apply())?.1)
    };
    let few = [apply(many(1, 2, 7, 0))?, apply(Configuration::default())?];
    let added = apply(many(1000, 3, 7, 0))?;
    let removed = apply(Configuration::default())?;
    model::check(&daemon)?;
    note(format!(
        "waits for 1000 services: {added} to add and {removed} to remove; for one: {few:?}"
    ));
    ensure!(few[1] > 0, "no grace period is waited for before memory is used again");
    for (what, waits) in [("adding", added), ("removing", removed)] {
        ensure!(waits < 1000 / 5, "{what} 1000 services waits {waits} times");
    }
    Ok(())
}

pub(crate) fn what_does_not_fit(sandbox: &Sandbox) -> Result<()> {
    let mut daemon = FakeDaemon::new(sandbox, "full")?;
    daemon.configuration = many(3, 5, 7, 0);
    daemon.apply()?;
    let kept = daemon.configuration.clone();
    let checksum = daemon.checksum()?;
    // More members than there is room for beside the 15: 511 groups of 128, and 113 more.
    daemon.configuration = many(512, 128, 131, 100);
    let ids = daemon.ids.clone();
    let plan = daemon.plan()?;
    let refused = daemon.reconciler().check(&plan).unwrap_err();
    ensure!(matches!(refused, ReconcileError::Full(_)), "{refused}");
    ensure!(
        refused.to_string()
            == "backends in pools: 128 contiguous entries are needed, the largest free range has 113; \
                the setting `pool-backends` sizes the map"
    );
    ensure!(daemon.publish(&plan).unwrap_err().to_string() == refused.to_string());
    (daemon.configuration, daemon.ids) = (kept, ids);
    ensure!(daemon.checksum()? == checksum);
    model::check(&daemon)?;
    ensure!(daemon.apply()? == ApplySummary::default());
    model::check(&daemon)
}

pub(crate) fn taken_number(sandbox: &Sandbox) -> Result<()> {
    let mut daemon = FakeDaemon::new(sandbox, "taken")?;
    daemon.configuration = many(1, 2, 7, 0);
    daemon.apply()?;
    daemon.set_state(&name("pool0"), [10, 1, 0, 0].into(), Accepts::All);
    // A store that forgot the numbers gives them out again.
    let other = many(1, 2, 7, 50);
    let forgot = Ids::default().next(
        None,
        &other,
        &MapSizes::DEFAULT,
        &Default::default(),
        Instant::now(),
    )?;
    let inputs = PlanInputs {
        configuration: &other,
        own: None,
        ids: &forgot,
        hash_key: OWN_KEY,
        source_prefix: None,
        out: &BTreeMap::new(),
    };
    let plan = plan::build(&inputs, None)?;
    let refused = daemon.publish(&plan).unwrap_err().to_string();
    ensure!(
        refused == "backend 10.1.0.50: its number 1 is in use by 10.1.0.0 in the maps",
        "{refused}"
    );
    model::check(&daemon)?;
    // One that asks the maps first does not.
    let named = daemon.reconciler().named();
    ensure!(named.backends == [(1, 0), (2, 0)].into());
    daemon.ids = Ids::reserving(&named);
    daemon.configuration = other;
    daemon.states.clear();
    daemon.apply()?;
    model::check(&daemon)
}
