//! Remaps: when previous homes are forgotten, and which members are marked out.
//!
//! The packet path keeps what a remap replaced until it is told to forget it. It is asked each time which
//! pools have a previous home, so a restart loses nothing but the elapsed time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use super::{MarkOutDecision, State, publishing::Basis};
use crate::members::clock;
use lb_base::error_chain;
use lb_model::{
    Configuration, GroupSettings, Name, Scaler,
    ids::Ids,
    mark_out::{MarkOuts, RegionAvailability},
    plan::{self, MarkedOut, Plan},
    remap::Settling,
};
use lb_publish::{
    publisher::MovedSlots,
    reconcile::{Home, PoolHomes, ReconcileError},
};

#[derive(Debug, Default)]
pub(super) struct Remaps {
    /// In force.
    pub(super) mark_outs: Arc<MarkOuts>,
    /// While others decide: what this balancer would mark out.
    own_view: Option<MarkOuts>,
    /// Pools in a remap by index, with their current home.
    pub(super) settling: BTreeMap<u32, (Option<Home>, Settling)>,
    /// Why members cannot be marked out, as last logged.
    mark_out_error: Option<String>,
}

impl Remaps {
    /// Continues where an earlier daemon stopped, with what it had marked out.
    pub(super) fn recover(
        configuration: &Configuration,
        own: Option<&Name>,
        ids: &Ids,
        homes: &BTreeMap<u32, PoolHomes>,
    ) -> Self {
        let found = configuration.pools.iter().filter_map(|(name, pool)| {
            let homes = homes.get(&ids.pool(name)?)?;
            let order = plan::regions(configuration, own, pool);
            let index = |region: &&Name| ids.region(region);
            let regions = moved_last(&order.iter().filter_map(index).collect::<Vec<_>>(), homes);
            let regions =
                order.into_iter().filter(|r| index(r).is_some_and(|r| regions.contains(&r)));
            let out = MarkedOut { members: homes.out.clone(), regions: regions.cloned().collect() };
            Some((name.clone(), out))
        });
        Self { mark_outs: Arc::new(MarkOuts::recovered(found.collect())), ..Self::default() }
    }

    /// Takes in the homes of pools.
    pub(super) fn observe(&mut self, homes: &BTreeMap<u32, PoolHomes>, now: Instant) {
        self.settling.retain(|pool, _| homes.get(pool).is_some_and(|homes| homes.has_previous));
        for (pool, homes) in homes.iter().filter(|(_, homes)| homes.has_previous) {
            let begun = (homes.current, Settling::begin(now));
            let (home, settling) = self.settling.entry(*pool).or_insert(begun);
            if *home != homes.current {
                *home = homes.current;
                settling.change(now);
            }
        }
    }

    /// Whether changes have kept a pool's remap from its end for too long.
    fn is_overdue(&self, pool: Option<u32>, settle_time: Duration, now: Instant) -> bool {
        let settling = pool.and_then(|pool| self.settling.get(&pool));
        settling.is_some_and(|(_, settling)| settling.is_overdue(settle_time, now))
    }

    fn log_mark_out_error(&mut self, why: String) {
        if self.mark_out_error.as_ref() != Some(&why) {
            tracing::warn!(why, "backends out of service cannot be marked out yet: {why}");
        }
        self.mark_out_error = Some(why);
    }

    /// What others decided of a configuration; `None`: this balancer decides alone.
    fn decided(
        &self,
        decision: &MarkOutDecision,
        configuration: &Configuration,
    ) -> Option<MarkOuts> {
        let out = match decision {
            MarkOutDecision::Alone => return None,
            MarkOutDecision::Unknown => self.mark_outs.out(),
            MarkOutDecision::Agreed(out) => (**out).clone(),
        };
        Some(MarkOuts::recovered(out).within(configuration))
    }
}

/// A remap that a change ends, because others before it have kept it from its end for too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EndedRemap {
    pub(super) pool: Name,
    /// Those whose open connections lose what is left of their settle time.
    pub(super) slots: MovedSlots,
}

/// The regions that were moved to the end of the order: `found` is the expected order of the regions that
/// were not moved, followed by that of the moved ones.
fn moved_last(expected: &[u32], found: &PoolHomes) -> BTreeSet<u32> {
    let position = |region: &u32| expected.iter().position(|other| other == region);
    let positions: Vec<_> = found.regions.iter().filter_map(|r| Some((position(r)?, *r))).collect();
    let kept = positions.windows(2).take_while(|pair| pair[0].0 < pair[1].0).count() + 1;
    positions.into_iter().skip(kept).map(|(_, region)| region).collect()
}

impl State {
    /// Once a second.
    pub(super) async fn advance_remaps(&mut self) {
        if self.current.plan.is_none() {
            return;
        }
        // Also while the packet path is behind: it may be waiting for space that this frees.
        self.settle_remaps(clock()).await;
        self.follow_mark_outs(clock()).await;
    }

    /// Shows what this balancer would mark out, and marks out what it or the balancers of its region decided.
    async fn follow_mark_outs(&mut self, now: Instant) {
        let decision = self.settings.mark_out_decisions.decision();
        let is_alone = decision == MarkOutDecision::Alone;
        if is_alone && let Some(own) = self.remaps.own_view.take() {
            // It decides again: from what is in force, with the times of its own view.
            self.remaps.mark_outs = Arc::new(own.with_out(&self.remaps.mark_outs.out()));
        }
        let own = self.own_view_of(&self.current.configuration, now);
        self.settings.mark_out_decisions.show_own_view(own.out());
        let decided = match self.remaps.decided(&decision, &self.current.configuration) {
            None => own,
            Some(decided) => {
                self.remaps.own_view = Some(own);
                decided
            }
        };
        if self.current.behind.is_none() && self.mark_out(Arc::new(decided)).await {
            self.settings.mark_out_decisions.show_in_force(decision);
        }
    }

    async fn settle_remaps(&mut self, now: Instant) {
        let published = self.publishing.publisher.published();
        let homes = &published.homes;
        self.remaps.observe(homes, now);
        if self.remaps.settling.is_empty() {
            return;
        }
        let mut over = BTreeSet::new();
        for (name, pool) in &self.current.configuration.pools {
            let Some(index) = self.current.ids.pool(name) else { continue };
            let Some((_, settling)) = self.remaps.settling.get(&index) else { continue };
            if settling.is_over(pool.settle_time, now) {
                over.insert(index);
            }
        }
        if !over.is_empty() {
            self.forget_previous(over).await;
        }
    }

    pub(super) async fn forget_previous(&mut self, pools: BTreeSet<u32>) {
        let count = pools.len();
        match self.publishing.publisher.forget_previous(pools).await {
            Ok(()) => tracing::info!(pools = count, "remaps are over: {count} pools"),
            Err(error) => {
                tracing::error!(
                    error = error_chain::message(&error),
                    "previous homes cannot be freed"
                );
            }
        }
        self.remaps.observe(&self.publishing.publisher.published().homes, clock());
        self.current.settle_quarantine(&self.publishing.publisher).await;
        self.update_sensors();
    }

    /// The remaps that a change to a plan ends, by index of the pool. Packets know two homes of a connection, so a change that
    /// moves homes again either lets a remap go on, or ends it.
    pub(super) async fn ended_remaps(
        &mut self,
        plan: &Arc<Plan>,
    ) -> Result<BTreeMap<u32, EndedRemap>, ReconcileError> {
        let pools = self.current.configuration.pools.iter();
        let overdue = pools.filter_map(|(name, pool)| {
            let index = self.current.ids.pool(name);
            let is_overdue = self.remaps.is_overdue(index, pool.settle_time, clock());
            index.filter(|_| is_overdue).map(|index| (index, name.clone()))
        });
        let overdue: BTreeMap<_, _> = overdue.collect();
        if overdue.is_empty() {
            return Ok(BTreeMap::new());
        }
        let moved = self.publishing.publisher.moved_slots(plan).await?;
        let ended = overdue.into_iter().filter_map(|(index, pool)| {
            moved.get(&index).map(|slots| (index, EndedRemap { pool, slots: *slots }))
        });
        Ok(ended.collect())
    }

    /// What is wanted, but for pools whose remap changes have kept from its end for long: these keep what they have, so that
    /// what open connections without cells were idle for begins to count.
    pub(super) fn held_back(&self, wanted: Arc<MarkOuts>) -> Arc<MarkOuts> {
        let (out, in_force) = (wanted.out(), self.remaps.mark_outs.out());
        let mut allowed = out.clone();
        for (name, pool) in &self.current.configuration.pools {
            if self.remaps.is_overdue(self.current.ids.pool(name), pool.settle_time, clock()) {
                allowed.remove(name);
                allowed.extend(in_force.get(name).map(|it| (name.clone(), it.clone())));
            }
        }
        if allowed == out { wanted } else { Arc::new(wanted.with_out(&allowed)) }
    }

    /// Marks out members and regions that were out of service for long, and takes back those that returned,
    /// with one remap per pool. Returns whether the packet path has it.
    async fn mark_out(&mut self, wanted: Arc<MarkOuts>) -> bool {
        let mark_outs = self.held_back(Arc::clone(&wanted));
        let is_whole = Arc::ptr_eq(&mark_outs, &wanted);
        if mark_outs.out() == self.remaps.mark_outs.out() {
            self.remaps.mark_outs = mark_outs;
            return is_whole;
        }
        let basis = Basis { mark_outs: Arc::clone(&mark_outs), ..self.basis() };
        let plan = match self.build_plan(&basis).await {
            Err(_) => return false,
            Ok(Ok(plan)) => plan,
            Ok(Err(error)) => {
                self.remaps.log_mark_out_error(error_chain::message(&error));
                return false;
            }
        };
        if let Err(error) = self.publishing.publisher.check(&plan).await {
            self.remaps.log_mark_out_error(error_chain::message(&error));
            return false;
        }
        self.remaps.mark_out_error = None;
        self.remaps.mark_outs = mark_outs;
        let out = self.remaps.mark_outs.out();
        tracing::info!(?out, "backends and regions marked out: {out:?}");
        if self.current.plan.as_ref() == Some(&plan) {
            return is_whole;
        }
        self.current.plan = Some(plan);
        let published = self.publish(Arc::default()).await;
        if let Err(error) = &published {
            tracing::error!(error = error_chain::message(error), "the packet path is behind");
        }
        self.update_sensors();
        published.is_ok() && is_whole
    }

    /// Which members and regions of a configuration are marked out now.
    pub(super) fn mark_outs_in(&self, configuration: &Configuration, now: Instant) -> MarkOuts {
        let decision = self.settings.mark_out_decisions.decision();
        let decided = self.remaps.decided(&decision, configuration);
        decided.unwrap_or_else(|| self.own_view_of(configuration, now))
    }

    /// Which members and regions of a configuration this balancer would mark out now, by what it knows of them.
    fn own_view_of(&self, configuration: &Configuration, now: Instant) -> MarkOuts {
        let in_force = &self.remaps.mark_outs;
        let before = match &self.remaps.own_view {
            None => Arc::clone(in_force),
            // Whatever others decided, what is marked out stays so until it is available again.
            Some(own) => Arc::new(own.with_out(&in_force.out())),
        };
        let mut next = MarkOuts::default();
        let overrides = Arc::clone(&self.overrides.borrow());
        for (name, pool) in &configuration.pools {
            // What overrides close has no available members either.
            let is_closed = |group: &GroupSettings| group.effective_scaler() == Scaler::NONE;
            if self.publishing.view.is_available(name, pool)
                && !pool.groups.values().any(is_closed)
                && !before.has(name)
            {
                continue;
            }
            let order = plan::regions(configuration, self.settings.region.as_ref(), pool);
            let pool_name = name;
            let region = |name: &Name| {
                // What is drained at this balancer alone is not out of service.
                let group = overrides.shared_group(pool_name, name).apply_to(pool.group(name));
                let closed = group.effective_scaler() == Scaler::NONE;
                (name.clone(), RegionAvailability { closed, members: BTreeMap::new() })
            };
            let mut regions: BTreeMap<Name, _> = order.into_iter().map(region).collect();
            for (address, backend) in pool.backends.iter().filter(|(_, b)| b.weight > 0) {
                let Some(region) = regions.get_mut(&backend.region) else { continue };
                region.members.insert(*address, self.publishing.view.availability(name, address));
            }
            let time = (pool.settle_time, now);
            before.observe(&mut next, name, &regions, time);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(regions: &[u32]) -> PoolHomes {
        PoolHomes {
            current: None,
            has_previous: false,
            regions: regions.to_vec(),
            out: BTreeSet::new(),
        }
    }

    #[test]
    fn regions_moved_to_the_end_are_found() {
        let moved_last = |regions: &[u32]| moved_last(&[1, 2, 3, 4], &found(regions));
        assert_eq!(moved_last(&[1, 2, 3, 4]), [].into());
        assert_eq!(moved_last(&[2, 3, 4, 1]), [1].into());
        assert_eq!(moved_last(&[3, 4, 1, 2]), [1, 2].into());
        assert_eq!(moved_last(&[1, 4, 2, 3]), [2, 3].into());
        assert_eq!(moved_last(&[1, 2, 4, 3]), [3].into());
        // Other regions belong to a configuration that the packet path does not have yet.
        assert_eq!(moved_last(&[9, 2, 3, 4, 1]), [1].into());
        assert_eq!(moved_last(&[]), [].into());
    }
}
