//! A month of a fleet in an hour: thousands of changes, and everything beside them that happens to hosts, disks, clocks,
//! certificates and etcd in a month. After each event all balancers agree, and nothing has grown.
//!
//! Events are compressed, not clocks: history is kept for the settle time, which passes many times. Only the hour that an
//! override stays without its backend passes by setting the wall clocks of daemons that do not run.

mod events;
mod invariants;
mod pipeline;

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::{
    etcd::EtcdOptions,
    fixture::{FleetFixture, FleetPlan, HTTP, Tunnel},
    harness,
    wall_clock::WallClock,
};
use lb_tests::{
    daemon::{Balancer, HTTP_ADDRESS},
    disk::Disk,
    random::Random,
    sample::{Sample, number},
    sandbox::Sandbox,
    traffic::{LongConnectionServer, LongConnections, Requests, ensure_answered},
};

use super::{
    agreement::{wait_for_agreement, wait_until_up},
    calls::found_with,
};
use events::Event;
use invariants::Sizes;
use pipeline::Pipeline;

/// Sets the seed, which otherwise follows from what the run samples.
const SEED: &str = "SPILLWAY_MONTH_SEED";
/// Sets the number of changes.
const CHANGES: &str = "SPILLWAY_MONTH_CHANGES";
/// Changes of a run that has everything, and of one that samples.
const ALL_CHANGES: u64 = 3000;
const FEW_CHANGES: u64 = 60;
/// Changes between two events.
const BETWEEN: usize = 15;

/// How long connections stay at their previous home. History is kept three times as long.
const SETTLE: &str = "15s";
const PORT: u16 = 8080;
const CONNECTIONS: usize = 100;
const CLIENTS: usize = 2;
const BETWEEN_REQUESTS: Duration = Duration::from_millis(100);
/// etcd keeps what was replaced for an hour, as docs/fleet.md sets it up; that is compressed too.
const RETENTION: EtcdOptions = EtcdOptions { quota: None, retention: Some("2m") };
const PLAN: FleetPlan = FleetPlan { per_region: 3, etcd_options: RETENTION, ..FleetPlan::FLEET };
/// The balancer whose state is on a disk of its own.
const ON_DISK: usize = 3;
/// Lines of each daemon's log that are shown if something breaks, and events.
const LOG: usize = 200;

/// See the module.
pub(super) fn passes(sandbox: &Sandbox) -> Result<()> {
    let sample = Sample::from_environment();
    let seed = number(SEED)?.unwrap_or_else(|| sample.seed());
    let all = if sample.is_everything() { ALL_CHANGES } else { FEW_CHANGES };
    let changes = number(CHANGES)?.unwrap_or(all);
    // At once: a run that is ended by hand can be repeated too.
    eprintln!("{SEED}={seed} {CHANGES}={changes}");
    let mut month = Month::start(sandbox, seed)?;
    while (month.pipeline.made() as u64) < changes {
        let passed = month.next_event();
        passed
            .with_context(|| format!("{SEED}={seed} {CHANGES}={changes}\n{}", month.describe()))?;
    }
    month.finish(seed)
}

struct Month {
    /// The disk goes first, so that it answers when the daemon is waited for.
    disk: Disk,
    fleet: FleetFixture,
    clocks: Vec<WallClock>,
    /// Hours that all clocks are ahead.
    hours: i64,
    connections: LongConnections,
    requests: Requests,
    pipeline: Pipeline,
    /// Balancers out of the routes until all agree.
    out: BTreeSet<usize>,
    /// What happens before everything happens once more, the next one last.
    coming: Vec<Event>,
    random: Random,
    events: usize,
    sizes: Sizes,
    longest_agreement: Duration,
    log: Vec<String>,
    begun: Instant,
    _server: LongConnectionServer,
}

impl Month {
    fn start(sandbox: &Sandbox, seed: u64) -> Result<Self> {
        let mut fleet = FleetFixture::prepare(sandbox, "month", PLAN)?;
        let disk = Disk::mount(sandbox)?;
        fleet.balancers[ON_DISK].state = disk.directory().join("state");
        for balancer in &mut fleet.balancers {
            balancer.more = vec!["--http".into(), HTTP_ADDRESS.to_string()];
        }
        let clocks = fleet.balancers.iter_mut().map(WallClock::give_to);
        let clocks = clocks.collect::<Result<Vec<_>>>()?;
        fleet.balancers.iter_mut().try_for_each(Balancer::spawn)?;
        fleet.balancers.iter_mut().try_for_each(Balancer::wait_until_it_answers)?;

        let nodes = fleet.fabric.backends.iter().map(|backend| &backend.node);
        let server = LongConnectionServer::start(nodes, PORT)?;
        let pipeline = Pipeline::new(&fleet, seed)?;
        found_with(&fleet, &pipeline::configuration(&fleet)?)?;
        wait_until_up(&mut fleet)?;
        let mut connections = LongConnections::new(&fleet.fabric.client)?;
        for still in [Tunnel::Ip4In6, Tunnel::Ip6Ip6] {
            connections.open(still.endpoint(PORT), CONNECTIONS / 2)?;
        }
        let begun = Instant::now();
        let to = Tunnel::Ip4In6.endpoint(HTTP);
        let requests = Requests::start(&fleet.fabric.client, to, CLIENTS, BETWEEN_REQUESTS);
        Ok(Self {
            disk,
            fleet,
            clocks,
            hours: 0,
            connections,
            requests,
            pipeline,
            out: BTreeSet::new(),
            coming: Vec::new(),
            random: Random::new(seed),
            events: 0,
            sizes: Sizes::default(),
            longest_agreement: Duration::ZERO,
            log: Vec::new(),
            begun,
            _server: server,
        })
    }

    /// Some changes, an event, and agreement.
    fn next_event(&mut self) -> Result<()> {
        if self.coming.is_empty() {
            self.coming = events::shuffled(&mut self.random);
        }
        let (name, happen) = self.coming.pop().context("there are no events")?;
        self.changes(BETWEEN)?;
        self.note(name.to_owned());
        self.events += 1;
        happen(self).context(name)?;
        self.agree().with_context(|| format!("after: {name}"))?;
        for balancer in std::mem::take(&mut self.out) {
            self.fleet.fabric.put_back(balancer)?;
        }
        self.ensure_invariants().with_context(|| format!("after: {name}"))?;
        self.connections.all_go_on(&[])?;
        self.requests.wait_for(2 * CLIENTS as u64)
    }

    fn agree(&mut self) -> Result<()> {
        let begin = Instant::now();
        wait_for_agreement(&mut self.fleet, &self.connections)?;
        let took = begin.elapsed();
        self.longest_agreement = self.longest_agreement.max(took);
        self.note(format!("all agree after {took:.1?}"));
        Ok(())
    }

    /// So many changes at balancers that run.
    fn changes(&mut self, number: usize) -> Result<()> {
        for _ in 0..number {
            self.pipeline.change(&self.fleet)?;
            self.connections.ensure_open()?;
        }
        Ok(())
    }

    fn note(&mut self, what: String) {
        let at = self.begun.elapsed().as_secs_f64();
        let line = format!("{at:8.2} s, {} changes: {what}", self.pipeline.made());
        eprintln!("{line}");
        self.log.push(line);
    }

    /// What happened, for finding out why.
    fn describe(&mut self) -> String {
        let last = |lines: &[String]| lines[lines.len().saturating_sub(LOG)..].join("\n");
        let mut text = format!("{}\nchanges:\n{}", last(&self.log), last(self.pipeline.log()));
        for (balancer, host) in self.fleet.balancers.iter_mut().zip(&self.fleet.fabric.balancers) {
            let status = balancer.cli(&["fleet", "status", "-o", "wide"]);
            let log = balancer.running().map(|it| it.output()).unwrap_or_default();
            let lines: Vec<_> = log.lines().map(str::to_owned).collect();
            let _ = write!(text, "\n{}: {status:?}\n{}", host.name(), last(&lines));
        }
        text
    }

    fn finish(self, seed: u64) -> Result<()> {
        let attempts = self.requests.finish()?;
        let answered = ensure_answered(&attempts, self.begun, Instant::now(), &[])?;
        ensure!(answered == attempts.len(), "{answered} of {} requests", attempts.len());
        harness::note(format!(
            "seed {seed}: {} changes ({} tried again) and {} events in {:.0?}; all agree at most {:.1?} after an event; 0 of {} \
             connections broken, {answered} requests answered; {}",
            self.pipeline.made(),
            self.pipeline.tried_again(),
            self.events,
            self.begun.elapsed(),
            self.longest_agreement,
            self.connections.connections().len(),
            self.sizes,
        ));
        Ok(())
    }
}
