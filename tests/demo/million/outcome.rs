//! What came of it: a picture, figures, and what must be true of them.

use std::{ops::Range, time::Duration};

use anyhow::{Result, ensure};
use lb_tests::report::{Colour, Series, svg};
use serde_json::{Value, json};

use super::{
    CPUS, Options,
    churn::{Churn, STEP, failing, lasting, strays},
    setup::{added, backends},
    start::Start,
    steady::{Arrived, Steady},
    tally::{ByBackend, Tally, of, total, unevenness},
};
use crate::shared::{Environment, Screen, align, table};

/// Google's requests a second.
const REQUESTS: f64 = 1.016e6;
/// The most of a CPU that so many requests may cost, above what the floor program takes.
const MOST_CPU: f64 = 0.6;
/// The least part of the floor program's rate.
const LEAST_OF_FLOOR: f64 = 0.85;
/// How many more requests than the mean a backend may have, if chance gives none more.
const MOST_UNEVEN: f64 = 0.01;
/// Standard deviations that chance does not reach.
const SIGMAS: f64 = 5.0;
/// Longest times from the start of the command that applies the configuration.
const FIRST: Duration = Duration::from_millis(500);
const ALL: Duration = Duration::from_secs(1);
/// How far the share of new backends may be from the mean.
const MOST_OFF: f64 = 0.05;

/// What was measured.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) start: Start,
    pub(crate) steady: Steady,
    pub(crate) churn: Churn,
}

/// Draws, prints, writes and judges.
pub(crate) fn conclude(
    environment: &Environment,
    options: &Options,
    record: &Record,
    screen: &Screen,
) -> Result<()> {
    let (series, events) = (series(&record.churn), &record.churn.events);
    let colours = [Colour::of(0, 0), Colour::of(0, 1), Colour::of(1, 0)];
    let title = "Requests by backends, while ten fail and come back and twenty are added";
    environment.write("shares.svg", &svg(title, &series, &colours, events))?;
    environment.report(&report(options, record))?;
    environment.write("commands.txt", &screen.commands())?;
    screen.heading("Figures");
    screen.quote(&figures(record));
    screen.heading("Does it hold?");
    judge(options, record, screen)?;
    environment.point_to(&["shares.svg", "report.json", "web.toml", "commands.txt"], screen);
    Ok(())
}

/// Requests of those that last, of those that fail, and of those that are added.
fn series(churn: &Churn) -> Series {
    let classes = [lasting(), failing(), added()];
    let stretch = |then: &ByBackend, now: &ByBackend| {
        let count = |class: Range<u8>| of(now, class.clone()) - of(then, class);
        classes.clone().map(count).to_vec()
    };
    let counts =
        churn.samples.windows(2).map(|pair| stretch(&pair[0].begun, &pair[1].begun)).collect();
    let names = classes.clone().map(|class| format!("{} backends", class.len())).to_vec();
    Series { step: STEP.as_secs_f64(), names, counts }
}

/// CPUs that so many requests a second cost above what the floor program takes.
fn cpus_above_floor(steady: &Steady, rate: f64) -> f64 {
    CPUS as f64 * (1.0 / steady.balancer.rate - 1.0 / steady.floor_rate()) * rate
}

fn of_floor(steady: &Steady) -> f64 {
    steady.balancer.rate / steady.floor_rate()
}

/// How uneven requests may be: what chance does, if that is more than what is asked for.
fn most_uneven(counts: &ByBackend) -> f64 {
    let mean = total(counts) as f64 / backends(false).len() as f64;
    1.0 + MOST_UNEVEN.max(SIGMAS / mean.sqrt())
}

fn figures(record: &Record) -> String {
    let Record { start, steady, churn } = record;
    let mut table = table(&["", "Google, 2013", "here"]);
    let million = |rate: f64| format!("{:.3} million", rate / 1e6);
    let complete = &steady.balancer.tally.complete;
    let mut row = |what: &str, theirs: &str, here: String| {
        table.add_row([what.to_owned(), theirs.to_owned(), here]);
    };
    row("requests a second", "1.016 million", million(steady.balancer.rate));
    row("right after the start", "", million(steady.early.rate));
    row("through the floor program", "", million(steady.floor_rate()));
    row("part of the floor's", "", format!("{:.3}", of_floor(steady)));
    row(
        "CPUs that 1.016 million cost above the floor",
        "456 in all",
        format!("{:.2}", cpus_above_floor(steady, REQUESTS)),
    );
    row(
        "most over mean, by backend",
        "even",
        format!("{:.4}", unevenness(complete, backends(false))),
    );
    row("until the first request is served", "5 s", format!("{:.0?}", start.first));
    row("until each backend has one", "", format!("{:.0?}", start.all));
    row(
        "idle flows moved by the addition",
        "",
        format!("{:.2} %", churn.stages.moved_share() * 100.0),
    );
    row("as planned", "", format!("{:.2} %", churn.stages.planned * 100.0));
    align(&mut table, 1);
    table.to_string()
}

fn report(options: &Options, record: &Record) -> Value {
    let Record { start, steady, churn } = record;
    let arrived = |arrived: &Arrived| {
        let tally = &arrived.tally;
        json!({
            "requests": arrived.sent.requests,
            "requests_per_second": arrived.rate,
            "packets_lost": arrived.lost(),
            "complete": total(&tally.complete),
            "at_two_backends": total(&tally.split),
        })
    };
    let stage = |(name, tally): (&str, &Tally)| {
        json!({
            "stage": name,
            "flows": tally.probes,
            "moved": total(&tally.moved_from),
            "moved_from_lasting": of(&tally.moved_from, lasting()),
        })
    };
    let complete = &steady.balancer.tally.complete;
    json!({
        "scale": options.scale,
        "seconds_to_first_request": start.first.as_secs_f64(),
        "seconds_to_all_backends": start.all.as_secs_f64(),
        "floor": steady.floors.iter().map(arrived).collect::<Vec<_>>(),
        "balancer_at_once": arrived(&steady.early),
        "balancer": arrived(&steady.balancer),
        "part_of_floor": of_floor(steady),
        "cpus_above_floor_at_1016000": cpus_above_floor(steady, REQUESTS),
        "most_over_mean": unevenness(complete, backends(false)),
        "requests_by_backend": backends(false).map(|it| complete[usize::from(it)]).collect::<Vec<_>>(),
        "stages": churn.stages.named().map(stage),
        "planned": churn.stages.planned,
        "moved": churn.stages.moved_share(),
        "first_second_share": churn.stages.first_share(),
        "churn": arrived(&churn.whole),
        "events": churn.events,
        "strays_at_seconds": churn.stray_times(),
        "seconds_per_step": STEP.as_secs_f64(),
        "requests_by_step": series(churn).counts,
    })
}

fn judge(options: &Options, record: &Record, screen: &Screen) -> Result<()> {
    let Record { start, steady, churn } = record;
    judge_places(&steady.balancer, churn)?;
    screen
        .done("all packets of a request went to one backend, and only flows that had to move did");
    if options.is_trial() {
        return Ok(());
    }
    judge_start(start)?;
    screen.done("an empty daemon serves at once");
    judge_rate(steady)?;
    screen.done("the balancer's own part is small enough for a million requests a second");
    judge_numbers(steady, churn)?;
    screen.done("no packet was lost, and backends had as many requests as each other");
    Ok(())
}

fn judge_start(start: &Start) -> Result<()> {
    ensure!(start.first <= FIRST, "the first request was served after {:?}", start.first);
    ensure!(start.all <= ALL, "each backend had a request only after {:?}", start.all);
    Ok(())
}

fn judge_rate(steady: &Steady) -> Result<()> {
    if steady.balancer.rate >= REQUESTS {
        return Ok(());
    }
    let (part, cpus) = (of_floor(steady), cpus_above_floor(steady, REQUESTS));
    ensure!(part >= LEAST_OF_FLOOR, "the rate is {part:.3} of the floor program's");
    ensure!(cpus <= MOST_CPU, "{REQUESTS} requests a second would cost {cpus:.2} CPUs");
    Ok(())
}

fn judge_numbers(steady: &Steady, churn: &Churn) -> Result<()> {
    let Arrived { sent, tally, .. } = &steady.balancer;
    let floor: u64 = steady.floors.iter().map(Arrived::lost).sum();
    let floor = floor as f64 / steady.floors.iter().map(|it| it.sent.packets()).sum::<u64>() as f64;
    let lost = steady.balancer.lost();
    ensure!(
        lost as f64 / sent.packets() as f64 <= floor,
        "of {} packets {lost} were lost; the floor program lost {floor:.6} of its own",
        sent.packets()
    );
    let uneven = unevenness(&tally.complete, backends(false));
    let most = most_uneven(&tally.complete);
    ensure!(uneven <= most, "a backend had {uneven:.4} of the mean; at most {most:.4} are even");
    let even = added().len() as f64 / backends(true).len() as f64;
    let off = churn.stages.first_share() / even - 1.0;
    ensure!(off.abs() <= MOST_OFF, "in their first second those added had {off:+.3} of the mean");
    ensure!(churn.whole.lost() == 0, "{} packets were lost", churn.whole.lost());
    Ok(())
}

fn judge_places(balancer: &Arrived, churn: &Churn) -> Result<()> {
    let stages = &churn.stages;
    let nobody = |what: &str, count: u64| {
        ensure!(count == 0, "{what}: {count}");
        Ok(())
    };
    nobody("requests with packets at two backends", total(&balancer.tally.split))?;
    nobody("flows that moved though nothing happened", total(&stages.calm.moved_from))?;
    let moved = of(&stages.failing.moved_from, lasting());
    nobody("flows of backends that stayed, which moved when others failed", moved)?;
    nobody("flows in use that moved by the addition", total(&stages.busy.moved_from))?;
    let strays = strays(&churn.whole.tally.split);
    ensure!(
        strays == 0,
        "{strays} requests had packets at two backends, the first of which did not fail; seconds after the beginning: {:?}",
        churn.stray_times()
    );
    let (moved, planned) = (stages.moved_share(), stages.planned);
    ensure!(
        (moved - planned).abs() <= SIGMAS * stages.deviation(),
        "{:.3} % of idle flows moved by the addition; planned were {:.3} %",
        moved * 100.0,
        planned * 100.0
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_chance_does_is_even() {
        let mut counts = [0; 256];
        for backend in backends(false) {
            counts[usize::from(backend)] = 1_000_000;
        }
        assert_eq!(most_uneven(&counts), 1.01);
        counts.iter_mut().for_each(|count| *count /= 10_000);
        assert_eq!(most_uneven(&counts), 1.5);
    }
}
