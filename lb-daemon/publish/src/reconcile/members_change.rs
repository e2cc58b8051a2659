//! What the owner of member words has to do for a change, as steps that are short enough for changes of health to go on
//! between them.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use super::{
    ReconcileError,
    map_change::MapChange,
    published::{Published, PublishedGroup},
    words::{NewGroup, PoolMembers, Steps},
};
use lb_model::plan::{Plan, PlannedBackend, PlannedPool};

/// Most members that one step writes; a single pool or group is never split. A step of so many takes less than a
/// millisecond.
const MOST_MEMBERS: usize = 512;

/// The members of a plan and of previous versions of its pools.
#[derive(Clone, Debug, Default)]
pub(super) struct PlannedMembers {
    pub(super) pools: BTreeMap<u32, Arc<PoolMembers>>,
    pub(super) backends: Arc<BTreeMap<IpAddr, PlannedBackend>>,
    /// What the pools were planned as.
    planned: BTreeMap<u32, Arc<PlannedPool>>,
}

impl PlannedMembers {
    /// `before`: those of an earlier plan, of which the pools are taken that are the same.
    pub(super) fn new(plan: &Plan, published: &Published, before: Option<&Self>) -> Self {
        let mut leaving = published.leaving();
        let pools = plan.pools.iter().map(|(&index, pool)| {
            let mut leaving = leaving.remove(&index).unwrap_or_default();
            let same = before.and_then(|before| {
                before.planned.get(&index).filter(|there| Arc::ptr_eq(there, pool))?;
                before.pools.get(&index)
            });
            if let Some(same) = same {
                leaving.retain(|address| !same.planned.contains(address));
                if leaving == same.leaving {
                    return (index, Arc::clone(same));
                }
            }
            let members = pool.groups.iter().flat_map(|group| &group.members);
            let planned: BTreeSet<_> =
                members.map(|member| member.address).chain(pool.idle.iter().copied()).collect();
            leaving.retain(|address| !planned.contains(address));
            let (name, idle) = (pool.name.clone(), pool.idle.clone());
            (index, Arc::new(PoolMembers { name, planned, idle, leaving }))
        });
        let pools = pools.collect();
        Self { pools, backends: Arc::clone(&plan.backends), planned: plan.pools.clone() }
    }

    /// The same once some previous versions are forgotten.
    pub(super) fn without_leaving(&self, published: &Published) -> Self {
        let mut leaving = published.leaving();
        let mut after = self.clone();
        for (index, pool) in &mut after.pools {
            let mut leaving = leaving.remove(index).unwrap_or_default();
            leaving.retain(|address| !pool.planned.contains(address));
            if leaving != pool.leaving {
                Arc::make_mut(pool).leaving = leaving;
            }
        }
        after
    }
}

/// What differs between two states of the members.
#[derive(Debug, Default)]
pub(super) struct MembersChange {
    /// New and changed pools.
    pools: Vec<(u32, Arc<PoolMembers>)>,
    removed_pools: Vec<u32>,
    /// New and changed backends.
    backends: Vec<(IpAddr, PlannedBackend)>,
    removed_backends: Vec<IpAddr>,
    /// Numbers that no member and no backend has any more.
    removed_numbers: Vec<u32>,
    /// New and changed groups.
    groups: Vec<u32>,
    removed_groups: Vec<u32>,
    /// Groups of which only the change tells which members have a weight.
    unknown_groups: Vec<u32>,
    /// All that there is afterwards, if it is not known what the owner knew before.
    whole: Option<Arc<PlannedMembers>>,
}

impl MembersChange {
    /// `known`: what the owner of member words was sent, if it was sent everything.
    pub(super) fn between(
        known: Option<&PlannedMembers>,
        planned: &PlannedMembers,
        before: &Published,
        after: &Published,
    ) -> Self {
        let whole = known.is_none().then(|| Arc::new(planned.clone()));
        let nothing = PlannedMembers::default();
        let known = known.unwrap_or(&nothing);
        let is_new = |(index, pool): &(&u32, &Arc<PoolMembers>)| {
            known.pools.get(index).is_none_or(|there| !Arc::ptr_eq(there, pool) && there != *pool)
        };
        let pools = planned.pools.iter().filter(is_new);
        let changed = |(address, backend): &(&IpAddr, &PlannedBackend)| {
            known.backends.get(address) != Some(*backend)
        };
        let same_backends = Arc::ptr_eq(&known.backends, &planned.backends);
        let backends = planned.backends.iter().filter(|_| !same_backends).filter(changed);
        let removed_pools = known.pools.keys().filter(|index| !planned.pools.contains_key(index));
        let removed_backends = known.backends.keys().filter(|_| !same_backends);
        let removed_backends =
            removed_backends.filter(|address| !planned.backends.contains_key(address));
        let groups = after.groups.iter().filter(|(at, group)| {
            before.groups.get(at).is_none_or(|there| !Arc::ptr_eq(there, group))
        });
        let unknown = before
            .groups
            .iter()
            .filter(|(at, group)| after.groups.contains_key(at) && !group.is_weighed());
        let removed_groups = before.groups.keys().filter(|at| !after.groups.contains_key(at));
        // A number may go only with a group or a backend.
        let there = |at: &u32, group: &Arc<PublishedGroup>, other: &Published| {
            other.groups.get(at).is_some_and(|other| Arc::ptr_eq(other, group))
        };
        let gone = before.groups.iter().filter(|(at, group)| !there(at, group, after));
        let gone = gone.flat_map(|(_, group)| group.numbers());
        let replaced = known.backends.iter().filter(|_| !same_backends);
        let replaced = replaced.filter(|(address, backend)| {
            planned.backends.get(*address).is_none_or(|after| after.id != backend.id)
        });
        let replaced = replaced.map(|(_, backend)| backend.id.index);
        let mut numbers: BTreeSet<u32> = gone.chain(replaced).collect();
        if !numbers.is_empty() {
            let left = after.groups.values().flat_map(|group| group.numbers());
            let left = left.chain(planned.backends.values().map(|backend| backend.id.index));
            for number in left {
                numbers.remove(&number);
            }
        }
        Self {
            pools: pools.map(|(index, pool)| (*index, Arc::clone(pool))).collect(),
            removed_pools: removed_pools.copied().collect(),
            backends: backends.map(|(address, backend)| (*address, *backend)).collect(),
            removed_backends: removed_backends.copied().collect(),
            removed_numbers: numbers.into_iter().collect(),
            groups: groups.map(|(at, _)| *at).collect(),
            removed_groups: removed_groups.copied().collect(),
            unknown_groups: unknown.map(|(at, _)| *at).collect(),
            whole,
        }
    }

    /// Only the groups that are gone.
    pub(super) fn of_groups(before: &Published, after: &Published) -> Self {
        let gone = before.groups.keys().filter(|at| !after.groups.contains_key(at));
        Self { removed_groups: gone.copied().collect(), ..Self::default() }
    }

    /// Before packets see the change. Returns how many limits were lowered.
    ///
    /// # Errors
    /// What the kernel answers, or [`ReconcileError::Stopping`].
    pub(super) async fn prepare(
        &self,
        change: &MapChange,
        steps: &Steps,
    ) -> Result<usize, ReconcileError> {
        for backends in self.backends.chunks(MOST_MEMBERS) {
            let backends = backends.to_vec();
            steps.take(move |words| words.add_backends(&backends)).await??;
        }
        for pools in batches(self.pools.clone(), |(_, pool)| pool.count()) {
            steps.take(move |words| words.add_pools(&pools)).await??;
        }
        let new: BTreeSet<u32> = change.groups.iter().copied().collect();
        let group = |at: &u32| {
            let group = Arc::clone(change.published.groups.get(at)?);
            Some(NewGroup { at: *at, group, is_new: new.contains(at) })
        };
        let groups = self.groups.iter().filter_map(group).collect();
        let limiters = Arc::new(change.limiters.clone());
        let mut lowered = 0;
        for groups in batches(groups, |group: &NewGroup| group.group.members.len()) {
            let limiters = Arc::clone(&limiters);
            lowered += steps.take(move |words| words.add_groups(groups, &limiters)).await??;
        }
        Ok(lowered)
    }

    /// Once packets see the change. Returns how many limits were raised.
    ///
    /// # Errors
    /// What the kernel answers, or [`ReconcileError::Stopping`].
    pub(super) async fn finish(self, steps: &Steps) -> Result<usize, ReconcileError> {
        for groups in self.removed_groups.chunks(MOST_MEMBERS / 16) {
            let groups = groups.to_vec();
            steps.take(move |words| words.remove_groups(&groups)).await?;
        }
        let mut raised = 0;
        for groups in self.groups.chunks(MOST_MEMBERS / 16) {
            let groups = groups.to_vec();
            raised += steps.take(move |words| words.settle_groups(&groups)).await?;
        }
        let gone = self.removed_pools.into_iter().map(|index| (index, None));
        let pools = self.pools.into_iter().map(|(index, pool)| (index, Some(pool)));
        let pools = gone.chain(pools).collect();
        let size = |(_, pool): &(u32, Option<Arc<PoolMembers>>)| {
            pool.as_ref().map_or(MOST_MEMBERS / 16, |pool| pool.count())
        };
        for pools in batches(pools, size) {
            steps.take(move |words| words.settle_pools(&pools, &[])).await??;
        }
        for removed in self.removed_backends.chunks(MOST_MEMBERS) {
            let removed = removed.to_vec();
            steps.take(move |words| words.settle_pools(&[], &removed)).await??;
        }
        for numbers in self.removed_numbers.chunks(MOST_MEMBERS) {
            let numbers = numbers.to_vec();
            steps.take(move |words| words.remove_backends(&numbers)).await??;
        }
        if let Some(whole) = self.whole {
            let backends: BTreeSet<_> = whole.backends.keys().copied().collect();
            let leaving = whole.pools.values().flat_map(|pool| pool.leaving.iter().copied());
            let all: Vec<_> = backends.iter().copied().chain(leaving).collect();
            steps.take(move |words| words.forget_others(&backends, &whole.pools)).await??;
            for addresses in all.chunks(MOST_MEMBERS) {
                let addresses = addresses.to_vec();
                steps.take(move |words| words.settle_backends(&addresses)).await??;
            }
        }
        for groups in self.unknown_groups.chunks(MOST_MEMBERS / 16) {
            let groups = groups.to_vec();
            steps.take(move |words| words.choose_standbys(&groups)).await?;
        }
        Ok(raised)
    }
}

/// Splits items into batches with at most [`MOST_MEMBERS`] members, and at least one item.
fn batches<T>(items: Vec<T>, members: impl Fn(&T) -> usize) -> Vec<Vec<T>> {
    let mut batches: Vec<Vec<T>> = Vec::new();
    let mut left = 0;
    for item in items {
        let size = members(&item).max(1);
        match batches.last_mut() {
            Some(batch) if size <= left => batch.push(item),
            _ => {
                left = MOST_MEMBERS;
                batches.push(vec![item]);
            }
        }
        left = left.saturating_sub(size);
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_few_members_or_one_item() {
        let sizes = |items: &[usize]| -> Vec<usize> {
            batches(items.to_vec(), |size| *size).iter().map(Vec::len).collect()
        };
        assert_eq!(sizes(&[]), [0; 0]);
        assert_eq!(sizes(&[0; 3]), [3]);
        assert_eq!(sizes(&[MOST_MEMBERS - 1, 1, 1]), [2, 1]);
        assert_eq!(sizes(&[5 * MOST_MEMBERS, 1, MOST_MEMBERS, 1]), [1, 1, 1, 1]);
        assert_eq!(sizes(&[200, 200, 200, 200]), [2, 2]);
    }
}
