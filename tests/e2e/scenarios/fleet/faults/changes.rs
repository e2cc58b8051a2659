//! Changes at random at any balancer, some of them at the same time, whatever becomes of them.

use std::collections::BTreeMap;
use std::process::Output;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{FleetFixture, Health, Tunnel};
use lb_tests::{
    daemon::printed::{Changed, Weighted},
    process::until,
    random::Random,
    topology::REGIONS,
};

use super::super::agreement::LONG_PATIENCE;
use super::super::calls::{CONFLICT, NOT_FOUND, UNAVAILABLE, long_services};
use super::inject::Injector;
use super::{PORT, SETTLE};

/// Most that are under way at the same time.
const MOST: usize = 6;
/// Time between two, milliseconds.
const BETWEEN: [u64; 2] = [200, 2500];
/// The daemon ended after it had committed the change.
const NOT_YET: &str = "is committed, but not in force at this balancer yet";
/// Weights are at most this: of 1009 slots two backends with it leave one of weight 1 more than 100, and no balancer
/// complains.
const WEIGHTS: u64 = 4;
/// The last ones of the log are kept.
const LOG: usize = 40;

struct Running {
    what: String,
    thread: JoinHandle<std::io::Result<Output>>,
}

/// A change of the configuration that was answered.
struct Answered {
    generation: u64,
    /// The weight that a backend has by it.
    weight: Option<(String, u32)>,
    what: String,
}

/// What changes.
pub(super) struct Changes {
    random: Random,
    /// The configuration up to the backends of the first pool, and what follows them.
    around: (String, String),
    /// Backends of the first pool with their regions, which have connections.
    backends: Vec<(String, &'static str)>,
    /// One that has none, and comes and goes.
    spare: (String, &'static str),
    running: Vec<Running>,
    due: Instant,
    made: usize,
    by_status: BTreeMap<i32, usize>,
    last: Option<Answered>,
    log: Vec<String>,
}

impl Changes {
    pub(super) fn new(fleet: &FleetFixture, seed: u64) -> Result<Self> {
        let mut document = fleet.configuration(Health::DEFAULT);
        let pool = document.pools.first_mut().context("no pool")?;
        let all: Vec<_> = std::mem::take(&mut pool.members);
        let region = |name: &str| REGIONS.into_iter().find(|it| *it == name).unwrap_or_default();
        let mut backends: Vec<_> =
            all.iter().map(|it| (it.address.to_string(), region(&it.region))).collect();
        let spare = backends.iter().rposition(|(_, region)| *region == REGIONS[0]);
        let spare = backends.remove(spare.context("no backends in the nearest region")?);
        // One of the other region too, so that as many are left there.
        backends.pop();
        let text = document.text();
        let head = "health_checks = [\"page\"]\n";
        let (before, after) = text.split_once(head).context("no pool")?;
        let services = long_services(&[Tunnel::Ipip, Tunnel::Ip4In6, Tunnel::Ip6Ip6], PORT);
        // Tables of equal size, whatever a balancer had before.
        let after = after.replace(head, &format!("{head}slots = 1009\n"));
        let region = REGIONS[0];
        let before = format!(
            "{before}{head}slots = 1009\nsettle_time = \"{SETTLE}\"\n[[pool.group]]\nregion = \"{region}\"\ncapacity = \"1000/s\"\n"
        );
        Ok(Self {
            random: Random::new(seed ^ 0x5eed),
            around: (before, after + &services),
            backends,
            spare,
            running: Vec::new(),
            due: Instant::now(),
            made: 0,
            by_status: BTreeMap::new(),
            last: None,
            log: Vec::new(),
        })
    }

    /// The configuration with these weights of the first pool's backends.
    pub(super) fn configuration(&self, weights: &[u64]) -> String {
        let mut text = self.around.0.clone();
        for ((address, region), weight) in self.backends.iter().zip(weights) {
            text += &format!(
                "[[pool.backend]]\naddress = \"{address}\"\nregion = \"{region}\"\nweight = {weight}\n"
            );
        }
        text + &self.around.1
    }

    /// Changes that were begun.
    pub(super) fn made(&self) -> usize {
        self.made
    }

    /// Changes by the exit status of the command.
    pub(super) fn by_status(&self) -> &BTreeMap<i32, usize> {
        &self.by_status
    }

    /// The last ones and what became of them.
    pub(super) fn log(&self) -> &[String] {
        &self.log[self.log.len().saturating_sub(LOG)..]
    }

    /// Begins a change if it is time for one.
    pub(super) fn begin_if_due(&mut self, fleet: &FleetFixture, injector: &Injector) -> Result<()> {
        if self.running.len() >= MOST || Instant::now() < self.due {
            return Ok(());
        }
        let wait = BETWEEN[0] + self.random.below(BETWEEN[1] - BETWEEN[0]);
        self.due = Instant::now() + Duration::from_millis(wait);
        let balancer = self.random.below(fleet.balancers.len() as u64) as usize;
        // What a balancer changes alone is no change of the fleet.
        if injector.has_left(balancer) {
            return Ok(());
        }
        let words = self.choose(fleet, balancer)?;
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let mut command = fleet.balancers[balancer].command(&words);
        let what = format!("{}: {}", fleet.name(balancer), words[2..].join(" "));
        self.made += 1;
        self.running.push(Running { what, thread: thread::spawn(move || command.output()) });
        Ok(())
    }

    fn choose(&mut self, fleet: &FleetFixture, balancer: usize) -> Result<Vec<String>> {
        let place = self.random.below(self.backends.len() as u64) as usize;
        let backend = self.backends[place].0.clone();
        let (spare, region) = self.spare.clone();
        let percent = 10 * self.random.below(11);
        let weight = 1 + self.random.below(WEIGHTS);
        let generation = self.last.as_ref().map_or(1, |it| it.generation);
        let words = match self.random.below(16) {
            0..=4 => format!("backend update {backend} --pool v4 --weight {weight}"),
            5 | 6 => {
                let weights = [(); 4].map(|()| 1 + self.random.below(WEIGHTS));
                let directory = fleet.balancers[balancer].node().directory();
                let file = directory.join(format!("change-{}.toml", self.made));
                std::fs::write(&file, self.configuration(&weights))?;
                format!("apply --yes -f {}", file.display())
            }
            7 => {
                let back = 1 + self.random.below(4);
                format!("rollback {} --yes", generation.saturating_sub(back).max(1))
            }
            8 => format!("backend create --pool v4 --address {spare} --region {region}"),
            9 => format!("backend delete {spare} --pool v4 --yes"),
            10 => format!("pool update v4 --capacity {region}={}/s", 1000 + 10 * percent),
            11 => format!("backend drain {backend} --pool v4 --yes"),
            12 => format!("backend undrain {backend} --pool v4"),
            13 => format!("backend weight {backend} --pool v4 --percent {percent} --yes"),
            14 => format!("pool scale v4 --region {region} --percent {} --yes", percent.max(10)),
            _ => format!("backend enable {backend} --pool v4"),
        };
        Ok(format!("--output json {words}").split(' ').map(str::to_owned).collect())
    }

    /// Takes note of changes that have ended.
    pub(super) fn harvest(&mut self) -> Result<()> {
        for running in std::mem::take(&mut self.running) {
            if !running.thread.is_finished() {
                self.running.push(running);
                continue;
            }
            let Running { what, thread } = running;
            let output = thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))??;
            let code = output.status.code().context("spillway was killed")?;
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().next().unwrap_or_default();
            self.log.push(format!("{what}: {code} {said}"));
            let is_refused = [UNAVAILABLE, NOT_FOUND, CONFLICT].contains(&code);
            let is_expected = code == 0 || is_refused || said.contains(NOT_YET);
            ensure!(is_expected, "{what}: {output:?}");
            *self.by_status.entry(code).or_default() += 1;
            if code == 0 {
                self.answered(what, &output.stdout);
            }
        }
        Ok(())
    }

    fn answered(&mut self, what: String, answer: &[u8]) {
        // Overrides make no generation.
        let Ok(answer) = serde_json::from_slice::<Changed>(answer) else { return };
        let Changed { generation, changes, balancers, .. } = answer;
        // A balancer alone names no balancers.
        let is_of_fleet = !balancers.is_empty();
        let is_later = self.last.as_ref().is_none_or(|last| last.generation < generation);
        if is_of_fleet && !changes.is_empty() && is_later {
            let words: Vec<_> = what.split(' ').collect();
            let weight = match words[..] {
                [_, "backend", "update", backend, _, _, "--weight", weight] => {
                    weight.parse().ok().map(|weight| (backend.to_owned(), weight))
                }
                _ => None,
            };
            self.last = Some(Answered { generation, weight, what });
        }
    }

    /// Waits until none is under way.
    pub(super) fn finish(&mut self) -> Result<()> {
        until("changes end", LONG_PATIENCE, || {
            self.harvest()?;
            Ok(self.running.is_empty().then_some(()))
        })
    }

    /// No change that was answered is lost, now that all agree on a generation.
    pub(super) fn ensure_kept(&self, fleet: &FleetFixture, agreed: u64) -> Result<()> {
        let Some(Answered { generation, weight, what }) = &self.last else { return Ok(()) };
        ensure!(
            *generation <= agreed,
            "{what}: was answered with {generation}, and {agreed} is in force"
        );
        let Some((backend, weight)) = weight.as_ref().filter(|_| *generation == agreed) else {
            return Ok(());
        };
        for balancer in 0..fleet.balancers.len() {
            let get = ["backend", "get", backend, "--pool", "v4"];
            let has: Weighted = fleet.balancers[balancer].printed(&get)?;
            ensure!(has.weight == *weight, "{what}: was answered, and there is {has:?}");
        }
        Ok(())
    }
}
