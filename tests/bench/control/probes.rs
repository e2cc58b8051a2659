//! What many checks a second cost, and how late they begin.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use lb_maps::PinnedMaps;

use lb_tests::daemon::scrape;
use lb_tests::openmetrics::Exposition;
use lb_tests::process::{pause, until};
use lb_tests::sandbox::Sandbox;

use super::Plan;
use super::backends::Crowd;
use super::configuration::{check, checked};
use super::daemon::{Daemon, PATIENCE, Room};
use super::figures::Row;
use super::words::Members;

const PORT: u16 = 8_082;
/// From one check of a backend to the next: there are as many backends as checks a second.
const INTERVAL: Duration = Duration::from_secs(1);
/// Backends of a pool.
const PER_POOL: u32 = 100;

/// Measures TCP checks, then HTTP checks.
///
/// # Errors
/// A part that does not start, or backends that do not come up.
pub(crate) fn measure(sandbox: &Sandbox, plan: &Plan) -> Result<Vec<Row>> {
    [("tcp", false), ("http", true)]
        .into_iter()
        .map(|(name, is_http)| probe(sandbox, plan, name, is_http))
        .collect()
}

fn probe(sandbox: &Sandbox, plan: &Plan, name: &str, is_http: bool) -> Result<Row> {
    let case = format!("probes, {} {name} checks a second", plan.probes);
    eprintln!("control: {case}");
    let backends = plan.probes;
    let pools = backends.div_ceil(PER_POOL);
    let daemon = Daemon::started(sandbox, &format!("probes-{name}"), Room { pools, backends })?;
    let _servers = Crowd::start(&daemon.network.backends, PORT, is_http)?;
    let configuration = checked(backends, PER_POOL, check(is_http, PORT, INTERVAL)?);
    daemon.client()?.apply(&configuration, false)?;
    let maps = PinnedMaps::open(&daemon.bpffs)?;
    let mut members = Vec::new();
    for number in 0..pools {
        members.push(Members::find(&maps, u16::try_from(number + 1)?)?);
    }
    // A machine that is too slow for as many checks has some fail all the time: nine of ten will do.
    until("most backends are up", PATIENCE, || {
        let up = members.iter_mut().map(Members::count_up).sum::<usize>() as u32;
        Ok((up >= backends - backends / 10).then_some(()))
    })?;
    // First checks are made at once. The second ones are spread.
    pause(INTERVAL * 3);

    let node = &daemon.network.balancer;
    let before = scrape(node)?;
    let (begin, cpu) = (Instant::now(), daemon.cpu()?);
    pause(Duration::from_secs(if plan.quick { 3 } else { 10 }));
    let (cpu, time) = ((daemon.cpu()? - cpu).as_secs_f64(), begin.elapsed().as_secs_f64());
    let after = scrape(node)?;
    // Scrapes take a while themselves.
    let scraped = begin.elapsed().as_secs_f64();
    let made = |result| -> Result<f64> {
        let read = |of: &Exposition| of.value("spillway_probes_total", &[("result", result)]);
        Ok((read(&after).context("no probes")? - read(&before).context("no probes")?) / scraped)
    };
    let late = late(&before, &after)?;
    Ok(Row::new(case)
        .cores("cpu", cpu / time)
        .rate("passed", made("passed")?)
        .rate("failed", made("failed")?)
        .rate("not made", made("not_made")?)
        .ms("late p50 at most", bound(&late, 0.5))
        .ms("late p99 at most", bound(&late, 0.99))
        .ms("late p99.9 at most", bound(&late, 0.999)))
}

/// Buckets of the daemon's lateness of checks between two scrapes: bound in seconds, and number of all up to it.
fn late(before: &Exposition, after: &Exposition) -> Result<Vec<(f64, f64)>> {
    let buckets = |of: &Exposition| -> Result<Vec<(f64, f64)>> {
        let samples = of.samples("spillway_probe_lateness_seconds_bucket");
        let bucket = |labels: &lb_tests::openmetrics::Labels, count| {
            let bound = labels.get("le").context("no bound")?;
            Ok((if bound == "+Inf" { f64::INFINITY } else { bound.parse()? }, count))
        };
        samples.map(|(labels, count)| bucket(labels, count)).collect()
    };
    let mut late: Vec<_> = buckets(after)?
        .into_iter()
        .zip(buckets(before)?)
        .map(|((bound, after), (_, before))| (bound, after - before))
        .collect();
    late.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(late)
}

/// The bound of the first bucket with a share of all: the quantile is at most that. Beyond the last bound it is told as
/// an hour.
fn bound(buckets: &[(f64, f64)], share: f64) -> Duration {
    let all = buckets.last().map_or(0.0, |(_, count)| *count);
    let enough = buckets.iter().find(|(_, count)| *count >= all * share);
    let bound = enough.map_or(0.0, |(bound, _)| *bound);
    Duration::from_secs_f64(bound.min(3600.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exposition(counts: [u64; 3]) -> Exposition {
        let [a, b, all] = counts;
        let name = "spillway_probe_lateness_seconds";
        let text = format!(
            "# HELP {name} Late.\n# TYPE {name} histogram\n# UNIT {name} seconds\n\
             {name}_sum 1.0\n{name}_count {all}\n{name}_bucket{{le=\"0.001\"}} {a}\n\
             {name}_bucket{{le=\"0.002\"}} {b}\n{name}_bucket{{le=\"+Inf\"}} {all}\n# EOF\n"
        );
        Exposition::read(&text).unwrap()
    }

    #[test]
    fn lateness_is_that_of_the_time_between() {
        let late = late(&exposition([50, 50, 50]), &exposition([140, 149, 150])).unwrap();
        assert_eq!(late, [(0.001, 90.0), (0.002, 99.0), (f64::INFINITY, 100.0)]);
        let at = |share| bound(&late, share).as_micros();
        assert_eq!([at(0.5), at(0.9), at(0.99), at(1.0)], [1000, 1000, 2000, 3_600_000_000]);
    }
}
