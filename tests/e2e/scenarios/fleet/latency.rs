//! How long a change takes from the call at one balancer until it is in force at all, beside etcd's own time and the time
//! for which one balancer computes it.

use std::{
    collections::BTreeMap,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::{
    etcd::put_to_watch,
    fixture::{FleetFixture, FleetPlan, Health, Tunnel},
    harness,
};
use lb_tests::{
    daemon::{Balancer, Client, Member, Pool, Service, answers::member, printed::Changed},
    process::PATIENCE,
    sample::Sample,
    sandbox::Sandbox,
    statistics::Times,
};
use spillway_proto::v1::{Configuration, WatchRequest, watch_response::Event};

use super::members::{status, wait_in_force};

const POOLS: usize = 100;
/// Changes before those that are measured: balancers have only just joined, and connections are made. etcd has as many.
const WARM_UP: usize = 10;
/// Measured by turns with etcd, so often each. A plain run has a sixth of the turns.
const TURN: usize = 20;
const TURNS: u64 = 36;
/// Changes of all pools.
const WHOLE: u64 = 60;
const SAMPLED: u64 = 6;
/// How many times as long as etcd, and a dry run of the same change at one balancer, a change may take. Both are measured
/// in turns with it, so that a slow machine is slow in them too; all four balancers are on it.
const FACTOR: u32 = 15;

/// A balancer had a generation in force.
struct InForce {
    balancer: usize,
    generation: u64,
    at: Instant,
}

/// A weight is in force at all balancers soon after etcd has it, and so are weights of all pools.
pub(super) fn changes(sandbox: &Sandbox) -> Result<()> {
    let sample = Sample::from_environment();
    let fleet = start(sandbox)?;
    let clients = fleet.balancers.iter().map(Balancer::client).collect::<Result<Vec<_>>>()?;
    let (in_force_tx, in_force_rx) = mpsc::channel();
    let mut changes = Changes {
        configuration: clients[0].export()?.1,
        clients,
        in_force_rx,
        seen: BTreeMap::new(),
        made: 0,
    };
    for (number, balancer) in fleet.balancers.iter().enumerate() {
        watch(number, balancer, in_force_tx.clone())?;
    }

    for _ in 0..WARM_UP {
        changes.change(1)?;
    }
    let mut etcd = Times::default();
    let (mut one, mut all) = (Measured::default(), Measured::default());
    for _ in 0..sample.rounds(TURNS, SAMPLED) {
        etcd.extend(fleet_put_to_watch(&fleet)?);
        (0..TURN).try_for_each(|_| one.measure(&mut changes, 1))?;
    }
    (0..sample.rounds(WHOLE, SAMPLED)).try_for_each(|_| all.measure(&mut changes, POOLS))?;
    harness::note(format!(
        "from Apply at one to in force at all four: one weight of {POOLS} pools {}; all pools {}; dry runs {} and {}; etcd, \
         put to watch: {etcd}",
        one.changes, all.changes, one.dry_runs, all.dry_runs
    ));
    for (what, measured) in [("one weight", one), ("all pools", all)] {
        let [took, dry_run, etcd] =
            [&measured.changes, &measured.dry_runs, &etcd].map(|times| times.quantile(0.5));
        ensure!(
            took <= FACTOR * (etcd + dry_run),
            "{what}: {took:.1?}, where etcd takes {etcd:.1?} and a dry run {dry_run:.1?}"
        );
    }
    waits(&fleet)
}

/// Changes, and before each a dry run of it at the same balancer.
#[derive(Default)]
struct Measured {
    changes: Times,
    dry_runs: Times,
}

impl Measured {
    fn measure(&mut self, changes: &mut Changes, pools: usize) -> Result<()> {
        self.dry_runs.extend([changes.dry_run(pools)?]);
        self.changes.extend([changes.change(pools)?]);
        Ok(())
    }
}

/// `--wait` ends once the change is in force everywhere, and the answer says so.
fn waits(fleet: &FleetFixture) -> Result<()> {
    let backend = fleet.fabric.backends[0].v4.to_string();
    let mut times = Vec::new();
    for weight in 0..5_u64 {
        let at = weight as usize % fleet.balancers.len();
        let weight = (100 + weight).to_string();
        let begin = Instant::now();
        let answer: Changed = fleet.balancers[at].printed(&[
            "backend", "update", &backend, "--pool", "pool-0", "--weight", &weight, "--wait",
        ])?;
        times.push(begin.elapsed());
        let generation = answer.generation;
        ensure!(
            answer.balancers.len() == fleet.balancers.len()
                && answer.balancers.iter().all(|it| it.generation >= Some(generation)),
            "{answer:#?}"
        );
        // Each says the same of itself, now and not later.
        for balancer in 0..fleet.balancers.len() {
            let own = member(&status(fleet, balancer)?, fleet.name(balancer))?.generation;
            ensure!(own >= generation, "{}: {own}, not {generation}", fleet.name(balancer));
        }
    }
    harness::note(format!("a command with --wait: {}", Times::new(times)));
    Ok(())
}

fn start(sandbox: &Sandbox) -> Result<FleetFixture> {
    let mut fleet = FleetFixture::start(sandbox, "latency", FleetPlan::FLEET)?;
    let mut document = fleet.configuration(Health::DEFAULT);
    let backends = &fleet.fabric.backends;
    let members = || {
        let member =
            |address| move |region: &str| Member { address, region: region.into(), weight: 1 };
        backends.iter().map(|it| member(it.v4.into())(it.region)).collect()
    };
    let pool = |number| Pool {
        name: format!("pool-{number}"),
        checks: vec!["page".into()],
        members: members(),
    };
    let service = |number| Service {
        name: format!("service-{number}"),
        address: Tunnel::Ipip.vip(),
        port: 1000 + number as u16,
        protocol: "tcp",
        pool: format!("pool-{number}"),
    };
    document.pools = (0..POOLS).map(pool).collect();
    document.services = (0..POOLS).map(service).collect();
    fleet.balancers[0].apply(&document.text())?;
    for balancer in 0..fleet.balancers.len() {
        fleet.spillway(balancer, &["fleet", "join", "--yes"])?;
    }
    wait_in_force(&fleet, 0, 1)?;
    let addresses: Vec<_> = backends_v4(&fleet);
    fleet.balancers.iter_mut().try_for_each(|it| it.wait_up(&addresses, PATIENCE))?;
    Ok(fleet)
}

fn backends_v4(fleet: &FleetFixture) -> Vec<std::net::IpAddr> {
    fleet.fabric.backends.iter().map(|it| it.v4.into()).collect()
}

/// etcd's own time, from the first balancer to the last one.
fn fleet_put_to_watch(fleet: &FleetFixture) -> Result<Times> {
    let cluster = fleet.etcd.as_ref().context("no etcd")?;
    let of = |n: usize| (&fleet.fabric.balancers[n].node, Some(&fleet.certificates[n]));
    put_to_watch(cluster, of(0), of(fleet.balancers.len() - 1), TURN)
}

/// Says of each generation when a balancer had it in force. Ends with the daemon or with whoever listens.
fn watch(number: usize, balancer: &Balancer, in_force_tx: mpsc::Sender<InForce>) -> Result<()> {
    let client = balancer.client()?;
    let mut stream = client.call(async |mut it| it.watch(WatchRequest::default()).await)?;
    thread::spawn(move || {
        while let Ok(Ok(Some(message))) = client.wait(stream.message()) {
            let at = Instant::now();
            if let Some(Event::Generation(change)) = message.event {
                let in_force = InForce { balancer: number, generation: change.generation, at };
                if in_force_tx.send(in_force).is_err() {
                    break;
                }
            }
        }
    });
    Ok(())
}

struct Changes {
    clients: Vec<Client>,
    configuration: Configuration,
    in_force_rx: mpsc::Receiver<InForce>,
    /// By generations that were not waited for yet, when balancers had them.
    seen: BTreeMap<u64, BTreeMap<usize, Instant>>,
    made: usize,
}

impl Changes {
    /// The configuration with another weight of the first backend of so many pools, and the balancer whose turn it is.
    fn next(&self, pools: usize) -> Result<(Configuration, usize)> {
        let mut configuration = self.configuration.clone();
        for number in 0..pools {
            let pool = &mut configuration.pools[(self.made + number) % POOLS];
            let backend = pool.backends.first_mut().context("no backends")?;
            // Another one each time, whatever it was.
            backend.weight = Some(1 + backend.weight.unwrap_or(1) % 50);
        }
        Ok((configuration, self.made % self.clients.len()))
    }

    /// How long the next change takes at its balancer if it is not to be in force.
    fn dry_run(&self, pools: usize) -> Result<Duration> {
        let (configuration, at) = self.next(pools)?;
        let begin = Instant::now();
        let result = self.clients[at].apply(&configuration, true)?;
        let took = begin.elapsed();
        ensure!(!result.changes.is_empty(), "nothing would change: {result:?}");
        Ok(took)
    }

    /// Makes the next change, and answers how long it took from the call until all had it in force.
    fn change(&mut self, pools: usize) -> Result<Duration> {
        let (configuration, at) = self.next(pools)?;
        self.configuration = configuration;
        self.made += 1;
        let begin = Instant::now();
        let result = self.clients[at].apply(&self.configuration, false)?;
        let generation = result.generation;
        ensure!(!result.changes.is_empty(), "nothing changed: {result:?}");
        // The answer says where it is in force: here at least.
        let own = format!("lb-{}", 1 + at);
        let own = result.balancers.iter().find(|it| it.balancer == own);
        ensure!(own.is_some_and(|it| it.generation >= generation), "{:?}", result.balancers);
        loop {
            let there = self.seen.entry(generation).or_default();
            if there.len() == self.clients.len() {
                let last = there.values().max().copied().context("no balancers")?;
                self.seen.retain(|it, _| *it > generation);
                return Ok(last.saturating_duration_since(begin));
            }
            let next = self.in_force_rx.recv_timeout(PATIENCE);
            let InForce { balancer, generation, at } =
                next.with_context(|| format!("generation {generation} is at {there:?}"))?;
            self.seen.entry(generation).or_default().insert(balancer, at);
        }
    }
}
