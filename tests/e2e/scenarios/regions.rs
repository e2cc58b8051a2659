//! While a region is full, `spillway regions` and `spillway explain` say where connections then go.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, Health, Tunnel, configuration};
use lb_e2e::harness::Case;
use lb_tests::daemon::printed::{Connections, RegionRow, Regions};
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::traffic::Stream;

/// New connections a second that the near region takes, and how many at once after a pause.
const RATE: f64 = 5.0;
const BURST: f64 = 10.0;

pub(crate) const CASES: &[Case] =
    &[Case::waits("regions_show_the_overflow_and_explain_says_why", spill)];

/// Names of who answers so many new connections, one after the other.
fn open(fixture: &Fixture, number: u64) -> Result<Vec<String>> {
    let to = Tunnel::Ipip.endpoint(ECHO);
    let name = |seed| {
        let stream = Stream::open(&fixture.fabric.client, to, seed)?;
        Ok(stream.backend().to_owned())
    };
    (0..number).map(name).collect()
}

/// Asks something while new connections come, more than the near region takes.
fn while_busy<T: Send>(fixture: &Fixture, ask: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let asking = scope.spawn(ask);
        while !asking.is_finished() {
            open(fixture, 1)?;
        }
        asking.join().map_err(|_| anyhow::anyhow!("the question panicked"))?
    })
}

/// The two regions of the pool.
fn regions(fixture: &Fixture, arguments: &[&str]) -> Result<(RegionRow, RegionRow, Regions)> {
    let answer: Regions = fixture.balancer.printed(&[&["regions", "v4"], arguments].concat())?;
    let pool = answer.pools.first().context("no pool")?;
    let [eu, us] = &*pool.regions else { anyhow::bail!("{answer:?}") };
    ensure!((&*eu.region, &*us.region) == ("eu", "us"), "{answer:?}");
    Ok((eu.clone(), us.clone(), answer))
}

fn spill(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::idle(sandbox, "regions")?;
    let text = configuration(&fixture.fabric, Health::QUICK).text();
    let pool = "health_checks = [\"page\"]\n";
    let group = "[[pool.group]]\nregion = \"eu\"\ncapacity = \"5/s\"\n";
    fixture.balancer.apply(&text.replacen(pool, &format!("{pool}{group}"), 1))?;
    fixture.wait_up(&[])?;

    // However slowly they come, there are more of them than the region takes, if only for a moment.
    let (begun, mut names) = (Instant::now(), Vec::new());
    until("some go far", PATIENCE, || {
        names.extend(open(&fixture, 30)?);
        Ok(names.iter().any(|name| name.starts_with("us")).then_some(()))
    })?;
    let most = BURST + RATE * begun.elapsed().as_secs_f64();
    let (all, near) = (names.len(), names.iter().filter(|name| name.starts_with("eu")).count());
    ensure!(near as f64 <= most, "{near} of {all} near in {:?}", begun.elapsed());
    let far = all - near;
    let (eu, us, answer) = regions(&fixture, &["--totals"])?;
    let counted = |offered, admitted, overflow_in, overflow_out| {
        let [offered, admitted, overflow_in, overflow_out] =
            [offered, admitted, overflow_in, overflow_out].map(|number: usize| number as u64);
        let (refused, over_capacity) = (0, 0);
        Connections { offered, admitted, overflow_in, overflow_out, refused, over_capacity }
    };
    ensure!(eu.totals == counted(all, near, 0, far), "{eu:?}");
    ensure!(us.totals == counted(far, far, far, 0), "{us:?}");
    ensure!((eu.limit_per_second, us.limit_per_second) == (Some(RATE), None));
    let [capacity, of_us] = [&eu, &us].map(|it| it.capacity.as_ref());
    let (capacity, of_us) = (capacity.context("no capacity")?, of_us.context("no capacity")?);
    ensure!(capacity.configured_per_second == Some(RATE), "{eu:?}");
    ensure!(capacity.backends_up == 3 && of_us.per_second.is_none(), "{answer:?}");
    ensure!(answer.daemon.is_none(), "{answer:?}");

    // A question takes longer than the region takes for room for one more: it is asked while more come.
    let (from, to) = ("198.51.100.9:41000".parse()?, Tunnel::Ipip.endpoint(ECHO));
    until("explain finds the region full", PATIENCE, || {
        let explained = while_busy(&fixture, || fixture.balancer.explain(from, to, "tcp"))?;
        let full = explained.regions.first().is_some_and(|it| it.outcome == "full");
        ensure!(full == explained.why.starts_with("region eu is full; "), "{explained:?}");
        let region = explained.choice.as_ref().and_then(|it| it.region.as_deref());
        ensure!(!full || region == Some("us"), "{explained:?}");
        Ok(full.then_some(()))
    })?;

    let (eu, us, answer) = while_busy(&fixture, || regions(&fixture, &[]))?;
    ensure!(answer.interval_seconds.is_some_and(|seconds| seconds >= 1.0), "{answer:?}");
    let (of_eu, of_us) = (eu.per_second.context("no rates")?, us.per_second.context("no rates")?);
    ensure!(of_eu.overflow_out > 0.0 && of_us.overflow_in > 0.0, "{answer:?}");
    let admitted = of_eu.admitted;
    ensure!(admitted > 0.0 && admitted <= RATE + BURST, "{answer:?}");
    let used = eu.utilisation.context("no utilisation")?;
    ensure!((used - admitted / RATE).abs() < 1e-9, "{answer:?}");
    // No backend says what it takes.
    ensure!((eu.missing_backends, us.missing_backends) == (None, Some(0)), "{answer:?}");
    // The daemon dead: what the maps say is said, what only it knows is not.
    fixture.balancer.kill()?;
    let (dead, _, answer) = regions(&fixture, &["--totals"])?;
    ensure!(dead.totals.overflow_out >= eu.totals.overflow_out);
    ensure!(dead.limit_per_second == Some(RATE) && dead.capacity.is_none(), "{dead:?}");
    ensure!(answer.daemon.is_some() && answer.balancers.is_none(), "{answer:?}");
    Ok(())
}
