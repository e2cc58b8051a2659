//! How long a change takes from the call at one balancer until it is in force at all, beside etcd's own time.

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
    daemon::{Balancer, Member, Pool, Service},
    process::PATIENCE,
    sample::Sample,
    sandbox::Sandbox,
    statistics::Times,
};
use spillway_proto::v1::{Configuration, WatchRequest, watch_response::Event};

use super::members::{status, wait_in_force};
use crate::api_queries::client::Client;

const POOLS: usize = 100;
/// Changes before those that are measured: balancers have only just joined, and connections are made. etcd has as many.
const WARM_UP: usize = 10;
/// Measured by turns with etcd, so often each. A plain run has a sixth of the turns.
const TURN: usize = 20;
const TURNS: u64 = 36;
/// Changes of all pools.
const WHOLE: u64 = 60;
const SAMPLED: u64 = 6;
/// What a change of one weight may take beside three times of etcd's own.
const ALLOWANCE: Duration = Duration::from_millis(100);
/// What a change of all pools may take.
const ALL_POOLS: Duration = Duration::from_secs(1);

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
    let clients = fleet.balancers.iter().map(Client::of).collect::<Result<Vec<_>>>()?;
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
    let (mut one, mut etcd) = (Times::default(), Times::default());
    for _ in 0..sample.rounds(TURNS, SAMPLED) {
        etcd.extend(fleet_put_to_watch(&fleet)?);
        let times = (0..TURN).map(|_| changes.change(1));
        one.extend(times.collect::<Result<Vec<_>>>()?);
    }
    let all = (0..sample.rounds(WHOLE, SAMPLED)).map(|_| changes.change(POOLS));
    let all = Times::new(all.collect::<Result<_>>()?);
    harness::note(format!(
        "from Apply at one to in force at all four: one weight of {POOLS} pools {one}; all pools {all}; etcd, put to watch: {etcd}"
    ));
    let bound = 3 * etcd.quantile(0.99) + ALLOWANCE;
    ensure!(one.quantile(0.99) <= bound, "one weight: {one}; bound {bound:.1?}; etcd: {etcd}");
    ensure!(all.quantile(1.0) <= ALL_POOLS, "all pools: {all}");
    waits(&fleet)
}

/// `--wait` ends once the change is in force everywhere, and the answer says so.
fn waits(fleet: &FleetFixture) -> Result<()> {
    let backend = fleet.fabric.backends[0].v4.to_string();
    let mut times = Vec::new();
    for weight in 0..5_u64 {
        let at = weight as usize % fleet.balancers.len();
        let weight = (100 + weight).to_string();
        let begin = Instant::now();
        let answer = fleet.balancers[at].ask(&[
            "backend", "update", &backend, "--pool", "pool-0", "--weight", &weight, "--wait",
        ])?;
        times.push(begin.elapsed());
        let generation = answer["generation"].as_u64().context("no generation")?;
        let balancers = answer["balancers"].as_array().context("no balancers")?;
        ensure!(
            balancers.len() == fleet.balancers.len()
                && balancers.iter().all(|it| it["generation"].as_u64() >= Some(generation)),
            "{answer:#}"
        );
        // Each says the same of itself, now and not later.
        for balancer in 0..fleet.balancers.len() {
            let status = status(fleet, balancer)?;
            let mut members = status["balancers"].as_array().into_iter().flatten();
            let own = members.find(|it| it["name"] == fleet.name(balancer));
            let own = own.and_then(|it| it["generation"].as_u64());
            ensure!(own >= Some(generation), "{}: {own:?}, not {generation}", fleet.name(balancer));
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
    let client = Client::of(balancer)?;
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
    /// Gives the first backend of so many pools another weight, at one of the balancers in their turn, and answers how
    /// long it took from the call until all had it in force.
    fn change(&mut self, pools: usize) -> Result<Duration> {
        for number in 0..pools {
            let pool = &mut self.configuration.pools[(self.made + number) % POOLS];
            let backend = pool.backends.first_mut().context("no backends")?;
            // Another one each time, whatever it was.
            backend.weight = Some(1 + backend.weight.unwrap_or(1) % 50);
        }
        let at = self.made % self.clients.len();
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
