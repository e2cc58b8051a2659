//! The greatest sizes: the highest numbers are published like any others. Whatever the sizes, the maps hold two
//! generations of the largest configuration that they allow.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use lb_common::abi::{
    member::Accepts,
    sizes::{MapSizes, Size},
};
use lb_maps::SizeSettings;
use lb_model::{
    Configuration, Rate,
    ids::{Ids, Named},
    room::{self, TooMany},
};
use lb_publish::{publisher::PacketPath as _, reconcile::ReconcileError};
use lb_tests::{sample::Sample, sandbox::Sandbox};

use crate::reconcile::{
    bulk::many,
    fake_daemon::{FakeDaemon, hop, interfaces},
    model,
    random::name,
};

fn greatest(sandbox: &Sandbox, directory: &str) -> Result<FakeDaemon> {
    let tables = [Size::Flows];
    let sizes = Size::ALL.into_iter().filter(|size| !tables.contains(size));
    let sizes: SizeSettings = sizes.map(|size| (size, size.most())).collect();
    FakeDaemon::with_sizes(sandbox, directory, sizes)
}

pub(crate) fn highest_numbers(sandbox: &Sandbox) -> Result<()> {
    let [interface, _] = interfaces("h")?;
    let mut daemon = greatest(sandbox, "highest")?;
    daemon.configuration = many(2, 3, 7, 0);
    // Two pools and services, and four backends, get the last numbers.
    daemon.ids = Ids::reserving(&Named {
        backends: (1..=199_996).map(|index| (index, 0)).collect(),
        services: (1..=9_998).collect(),
        pools: (1..=9_998).collect(),
        ..Named::default()
    });
    daemon.apply()?;
    for (pool, address) in daemon.states.keys().cloned().collect::<Vec<_>>() {
        daemon.set_state(&pool, address, Accepts::All);
        daemon.set_next_hop(address, Some(hop(interface, 1, 0)))?;
    }
    model::check(&daemon)?;
    let numbers = ["pool0", "pool1"].map(|pool| daemon.ids.pool(&name(pool)));
    ensure!(numbers == [Some(9_999), Some(10_000)], "{numbers:?}");
    let maps = daemon.read()?;
    let members = maps.pool_members(10_000)?.context("not published")?;
    let backends: Vec<_> = members.backends.keys().copied().collect();
    ensure!(backends.iter().max() == Some(&200_000), "{backends:?}");
    let (state, backend) = (maps.backend_state(200_000), maps.backend(200_000));
    ensure!(state.pool() == 10_000 && backend.is_some_and(|it| it.version == 4), "{state:?}");
    ensure!(maps.backend_traffic(200_000)?.packets == 0);
    daemon.restart()?;
    model::check(&daemon)
}

/// Members of each pool.
const MEMBERS: u16 = 200;

/// As many pools as the sizes allow, all of whose members have limits.
fn largest(sizes: &MapSizes, first: u16) -> Configuration {
    let pools = sizes.get(Size::PoolBackends) / u32::from(MEMBERS);
    let mut configuration = many(pools as u16, MEMBERS, 211, first);
    for pool in configuration.pools.values_mut() {
        for backend in Arc::make_mut(pool).backends.values_mut() {
            backend.max_connection_rate = Rate::new(10.0);
        }
    }
    configuration
}

/// The sizes of a plain run allow exactly that configuration, those of a long one are the greatest.
pub(crate) fn two_generations(sandbox: &Sandbox) -> Result<()> {
    let is_long = Sample::from_environment().is_everything();
    let pools: u32 = if is_long { 2_000 } else { 20 };
    let members = pools * u32::from(MEMBERS);
    let mut daemon = if is_long {
        greatest(sandbox, "generations")?
    } else {
        let objects = [Size::Services, Size::Ports, Size::Pools, Size::Groups];
        let members = [Size::PoolBackends, Size::LimitedBackends].map(|size| (size, members));
        let sizes = objects.map(|size| (size, pools)).into_iter().chain(members).collect();
        FakeDaemon::with_sizes(sandbox, "generations", sizes)?
    };
    let sizes = daemon.read()?.sizes();
    daemon.configuration = largest(&sizes, 0);
    room::fits(&daemon.configuration, &sizes)?;
    daemon.change()?;
    daemon.configuration = largest(&sizes, 3_000);
    daemon.change()?;
    let maps = daemon.read()?;
    ensure!(maps.sizes().members() == 2 * members, "{:?}", maps.sizes());
    ensure!(maps.member(2 * members - 1).is_some_and(|word| word.backend() != 0), "not in use");
    ensure!(daemon.configuration.pools.len() == pools as usize);
    // A third version of one pool.
    let (kept, ids) = (daemon.configuration.clone(), daemon.ids.clone());
    let pool = daemon.configuration.pool_mut(&name("pool7")).context("no such pool")?;
    pool.backends.values_mut().next().context("no backend")?.weight = 2;
    let plan = daemon.plan()?;
    let refused = daemon.reconciler().check(&plan).unwrap_err();
    let is_settling = matches!(refused, ReconcileError::Settling { pools: settling, .. } if settling == pools as usize);
    ensure!(is_settling, "{refused}");
    let said = format!(
        "backends in pools: 200 contiguous entries are needed, the largest free range has 0; the setting \
         `pool-backends` sizes the map; {pools} pools are still in a remap and free entries when their settle time is \
         over"
    );
    ensure!(refused.to_string() == said, "{refused}");
    (daemon.configuration, daemon.ids) = (kept, ids);
    daemon.forget()?;
    daemon.reconciler().check(&plan)?;
    // A member more is refused before it comes to the maps.
    let pool = daemon.configuration.pool_mut(&name("pool7")).context("no such pool")?;
    let (_, member) = pool.backends.first_key_value().context("no backend")?;
    let member = member.clone();
    pool.backends.insert([10, 2, 0, 1].into(), member);
    let refused = room::fits(&daemon.configuration, &sizes).unwrap_err();
    let (size, number) = (Size::PoolBackends, members as usize + 1);
    ensure!(refused == TooMany::Objects { size, number, most: members }, "{refused}");
    Ok(())
}
