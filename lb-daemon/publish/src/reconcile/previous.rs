//! Previous versions of pools, which open connections use first during a remap.
//!
//! They keep everything they name, and their members' words are updated like those of current versions. They
//! are removed, after a grace period, when they are forgotten.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use super::{
    ReconcileError, Reconciler,
    map_change::Unused,
    members_change::MembersChange,
    published::{Home, Published, PublishedGroup, PublishedPool, Version},
};
use crate::publisher::MovedSlots;
use lb_common::abi::slot::{RANKS_PER_SLOT, TableRef};
use lb_model::ids::BackendId;

/// A pool's home, as packets see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolHomes {
    /// `None` if the pool has no members.
    pub current: Option<Home>,
    pub has_previous: bool,
    /// Regions by index, in the order in which they are used.
    pub regions: Vec<u32>,
    /// Members of the first region that are marked out.
    pub out: BTreeSet<IpAddr>,
}

impl Reconciler {
    /// By index of the pool.
    pub fn homes(&self) -> BTreeMap<u32, PoolHomes> {
        let homes = self.published.pools.iter().map(|(index, pool)| (*index, self.homes_of(pool)));
        homes.collect()
    }

    fn homes_of(&self, pool: &PublishedPool) -> PoolHomes {
        let groups = pool.current.groups().iter().filter_map(|at| self.published.groups.get(at));
        let first = groups.clone().next();
        let out = first.into_iter().flat_map(|group| &group.members);
        let out = out.filter(|member| member.out).map(|member| member.address);
        PoolHomes {
            current: pool.current.home(),
            has_previous: pool.previous.is_some(),
            regions: groups.map(|group| group.group.region).collect(),
            out: out.collect(),
        }
    }

    /// Slots whose home a pool's remap moves: of a table with other slots, or by another hash key, all. `None`: it is in none.
    pub(super) fn moved_slots_of(&self, pool: &PublishedPool) -> Option<MovedSlots> {
        let now = pool.previous.as_ref()?;
        let first = |version: &Version| self.published.groups.get(version.groups().first()?);
        let before = first(now)?;
        let of = before.group.head.slots;
        let moved = match first(&pool.current) {
            Some(after)
                if after.group.head.slots == of
                    && now.descriptor.hash_key == pool.current.descriptor.hash_key =>
            {
                let (before, after) = (self.homes_in(before), self.homes_in(after));
                before.zip(after).filter(|(before, after)| before != after).count() as u32
            }
            _ => of,
        };
        Some(MovedSlots { moved, of })
    }

    /// The backend that each slot of a group's table is at home at; `None` if it cannot be read.
    fn homes_in<'g>(
        &self,
        group: &'g PublishedGroup,
    ) -> impl Iterator<Item = Option<BackendId>> + use<'g> {
        let head = &group.group.head;
        let table = self.maps.table(TableRef(head.table), head.shape()).ok();
        (0..head.slots).map(move |slot| {
            let list = table.as_ref()?.slot(slot)?;
            let ranks = (0..RANKS_PER_SLOT as u32).map(|entry| list.rank(entry));
            let mut members = ranks.filter_map(|rank| group.members.get(usize::from(rank)));
            let owner = members.clone().next();
            members.find(|member| !member.out).or(owner).map(|member| member.id)
        })
    }

    /// Frees what is no longer named.
    pub(super) async fn release(
        &mut self,
        before: &Published,
        unused: Unused,
    ) -> Result<(), ReconcileError> {
        let change = match &mut self.planned {
            Some(planned) => {
                let after = planned.without_leaving(&self.published);
                let known = std::mem::replace(planned, after);
                MembersChange::between(Some(&known), planned, before, &self.published)
            }
            // The next plan says which members there are.
            None => MembersChange::of_groups(before, &self.published),
        };
        change.finish(&self.steps).await?;
        self.free_after_readers(unused, &[]).await
    }

    /// Backends that only previous versions have. Their next hops are still needed.
    pub fn leaving(&self) -> BTreeSet<IpAddr> {
        let leaving = self.published.leaving().into_values().flatten();
        let is_planned = |address: &IpAddr| {
            self.planned.as_ref().is_some_and(|planned| planned.backends.contains_key(address))
        };
        leaving.filter(|address| !is_planned(address)).collect()
    }
}
