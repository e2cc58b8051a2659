//! The greatest sizes: the highest numbers are published like any others, and the maps hold two generations.

use anyhow::{Context as _, Result, ensure};
use lb_common::abi::{
    member::{Accepts, MemberWord},
    sizes::Size,
};
use lb_control::{publisher::PacketPath as _, reconcile::ReconcileError};
use lb_maps::SizeSettings;
use lb_model::ids::{Ids, Named};
use lb_tests::sandbox::Sandbox;

use crate::reconcile::{
    bulk::many,
    fake_daemon::{FakeDaemon, hop, interfaces},
    model,
    random::name,
};

fn greatest(sandbox: &Sandbox, directory: &str) -> Result<FakeDaemon> {
    let tables = [Size::Displaced, Size::UdpFlows];
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

pub(crate) fn two_generations(sandbox: &Sandbox) -> Result<()> {
    let mut daemon = greatest(sandbox, "generations")?;
    let members = |first| many(2_000, 200, 211, first);
    daemon.configuration = members(0);
    daemon.change()?;
    daemon.configuration = members(3_000);
    daemon.change()?;
    let maps = daemon.read()?;
    ensure!(maps.sizes().members() == 800_000);
    ensure!(maps.member(799_999).is_some_and(|word| MemberWord::backend(word) != 0), "not in use");
    // A third version of one pool.
    let (kept, ids) = (daemon.configuration.clone(), daemon.ids.clone());
    let pool = daemon.configuration.pool_mut(&name("pool7")).context("no such pool")?;
    pool.backends.values_mut().next().context("no backend")?.weight = 2;
    let plan = daemon.plan()?;
    let refused = daemon.reconciler().check(&plan).unwrap_err();
    ensure!(matches!(refused, ReconcileError::Settling { pools: 2_000, .. }), "{refused}");
    let said = "backends in pools: 200 contiguous entries are needed, the largest free range has 0; the setting \
                `pool-backends` sizes the map; 2000 pools are still in a remap and free entries when their settle \
                time is over";
    ensure!(refused.to_string() == said, "{refused}");
    (daemon.configuration, daemon.ids) = (kept, ids);
    daemon.forget()?;
    daemon.reconciler().check(&plan)?;
    Ok(())
}
