//! The overflow experiment, shortened: its report says what httperf and the servers' logs say, and that is what the
//! capacities promise.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;

use anyhow::{Context as _, Result, ensure};
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value;

use crate::demo::run::{nothing_left, out, pinned_by, play, start, tidy};

/// A second of the tutorial takes 50 ms: 500 connections a second at most.
const QUICK: f64 = 0.05;

/// A machine that stands still for 15 ms spoils a third of such a second, and one that shares its processors does so all
/// the time: the second run takes eight times as long.
const SLOW: f64 = 0.4;

fn words(scale: f64) -> Vec<String> {
    let scale = scale.to_string();
    let words = ["overflow", "--scale", &scale, "--requests", "300", "--rounds", "1"];
    words.map(str::to_owned).to_vec()
}

pub(crate) fn what_a_region_cannot_take_overflows(_: &Sandbox) -> Result<()> {
    let Err(first) = spill(QUICK) else { return Ok(()) };
    spill(SLOW).with_context(|| format!("the run before failed too: {first:#}"))
}

fn spill(scale: f64) -> Result<()> {
    let words = words(scale);
    let (report, results) =
        play("overflow", &words.iter().map(String::as_str).collect::<Vec<_>>())?;
    // What the first region takes, connections a second.
    let capacity = 10.0 / scale;
    ensure!(number(&report["one_server"]["siege"]["answered"])? == 80.0);
    let one = list(&report["one_region"])?;
    ensure!(one.len() == 5, "{} rates with one region", one.len());
    for round in one {
        ensure!(connections(round)? == [300.0, 0.0], "one region: {round}");
    }
    let two = &report["two_regions"];
    ensure!(connections(&two["calm"])? == [300.0, 0.0], "5/s: {}", two["calm"]);
    // Of 300 requests at 15 a second a third is over 10, at 20 a half; less what the first region's
    // burst takes: that of a tenth of a second, and no more than that has come back since the last round.
    for (rate, share) in [(10.0, 0.0), (15.0, 1.0 / 3.0), (20.0, 0.5)] {
        let round = overflowed(&two["even"], [10.0, 10.0], rate)?;
        let [near, far] = connections(round)?;
        ensure!(near + far == 300.0, "{rate}/s: {round}");
        let most = 300.0 * share;
        // On a slow machine they come more slowly, and the region takes its capacity of them a second.
        let least = 300.0 - 0.1 * capacity - capacity * number(&round["httperf"]["seconds"])?;
        ensure!(
            (least - 1.0..=most * 1.1).contains(&far),
            "{rate}/s: {far} of {most} overflowed, at least {least}"
        );
    }
    // With nobody in the first region the second has all, room or not.
    for rate in [10.0, 15.0, 20.0] {
        let round = overflowed(&two["first_down"], [10.0, 10.0], rate)?;
        ensure!(connections(round)? == [0.0, 300.0], "{rate}/s, first region down: {round}");
    }
    let pictures = ["latency.svg", "shares.svg"].map(|name| fs::read_to_string(results.join(name)));
    let [latency, shares] = pictures;
    ensure!(latency?.contains(">two regions, first round</text>"));
    ensure!(shares?.contains(">us</text>"));
    tidy(&results)
}

/// In the middle of it, with programs attached and servers at work.
pub(crate) fn control_c_leaves_nothing(_: &Sandbox) -> Result<()> {
    let out = out("overflow-broken")?;
    let words = words(QUICK);
    let mut demo = start(&out, &words.iter().map(String::as_str).collect::<Vec<_>>())?;
    let said = out.join("stdout");
    let measured = until("siege has measured", 2 * PATIENCE, || {
        let ended = demo.try_wait()?;
        ensure!(ended.is_none(), "{ended:?}: {}", fs::read_to_string(out.join("stderr"))?);
        Ok(fs::read_to_string(&said)?.contains("siege: ").then_some(()))
    });
    let objects = pinned_by(&demo);
    killpg(Pid::from_raw(demo.id() as i32), Signal::SIGINT)?;
    let status = demo.wait()?;
    measured?;
    let objects = objects?;
    ensure!(objects.len() >= 7 * 3, "{} BPF objects at most", objects.len());
    let ended_by = status.signal().or(status.code().map(|code| code - 128));
    ensure!(ended_by == Some(Signal::SIGINT as i32), "{status}");
    nothing_left(&objects)?;
    Ok(fs::remove_dir_all(out)?)
}

/// The round with these capacities at a rate.
fn overflowed(rounds: &Value, capacities: [f64; 2], rate: f64) -> Result<&Value> {
    let capacities = Value::from(capacities.to_vec());
    let found = list(rounds)?
        .iter()
        .find(|each| each["capacities"] == capacities && each["round"]["rate"] == rate);
    found.map(|each| &each["round"]).with_context(|| format!("no round at {rate}/s"))
}

/// Connections that each region's servers wrote down; httperf had an answer to each.
fn connections(round: &Value) -> Result<[f64; 2]> {
    let [near, far] = ["eu", "us"].map(|region| number(&round["connections"][region]));
    let counts = [near?, far?];
    ensure!(number(&round["httperf"]["successes"])? == counts.iter().sum::<f64>(), "{round}");
    ensure!(number(&round["httperf"]["errors"])? == 0.0, "{round}");
    Ok(counts)
}

fn list(value: &Value) -> Result<&Vec<Value>> {
    value.as_array().with_context(|| format!("{value} is no list"))
}

fn number(value: &Value) -> Result<f64> {
    value.as_f64().with_context(|| format!("{value} is no number"))
}
