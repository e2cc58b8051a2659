//! What packets decide by, as this daemon wrote it or found it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
    num::NonZeroU32,
    sync::Arc,
};

use lb_common::abi::{
    limiter::NO_LIMITER,
    pool::{Descriptor, Group, PoolWord},
    service::{ANY_PORT_WORDS, Service, ServiceKey, VipKey, VipWord, any_port_bit},
    slot::{TABLE_HEAD, TableRef},
};

use super::free_space::Extent;
use lb_maps::{AnyPorts, TableName};
use lb_model::{
    GroupSettings, Name, Rate, Unserved,
    ids::BackendId,
    plan::{PlannedBackend, PlannedPool},
};

/// Everything that can be reached from services and pools.
#[derive(Clone, Debug, Default)]
pub(super) struct Published {
    pub(super) services: BTreeMap<ServiceKey, Service>,
    /// Addresses of services, and what becomes of packets for them that no service takes.
    pub(super) vips: BTreeMap<VipKey, VipWord>,
    /// What the plan says of these addresses; empty if no plan has described them yet.
    pub(super) unserved: BTreeMap<IpAddr, Unserved>,
    /// By index.
    pub(super) pools: BTreeMap<u32, PublishedPool>,
    /// By index. A group that a change leaves as it is stays the same allocation.
    pub(super) groups: BTreeMap<u32, Arc<PublishedGroup>>,
    /// What pools were planned as; those that were found in the maps are not there.
    pub(super) planned: BTreeMap<u32, Arc<PlannedPool>>,
    /// The planned backends, whose numbers are nobody else's.
    pub(super) backends: Arc<BTreeMap<IpAddr, PlannedBackend>>,
    /// Present tables, by what they were built from.
    pub(super) tables: HashMap<TableName, TableRef>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PublishedPool {
    /// New connections are placed by it.
    pub(super) current: Version,
    /// During a remap: open connections are at home by it still.
    pub(super) previous: Option<Version>,
    /// Its zones, as long as it is there.
    pub(super) zones: Extent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    /// Index of its descriptor.
    pub(super) at: u32,
    pub(super) descriptor: Descriptor,
}

/// What determines the home of connections: versions with equal values have equal homes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    hash_key: [u64; 2],
    /// Index of the group.
    group: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PublishedGroup {
    pub(super) group: Group,
    /// Index of its pool.
    pub(super) pool: u32,
    /// What its table was built from, if known.
    pub(super) table: Option<TableName>,
    /// What its limit depends on; `None` if no plan has described it yet.
    pub(super) terms: Option<LimitTerms>,
    /// By rank.
    pub(super) members: Vec<PublishedMember>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PublishedMember {
    pub(super) address: IpAddr,
    pub(super) id: BackendId,
    /// Whether it has a weight; `None` if no plan has described it yet.
    pub(super) weighted: Option<bool>,
    /// Its own limit over all balancers.
    pub(super) rate: Option<Rate>,
    /// Limiter of that limit, or [`NO_LIMITER`].
    pub(super) limiter: u32,
    /// Whether it is marked out.
    pub(super) out: bool,
}

/// What a group's limit depends on, besides its members and overrides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LimitTerms {
    pub(super) pool: Name,
    pub(super) region: Name,
    pub(super) settings: GroupSettings,
    pub(super) balancers: NonZeroU32,
}

impl PublishedPool {
    /// The version by which open connections without a cell are at home.
    const fn in_force(&self) -> &Version {
        match &self.previous {
            Some(previous) => previous,
            None => &self.current,
        }
    }

    /// Whether flows have other zones than before.
    pub(super) fn changes_zones(&self, before: &Self) -> bool {
        self.in_force().descriptor.hash_key != before.in_force().descriptor.hash_key
    }
}

impl Home {
    pub const fn new(hash_key: [u64; 2], group: u32) -> Self {
        Self { hash_key, group }
    }
}

impl Published {
    /// Addresses that may have an any-port service.
    pub(super) fn any_ports(&self) -> AnyPorts {
        let mut words = [0; ANY_PORT_WORDS as usize];
        for key in self.services.keys().filter(|key| key.is_any_port()) {
            let (word, bit) = any_port_bit(&key.address);
            words[word as usize] |= bit;
        }
        words
    }

    /// Zones of pools.
    pub(super) fn zones(&self) -> BTreeSet<Extent> {
        self.pools.values().map(|pool| pool.zones).collect()
    }

    /// Limiters of groups and members.
    pub(super) fn limiters(&self) -> BTreeSet<u32> {
        self.groups.values().flat_map(|group| group.limiters()).collect()
    }

    pub(super) fn table_refs(&self) -> BTreeSet<TableRef> {
        self.groups.values().map(|group| TableRef(group.group.head.table)).collect()
    }

    /// The words of all tables.
    pub(super) fn table_extents(&self) -> BTreeSet<Extent> {
        self.groups.values().map(|group| group.table_extent()).collect()
    }

    pub(super) fn descriptors(&self) -> BTreeSet<u32> {
        let versions = self.pools.values().flat_map(PublishedPool::versions);
        versions.map(|version| version.at).collect()
    }

    /// Members that only their pool's previous version has, by the pool's index.
    pub(super) fn leaving(&self) -> BTreeMap<u32, BTreeSet<IpAddr>> {
        let leaving = self.pools.iter().filter_map(|(index, pool)| {
            let previous = pool.previous.as_ref()?;
            let mut current: Vec<_> = self.addresses(&pool.current).collect();
            current.sort();
            let gone = |address: &IpAddr| current.binary_search(address).is_err();
            let leaving: BTreeSet<_> = self.addresses(previous).filter(gone).collect();
            (!leaving.is_empty()).then_some((*index, leaving))
        });
        leaving.collect()
    }

    fn addresses(&self, version: &Version) -> impl Iterator<Item = IpAddr> {
        let groups = version.groups().iter().filter_map(|at| self.groups.get(at));
        groups.flat_map(|group| group.members.iter().map(|member| member.address))
    }
}

impl PublishedGroup {
    /// Whether a plan has described its members.
    pub(super) fn is_weighed(&self) -> bool {
        self.members.iter().all(|member| member.weighted.is_some())
    }

    /// Numbers of its members' backends.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.members.iter().map(|member| member.id.index)
    }

    /// Its limiter and those of its members.
    pub(super) fn limiters(&self) -> impl Iterator<Item = u32> {
        let members = self.members.iter().map(|member| member.limiter);
        members.chain([self.group.limiter]).filter(|limiter| *limiter != NO_LIMITER)
    }

    /// The words of its table, with the head before the first list.
    pub(super) fn table_extent(&self) -> Extent {
        let head = &self.group.head;
        let start = head.table.saturating_sub(TABLE_HEAD);
        Extent { start, length: head.shape().words() }
    }

    /// The range of its member words.
    pub(super) fn extent(&self) -> Extent {
        Extent { start: self.group.head.members, length: self.group.head.member_count }
    }
}

impl PublishedPool {
    /// The current one first.
    pub(super) fn versions(&self) -> impl Iterator<Item = &Version> {
        [&self.current].into_iter().chain(&self.previous)
    }

    /// The word that publishes the versions.
    pub(super) fn word(&self) -> PoolWord {
        match self.previous {
            Some(previous) => PoolWord::new(previous.at, self.current.at),
            None => PoolWord::new(self.current.at, 0),
        }
    }
}

impl Version {
    /// `None` without members.
    pub(super) fn home(&self) -> Option<Home> {
        let group = *self.groups().first()?;
        Some(Home::new(self.descriptor.hash_key, group))
    }

    /// Indices of its groups, nearest first.
    pub(super) fn groups(&self) -> &[u32] {
        let count = self.descriptor.group_count as usize;
        &self.descriptor.groups[..count.min(self.descriptor.groups.len())]
    }
}
