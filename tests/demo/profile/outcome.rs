//! What came of it: a picture, figures, and what must be true of them.

use anyhow::{Result, ensure};
use lb_tests::report::{Bar, Colour, Panel, bars, panels};
use serde_json::{Value, json};

use super::{
    Distance, Options, ROUND_TRIP, Way,
    measure::{Figures, Record, STREAMS, Streams},
};
use crate::shared::{Environment, Screen, align, table};

/// The most that a fetch through Spillway takes of one through a router in its place, at the median of links without a
/// delay: what is sent to a balancer crosses two links more than what is not, and in namespaces these cost more than what
/// is done between them.
const MOST_NEAR: f64 = 1.03;
/// The most that it takes of a direct one: at the median over a long way, and at the 99th percentile.
const MOST_FAR: f64 = 1.001;
const MOST_P99: f64 = 1.1;
/// What a fetch over a long way through a proxy that has a connection already takes at most of a direct one: that has two
/// round trips, this one.
const MOST_KEPT: f64 = 0.75;

/// Draws, prints, writes and judges.
pub(crate) fn conclude(
    environment: &Environment,
    options: &Options,
    record: &Record,
    screen: &Screen,
) -> Result<()> {
    let colours = [(0, 2), (0, 2), (0, 0), (1, 2), (1, 1), (1, 0)]
        .map(|(hue, lightness)| Colour::of(hue, lightness));
    let drawn = Distance::ALL.map(|distance| panel(record, distance, &colours));
    for Panel { heading, bars: all } in &drawn {
        screen.heading(&format!("A fetch's median, {heading}"));
        screen.line(&bars(all, 40, screen.ink));
    }
    let title = "A fetch of a short page, median";
    environment.write("fetches.svg", &panels(title, &drawn, &colours.map(|colour| colour.web)))?;
    environment.report(&report(options, record)?)?;
    environment.write("commands.txt", &screen.commands())?;
    screen.heading("Figures");
    for distance in Distance::ALL {
        screen.line(&format!("  {}", distance.name()));
        screen.quote(&fetches(record, distance)?);
        screen.quote(&streams(record, distance)?);
    }
    screen.heading("Does it hold?");
    judge(options, record, screen)?;
    environment.point_to(&["fetches.svg", "report.json", "web.toml", "commands.txt"], screen);
    Ok(())
}

fn panel(record: &Record, distance: Distance, colours: &[Colour]) -> Panel {
    let here = record.figures.iter().filter(|it| it.distance == distance);
    let bar = |(figures, colour): (&Figures, &Colour)| {
        let value = figures.fetches.quantile(0.5) * 1e3;
        let note = format!("{value:.3} ms");
        Bar { label: figures.way.name().into(), value, note, colour: colour.terminal }
    };
    Panel { heading: distance.name().into(), bars: here.zip(colours).map(bar).collect() }
}

/// Of fetches; and CPU time where there is no relay.
fn fetches(record: &Record, distance: Distance) -> Result<String> {
    let is_near = distance == Distance::Near;
    let mut header = vec!["", "median, ms", "of direct", "p99, ms", "of direct", "failed"];
    header.extend(is_near.then_some("CPU µs a request"));
    let mut table = table(&header);
    let direct = &record.of(distance, Way::Direct)?.fetches;
    for (way, cpu) in Way::ALL.into_iter().zip(&record.cpu) {
        let fetches = &record.of(distance, way)?.fetches;
        let mut row = vec![way.name().to_owned()];
        for part in [0.5, 0.99] {
            let (quantile, of_direct) = (fetches.quantile(part), fetches.ratio(direct, part));
            row.extend([format!("{:.3}", quantile * 1e3), format!("{of_direct:.4}")]);
        }
        row.push(fetches.failed.to_string());
        row.extend(is_near.then(|| format!("{:.0}", cpu * 1e6)));
        table.add_row(row);
    }
    align(&mut table, 1);
    Ok(table.to_string())
}

fn streams(record: &Record, distance: Distance) -> Result<String> {
    let mut table = table(&["Gbit/s", "1 down", "100 down", "1 up", "100 up"]);
    for way in Way::ALL {
        let Streams { down, up } = record.of(distance, way)?.streams;
        let gigabits = |rate: f64| format!("{:.2}", rate * 8e-9);
        let mut row = vec![way.name().to_owned()];
        row.extend(down.map(gigabits));
        row.extend(up.map_or(["·".into(), "·".into()], |up| up.map(gigabits)));
        table.add_row(row);
    }
    align(&mut table, 1);
    Ok(table.to_string())
}

fn report(options: &Options, record: &Record) -> Result<Value> {
    let way = |figures: &Figures| {
        let Figures { distance, way, fetches, streams } = figures;
        let rounds = |part: f64| {
            let all = fetches.rounds.iter().map(|round| round.quantile(part).as_secs_f64());
            all.collect::<Vec<_>>()
        };
        json!({
            "links": distance.name(),
            "way": way.name(),
            "fetches": fetches.count(),
            "failed": fetches.failed,
            "median_seconds": fetches.quantile(0.5),
            "p99_seconds": fetches.quantile(0.99),
            "round_median_seconds": rounds(0.5),
            "round_p99_seconds": rounds(0.99),
            "download_bytes_per_second": streams.down,
            "upload_bytes_per_second": streams.up,
        })
    };
    Ok(json!({
        "scale": options.scale,
        "streams": STREAMS,
        "figures": record.figures.iter().map(way).collect::<Vec<_>>(),
        "cpu_seconds_per_request": record.cpu,
    }))
}

fn judge(options: &Options, record: &Record, screen: &Screen) -> Result<()> {
    for Figures { distance, way, fetches, streams } in &record.figures {
        let what = format!("{}, {}", way.name(), distance.name());
        ensure!(fetches.failed == 0, "{what}: {} fetches failed", fetches.failed);
        let all: Vec<_> =
            streams.down.into_iter().chain(streams.up.into_iter().flatten()).collect();
        ensure!(all.iter().all(|rate| *rate > 0.0), "{what}: {all:?} bytes a second");
    }
    screen.done("no fetch failed");
    let far = record.of(Distance::FarServer, Way::Direct)?.fetches.quantile(0.5);
    ensure!(
        far >= 2.0 * ROUND_TRIP.as_secs_f64(),
        "a direct fetch takes {far} s over the long way"
    );
    // On a machine that is shared most fetches wait for a CPU longer than for the way.
    let part = if options.is_trial() { 0.1 } else { 0.5 };
    let kept = ratio(record, Distance::FarServer, [Way::NginxHttp, Way::Direct], part)?;
    ensure!(kept <= MOST_KEPT, "a kept connection takes {kept:.3} of a direct one's time");
    screen.done(&format!(
        "far from the server a proxy with kept connections takes {kept:.3} of a direct fetch's time"
    ));
    if options.is_trial() {
        return Ok(());
    }
    for (distance, than, part, most) in [
        (Distance::Near, Way::Hop, 0.5, MOST_NEAR),
        (Distance::Near, Way::Direct, 0.99, MOST_P99),
        (Distance::FarClient, Way::Direct, 0.5, MOST_FAR),
        (Distance::FarClient, Way::Direct, 0.99, MOST_P99),
        (Distance::FarServer, Way::Direct, 0.5, MOST_FAR),
        (Distance::FarServer, Way::Direct, 0.99, MOST_P99),
    ] {
        let ratio = ratio(record, distance, [Way::Spillway, than], part)?;
        ensure!(
            ratio <= most,
            "{}: quantile {part} of fetches through Spillway is {ratio:.4} of that of \"{}\"; at most {most}",
            distance.name(),
            than.name()
        );
    }
    screen.done("a fetch through Spillway takes no longer than through a router in its place, within what is allowed");
    Ok(())
}

/// A quantile of one way in parts of another's.
fn ratio(record: &Record, distance: Distance, [own, other]: [Way; 2], part: f64) -> Result<f64> {
    let [own, other] = [record.of(distance, own)?, record.of(distance, other)?];
    Ok(own.fetches.ratio(&other.fetches, part))
}
