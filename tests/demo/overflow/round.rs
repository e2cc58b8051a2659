//! A run of httperf, and what the servers wrote down of it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};
use lb_tests::process::until;
use lb_tests::topology::{Fabric, REGIONS};
use lb_tests::traffic::{ClientCounters, HttperfReport};

use super::setup::Setup;
use crate::shared::Screen;

/// A line of a log is written when its answer is: a moment before the client has it, or after.
const LOGS: Duration = Duration::from_secs(5);

/// What was seen.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    /// Requests a second, the tutorial's.
    pub(crate) rate: f64,
    /// What httperf said.
    pub(crate) client: HttperfReport,
    /// Seconds since 1970: httperf was started.
    pub(crate) from: f64,
    /// Connections that the balancer counted for each region.
    pub(crate) counted: [u64; 2],
    /// SYNs that the client's kernel had to send again.
    pub(crate) syns_repeated: u64,
    /// When connections arrived at each region, by its servers' logs: seconds since 1970, in order.
    pub(crate) arrivals: [Vec<f64>; 2],
}

impl Round {
    /// Runs it to its end through the VIP.
    pub(crate) fn run(setup: &Setup, rate: f64, screen: &mut Screen) -> Result<Self> {
        let httperf = setup.httperf(rate);
        let vip = Fabric::VIP_V4.to_string();
        screen.command("client", &format!("httperf {}", httperf.arguments(&vip).join(" ")));
        let (from, before) = (now(), counted(setup)?);
        let kernel = ClientCounters::read(&setup.fabric.client)?;
        let client = httperf.run(&setup.fabric.client, &vip)?;
        let arrivals = arrivals(setup, from, client.replies)?;
        let (after, kernel) =
            (counted(setup)?, ClientCounters::read(&setup.fabric.client)?.since(&kernel));
        let counted = [after[0] - before[0], after[1] - before[1]];
        let syns_repeated = kernel.syns_repeated;
        let round = Self { rate, client, from, counted, syns_repeated, arrivals };
        screen.done(&round.line(setup));
        round.check()?;
        Ok(round)
    }

    /// Connections of each region.
    pub(crate) fn counts(&self) -> [usize; 2] {
        [self.arrivals[0].len(), self.arrivals[1].len()]
    }

    /// No connection failed, every answer stands in a log, and the balancer counted them alike.
    fn check(&self) -> Result<()> {
        let HttperfReport { connections, replies, successes, errors, .. } = self.client;
        let rate = self.rate;
        ensure!(errors == 0, "{rate}/s: {errors} connections failed");
        ensure!(
            successes == connections && replies == connections,
            "{rate}/s: {connections} connections, {replies} replies, {successes} of them good"
        );
        let logged = self.counts().map(|count| count as u64);
        let sum: u64 = logged.iter().sum();
        ensure!(sum == replies, "{rate}/s: {replies} replies, but {sum} in the logs");
        for (region, (logged, counted)) in logged.iter().zip(self.counted).enumerate() {
            // A SYN that was sent twice may have been counted twice.
            let fair = *logged..=logged + self.syns_repeated;
            let region = REGIONS[region];
            ensure!(
                fair.contains(&counted),
                "{rate}/s: {logged} connections in the logs of {region}, {counted} by the balancer"
            );
        }
        Ok(())
    }

    fn line(&self, setup: &Setup) -> String {
        let [near, far] = self.counts();
        format!(
            "{:>4} requests/s: average {:6.0} ms, longest {:6.0} ms, {} errors; {} {near}, {} {far}",
            self.rate,
            setup.scale.told(self.client.average_ms),
            setup.scale.told(self.client.max_ms),
            self.client.errors,
            REGIONS[0],
            REGIONS[1],
        )
    }
}

/// Arrivals at the VIP since a time by region, once the logs hold `replies` of them; if they never
/// do, as they are.
fn arrivals(setup: &Setup, since: f64, replies: u64) -> Result<[Vec<f64>; 2]> {
    let read = || -> Result<[Vec<f64>; 2]> {
        let mut arrivals: [Vec<f64>; 2] = Default::default();
        for (backend, server) in setup.fabric.backends.iter().zip(&setup.servers) {
            let region = usize::from(backend.region != REGIONS[0]);
            let visits = server.visits(Fabric::VIP_V4.into(), since)?;
            arrivals[region].extend(visits.iter().map(|visit| visit.arrived));
        }
        arrivals.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
        Ok(arrivals)
    };
    let whole = until("the logs are complete", LOGS, || {
        let arrivals = read()?;
        let lines: usize = arrivals.iter().map(Vec::len).sum();
        Ok((lines as u64 >= replies).then_some(arrivals))
    });
    whole.or_else(|_| read())
}

/// Connections that the balancer has counted so far for each region.
fn counted(setup: &Setup) -> Result<[u64; 2]> {
    let stats = setup.balancer.stats()?;
    let mut counted = [0; 2];
    for backend in &setup.fabric.backends {
        let address = backend.v4.to_string();
        let of = stats.backends.iter().filter(|row| row.backend == address);
        let connections: u64 = of.map(|row| row.connections).sum();
        counted[usize::from(backend.region != REGIONS[0])] += connections;
    }
    Ok(counted)
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
