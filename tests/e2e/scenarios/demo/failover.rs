//! The failover experiment, shortened: its report says what its clients saw.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::harness::note;
use lb_tests::sandbox::Sandbox;
use serde_json::Value;

use crate::demo::run::{play, tidy};

/// At this scale a machine that stands still for seconds spoils it, so one of two runs must hold.
pub(crate) fn the_silent_host_holds_up_nginx_alone(_: &Sandbox) -> Result<()> {
    let Err(first) = holds_up() else { return Ok(()) };
    holds_up().with_context(|| format!("the run before failed too: {first:#}"))
}

fn holds_up() -> Result<()> {
    let words = ["failover", "--scale", "0.1", "--requests", "20"];
    let (report, results) = play("failover", &words)?;
    // A tenth of nginx's 60 s.
    let nginx = times(&report["nginx"], 20)?;
    let longest = nginx.iter().copied().fold(0.0, f64::max);
    ensure!(longest >= 6.0, "nginx: {nginx:?}");
    let waited = nginx.iter().filter(|seconds| **seconds >= 6.0).count() as u64;
    ensure!(report["nginx"]["waited"] == waited && waited >= 1, "{waited} waited: {report}");
    // Checks of 100 ms, three of which fail; then the SYN that is repeated after a second.
    let spillway = times(&report["spillway"], 20)?;
    ensure!(spillway.iter().all(|seconds| *seconds < longest / 2.0), "Spillway: {spillway:?}");
    let detection = report["detection_seconds"].as_f64().context("no detection")?;
    ensure!((0.1..longest / 2.0).contains(&detection), "detected after {detection} s");
    note(format!(
        "failover at a tenth: detected after {detection:.2} s; Spillway {spillway:?}, nginx {nginx:?}"
    ));
    let picture = fs::read_to_string(results.join("histogram.svg"))?;
    ensure!(picture.contains(">Spillway</text>") && picture.contains(">3–10 s</text>"));
    tidy(&results)
}

/// What curl measured of each request; all were answered, and after the switch-off not by the victim.
fn times(way: &Value, count: usize) -> Result<Vec<f64>> {
    let requests = way["requests"].as_array().context("no requests")?;
    ensure!(requests.len() == count, "{} requests", requests.len());
    for request in requests {
        let after = request["since_switch_off"].as_f64().context("no time")? >= 0.0;
        ensure!(request["status"] == 200 && !(after && request["page"] == "eu2"), "{request}");
    }
    requests.iter().map(|request| request["seconds"].as_f64().context("no seconds")).collect()
}
