//! Loads on a fleet, with what each balancer may admit meanwhile.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::FleetFixture;
use lb_tests::syns::{Connection, FullestSecond, Limit, Load, Portions, Rates, Schedule};
use spillway_proto::v1::{FleetStatus, GetFleetStatusRequest, fleet_client::FleetClient};
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};
use tonic::transport::Endpoint;

/// Between two looks at a balancer. Portions change at most once in 50 ms.
const INTERVAL: Duration = Duration::from_millis(20);
/// A balancer that takes longer is asked again.
const LONGEST: Duration = Duration::from_millis(500);

/// A fleet uses so much of its capacity at most.
const MOST_USED: f64 = 1.005;

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

    /// Says that of what was sent within some time at most so many percent went elsewhere. A sender that others held up sends
    /// more at once than there is room for: what one limiter of the whole capacity refuses of that may go there twice.
    pub(super) fn judge_elsewhere(&self, time: Range<Duration>, most: f64) -> Result<Elsewhere> {
        let within = |it: &(&Connection, bool)| time.contains(&it.0.sent);
        let by_one: Vec<_> = self.by_one_limiter().into_iter().filter(within).collect();
        let refused = by_one.iter().filter(|(_, is_admitted)| !is_admitted).count();
        let elsewhere = Elsewhere {
            percent: 100.0 * self.rates.share_elsewhere(time.clone()),
            by_one: 100.0 * refused as f64 / by_one.len() as f64,
        };
        let rates = &self.rates;
        ensure!(elsewhere.percent <= most + 2.0 * elsewhere.by_one, "{elsewhere}\n{rates}");
        Ok(elsewhere)
    }

    /// What arrived in the nearest region between two moments, as a part of what it takes.
    pub(super) fn used(&self, from: Duration, to: Duration) -> f64 {
        self.rates.arrived_per_second(0, from..to) / self.capacity
    }

    /// Says that between two moments at least this part of what one limiter of the whole capacity admits was used. A sender
    /// that others held up sends in bursts: where one limiter leaves room free then, several leave a fifth of that more.
    pub(super) fn judge_use(&self, from: Duration, to: Duration, least: f64) -> Result<Use> {
        let by_one = self.by_one_limiter().into_iter();
        let by_one =
            by_one.filter(|(it, is_admitted)| *is_admitted && (from..to).contains(&it.sent));
        let by_one = by_one.count() as f64 / (to - from).as_secs_f64() / self.capacity;
        let part = Use { part: self.used(from, to), by_one };
        let least = least - 0.2 * (1.0 - by_one).max(0.0);
        let range = least * part.by_one..=MOST_USED;
        ensure!(range.contains(&part.part), "{part}\n{}", self.rates);
        Ok(part)
    }

    /// What was sent, and whether one limiter of the whole capacity admits it.
    fn by_one_limiter(&self) -> Vec<(&Connection, bool)> {
        let limit = Limit { per_second: self.capacity, tick: 0.0 };
        let all = &self.rates.connections;
        all.iter().zip(limit.admits(all.iter().map(|it| it.sent))).collect()
    }
}

/// What was sent elsewhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elsewhere {
    pub(super) percent: f64,
    /// By one limiter of the whole capacity.
    by_one: f64,
}

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} % sent elsewhere, {:.3} % by one limiter", self.percent, self.by_one)
    }
}

/// What was used of a capacity.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    part: f64,
    /// By one limiter of the whole capacity.
    by_one: f64,
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.4} of it used, {:.4} by one limiter", self.part, self.by_one)
    }
}
