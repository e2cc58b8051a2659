//! What a pool's words say that its best member accepts is neither more nor less than that, once a change is done.

use std::net::IpAddr;

use anyhow::{Context as _, Result};
use lb_common::abi::member::Accepts;
use lb_model::{Isolation, Pool, Region};
use lb_tests::sandbox::Sandbox;

use crate::reconcile::{bulk::many, fake_daemon::FakeDaemon, model, random::name};

fn member(n: u8) -> IpAddr {
    [10, 1, 0, n].into()
}

fn pool(daemon: &mut FakeDaemon) -> &mut Pool {
    daemon.configuration.pool_mut(&name("pool0")).unwrap()
}

/// A pool of four, all dead: the first two in `eu`, the others in `us`, which comes first.
fn two_regions(sandbox: &Sandbox, directory: &str) -> Result<FakeDaemon> {
    let mut daemon = FakeDaemon::new(sandbox, directory)?;
    daemon.configuration = many(1, 4, 31, 1);
    daemon.configuration.regions.insert(name("us"), Region::default());
    let pool = pool(&mut daemon);
    pool.preferred_regions = vec![name("us"), name("eu")];
    for n in [3, 4] {
        pool.backends.get_mut(&member(n)).unwrap().region = name("us");
    }
    daemon.apply()?;
    model::check(&daemon)?;
    Ok(daemon)
}

pub(crate) fn best_member(sandbox: &Sandbox) -> Result<()> {
    let mut daemon = two_regions(sandbox, "best")?;
    let set = |daemon: &mut FakeDaemon, n, state| {
        daemon.set_state(&name("pool0"), member(n), state);
        model::check(daemon).with_context(|| format!("member {n} accepts {state:?}"))
    };
    set(&mut daemon, 1, Accepts::OpenOnly)?;
    set(&mut daemon, 3, Accepts::All)?;
    set(&mut daemon, 1, Accepts::Nothing)?;

    // The region that is left out has the best member. Its members stay in the pool, but lose their words with the remap.
    pool(&mut daemon).preferred_regions = vec![name("eu")];
    pool(&mut daemon).isolation = Isolation::Strict;
    daemon.change()?;
    model::check(&daemon).context("during the remap")?;
    daemon.forget()?;
    model::check(&daemon).context("after the remap")?;

    // No search finds a member without a word, so it is no reason for one.
    set(&mut daemon, 4, Accepts::OpenOnly)?;
    set(&mut daemon, 4, Accepts::All)?;
    daemon.set_last_resort(&name("pool0"), member(4), true);
    model::check(&daemon).context("a last resort without a word")?;
    set(&mut daemon, 2, Accepts::OpenOnly)?;
    set(&mut daemon, 2, Accepts::All)?;
    set(&mut daemon, 2, Accepts::Nothing)
}
