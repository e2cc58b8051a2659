//! The million experiment, shortened: its report adds up.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::harness::note;
use lb_tests::sandbox::Sandbox;
use serde_json::Value;

use crate::demo::run::{play, tidy};

pub(crate) fn each_request_has_one_backend(_: &Sandbox) -> Result<()> {
    let (report, results) = play("million", &["million", "--scale", "0.05"])?;
    let balancer = &report["balancer"];
    // Packets may be lost while the machine has other work, but none goes astray.
    let (requests, complete) = (number(&balancer["requests"])?, number(&balancer["complete"])?);
    ensure!(complete > requests / 10.0 && complete <= requests, "{balancer}");
    ensure!(balancer["at_two_backends"] == 0, "{balancer}");
    let by_backend = report["requests_by_backend"].as_array().context("no backends")?;
    let sum: f64 = by_backend.iter().map(number).sum::<Result<_>>()?;
    ensure!(by_backend.len() == 200 && sum == complete, "{sum} of {complete}");

    let moved = |stage: usize| -> Result<f64> {
        let stage = &report["stages"][stage];
        Ok(number(&stage["moved"])? / 131_072.0)
    };
    // Ten of 200, and as many back; 20 of 220, and what Maglev moves beside that.
    let (failing, returning, settled) = (moved(1)?, moved(2)?, moved(4)?);
    ensure!((0.045..0.055).contains(&failing), "{failing} of the flows moved");
    ensure!((0.045..0.055).contains(&returning), "{returning} of the flows moved back");
    ensure!((0.0909..0.12).contains(&settled), "{settled} of the flows moved to those added");
    note(format!(
        "a million requests, at a twentieth: {:.0} a second, {:.3} of the floor; first {:.0} ms, all {:.0} ms after apply",
        number(&balancer["requests_per_second"])?,
        number(&report["part_of_floor"])?,
        1e3 * number(&report["seconds_to_first_request"])?,
        1e3 * number(&report["seconds_to_all_backends"])?,
    ));
    ensure!(fs::read_to_string(results.join("shares.svg"))?.contains("20 are added"));
    tidy(&results)
}

fn number(value: &Value) -> Result<f64> {
    value.as_f64().with_context(|| format!("{value} is no number"))
}
