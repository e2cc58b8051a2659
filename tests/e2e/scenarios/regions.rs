//! While a region is full, `spillway regions` and `spillway explain` say where connections then go.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, Health, Tunnel, configuration};
use lb_e2e::harness::Case;
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::traffic::Stream;
use serde_json::{Value, json};

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
fn regions(fixture: &Fixture, arguments: &[&str]) -> Result<(Value, Value, Value)> {
    let answer = fixture.balancer.ask(&[&["regions", "v4"], arguments].concat())?;
    let of = |at: usize| answer["pools"][0]["regions"][at].clone();
    let (eu, us) = (of(0), of(1));
    ensure!((&eu["region"], &us["region"]) == (&json!("eu"), &json!("us")), "{answer}");
    Ok((eu, us, answer))
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
        json!({ "offered": offered, "admitted": admitted, "overflow_in": overflow_in,
                "overflow_out": overflow_out, "refused": 0, "over_capacity": 0 })
    };
    ensure!(eu["totals"] == counted(all, near, 0, far), "{eu}");
    ensure!(us["totals"] == counted(far, far, far, 0), "{us}");
    ensure!((&eu["limit_per_second"], &us["limit_per_second"]) == (&json!(RATE), &json!(null)));
    ensure!(eu["capacity"]["configured_per_second"] == RATE, "{eu}");
    ensure!(eu["capacity"]["backends_up"] == 3 && us["capacity"]["per_second"] == json!(null));
    ensure!(answer["daemon"] == json!(null), "{answer}");

    // A question takes longer than the region takes for room for one more: it is asked while more come.
    let vip = Tunnel::Ipip.endpoint(ECHO).to_string();
    until("explain finds the region full", PATIENCE, || {
        let explained = while_busy(&fixture, || {
            fixture.balancer.ask(&["explain", "198.51.100.9:41000", &vip])
        })?;
        let why = explained["why"].as_str().context("no reason")?;
        let full = explained["regions"][0]["outcome"] == "full";
        ensure!(full == why.starts_with("region eu is full; "), "{explained}");
        ensure!(!full || explained["choice"]["region"] == "us", "{explained}");
        Ok(full.then_some(()))
    })?;

    let (eu, us, answer) = while_busy(&fixture, || regions(&fixture, &[]))?;
    let rate = |region: &Value, what: &str| region["per_second"][what].as_f64().unwrap_or(-1.0);
    ensure!(answer["interval_seconds"].as_f64().is_some_and(|seconds| seconds >= 1.0), "{answer}");
    ensure!(rate(&eu, "overflow_out") > 0.0 && rate(&us, "overflow_in") > 0.0, "{answer}");
    let admitted = rate(&eu, "admitted");
    ensure!(admitted > 0.0 && admitted <= RATE + BURST, "{answer}");
    let used = eu["utilisation"].as_f64().context("no utilisation")?;
    ensure!((used - admitted / RATE).abs() < 1e-9, "{answer}");
    // No backend says what it takes.
    ensure!(eu["missing_backends"] == json!(null) && us["missing_backends"] == 0, "{answer}");
    // The daemon dead: what the maps say is said, what only it knows is not.
    fixture.balancer.kill()?;
    let (dead, _, answer) = regions(&fixture, &["--totals"])?;
    ensure!(dead["totals"]["overflow_out"].as_u64() >= eu["totals"]["overflow_out"].as_u64());
    ensure!((&dead["limit_per_second"], &dead["capacity"]) == (&json!(RATE), &json!(null)));
    ensure!(answer["daemon"].is_string() && answer["balancers"] == json!(null), "{answer}");
    Ok(())
}
