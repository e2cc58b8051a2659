//! Fetches and streams on each way, by turns.

use std::{thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use lb_tests::{
    process::{Busy, PATIENCE, pause},
    statistics::{Times, median},
    traffic::{Curl, Timed, Wrk, download, upload},
    turns::by_turns,
};

use super::{
    Distance, FETCHES, Options, ROUND_TRIP, ROUNDS, Way,
    site::{FILE, Site},
};
use crate::shared::Screen;

/// Times that each way has its turn in a round, where a fetch is short.
const TURNS: usize = 8;
/// curls beside each other, where a fetch takes most of its time on the way; each begins a while after the one before.
const CLIENTS: usize = 40;
const BETWEEN_CLIENTS: Duration = Duration::from_millis(12);
/// Fetches that each of them makes at least. A proxy that keeps connections needs at most one a client and worker first,
/// so that most fetches of a round find one.
const LEAST_FETCHES: usize = 5;
/// Rounds of wrk, which is a mean of many requests already.
const CPU_ROUNDS: usize = 5;
/// Connections of wrk at the same time.
const CONNECTIONS: u32 = 64;
/// Streams beside each other.
pub(crate) const STREAMS: [usize; 2] = [1, 100];
/// How long streams run: where windows are open at once, and where they need a while.
const NEAR: Duration = Duration::from_secs(2);
const FAR: Duration = Duration::from_secs(4);

/// Fetches of one way at one distance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fetches {
    /// Round by round, seconds.
    pub(crate) rounds: Vec<Times>,
    /// Those without an answer of 200.
    pub(crate) failed: usize,
}

impl Fetches {
    /// The middle one of the rounds' quantiles, seconds.
    pub(crate) fn quantile(&self, part: f64) -> f64 {
        let all = self.rounds.iter().map(|round| round.quantile(part).as_secs_f64());
        median(&mut all.collect::<Vec<_>>())
    }

    /// The middle one of what a quantile is of that of another way, round by round: what the machine does meanwhile is in
    /// both.
    pub(crate) fn ratio(&self, other: &Self, part: f64) -> f64 {
        let seconds = |round: &Times| round.quantile(part).as_secs_f64();
        let pairs = self.rounds.iter().zip(&other.rounds);
        median(&mut pairs.map(|(own, other)| seconds(own) / seconds(other)).collect::<Vec<_>>())
    }

    pub(crate) fn count(&self) -> usize {
        self.rounds.iter().map(Times::count).sum()
    }
}

/// Bytes a second, of each number of [`STREAMS`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streams {
    pub(crate) down: [f64; 2],
    /// None where only HTTP gets through.
    pub(crate) up: Option<[f64; 2]>,
}

/// What was measured of a way at a distance.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) distance: Distance,
    pub(crate) way: Way,
    pub(crate) fetches: Fetches,
    pub(crate) streams: Streams,
}

/// What was measured.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) figures: Vec<Figures>,
    /// CPU time of the machine for a request of many, by [`Way::ALL`], seconds.
    pub(crate) cpu: Vec<f64>,
}

impl Record {
    pub(crate) fn of(&self, distance: Distance, way: Way) -> Result<&Figures> {
        let is_it = |it: &&Figures| (it.distance, it.way) == (distance, way);
        self.figures.iter().find(is_it).context("a way that was not measured")
    }
}

/// Measures everything.
pub(crate) fn measure(site: &Site, options: &Options, screen: &Screen) -> Result<Record> {
    let mut figures = Vec::new();
    for distance in Distance::ALL {
        screen.heading(distance.name());
        site.put(distance)?;
        let fetches = fetches(site, distance, options)?;
        screen.done(&format!("{} fetches on each way", fetches[0].count()));
        let streams = streams(site, distance, options)?;
        screen.done("downloads and uploads on each way, by one stream and by 100");
        for ((way, fetches), streams) in Way::ALL.into_iter().zip(fetches).zip(streams) {
            figures.push(Figures { distance, way, fetches, streams });
        }
    }
    screen.heading("Many requests at once");
    site.put(Distance::Near)?;
    let cpu = cpu(site, options)?;
    screen.done(&format!("wrk on each way, with {CONNECTIONS} connections at a time"));
    Ok(Record { figures, cpu })
}

/// By [`Way::ALL`].
fn fetches(site: &Site, distance: Distance, options: &Options) -> Result<Vec<Fetches>> {
    let mut all = vec![Fetches::default(); Way::ALL.len()];
    for _ in 0..options.scaled(ROUNDS, 1) {
        let round = match distance {
            Distance::Near => {
                let count = options.scaled(FETCHES / TURNS, 10);
                by_turns(Way::ALL.len(), TURNS, |way| {
                    one_after_the_other(site, Way::ALL[way], count)
                })?
            }
            _ => {
                let count = options.scaled(FETCHES / CLIENTS, LEAST_FETCHES);
                by_turns(Way::ALL.len(), 1, |way| beside_each_other(site, Way::ALL[way], count))?
            }
        };
        for (fetches, turns) in all.iter_mut().zip(round) {
            let (answered, others): (Vec<_>, Vec<_>) =
                turns.into_iter().flatten().partition(|it| it.status == 200);
            let times = answered.iter().map(|it| Duration::from_secs_f64(it.seconds));
            fetches.rounds.push(Times::new(times.collect()));
            fetches.failed += others.len();
        }
    }
    Ok(all)
}

fn one_after_the_other(site: &Site, way: Way, count: usize) -> Result<Vec<Timed>> {
    let url = format!("http://{}/", site.address(way));
    Curl::new(site.client()).fresh(&url, count, PATIENCE)
}

/// So many by each of [`CLIENTS`].
fn beside_each_other(site: &Site, way: Way, count: usize) -> Result<Vec<Timed>> {
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                scope.spawn(move || {
                    pause(BETWEEN_CLIENTS * client as u32);
                    one_after_the_other(site, way, count)
                })
            })
            .collect();
        let mut all = Vec::new();
        for client in clients {
            all.extend(client.join().unwrap_or_else(|it| std::panic::resume_unwind(it))?);
        }
        Ok(all)
    })
}

/// By [`Way::ALL`].
fn streams(site: &Site, distance: Distance, options: &Options) -> Result<Vec<Streams>> {
    // Windows that are open have nothing to gain from a longer time.
    let (rounds, time) = if distance == Distance::Near { (3, NEAR) } else { (1, FAR) };
    let (rounds, time) =
        (options.scaled(rounds, 1), time.mul_f64(options.scale).max(ROUND_TRIP * 3));
    let samples = by_turns(Way::ALL.len(), rounds, |way| {
        let (way, client) = (Way::ALL[way], site.client());
        let to = site.address(way);
        let down = |count: usize| download(client, to, FILE, count, time);
        let up = |count: usize| {
            let upload = upload(client, to, count, time)?;
            anyhow::Ok(upload.bytes as f64 / upload.time.as_secs_f64())
        };
        let [one, many] = STREAMS;
        let up = match way.is_l4() {
            true => Some([up(one)?, up(many)?]),
            false => None,
        };
        Ok(Streams { down: [down(one)?, down(many)?], up })
    })?;
    let middles = |samples: &[[f64; 2]]| {
        [0, 1].map(|place| median(&mut samples.iter().map(|it| it[place]).collect::<Vec<_>>()))
    };
    let summary = |samples: &Vec<Streams>| {
        let down: Vec<_> = samples.iter().map(|it| it.down).collect();
        let up: Option<Vec<_>> = samples.iter().map(|it| it.up).collect();
        Streams { down: middles(&down), up: up.map(|up| middles(&up)) }
    };
    Ok(samples.iter().map(summary).collect())
}

/// CPU time a request, by [`Way::ALL`].
fn cpu(site: &Site, options: &Options) -> Result<Vec<f64>> {
    let time = Duration::from_secs(options.scaled(3, 1) as u64);
    let wrk = Wrk { connections: CONNECTIONS, time };
    let samples = by_turns(Way::ALL.len(), options.scaled(CPU_ROUNDS, 1), |way| {
        let way = Way::ALL[way];
        let busy = Busy::read()?;
        let report = wrk.run(site.client(), &format!("http://{}/", site.address(way)))?;
        let used = busy.since()?;
        ensure!(report.answered > 0 && report.bad_status == 0, "{}: {report:?}", way.name());
        Ok(used.as_secs_f64() / report.answered as f64)
    })?;
    Ok(samples.into_iter().map(|mut it| median(&mut it)).collect())
}
