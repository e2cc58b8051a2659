//! Loads on a fleet, with what each balancer may admit meanwhile.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::FleetFixture;
use lb_tests::syns::{FullestSecond, Load, Portions, Rates, Schedule};
use spillway_proto::v1::{FleetStatus, GetFleetStatusRequest, fleet_client::FleetClient};
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};
use tonic::transport::Endpoint;

/// Between two looks at a balancer. Portions change at most once in 50 ms.
const INTERVAL: Duration = Duration::from_millis(20);
/// A balancer that takes longer is asked again.
const LONGEST: Duration = Duration::from_millis(500);

/// What a balancer said, and when.
type Samples = Vec<(Instant, f64)>;

/// Asks all balancers that run for their portions of the limited group, again and again.
#[derive(Debug)]
pub(super) struct PortionLog {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<Samples>>>,
}

impl PortionLog {
    pub(super) fn start(fleet: &FleetFixture) -> Self {
        let balancers = fleet.balancers.iter().enumerate();
        let balancers: Vec<_> = balancers
            .map(|(at, balancer)| {
                (fleet.name(at).to_owned(), format!("unix:{}", balancer.socket.display()))
            })
            .collect();
        let is_over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let follow = |(name, socket)| tokio::spawn(follow(name, socket, Arc::clone(&stop)));
                let tasks: Vec<_> = balancers.into_iter().map(follow).collect();
                let mut samples = Vec::new();
                for task in tasks {
                    samples.push(task.await??);
                }
                Ok(samples)
            })
        });
        Self { is_over, thread }
    }

    /// Ends it; `begun` is the beginning of the load.
    pub(super) fn stop(self, begun: Instant) -> Result<Portions> {
        self.is_over.store(true, Ordering::Relaxed);
        let samples = match self.thread.join() {
            Ok(samples) => samples.context("portions")?,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let after = |(at, portion): (Instant, f64)| (at.saturating_duration_since(begun), portion);
        let after = |samples: Samples| samples.into_iter().map(after).collect();
        Ok(Portions::new(samples.into_iter().map(after).collect()))
    }
}

async fn follow(name: String, socket: String, is_over: Arc<AtomicBool>) -> Result<Samples> {
    let mut client = FleetClient::new(Endpoint::from_shared(socket)?.connect_lazy());
    let mut samples = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        // One that does not answer runs on with what it enforced last.
        if let Ok(Ok(status)) =
            timeout(LONGEST, client.get_fleet_status(GetFleetStatusRequest {})).await
        {
            let portion = own_portion(&status.into_inner(), &name);
            samples.extend(portion.map(|portion| (Instant::now(), portion)));
        }
        sleep(INTERVAL).await;
    }
    Ok(samples)
}

/// `None`: it has just started and does not know yet.
pub(super) fn own_portion(status: &FleetStatus, name: &str) -> Option<f64> {
    let group = status.groups.iter().find(|group| group.capacity_per_second.is_some())?;
    group.shares.iter().find(|share| share.balancer == name).map(|share| share.portion)
}

/// A load and the portions while it runs.
#[derive(Debug)]
pub(super) struct WatchedLoad {
    pub(super) load: Load,
    log: PortionLog,
    capacity: f64,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) rates: Rates,
    pub(super) portions: Portions,
    capacity: f64,
}

impl WatchedLoad {
    pub(super) fn start(fleet: &FleetFixture, capacity: f64, schedule: Schedule) -> Result<Self> {
        let log = PortionLog::start(fleet);
        Ok(Self { load: fleet.load(schedule)?, log, capacity })
    }

    /// Waits for its end.
    pub(super) fn finish(self) -> Result<Outcome> {
        let Self { load, log, capacity } = self;
        let (begun, rates) = (load.begun(), load.finish()?);
        Ok(Outcome { rates, portions: log.stop(begun)?, capacity })
    }

    /// Ends it now.
    pub(super) fn stop(self) -> Result<Outcome> {
        let Self { load, log, capacity } = self;
        let (begun, rates) = (load.begun(), load.stop()?);
        Ok(Outcome { rates, portions: log.stop(begun)?, capacity })
    }
}

impl Outcome {
    /// Says that nothing was lost, and that no second had more than the capacity and the bursts of the balancers. Answers the
    /// one that came closest.
    pub(super) fn judge(&self) -> Result<FullestSecond> {
        let rates = &self.rates;
        ensure!(rates.lost() == 0, "{} were lost\n{rates}", rates.lost());
        self.judge_admissions(Duration::ZERO..Duration::MAX, 0.0)
    }

    /// Says that no second that lies within some time had more than the capacity, the bursts and so many more.
    pub(super) fn judge_admissions(
        &self,
        time: Range<Duration>,
        more: f64,
    ) -> Result<FullestSecond> {
        let arrivals: Vec<_> =
            self.rates.arrival_times(0).into_iter().filter(|at| time.contains(at)).collect();
        let fullest = self.portions.fullest_second(&arrivals, self.capacity);
        let fullest = fullest.context("nothing arrived in the nearest region")?;
        let rates = &self.rates;
        ensure!(fullest.over() <= more, "{fullest}, and {more:.0} more at most\n{rates}");
        Ok(fullest)
    }

    /// Of what was sent between two moments, the percentage that went elsewhere than to the nearest region.
    pub(super) fn percent_elsewhere(&self, from: Duration, to: Duration) -> f64 {
        100.0 * self.rates.share_elsewhere(from..to)
    }

    /// What arrived in the nearest region between two moments, as a part of what it takes.
    pub(super) fn used(&self, from: Duration, to: Duration) -> f64 {
        self.rates.arrived_per_second(0, from..to) / self.capacity
    }
}
