//! What is drawn.

use lb_tests::report::{Bar, Colour, Curve, Event, Series, bars, chart, curves, svg};
use lb_tests::topology::REGIONS;

use super::outcome::Record;
use super::round::Round;
use super::scale::Scale;
use super::tutorial::{ONE_REGION, TWO_REGIONS};
use crate::shared::Screen;

/// Blue and orange: the colours of the two regions, and of one region against two.
const COLOURS: [(u8, &str); 2] = [(25, "#1b4f8a"), (208, "#ea8a2e")];
/// Columns of the terminal's chart.
const COLUMNS: f64 = 100.0;
/// Stretches of the picture.
const STRETCHES: f64 = 400.0;

/// Average latency by rate: one region, two regions, and the tutorial's.
pub(crate) fn latency(record: &Record, scale: Scale) -> String {
    let point = |round: &Round| (round.rate, scale.told(round.client.average_ms));
    let two = [&record.overflow.calm].into_iter().chain(first_rounds(record));
    let theirs = |round: usize| {
        let known = TWO_REGIONS.iter().filter_map(|(rate, all)| Some((*rate, *all.get(round)?)));
        known.collect::<Vec<_>>()
    };
    let [blue, orange] = COLOURS.map(|colour| colour.1);
    let curve =
        |name: &str, colour, dashed, points| Curve { name: name.into(), colour, dashed, points };
    let all = [
        curve("one region", orange, false, record.region.iter().map(point).collect()),
        curve("two regions, first round", blue, false, two.map(point).collect()),
        curve("tutorial: one region, about", "#f8cf9b", true, ONE_REGION.to_vec()),
        curve("tutorial: two, first round", "#a3d0f5", true, theirs(0)),
        curve("tutorial: two, fifth round", "#888888", true, theirs(4)),
    ];
    curves("Average response time by httperf", "requests a second", "ms", &all)
}

/// The same as bars of characters.
pub(crate) fn latency_bars(record: &Record, scale: Scale, screen: &Screen) -> String {
    let bar = |name: &str, round: &Round, colour| {
        let average = scale.told(round.client.average_ms);
        Bar {
            label: format!("{name}, {}/s", round.rate),
            value: average,
            note: format!("{average:.0} ms"),
            colour,
        }
    };
    let [blue, orange] = COLOURS.map(|colour| colour.0);
    let mut all: Vec<_> =
        record.region.iter().map(|round| bar("one region", round, orange)).collect();
    all.push(bar("two regions", &record.overflow.calm, blue));
    all.extend(first_rounds(record).map(|round| bar("two regions", round, blue)));
    bars(&all, 60, screen.ink)
}

fn first_rounds(record: &Record) -> impl Iterator<Item = &Round> {
    let first = record.overflow.even.iter().filter(|overflowed| overflowed.number == 0);
    first.map(|overflowed| &overflowed.round)
}

/// Who had the connections over time, with the tutorial's capacities, in the tutorial's time: for the
/// terminal, and as a picture.
pub(crate) fn shares(record: &Record, scale: Scale, screen: &Screen) -> (String, String) {
    let rounds: Vec<_> = record.overflow.even.iter().collect();
    let start = rounds.first().map_or(0.0, |overflowed| overflowed.round.from);
    let told = |time: &f64| scale.told(time - start);
    let arrivals: Vec<(String, Vec<f64>)> = REGIONS
        .iter()
        .enumerate()
        .map(|(region, name)| {
            let times = rounds.iter().flat_map(|overflowed| &overflowed.round.arrivals[region]);
            ((*name).to_owned(), times.map(told).collect())
        })
        .collect();
    let first = rounds.iter().filter(|overflowed| overflowed.number == 0);
    let events: Vec<_> = first
        .map(|overflowed| Event {
            at: told(&overflowed.round.from),
            what: format!("{} requests/s", overflowed.plan.rate),
        })
        .collect();
    let last = arrivals.iter().flat_map(|(_, times)| times).copied().fold(1.0, f64::max);
    let colours = [Colour::of(0, 0), Colour::of(1, 1)];
    let text = Series::new(0.0, last / COLUMNS, &arrivals);
    let picture = Series::new(0.0, last / STRETCHES, &arrivals);
    let title = "Share of the connections by region, 10/s of capacity each";
    (chart(&text, &colours, &events, 10, screen.ink), svg(title, &picture, &colours, &events))
}
