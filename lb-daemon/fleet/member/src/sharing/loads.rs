//! Follows the counters of groups: the demand of each, and when one begins to refuse connections.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use lb_base::boot_clock;
use lb_sharing::{Demand, DemandAverage};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep, timeout},
};

use super::{GroupCounters, GroupLoads, GroupName};

/// Interval at which counters are read: refusals are seen so fast, and cause at most one round in this time. It is two
/// readings and a half of each round, so that a demand that jumps is known to peers while the jump is still going on.
const INTERVAL: Duration = Duration::from_millis(100);
/// Reading takes at most one of so many parts of the time: with many groups it gets rarer, down to once a round.
const MOST_OF_TIME: u32 = 20;
/// The longest interval.
const LONGEST: Duration = Duration::from_millis(250);
/// A reading that takes longer has failed.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The loads of all groups that this balancer may send to.
#[derive(Clone, Debug, Default)]
pub(super) struct Loads {
    /// The generation that they are of.
    pub(super) generation: u64,
    /// `None`: it is still being measured, as after a start. To say that there is none would give portions away.
    pub(super) demands: BTreeMap<GroupName, Option<Demand>>,
    /// Why the counters were not read last time. The loads are those of the time before.
    pub(super) error: Option<String>,
}

/// Reads the counters for ever.
pub(super) async fn follow(
    counters: impl GroupCounters,
    to: watch::Sender<Arc<Loads>>,
    refusals: Arc<Notify>,
) {
    let mut meter = LoadMeter::default();
    loop {
        let began = Instant::now();
        let read = timeout(TIMEOUT, counters.read()).await;
        let read = read.unwrap_or_else(|_| Err(format!("no answer within {TIMEOUT:?}")));
        match read {
            Ok(loads) => {
                let (loads, begins_to_refuse) = meter.record(boot_clock::now(), loads);
                to.send_replace(Arc::new(loads));
                if begins_to_refuse {
                    refusals.notify_one();
                }
            }
            Err(error) => to.send_modify(|last| {
                *last = Arc::new(Loads { error: Some(error), ..Loads::clone(last) });
            }),
        }
        sleep((began.elapsed() * MOST_OF_TIME).clamp(INTERVAL, LONGEST)).await;
    }
}

/// Turns counters into demand.
#[derive(Debug, Default)]
struct LoadMeter {
    groups: BTreeMap<GroupName, GroupMeter>,
}

#[derive(Debug, Default)]
struct GroupMeter {
    average: DemandAverage,
    /// The last count; `None`: it was not read yet.
    refused: Option<u64>,
    is_refusing: bool,
}

impl LoadMeter {
    /// Returns also whether a group refuses connections that did not between the two readings before.
    fn record(&mut self, now: Duration, loads: GroupLoads) -> (Loads, bool) {
        let mut begins = false;
        let mut demands = BTreeMap::new();
        for load in loads.groups {
            let name = (load.pool, load.region);
            let meter = self.groups.entry(name.clone()).or_default();
            meter.average.record(now, load.offered);
            let refuses = meter.refused.is_some_and(|before| load.refused > before);
            begins |= refuses && !meter.is_refusing;
            (meter.refused, meter.is_refusing) = (Some(load.refused), refuses);
            let demand = Demand {
                per_second: meter.average.per_second(),
                capacity: load.capacity.into(),
                may_send: true,
            };
            demands.insert(name, meter.average.is_measured().then_some(demand));
        }
        let listed: BTreeSet<&GroupName> = demands.keys().collect();
        self.groups.retain(|name, _| listed.contains(name));
        (Loads { generation: loads.generation, demands, error: None }, begins)
    }
}

#[cfg(test)]
mod tests {
    use lb_model::{Name, capacity::Capacity};
    use lb_sharing::ReportedCapacity;

    use super::*;
    use crate::sharing::GroupLoad;

    fn loads(offered: u64, refused: u64) -> GroupLoads {
        let (pool, region) = (Name::new("web").unwrap(), Name::new("eu").unwrap());
        let capacity = Capacity::PerSecond(50.0);
        let groups = vec![GroupLoad { pool, region, capacity, offered, refused }];
        GroupLoads { generation: 1, groups }
    }

    #[test]
    fn demand_is_a_rate_and_a_group_begins_to_refuse_once() {
        let mut meter = LoadMeter::default();
        let mut record =
            |ms, offered, refused| meter.record(Duration::from_millis(ms), loads(offered, refused));
        let (loads, begins) = record(0, 1_000, 500);
        assert!(!begins, "what was before is no news");
        assert!(loads.demands.values().all(Option::is_none), "nothing is known of the demand");
        let (loads, begins) = record(500, 1_050, 510);
        assert!(begins);
        let demand = loads.demands.values().next().unwrap().unwrap();
        assert_eq!(demand.per_second, 100.0);
        assert_eq!(demand.capacity, ReportedCapacity::PerSecond(50.0));
        assert!(!record(600, 1_060, 511).1, "it goes on");
        assert!(!record(700, 1_070, 511).1);
        assert!(record(800, 1_080, 512).1, "it begins again");
        assert!(!record(900, 3, 1).1, "the counters began again");
        let (gone, _) = meter.record(Duration::from_secs(1), GroupLoads::default());
        assert!(gone.demands.is_empty() && meter.groups.is_empty());
    }
}
