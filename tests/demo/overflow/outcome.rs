//! What came of it: tables beside the tutorial's figures, pictures, a report.

use anyhow::Result;
use lb_tests::topology::REGIONS;
use lb_tests::traffic::HttperfReport;
use serde_json::{Value, json};

use super::pictures::{latency, latency_bars, shares};
use super::regions::{Overflow, OverflowRound};
use super::round::Round;
use super::scale::Scale;
use super::setup::Setup;
use super::single::Single;
use super::tutorial;
use crate::shared::{Environment, Screen, align, table};

/// All that was seen.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) single: Single,
    pub(crate) region: Vec<Round>,
    pub(crate) overflow: Overflow,
}

/// Draws, prints and writes. It has been judged on the way.
pub(crate) fn conclude(
    environment: &Environment,
    setup: &Setup,
    record: &Record,
    screen: &mut Screen,
) -> Result<()> {
    let scale = setup.scale;
    screen.heading("Average response time by httperf");
    screen.line(&latency_bars(record, scale, screen));
    print(record, scale, screen);
    screen.heading("Who had the connections, over time");
    let (chart, picture) = shares(record, scale, screen);
    screen.line(&chart);
    environment.write("shares.svg", &picture)?;
    environment.write("latency.svg", &latency(record, scale))?;
    environment.report(&report(record, scale, screen))?;
    environment.write("commands.txt", &screen.commands())?;
    environment.point_to(
        &["latency.svg", "shares.svg", "report.json", "web.toml", "commands.txt"],
        screen,
    );
    Ok(())
}

fn print(record: &Record, scale: Scale, screen: &Screen) {
    let mut table = table(&[
        "regions",
        "capacity",
        "requests/s",
        "round",
        "average",
        "tutorial",
        "longest",
        "errors",
        REGIONS[0],
        REGIONS[1],
    ]);
    let mut row = |regions: &str, capacity: String, round: &Round, number: usize, theirs| {
        let HttperfReport { average_ms, max_ms, errors, .. } = round.client;
        let [near, far] = round.counts();
        table.add_row([
            regions.into(),
            capacity,
            round.rate.to_string(),
            (number + 1).to_string(),
            milliseconds(Some(scale.told(average_ms))),
            milliseconds(theirs),
            milliseconds(Some(scale.told(max_ms))),
            errors.to_string(),
            near.to_string(),
            far.to_string(),
        ]);
    };
    for round in &record.region {
        row("one", String::new(), round, 0, tutorial::one_region(round.rate));
    }
    let Overflow { calm, even, uneven, first_down } = &record.overflow;
    row("two", "10, 10".into(), calm, 0, None);
    for OverflowRound { plan, number, round, .. } in even {
        let theirs = tutorial::two_regions(plan.rate, *number);
        row("two", "10, 10".into(), round, *number, theirs);
    }
    for OverflowRound { plan, number, round, .. } in uneven {
        let [near, far] = plan.capacities;
        row("two", format!("{near}, {far}"), round, *number, None);
    }
    for OverflowRound { number, round, .. } in first_down {
        row("first down", "10, 10".into(), round, *number, None);
    }
    align(&mut table, 2);
    screen.quote(&table.to_string());
    screen.line(
        "           times: httperf; connections by region: the servers' logs; tutorial: as it",
    );
    screen.line("           prints them, and nothing where it shows a picture alone");
}

fn milliseconds(time: Option<f64>) -> String {
    time.map_or_else(|| "·".into(), |time| format!("{time:.0} ms"))
}

/// Everything that was seen, in our own time; the scale is beside it. Arrivals are told as counts.
fn report(record: &Record, scale: Scale, screen: &Screen) -> Value {
    let round = |round: &Round| {
        json!({
            "rate": round.rate,
            "httperf": round.client,
            "average_ms_told": scale.told(round.client.average_ms),
            "connections": {REGIONS[0]: round.counts()[0], REGIONS[1]: round.counts()[1]},
            "counted": {REGIONS[0]: round.counted[0], REGIONS[1]: round.counted[1]},
            "syns_repeated": round.syns_repeated,
        })
    };
    let overflowed = |all: &[OverflowRound]| {
        let each = all.iter().map(|overflowed| {
            json!({
                "capacities": overflowed.plan.capacities,
                "first_region_down": overflowed.plan.first_is_down,
                "number": overflowed.number,
                "second_region": overflowed.shares,
                "round": round(&overflowed.round),
            })
        });
        each.collect::<Vec<_>>()
    };
    json!({
        "scale": scale.0,
        "seconds": screen.seconds(),
        "one_server": record.single,
        "one_region": record.region.iter().map(round).collect::<Vec<_>>(),
        "two_regions": {
            "calm": round(&record.overflow.calm),
            "even": overflowed(&record.overflow.even),
            "uneven": overflowed(&record.overflow.uneven),
            "first_down": overflowed(&record.overflow.first_down),
        },
    })
}
