//! What packets are decided by, as this daemon wrote it or found it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
    num::NonZeroU32,
};

use lb_common::abi::{
    descriptor::Descriptor,
    group::Group,
    meter::NO_METER,
    service::{Service, ServiceKey},
    table_ref::TableRef,
};

use super::allocate::Extent;
use crate::{
    dataplane::TableName,
    ids::BackendId,
    model::{GroupSettings, Rate},
};

/// All that is reachable from services and pools.
#[derive(Clone, Debug, Default)]
pub(super) struct Published {
    /// Services by key.
    pub(super) services: BTreeMap<ServiceKey, Service>,
    /// Pools by index.
    pub(super) pools: BTreeMap<u32, PublishedPool>,
    /// Groups by index.
    pub(super) groups: BTreeMap<u32, PublishedGroup>,
    /// Tables that are there, by what they were built from.
    pub(super) tables: HashMap<TableName, TableRef>,
}

/// A pool's current version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PublishedPool {
    /// Index of its descriptor.
    pub(super) at: u32,
    pub(super) descriptor: Descriptor,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PublishedGroup {
    pub(super) group: Group,
    /// Index of its pool.
    pub(super) pool: u32,
    /// What its table was built from; `None` where that cannot be told.
    pub(super) table: Option<TableName>,
    /// What its limit is worked out from; `None` where no plan has said so yet.
    pub(super) terms: Option<Terms>,
    /// Its members by rank.
    pub(super) members: Vec<PublishedMember>,
}

/// A member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PublishedMember {
    pub(super) address: IpAddr,
    pub(super) id: BackendId,
    /// Whether it has a weight; `None` where no plan has said so yet.
    pub(super) weighted: Option<bool>,
    /// Limit of its own over all balancers, as a plan said.
    pub(super) rate: Option<Rate>,
    /// Meter of that limit; [`NO_METER`]: it has none.
    pub(super) meter: u32,
}

/// What a group's limit is worked out from, beside its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) settings: GroupSettings,
    pub(super) balancers: NonZeroU32,
}

impl Published {
    /// The meters that groups and members name.
    pub(super) fn meters(&self) -> BTreeSet<u32> {
        self.groups.values().flat_map(PublishedGroup::meters).collect()
    }

    /// The tables that groups name.
    pub(super) fn table_refs(&self) -> BTreeSet<TableRef> {
        self.groups.values().map(|group| TableRef(group.group.head.table)).collect()
    }
}

impl PublishedGroup {
    /// Whether a plan has said who of it has a weight.
    pub(super) fn is_weighed(&self) -> bool {
        self.members.iter().all(|member| member.weighted.is_some())
    }

    /// Its meter and those of its members.
    pub(super) fn meters(&self) -> impl Iterator<Item = u32> {
        let members = self.members.iter().map(|member| member.meter);
        members.chain([self.group.meter]).filter(|meter| *meter != NO_METER)
    }

    /// Where its member words are.
    pub(super) fn extent(&self) -> Extent {
        Extent { start: self.group.head.members, length: self.group.head.member_count }
    }
}

impl PublishedPool {
    /// Indices of its groups, nearest first.
    pub(super) fn groups(&self) -> &[u32] {
        let count = self.descriptor.group_count as usize;
        &self.descriptor.groups[..count.min(self.descriptor.groups.len())]
    }
}
