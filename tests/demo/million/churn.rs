//! Fewer requests than before, while backends fail, come back, and are added.
//!
//! Beside them goes a packet of each of many flows, again and again: one of an open connection, of which nothing is
//! remembered, so that it is seen which flows have another backend than the time before. Other flows are looked at before
//! and after the addition alone: those that are in use stay where they are.

use std::{
    fs,
    ops::Range,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use lb_tests::{
    daemon::Balancer,
    process::{PATIENCE, pause, until},
    report::Event,
};
use serde::Deserialize;

use super::{
    ADDED, BACKENDS, FAILING,
    generator::{Generator, Load},
    setup::{self, SETTLE, Setup, added, addresses, backends},
    site::{Site, Through},
    steady::Arrived,
    tally::{ByBackend, Tally, of, total},
};
use crate::shared::Screen;

/// Requests a second.
const RATE: f64 = 300_000.0;
/// Flows that are looked at: each is at a backend, and is seen there or elsewhere the next time.
const PROBES: u32 = 1 << 17;

/// The flows that are in use all the time, and those that are not.
const BUSY: usize = 0;
const IDLE: usize = 1;

/// Where probes were, each time compared with the time before.
#[derive(Debug)]
pub(crate) struct Stages {
    /// Nothing happened.
    pub(crate) calm: Tally,
    /// Backends have failed.
    pub(crate) failing: Tally,
    /// They have come back.
    pub(crate) returning: Tally,
    /// Others were added, until the settle time was over: flows that are in use.
    pub(crate) busy: Tally,
    /// The same: flows that were not used meanwhile.
    pub(crate) idle: Tally,
    /// In the second after all that were added had a request.
    pub(crate) first_second: Tally,
    /// The share of slots that move when they are added, by the dry run.
    pub(crate) planned: f64,
}

impl Stages {
    /// The stages in order.
    pub(crate) fn named(&self) -> [(&'static str, &Tally); 5] {
        let Self { calm, failing, returning, busy, idle, .. } = self;
        [
            ("calm", calm),
            ("failing", failing),
            ("returning", returning),
            ("adding, in use", busy),
            ("adding, idle", idle),
        ]
    }

    /// The share of requests that those that were added had in their first second.
    pub(crate) fn first_share(&self) -> f64 {
        let begun = &self.first_second.begun;
        of(begun, added()) as f64 / total(begun) as f64
    }

    /// The share of flows that the addition moved, of those that were not in use.
    pub(crate) fn moved_share(&self) -> f64 {
        total(&self.idle.moved_from) as f64 / f64::from(PROBES)
    }

    /// How far that may be from what was planned by chance: the standard deviation.
    pub(crate) fn deviation(&self) -> f64 {
        (self.planned * (1.0 - self.planned) / f64::from(PROBES)).sqrt()
    }
}

/// What was measured.
#[derive(Debug)]
pub(crate) struct Churn {
    pub(crate) stages: Stages,
    /// What backends had got, every [`STEP`].
    pub(crate) samples: Vec<Sample>,
    /// What happened, and when.
    pub(crate) events: Vec<Event>,
    /// All of it.
    pub(crate) whole: Arrived,
}

/// What backends had got at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Requests that had begun at each.
    pub(crate) begun: ByBackend,
    /// Requests with packets at two of them, the first of which is none of those that fail.
    pub(crate) strays: u64,
}

/// Those of a count by backend that are strays: [`Sample::strays`].
pub(crate) fn strays(split: &ByBackend) -> u64 {
    of(split, lasting()) + of(split, added())
}

impl Churn {
    /// Seconds from the beginning to the ends of steps in which requests became strays.
    pub(crate) fn stray_times(&self) -> Vec<f64> {
        let ends = (1..).map(|step| STEP.as_secs_f64() * f64::from(step));
        let pairs = self.samples.windows(2).zip(ends);
        pairs.filter(|(pair, _)| pair[1].strays > pair[0].strays).map(|(_, end)| end).collect()
    }
}

/// The numbers of backends that fail.
pub(crate) const fn failing() -> Range<u8> {
    1..FAILING + 1
}

/// The numbers of those that are there all the time.
pub(crate) const fn lasting() -> Range<u8> {
    FAILING + 1..BACKENDS + 1
}

/// Of `apply --dry-run`: what a change moves.
#[derive(Deserialize)]
struct Plan {
    changes: Vec<PlannedChange>,
}

#[derive(Deserialize)]
struct PlannedChange {
    #[serde(default)]
    slots_moved: u64,
}

/// Time between two looks at what backends have got.
pub(crate) const STEP: Duration = Duration::from_millis(500);

/// Has backends fail, come back and be added, with a pause between.
pub(crate) fn measure(setup: &mut Setup, between: Duration, screen: &Screen) -> Result<Churn> {
    screen.heading("Backends fail, come back, and are added");
    let load = Load { through: Through::Balancer, rate: Some(RATE), clients: 6 };
    let Setup { generators, probes, balancer, site, file, .. } = setup;
    let (site, before) = (&*site, site.tally()?);
    let mut play = Play {
        site,
        balancer,
        file,
        probes,
        between,
        start: Instant::now(),
        events: Vec::new(),
        screen,
    };
    let is_over = &AtomicBool::new(false);
    let ((stages, samples), sent) = generators.send(site, load, || {
        thread::scope(|scope| {
            let sampling = scope.spawn(|| sample(site, is_over));
            let stages = play.play();
            is_over.store(true, Ordering::Relaxed);
            let samples = sampling.join().unwrap_or_else(|it| std::panic::resume_unwind(it));
            Ok((stages?, samples?))
        })
    })?;
    let whole = Arrived { sent, tally: site.tally()? - before, rate: RATE };
    let churn = Churn { stages, samples, events: play.events, whole };
    show(&churn, screen);
    Ok(churn)
}

/// What has begun at each backend, again and again.
fn sample(site: &Site, is_over: &AtomicBool) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    let start = Instant::now();
    while !is_over.load(Ordering::Relaxed) {
        samples.push(Sample { begun: site.begun()?, strays: strays(&site.split()?) });
        pause((start + STEP * samples.len() as u32).saturating_duration_since(Instant::now()));
    }
    Ok(samples)
}

/// What happens while requests are sent.
struct Play<'a> {
    site: &'a Site,
    balancer: &'a Balancer,
    file: &'a Path,
    probes: &'a mut [Generator; 2],
    between: Duration,
    start: Instant,
    events: Vec<Event>,
    screen: &'a Screen,
}

impl Play<'_> {
    fn play(&mut self) -> Result<Stages> {
        let (site, balancer) = (self.site, self.balancer);
        self.look(BUSY)?;
        let calm = self.stage()?;
        site.switch_off(failing())?;
        self.happens(format!("{FAILING} backends fail"));
        balancer.wait_up(&addresses(lasting()), PATIENCE)?;
        let failing = self.stage()?;
        site.switch_on(self::failing())?;
        balancer.wait_up(&addresses(backends(false)), PATIENCE)?;
        self.happens("they are back".to_owned());
        let returning = self.stage()?;

        let text = setup::file(backends(true));
        fs::write(self.file, &text).with_context(|| self.file.display().to_string())?;
        let planned = self.plan()?;
        self.look(IDLE)?;
        balancer.apply(&text)?;
        until("all that were added serve", PATIENCE, || {
            let begun = site.begun()?;
            Ok(added().all(|backend| begun[usize::from(backend)] > 0).then_some(()))
        })?;
        let serving = site.tally()?;
        self.happens(format!("{ADDED} are added"));
        pause(Duration::from_secs(1));
        let first_second = site.tally()? - serving;
        let mut busy = self.look(BUSY)?;
        until("the change has settled", PATIENCE + SETTLE, || {
            // Each is seen in the settle time: those that are not are not in use.
            pause(SETTLE / 10);
            let moved = self.look(BUSY)?.moved_from;
            busy.moved_from.iter_mut().zip(moved).for_each(|(sum, moved)| *sum += moved);
            Ok(balancer.status()?.settling.is_empty().then_some(()))
        })?;
        self.happens("the change has settled".to_owned());
        let idle = self.look(IDLE)?;
        Ok(Stages { calm, failing, returning, busy, idle, first_second, planned })
    }

    fn happens(&mut self, what: String) {
        self.screen.event(&what);
        self.events.push(Event { at: self.start.elapsed().as_secs_f64(), what });
    }

    /// Lets some time pass, and then looks where flows go.
    fn stage(&mut self) -> Result<Tally> {
        pause(self.between);
        self.look(BUSY)
    }

    /// Sends a packet of each probe, again until all have arrived, and returns what was counted meanwhile.
    fn look(&mut self, probe: usize) -> Result<Tally> {
        let (site, probe) = (self.site, &mut self.probes[probe]);
        let (before, interface) = (site.tally()?, site.end(Through::Balancer));
        until("all probes arrive", PATIENCE, || {
            let sent = site.tally()?;
            site.outside.enter(|| probe.send_probes(interface, PROBES))??;
            // The last ones may still be in a queue.
            pause(Duration::from_millis(20));
            let now = site.tally()?;
            let is_whole = (now - sent).probes == u64::from(PROBES);
            Ok(is_whole.then(|| now - before))
        })
    }

    /// The share of slots that the file moves.
    fn plan(&self) -> Result<f64> {
        let path = self.file.display().to_string();
        let plan: Plan = self.balancer.printed(&["apply", "--dry-run", "-f", &path])?;
        let moved: u64 = plan.changes.iter().map(|change| change.slots_moved).sum();
        let table = self.balancer.client()?.table("web")?;
        let groups = table.pools.iter().flat_map(|pool| &pool.groups);
        Ok(moved as f64 / f64::from(groups.map(|group| group.slots).sum::<u32>()))
    }
}

fn show(churn: &Churn, screen: &Screen) {
    let stages = &churn.stages;
    for (what, tally) in stages.named() {
        let moved = total(&tally.moved_from);
        screen
            .done(&format!("{what}: {moved} of {PROBES} flows go to another backend than before"));
    }
    screen.done(&format!(
        "{:.2} % of slots move by the dry run; in their first second those added had {:.2} % of \
         requests",
        stages.planned * 100.0,
        stages.first_share() * 100.0,
    ));
    let Arrived { sent, tally, .. } = &churn.whole;
    screen.done(&format!(
        "{} of {} packets lost; {} of {} requests had packets at two backends",
        churn.whole.lost(),
        sent.packets(),
        total(&tally.split),
        sent.requests,
    ));
}
