//! How the time to change one object grows with the configuration around it.

use anyhow::{Context as _, Result};

use lb_tests::sandbox::Sandbox;

use super::Plan;
use super::calls::change_weights;
use super::configuration::{Edit, Fleet};
use super::daemon::{Daemon, Room};
use super::figures::Row;

/// Backends of a pool where the number of pools grows.
const BACKENDS: u32 = 10;

/// Measures one size after the other, each with a daemon of its own.
///
/// # Errors
/// A daemon that does not start, or a call that is refused.
pub(crate) fn measure(sandbox: &Sandbox, plan: &Plan) -> Result<Vec<Row>> {
    sizes(plan).into_iter().map(|fleet| one_size(sandbox, plan, fleet)).collect()
}

fn sizes(plan: &Plan) -> Vec<Fleet> {
    let (pools, backends): (&[u32], &[u32]) = match (plan.quick, plan.long) {
        (true, false) => (&[10, 100], &[3, 100, 1_000]),
        (_, false) => (&[10, 100, 1_000], &[3, 10, 100, 1_000, 10_000]),
        (_, true) => (&[10, 100, 1_000, 10_000], &[3, 10, 100, 1_000, 10_000]),
    };
    let many_pools = pools.iter().map(|&pools| Fleet { pools, backends: BACKENDS });
    let one_pool = backends.iter().map(|&backends| Fleet { pools: 1, backends });
    many_pools.chain(one_pool).collect()
}

fn one_size(sandbox: &Sandbox, plan: &Plan, fleet: Fleet) -> Result<Row> {
    let Fleet { pools, backends } = fleet;
    let what = if pools == 1 { "pool" } else { "pools" };
    let case = format!("growth, one weight: {pools} {what} of {backends}");
    eprintln!("control: {case}");
    let name = format!("growth-{pools}-{backends}");
    let daemon = Daemon::started(sandbox, &name, Room::for_fleet(fleet))?;
    let client = daemon.client()?;
    let (_, apply) = client.apply(&fleet.configuration(Edit::Nothing), false).context(name)?;
    let changes = if plan.quick { 5 } else { 10 };
    let begin = daemon.cpu()?;
    let times = change_weights(&client, pools / 2, changes, plan.repeat_time() / 2)?;
    let cpu = (daemon.cpu()? - begin) / u32::try_from(times.len())?;
    Ok(Row::new(case)
        .ms("p50", times.quantile(500))
        .ms("worst", times.quantile(1000))
        .count("samples", times.len() as u64)
        .ms("cpu each", cpu)
        .ms("apply to nothing", apply))
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;

    #[test]
    fn ten_thousand_pools_are_measured_where_they_are_asked_for() {
        let largest = |long| {
            let options = Options { long, ..Options::default() };
            sizes(&Plan::new(&options, false, false)).iter().map(|fleet| fleet.pools).max()
        };
        assert_eq!([false, true].map(largest), [Some(1_000), Some(10_000)]);
    }
}
