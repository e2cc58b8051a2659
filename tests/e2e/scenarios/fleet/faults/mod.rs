//! Faults at random, with changes at random beside them: connections go on, and once the faults are over all agree.
//!
//! Half of the connections come to a pool that no change touches, and the router may send them to any balancer at any time:
//! they are at home. The others come to a pool whose homes change all the time. They stay at their balancer, because only
//! that one knows which of them are displaced.

mod changes;
mod inject;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_common::abi::counter::Event;
use lb_e2e::{
    faults::{self, Size},
    fixture::{FleetFixture, FleetPlan, HTTP, Tunnel},
    harness,
};
use lb_maps::PinnedMaps;
use lb_tests::{
    process::pause,
    random::Random,
    sample::{Sample, number},
    sandbox::Sandbox,
    topology::FleetFabric,
    traffic::{LongConnectionServer, LongConnections, Requests, ensure_answered},
};

use super::agreement::{wait_for_agreement, wait_until_up};
use super::calls::found_with;
use super::members::status;
use changes::Changes;
use inject::Injector;

/// Sets the seed, which otherwise follows from what the run samples.
const SEED: &str = "SPILLWAY_FAULTS_SEED";
/// Sets the minutes of faults.
const MINUTES: &str = "SPILLWAY_FAULTS_MINUTES";
/// Length of a run that has everything, minutes.
const ALL_MINUTES: u64 = 60;
/// Faults of a round, after which all have to agree.
const LONG_ROUND: Duration = Duration::from_secs(180);
/// The only round of a run that samples.
const SHORT_ROUND: Duration = Duration::from_secs(25);

/// Of each pool's connections.
const CONNECTIONS: usize = 250;
/// Opened at once.
const TOGETHER: usize = 25;
const PORT: u16 = 8080;
const PLAN: FleetPlan = FleetPlan { per_region: 3, ..FleetPlan::FLEET };
/// Open connections stay so long at their previous home; whoever is out of service for so long is marked out.
const SETTLE: &str = "20s";
/// Between two looks at what is due.
const TICK: Duration = Duration::from_millis(100);
/// Lines of each daemon's log that are shown if something breaks.
const LOG: usize = 200;
/// Each of them opens a connection for each request.
const CLIENTS: usize = 2;
const BETWEEN_REQUESTS: Duration = Duration::from_millis(100);

/// See the module.
pub(super) fn at_random(sandbox: &Sandbox) -> Result<()> {
    let sample = Sample::from_environment();
    let seed = number(SEED)?.unwrap_or_else(|| sample.seed());
    let minutes = number(MINUTES)?.or(sample.is_everything().then_some(ALL_MINUTES));
    // Said at once: whoever has to end this run knows how to repeat it.
    eprintln!("{SEED}={seed}");
    let length = minutes.map_or(SHORT_ROUND, |minutes| Duration::from_secs(60 * minutes));
    let mut run = Run::start(sandbox, seed)?;
    let begin = Instant::now();
    let mut rounds = 0;
    while rounds == 0 || begin.elapsed() < length {
        rounds += 1;
        let round = minutes.map_or(SHORT_ROUND, |_| LONG_ROUND.min(length));
        run.round(rounds, round).with_context(|| format!("{SEED}={seed}, round {rounds}"))?;
    }
    run.finish(rounds, &format!("seed {seed}, {rounds} rounds in {:.0?}", begin.elapsed()))
}

struct Run {
    fleet: FleetFixture,
    connections: LongConnections,
    requests: Requests,
    begun: Instant,
    changes: Changes,
    watch: Watch,
    random: Random,
    incidents: usize,
    longest_agreement: Duration,
    _server: LongConnectionServer,
}

impl Run {
    fn start(sandbox: &Sandbox, seed: u64) -> Result<Self> {
        let mut fleet = FleetFixture::start(sandbox, "faults", PLAN)?;
        let nodes = fleet.fabric.backends.iter().map(|backend| &backend.node);
        let server = LongConnectionServer::start(nodes, PORT)?;
        let changes = Changes::new(&fleet, seed)?;
        found_with(&fleet, &changes.configuration(&[1; 4]))?;
        wait_until_up(&mut fleet)?;
        let mut connections = LongConnections::new(&fleet.fabric.client)?;
        for batch in 0..CONNECTIONS / TOGETHER {
            let still = [Tunnel::Ip4In6, Tunnel::Ip6Ip6][batch % 2];
            connections.open(still.endpoint(PORT), TOGETHER)?;
            // The last balancer is taken out of the routes at times.
            let (prefix, _) = FleetFabric::clients_v4(batch % (fleet.balancers.len() - 1));
            let from = std::net::Ipv4Addr::from_bits(prefix.to_bits() | (1 + batch as u32));
            connections.open_from(from.into(), Tunnel::Ipip.endpoint(PORT), TOGETHER)?;
        }
        let begun = Instant::now();
        let to = Tunnel::Ip4In6.endpoint(HTTP);
        let requests = Requests::start(&fleet.fabric.client, to, CLIENTS, BETWEEN_REQUESTS);
        Ok(Self {
            fleet,
            connections,
            requests,
            begun,
            changes,
            watch: Watch::default(),
            random: Random::new(seed),
            incidents: 0,
            longest_agreement: Duration::ZERO,
            _server: server,
        })
    }

    /// Faults and changes for a while, and then agreement.
    fn round(&mut self, number: usize, length: Duration) -> Result<()> {
        let size = Size {
            etcd: PLAN.etcd.into(),
            balancers: self.fleet.balancers.len(),
            backends: self.fleet.fabric.backends.len(),
            length,
        };
        let plan = faults::plan(self.random.next(), &size);
        let mut injector = Injector::new(plan);
        let done = self.faults(&mut injector, length).and_then(|()| self.agree(&mut injector));
        done.with_context(|| self.describe(&injector))?;
        self.incidents += injector.begun();
        eprintln!(
            "round {number}: {} incidents, {} changes, {:.0?} since the beginning",
            injector.begun(),
            self.changes.made(),
            self.begun.elapsed()
        );
        Ok(())
    }

    fn faults(&mut self, injector: &mut Injector, length: Duration) -> Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < length || injector.is_busy() {
            injector.work(&mut self.fleet)?;
            self.changes.harvest()?;
            self.changes.begin_if_due(&self.fleet, injector)?;
            self.connections.ensure_open()?;
            self.watch.look(&self.fleet, injector)?;
            pause(TICK);
        }
        Ok(())
    }

    fn agree(&mut self, injector: &mut Injector) -> Result<()> {
        let begin = Instant::now();
        self.changes.finish()?;
        let generation = wait_for_agreement(&mut self.fleet, &self.connections)?;
        let took = begin.elapsed();
        self.longest_agreement = self.longest_agreement.max(took);
        self.changes.ensure_kept(&self.fleet, generation)?;
        // Who lost power takes flows again.
        injector.put_back(&mut self.fleet)?;
        self.connections.all_go_on(&[])?;
        self.requests.wait_for(2 * CLIENTS as u64)
    }

    /// What happened, for whoever has to find out why.
    fn describe(&mut self, injector: &Injector) -> String {
        let mut text = injector.log().join("\n");
        let _ = write!(text, "\nchanges:\n{}", self.changes.log().join("\n"));
        for (balancer, host) in self.fleet.balancers.iter_mut().zip(&self.fleet.fabric.balancers) {
            let status = balancer.cli(&["fleet", "status", "-o", "wide"]);
            let log = balancer.running().map(|it| it.output()).unwrap_or_default();
            let lines: Vec<_> = log.lines().collect();
            let last = lines[lines.len().saturating_sub(LOG)..].join("\n");
            let _ = write!(text, "\n{}: {status:?}\n{last}", host.name());
        }
        text
    }

    fn finish(self, rounds: usize, what: &str) -> Result<()> {
        let attempts = self.requests.finish()?;
        let answered = ensure_answered(&attempts, self.begun, Instant::now(), &[])?;
        ensure!(answered == attempts.len(), "{answered} of {} requests", attempts.len());
        let mut events = [0; 2];
        for balancer in &self.fleet.balancers {
            for (event, count) in PinnedMaps::open(&balancer.bpffs)?.events()? {
                events[0] += if event == Event::RemapTaken { count } else { 0 };
                events[1] += if event == Event::RemapNoRoom { count } else { 0 };
            }
        }
        let [taken, refused] = events;
        // Otherwise no change of homes was survived.
        ensure!(taken > 0 || rounds == 1, "no connection got a cell");
        harness::note(format!(
            "{what}: {} faults beside {} changes; 0 of {} connections broken, {answered} requests answered; all agree at \
             most {:.1?} after the last fault; changes by exit status: {:?}; connections got cells {taken} times, and \
             {refused} times there was no room for that",
            self.incidents,
            self.changes.made(),
            self.connections.connections().len(),
            self.longest_agreement,
            self.changes.by_status(),
        ));
        Ok(())
    }
}

/// What balancers had in force when they were last asked: it never goes back.
#[derive(Default)]
struct Watch {
    in_force: BTreeMap<usize, u64>,
    next: usize,
}

impl Watch {
    /// Asks one of them.
    fn look(&mut self, fleet: &FleetFixture, injector: &mut Injector) -> Result<()> {
        let balancer = self.next;
        self.next = (balancer + 1) % fleet.balancers.len();
        if !injector.answers(balancer) {
            return Ok(());
        }
        // It may just have been started.
        let Ok(status) = status(fleet, balancer) else { return Ok(()) };
        if injector.starts_anew(balancer) {
            self.in_force.remove(&balancer);
            if status.member {
                injector.joined(balancer);
            }
            return Ok(());
        }
        let mut members = status.members.iter();
        let Some(own) = members.find(|it| it.name == fleet.name(balancer) && it.generation > 0)
        else {
            return Ok(());
        };
        let now = own.generation;
        let before = self.in_force.insert(balancer, now).unwrap_or(0);
        ensure!(now >= before, "{} went back from {before} to {now}", fleet.name(balancer));
        Ok(())
    }
}
