//! How long it takes, and what it costs, until the failure of all backends is in the maps.
//!
//! Here the failures are real ([`injected`] has those that are known at once): the one server of all backends closes
//! its port, and each backend's next check is refused. These checks are spread over an interval, so the last failure is
//! known no earlier than an interval after the first one, however fast the daemon is. `beyond interval` is what the
//! daemon adds; its CPU time shows better whether the work grows with the number of backends.
//!
//! What comes at once is the opposite: the daemon makes the first checks of new backends as fast as it can. `all up after
//! the apply` and its CPU time are of that, with the apply's own CPU time and that of the checks.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lb_maps::PinnedMaps;

use lb_tests::process::{pause, until};
use lb_tests::sandbox::Sandbox;

use super::Plan;
use super::backends::Crowd;
use super::configuration::{check, checked};
use super::daemon::{Daemon, PATIENCE, Room};
use super::figures::Row;
use super::injected;
use super::words::Members;

const PORT: u16 = 8_081;
/// Backends of a pool.
pub(super) const PER_POOL: u32 = 100;
/// From one look at all members to the next.
pub(super) const LOOK: Duration = Duration::from_millis(1);
/// What the daemon may still do after the last change.
const AFTERWARDS: Duration = Duration::from_secs(1);

/// Measures a tenth, three tenths, and all of the backends: first with real failures, then with failures at once.
///
/// # Errors
/// A part that does not start, or failures that do not get into the maps.
pub(crate) fn measure(sandbox: &Sandbox, plan: &Plan) -> Result<Vec<Row>> {
    let interval = Duration::from_secs(if plan.quick { 1 } else { 5 });
    let sizes = [plan.storm / 10, plan.storm * 3 / 10, plan.storm];
    let real = sizes.into_iter().map(|backends| storm(sandbox, backends, interval));
    let at_once = sizes.into_iter().map(|backends| injected::measure(sandbox, backends));
    real.chain(at_once).collect()
}

fn storm(sandbox: &Sandbox, backends: u32, interval: Duration) -> Result<Row> {
    eprintln!("control: storm of {backends} backends");
    let pools = backends.div_ceil(PER_POOL);
    let daemon = Daemon::started(sandbox, &format!("storm-{backends}"), Room { pools, backends })?;
    let servers = Crowd::start(&daemon.network.backends, PORT, false)?;
    let client = daemon.client()?;
    let configuration = checked(backends, PER_POOL, check(false, PORT, interval)?);
    let cpu = daemon.cpu()?;
    client.apply(&configuration, false)?;
    let applied = Instant::now();
    let maps = PinnedMaps::open(&daemon.bpffs)?;
    let mut members = Vec::new();
    for number in 0..pools {
        members.push(Members::find(&maps, u16::try_from(number + 1)?)?);
    }
    let mut count_up = || members.iter_mut().map(Members::count_up).sum::<usize>() as u32;
    until("all backends are up", PATIENCE, || Ok((count_up() == backends).then_some(())))?;
    let (come_up, cpu_up) = (applied.elapsed(), daemon.cpu()? - cpu);

    // First checks are made at once. The second ones are spread.
    pause(interval * 2);
    let (begin, cpu) = (Instant::now(), daemon.cpu()?);
    pause(interval);
    let checks = (daemon.cpu()? - cpu).as_secs_f64() / begin.elapsed().as_secs_f64();
    ensure!(count_up() == backends, "backends fail before the storm");

    let (begin, cpu) = (Instant::now(), daemon.cpu()?);
    drop(servers);
    let mut first = None;
    let last = loop {
        let up = count_up();
        let now = begin.elapsed();
        if up < backends {
            first.get_or_insert(now);
        }
        if up == 0 {
            break now;
        }
        ensure!(now < PATIENCE, "{up} of {backends} are still up after {now:?}");
        std::thread::park_timeout(LOOK);
    };
    let first = first.unwrap_or(last);
    pause(AFTERWARDS);
    let cpu = (daemon.cpu()? - cpu).as_secs_f64();
    let above_checks = (cpu - checks * begin.elapsed().as_secs_f64()).max(0.0);
    let each = Duration::from_secs_f64(above_checks * 1e3 / f64::from(backends));
    Ok(Row::new(format!("storm, {backends} backends"))
        .ms("all up after the apply", come_up)
        .seconds("cpu for that", cpu_up.as_secs_f64())
        .seconds("interval", interval.as_secs_f64())
        .ms("first", first)
        .ms("last", last)
        .ms("beyond interval", last.saturating_sub(interval))
        .seconds("cpu", cpu)
        .seconds("cpu above checks", above_checks)
        .ms("cpu above checks each thousand", each))
}
