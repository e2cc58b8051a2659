//! What packets are decided by, as this daemon wrote it or found it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
    num::NonZeroU32,
};

use lb_common::abi::{
    descriptor::Descriptor,
    group::Group,
    limiter::NO_LIMITER,
    pool::PoolWord,
    receiver::VipKey,
    service::{ANY_PORT_WORDS, Service, ServiceKey, any_port_bit},
    table_ref::TableRef,
};

use super::free_space::Extent;
use lb_maps::{AnyPorts, TableName};
use lb_model::{GroupSettings, Rate, ids::BackendId};

/// All that is reachable from services and pools.
#[derive(Clone, Debug, Default)]
pub(super) struct Published {
    /// Services by key.
    pub(super) services: BTreeMap<ServiceKey, Service>,
    /// Addresses of services.
    pub(super) vips: BTreeSet<VipKey>,
    /// Pools by index.
    pub(super) pools: BTreeMap<u32, PublishedPool>,
    /// Groups by index.
    pub(super) groups: BTreeMap<u32, PublishedGroup>,
    /// Tables that are there, by what they were built from.
    pub(super) tables: HashMap<TableName, TableRef>,
}

/// A pool's versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PublishedPool {
    /// What new connections go by.
    pub(super) current: Version,
    /// What open ones go by first, during a remap.
    pub(super) previous: Option<Version>,
    /// Whether those at their previous home are adopted.
    pub(super) adopting: bool,
}

/// One version of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    /// Index of its descriptor.
    pub(super) at: u32,
    pub(super) descriptor: Descriptor,
}

/// What decides where a connection is at home: two versions with the same have the same homes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    hash_key: [u64; 2],
    /// Index of the group.
    group: u32,
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
    pub(super) terms: Option<LimitTerms>,
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
    /// Limiter of that limit; [`NO_LIMITER`]: it has none.
    pub(super) limiter: u32,
    /// Whether it is marked out.
    pub(super) out: bool,
}

/// What a group's limit is worked out from, beside its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LimitTerms {
    pub(super) settings: GroupSettings,
    pub(super) balancers: NonZeroU32,
}

impl Home {
    /// By the key of the hash and the index of the group.
    pub const fn new(hash_key: [u64; 2], group: u32) -> Self {
        Self { hash_key, group }
    }
}

impl Published {
    /// Which addresses may have an any-port service.
    pub(super) fn any_ports(&self) -> AnyPorts {
        let mut words = [0; ANY_PORT_WORDS as usize];
        for key in self.services.keys().filter(|key| key.is_any_port()) {
            let (word, bit) = any_port_bit(&key.address);
            words[word as usize] |= bit;
        }
        words
    }

    /// The limiters that groups and members name.
    pub(super) fn limiters(&self) -> BTreeSet<u32> {
        self.groups.values().flat_map(PublishedGroup::limiters).collect()
    }

    /// The tables that groups name.
    pub(super) fn table_refs(&self) -> BTreeSet<TableRef> {
        self.groups.values().map(|group| TableRef(group.group.head.table)).collect()
    }
}

impl Published {
    /// The descriptors that pools name.
    pub(super) fn descriptors(&self) -> BTreeSet<u32> {
        let versions = self.pools.values().flat_map(PublishedPool::versions);
        versions.map(|version| version.at).collect()
    }

    /// Members that are in their pool's previous version alone.
    pub(super) fn leaving(&self) -> BTreeSet<(u32, IpAddr)> {
        let mut leaving = BTreeSet::new();
        for (&index, pool) in &self.pools {
            let Some(previous) = &pool.previous else { continue };
            leaving.extend(self.addresses(previous).map(|address| (index, address)));
            for address in self.addresses(&pool.current) {
                leaving.remove(&(index, address));
            }
        }
        leaving
    }

    fn addresses(&self, version: &Version) -> impl Iterator<Item = IpAddr> {
        let groups = version.groups().iter().filter_map(|at| self.groups.get(at));
        groups.flat_map(|group| group.members.iter().map(|member| member.address))
    }
}

impl PublishedGroup {
    /// Whether a plan has said who of it has a weight.
    pub(super) fn is_weighed(&self) -> bool {
        self.members.iter().all(|member| member.weighted.is_some())
    }

    /// Its limiter and those of its members.
    pub(super) fn limiters(&self) -> impl Iterator<Item = u32> {
        let members = self.members.iter().map(|member| member.limiter);
        members.chain([self.group.limiter]).filter(|limiter| *limiter != NO_LIMITER)
    }

    /// Where its member words are.
    pub(super) fn extent(&self) -> Extent {
        Extent { start: self.group.head.members, length: self.group.head.member_count }
    }
}

impl PublishedPool {
    /// Its versions, the current one first.
    pub(super) fn versions(&self) -> impl Iterator<Item = &Version> {
        [&self.current].into_iter().chain(&self.previous)
    }

    /// The word that publishes them.
    pub(super) fn word(&self) -> PoolWord {
        let previous = self.previous.map_or(0, |previous| previous.at);
        let word = PoolWord::new(self.current.at, previous);
        if self.adopting { word.adopting() } else { word }
    }
}

impl Version {
    /// Its home; `None` where it has no members.
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

// Where the words of a backend's members are, so that a change of health or next hop finds them at
// once whatever the size of the pool.

/// Where a member's word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemberLocation {
    /// Index of its pool.
    pub(super) pool: u32,
    /// Index of its group.
    pub(super) group: u32,
    /// Its rank there.
    pub(super) rank: u16,
    /// Index of its word.
    pub(super) word: u32,
}

#[derive(Clone, Debug, Default)]
pub(super) struct MemberLocations(HashMap<IpAddr, Vec<MemberLocation>>);

impl MemberLocations {
    /// The locations of all members.
    pub(super) fn new(published: &Published) -> Self {
        let mut locations: HashMap<IpAddr, Vec<MemberLocation>> = HashMap::new();
        for (&group, of) in &published.groups {
            for (rank, member) in of.members.iter().enumerate() {
                let word = of.group.head.members + rank as u32;
                let place = MemberLocation { pool: of.pool, group, rank: rank as u16, word };
                locations.entry(member.address).or_default().push(place);
            }
        }
        Self(locations)
    }

    /// Whether some version of some pool has an address.
    pub(super) fn contains(&self, address: &IpAddr) -> bool {
        self.0.contains_key(address)
    }

    /// Those of a backend, in all versions of all pools.
    pub(super) fn get(&self, address: &IpAddr) -> &[MemberLocation] {
        self.0.get(address).map_or(&[], Vec::as_slice)
    }
}
