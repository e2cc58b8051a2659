//! The experiment of what a balancer costs, shortened: its report adds up, and a long way is one.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::harness::note;
use lb_tests::sandbox::Sandbox;
use serde_json::Value;

use crate::demo::run::{play, tidy};

/// Seconds of a round trip over a long way. A fetch needs two: one to connect, one to ask.
const ROUND_TRIP: f64 = 0.1;

/// Where the long way is, as the report says it.
const LINKS: [&str; 3] = [
    "links without a delay",
    "100 ms between client and balancer",
    "100 ms between balancer and server",
];

pub(crate) fn each_way_leads_to_the_server(_: &Sandbox) -> Result<()> {
    let (report, results) = play("profile", &["profile", "--scale", "0.05"])?;
    let figures = report["figures"].as_array().context("no figures")?;
    ensure!(figures.len() == 18, "{} figures", figures.len());
    let median = |links: &str, way: &str| -> Result<f64> {
        let mut all = figures.iter().filter(|it| it["links"] == links && it["way"] == way);
        number(&all.next().with_context(|| format!("no {way}, {links}"))?["median_seconds"])
    };
    let [near, _, far_server] = LINKS;
    for each in figures {
        let (links, way) = (text(&each["links"])?, text(&each["way"])?);
        ensure!(each["failed"] == 0 && number(&each["fetches"])? >= 40.0, "{each}");
        // It has a connection to the server, so that only the client's own takes a round trip.
        let trips = if links == near {
            0.0
        } else if links == far_server && way == "nginx, HTTP" {
            1.0
        } else {
            2.0
        };
        let took = median(links, way)?;
        ensure!(took >= trips * ROUND_TRIP, "{way}, {links}: {took} s for {trips} round trips");
        ensure!(median(near, way)? < took || links == near, "{way}, {links}: {took} s");
        note(format!("profile: {way}, {links}: {:.2} ms", took * 1e3));
        ensure!((way == "nginx, HTTP") == each["upload_bytes_per_second"].is_null(), "{each}");
    }
    let picture = fs::read_to_string(results.join("fetches.svg"))?;
    ensure!(picture.contains(">Spillway</text>") && picture.contains(">one router more</text>"));
    tidy(&results)
}

fn number(value: &Value) -> Result<f64> {
    value.as_f64().with_context(|| format!("{value} is no number"))
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().with_context(|| format!("{value} is no text"))
}
