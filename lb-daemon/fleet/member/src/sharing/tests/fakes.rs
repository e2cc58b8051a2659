//! What is around the balancers: their packet paths, whose limits outlive the daemons, and what clients want of them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use lb_model::{Name, capacity::Capacity};
use lb_sharing::Parts;
use tokio::time::{Instant, sleep};

use super::name;
use crate::sharing::{Enforcer, GroupCounters, GroupLoad, GroupLoads, GroupName};

/// The capacity of every group, new connections a second.
pub(super) const CAPACITY: f64 = 1_000.0;

/// Clones are of the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Fakes(Arc<Mutex<FakeState>>);

#[derive(Debug, Default)]
struct FakeState {
    limits: BTreeMap<(Name, GroupName), Limit>,
    /// The generation that every packet path has.
    applied: u64,
    /// What was wrong at any moment.
    wrong: Vec<String>,
}

/// A limit in the packet path of a balancer.
#[derive(Debug)]
struct Limit {
    parts: Parts,
    /// Connections that come, a second; `None`: the balancer does not send to the group.
    demand: Option<f64>,
    offered: f64,
    refused: f64,
    counted: Instant,
}

impl Default for Limit {
    fn default() -> Self {
        let (parts, demand) = (Parts::NONE, None);
        Self { parts, demand, offered: 0.0, refused: 0.0, counted: Instant::now() }
    }
}

impl Limit {
    fn count(&mut self) {
        let time = self.counted.elapsed().as_secs_f64();
        let demand = self.demand.unwrap_or(0.0);
        self.offered += demand * time;
        self.refused += (demand - self.parts.fraction() * CAPACITY).max(0.0) * time;
        self.counted = Instant::now();
    }
}

impl Fakes {
    fn state(&self) -> MutexGuard<'_, FakeState> {
        self.0.lock().unwrap()
    }

    pub(super) fn apply(&self, generation: u64) {
        self.state().applied = generation;
    }

    pub(super) fn demand(&self, balancer: &str, group: &GroupName, per_second: f64) {
        let mut state = self.state();
        let limit = state.limits.entry((name(balancer), group.clone())).or_default();
        limit.count();
        limit.demand = Some(per_second);
    }

    pub(super) fn enforced(&self, balancer: &str, group: &GroupName) -> Parts {
        self.state().limits.get(&(name(balancer), group.clone())).map_or(Parts::NONE, |l| l.parts)
    }

    /// Checks that there was never more than the whole.
    pub(super) fn check(&self) {
        assert_eq!(self.state().wrong, [""; 0]);
    }

    fn set(&self, balancer: &Name, group: &GroupName, parts: Parts) {
        let mut state = self.state();
        let limit = state.limits.entry((balancer.clone(), group.clone())).or_default();
        limit.count();
        limit.parts = parts;
        let of_group = state.limits.iter().filter(|((_, it), _)| it == group);
        let sum: Parts = of_group.map(|(_, limit)| limit.parts).sum();
        if sum > Parts::WHOLE {
            state.wrong.push(format!("{sum} of {group:?} after {balancer} had {parts}"));
        }
    }
}

/// The packet path of one balancer. Clones are of the same.
#[derive(Clone, Debug)]
pub(super) struct PacketPath {
    pub(super) balancer: Name,
    pub(super) fakes: Fakes,
    /// Limits cannot be written.
    pub(super) fails: Arc<AtomicBool>,
    /// Limits are not written while this is set.
    pub(super) hangs: Arc<AtomicBool>,
    /// Limits should be written, and are not.
    pub(super) is_hanging: Arc<AtomicBool>,
}

impl Enforcer for PacketPath {
    async fn enforce(&self, portions: BTreeMap<GroupName, Parts>) -> Result<(), String> {
        while self.hangs.load(Ordering::SeqCst) {
            self.is_hanging.store(true, Ordering::SeqCst);
            sleep(Duration::from_millis(5)).await;
        }
        if self.fails.load(Ordering::SeqCst) {
            return Err("the maps cannot be written".into());
        }
        let now = |group: &GroupName| self.fakes.enforced(self.balancer.as_str(), group);
        for raise in [false, true] {
            for (group, parts) in portions.iter().filter(|(group, p)| (**p > now(group)) == raise) {
                self.fakes.set(&self.balancer, group, *parts);
            }
            // Others run meanwhile.
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

impl GroupCounters for PacketPath {
    async fn read(&self) -> Result<GroupLoads, String> {
        let mut state = self.fakes.state();
        let generation = state.applied;
        let own = state.limits.iter_mut().filter(|((name, _), _)| *name == self.balancer);
        let load = |((_, group), limit): (&(Name, GroupName), &mut Limit)| {
            limit.count();
            let (pool, region) = group.clone();
            limit.demand.map(|_| GroupLoad {
                pool,
                region,
                capacity: Capacity::PerSecond(CAPACITY),
                offered: limit.offered as u64,
                refused: limit.refused as u64,
            })
        };
        Ok(GroupLoads { generation, groups: own.filter_map(load).collect() })
    }
}
