//! What calls of the API take with a large configuration, what memory it takes, and a start with it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use spillway_proto::v1::Configuration;

use lb_tests::sandbox::Sandbox;

use super::Plan;
use super::configuration::{Edit, Fleet, host, pool_name};
use super::daemon::{Client, Daemon, Room};
use super::figures::{Row, Times};

/// Changes of one object.
const CHANGES: usize = 20;
/// Calls for the status.
const QUERIES: usize = 100;

/// Measures all of it, with one daemon.
///
/// # Errors
/// A daemon that does not start, or a call that is refused.
pub(crate) fn measure(sandbox: &Sandbox, plan: &Plan) -> Result<Vec<Row>> {
    eprintln!("control: calls");
    let fleet = Fleet { pools: plan.pools, backends: plan.backends };
    let mut daemon = Daemon::started(sandbox, "calls", Room::for_fleet(fleet))?;
    let client = daemon.client()?;
    let empty = daemon.memory("VmRSS")?;
    let [plain, more] = [Edit::Nothing, Edit::OneMore].map(|edit| fleet.configuration(edit));
    let size = format!("{} pools of {}", plan.pools, plan.backends);
    let call = |what: &str| Row::new(format!("calls, {size}: {what}"));

    let mut rows = Vec::new();
    for (what, configuration, dry_run) in [
        ("apply to nothing", &plain, false),
        ("dry run, nothing changes", &plain, true),
        ("dry run, a backend more in each pool", &more, true),
        ("apply, a backend more in each pool", &more, false),
        ("apply, nothing changes", &more, false),
    ] {
        eprintln!("control: {what}");
        let (_, time) = client.apply(configuration, dry_run)?;
        rows.push(call(what).ms("time", time));
    }
    eprintln!("control: one weight");
    let times = change_weights(&client, plan.pools / 2, CHANGES, 3 * plan.repeat_time())?;
    rows.push(call("one weight of one backend").times(&times));

    eprintln!("control: status");
    let idle = repeat(QUERIES, plan.repeat_time(), || Ok(client.status()?.1))?;
    rows.push(call("status, idle").times(&idle));
    let (busy, apply) = status_while_applying(&daemon, &client, &plain)?;
    rows.push(call("status while a backend goes from each pool").times(&busy).ms("apply", apply));

    let memory = call("memory of the daemon");
    let memory = memory.memory("resident", daemon.memory("VmRSS")?);
    let memory = memory.memory("peak resident", daemon.memory("VmHWM")?);
    rows.push(memory.memory("resident without configuration", empty));
    drop(client);

    eprintln!("control: start");
    daemon.stop()?;
    let start = call("start with it stored, to READY").ms("time", daemon.start()?);
    let (status, _) = daemon.client()?.status()?;
    ensure!(status.services.len() == fleet.pools as usize, "{} services", status.services.len());
    rows.push(start.memory("resident", daemon.memory("VmRSS")?));
    Ok(rows)
}

/// Changes the weight of one backend again and again: so often, unless that takes too long.
///
/// # Errors
/// A change that is refused.
pub(crate) fn change_weights(
    client: &Client,
    pool: u32,
    changes: usize,
    limit: Duration,
) -> Result<Times> {
    // In the first pools the first hosts are the pools' own.
    let address = (Fleet { pools: pool + 1, backends: 1 }).configuration(Edit::Nothing);
    let backend = address.pools.last().and_then(|pool| pool.backends.first());
    let address = backend.map_or_else(|| host(0).to_string(), |backend| backend.address.clone());
    let mut weights = [3, 4].into_iter().cycle();
    repeat(changes, limit, || {
        let weight = weights.next().context("weights")?;
        client.set_weight(&pool_name(pool), &address, weight)
    })
}

/// Calls so often, unless that takes too long; at least once.
fn repeat(
    times: usize,
    limit: Duration,
    mut call: impl FnMut() -> Result<Duration>,
) -> Result<Times> {
    let begin = Instant::now();
    let mut all = vec![call()?];
    while all.len() < times && begin.elapsed() < limit {
        all.push(call()?);
    }
    Ok(all.into_iter().collect())
}

/// Asks for the status as long as a change of the whole configuration takes, which is answered as well.
fn status_while_applying(
    daemon: &Daemon,
    client: &Client,
    configuration: &Configuration,
) -> Result<(Times, Duration)> {
    let other = daemon.client()?;
    std::thread::scope(|scope| {
        let applying = scope.spawn(move || other.apply(configuration, false));
        let mut times = Vec::new();
        while !applying.is_finished() {
            times.push(client.status()?.1);
        }
        let applied = applying.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((times.into_iter().collect(), applied?.1))
    })
}
