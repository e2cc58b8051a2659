//! Changes of the configuration and of overrides, one after the other, at any balancer; and what has to be there by them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{FleetFixture, Health, Tunnel};
use lb_tests::{daemon::printed::Changed, process::until, random::Random, topology::REGIONS};
use spillway_proto::v1::Configuration;

use super::super::agreement::LONG_PATIENCE;
use super::super::calls::{CONFLICT, NOT_FOUND, UNAVAILABLE, long_services, reweigh};
use super::{PORT, SETTLE};

/// Weights are at most this: of 1009 slots two backends with it leave one of weight 1 more than 100, and no balancer
/// complains.
const WEIGHTS: u64 = 4;
/// The change is committed, and only this balancer is late.
const NOT_YET: &str = "is committed, but not in force at this balancer yet";

/// The configuration that the month begins with.
pub(super) fn configuration(fleet: &FleetFixture) -> Result<String> {
    let text = fleet.configuration_with(Health::DEFAULT, "1000/s", None)?;
    let slots = "slots = 1009\n";
    let text = text.replace(slots, &format!("{slots}settle_time = \"{SETTLE}\"\n"));
    Ok(text + &long_services(&[Tunnel::Ip4In6, Tunnel::Ip6Ip6], PORT))
}

/// What a pool has to have.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ExpectedPool {
    /// Weights of its backends.
    weights: BTreeMap<String, u32>,
    /// Connections a second.
    capacity: u64,
}

/// The changes of the month.
pub(super) struct Pipeline {
    random: Random,
    expected: ExpectedPool,
    /// What a rollback gives back, and its number; `None`: it is not known.
    before: Option<(u64, ExpectedPool)>,
    /// The generation of `expected`, if it was answered.
    generation: Option<u64>,
    /// Overrides that have to be there, by their paths.
    drains: BTreeMap<String, Drain>,
    /// Balancers that are not asked.
    pub(super) away: BTreeSet<usize>,
    made: usize,
    tried_again: usize,
    log: Vec<String>,
}

/// A drain of a backend.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    /// When it ends by itself.
    pub(super) ends: Option<Instant>,
}

/// The path of a backend's drain.
pub(super) fn drain_of(backend: &str) -> String {
    format!("backends/{backend}/drain")
}

impl Pipeline {
    pub(super) fn new(fleet: &FleetFixture, seed: u64) -> Result<Self> {
        let weights = fleet.fabric.backends.iter().map(|it| (it.v4.to_string(), 1)).collect();
        Ok(Self {
            random: Random::new(seed ^ 0x5eed),
            expected: ExpectedPool { weights, capacity: 1000 },
            before: None,
            generation: Some(1),
            drains: BTreeMap::new(),
            away: BTreeSet::new(),
            made: 0,
            tried_again: 0,
            log: Vec::new(),
        })
    }

    /// Changes that were answered.
    pub(super) fn made(&self) -> usize {
        self.made
    }

    /// Answers that had to be asked for again.
    pub(super) fn tried_again(&self) -> usize {
        self.tried_again
    }

    pub(super) fn log(&self) -> &[String] {
        &self.log
    }

    /// Overrides that have to be there, by their paths.
    pub(super) fn drains(&mut self) -> &mut BTreeMap<String, Drain> {
        &mut self.drains
    }

    pub(super) fn has(&self, backend: &str) -> bool {
        self.expected.weights.contains_key(backend)
    }

    /// Whether it is drained until that is taken back.
    pub(super) fn is_drained(&self, backend: &str) -> bool {
        self.drains.get(&drain_of(backend)).is_some_and(|it| it.ends.is_none())
    }

    /// Makes a change at random.
    pub(super) fn change(&mut self, fleet: &FleetFixture) -> Result<()> {
        let backends: Vec<_> = self.expected.weights.keys().cloned().collect();
        let backend = &backends[self.random.below(backends.len() as u64) as usize];
        match self.random.below(16) {
            0 | 1 => {
                let capacity = 1000 + 10 * self.random.below(100);
                let limit = format!("{}={capacity}/s", REGIONS[0]);
                self.ask(fleet, &["pool", "update", "v4", "--capacity", &limit])?;
                self.expected.capacity = capacity;
            }
            2 if self.before.is_some() => self.roll_back(fleet)?,
            3 | 4 if self.is_drained(backend) => self.undrain(fleet, backend)?,
            // One at a time, so that those that are left have room.
            3 if self.drains.is_empty() => self.drain(fleet, backend, None)?,
            _ => {
                // Another one than it has: to ask for what is there changes nothing.
                let step = 1 + self.random.below(WEIGHTS - 1) as u32;
                let weight = 1 + (self.expected.weights[backend] - 1 + step) % WEIGHTS as u32;
                let text = weight.to_string();
                let [change @ .., _wait] = reweigh(backend, &text);
                self.ask(fleet, &change)?;
                self.expected.weights.insert(backend.clone(), weight);
            }
        }
        Ok(())
    }

    fn roll_back(&mut self, fleet: &FleetFixture) -> Result<()> {
        let Some((number, expected)) = self.before.take() else { return Ok(()) };
        self.ask(fleet, &["rollback", &number.to_string(), "--yes"])?;
        self.expected = expected;
        self.before = None;
        Ok(())
    }

    /// A backend takes no new connections, for a time or until that is taken back.
    pub(super) fn drain(
        &mut self,
        fleet: &FleetFixture,
        backend: &str,
        time: Option<Duration>,
    ) -> Result<()> {
        let text = time.map(|time| format!("{}s", time.as_secs()));
        let mut drain = vec!["backend", "drain", backend, "--yes"];
        drain.extend(text.iter().flat_map(|text| ["--for", text.as_str()]));
        self.ask(fleet, &drain)?;
        let ends = time.map(|time| Instant::now() + time);
        self.drains.insert(drain_of(backend), Drain { ends });
        Ok(())
    }

    pub(super) fn undrain(&mut self, fleet: &FleetFixture, backend: &str) -> Result<()> {
        self.ask(fleet, &["backend", "undrain", backend])?;
        self.drains.remove(&drain_of(backend));
        Ok(())
    }

    pub(super) fn remove(&mut self, fleet: &FleetFixture, backend: &str) -> Result<()> {
        self.ask(fleet, &["backend", "delete", backend, "--pool", "v4", "--yes"])?;
        self.expected.weights.remove(backend);
        // A rollback would bring it back.
        self.before = None;
        Ok(())
    }

    pub(super) fn add(&mut self, fleet: &FleetFixture, backend: &str, region: &str) -> Result<()> {
        self.ask(fleet, &["backend", "create", backend, "--pool", "v4", "--region", region])?;
        self.expected.weights.insert(backend.into(), 1);
        self.before = None;
        Ok(())
    }

    /// Asks any balancer for a change until one has made it. To ask again for what was made is no mistake: each change says
    /// what has to be, and not by how much.
    fn ask(&mut self, fleet: &FleetFixture, words: &[&str]) -> Result<()> {
        let all: Vec<_> = ["--output", "json"].iter().chain(words).copied().collect();
        let mut is_again = false;
        let changed = until(&words.join(" "), LONG_PATIENCE, || {
            let balancer = self.any(fleet);
            let output = fleet.balancers[balancer].try_cli(&all, None)?;
            let code = output.status.code().context("spillway was killed")?;
            let stderr = String::from_utf8_lossy(&output.stderr);
            let message = stderr.lines().next().unwrap_or_default();
            let command = words.join(" ");
            self.log.push(format!("{}: {command}: {code} {message}", fleet.name(balancer)));
            if code == 0 {
                return Ok(Some(serde_json::from_slice::<Changed>(&output.stdout).ok()));
            }
            // It was made before, and only the answer was lost.
            if message.contains(NOT_YET) || (is_again && code == NOT_FOUND) {
                return Ok(Some(None));
            }
            let is_made = is_again && code == CONFLICT && message.contains("exists");
            ensure!(is_made || [UNAVAILABLE, CONFLICT].contains(&code), "{words:?}: {output:?}");
            is_again = true;
            self.tried_again += 1;
            Ok(is_made.then_some(None))
        })
        .with_context(|| self.log.last().cloned().unwrap_or_default())?;
        self.made += 1;
        if words.first() == Some(&"backend") && ["drain", "undrain"].contains(&words[1]) {
            return Ok(());
        }
        let now = changed.filter(|it| !it.changes.is_empty()).map(|it| it.generation);
        self.before = self.generation.zip(now).map(|(before, _)| (before, self.expected.clone()));
        self.generation = now;
        Ok(())
    }

    fn any(&mut self, fleet: &FleetFixture) -> usize {
        let there: Vec<_> =
            (0..fleet.balancers.len()).filter(|it| !self.away.contains(it)).collect();
        there[self.random.below(there.len() as u64) as usize]
    }

    /// A configuration has what was answered last.
    pub(super) fn ensure_kept(&self, configuration: &Configuration) -> Result<()> {
        let pool = configuration.pools.iter().find(|it| it.name == "v4").context("no pool v4")?;
        let weights = pool.backends.iter().map(|it| (it.address.clone(), it.weight.unwrap_or(1)));
        let groups = pool.groups.iter().filter(|it| it.region == REGIONS[0]);
        let capacity = groups.filter_map(|it| it.capacity_per_second).next().unwrap_or(0.0);
        let has = ExpectedPool { weights: weights.collect(), capacity: capacity as u64 };
        ensure!(has == self.expected, "there is {has:?}\nand not {:?}", self.expected);
        Ok(())
    }
}
