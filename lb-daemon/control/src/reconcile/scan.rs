//! Reads from the maps what is in use, after a start and after a change that failed half-way.
//!
//! Limits stay as they are: what they depend on comes with the next plan.

use lb_common::abi::{
    limiter::NO_LIMITER, member::MemberWord, service::address_of, slot::TableRef,
};

use super::{
    Reconciler,
    backend_states::SharedStates,
    free_space::FreeSpace,
    member_states::MemberStates,
    member_states::MemberStatus,
    next_hop_table::NextHopTable,
    published::MemberLocations,
    published::{Published, PublishedGroup, PublishedMember, PublishedPool, Version},
};
use lb_maps::{MapsError, SharedBackend, WritableMaps};
use lb_model::ids::BackendId;

/// Reads what is published. Frees what no pool uses, after a grace period, because a daemon that died may
/// have unpublished it a moment ago.
pub(super) fn scan_published(maps: &mut WritableMaps) -> Result<(Published, FreeSpace), MapsError> {
    let published = read(maps)?;
    maps.wait_for_readers()?;
    let mut free_space = FreeSpace::from_published(&published, &maps.sizes(), maps.chunks());
    maps.remove_chunks(&free_space.tables.remove_empty())?;
    Ok((published, free_space))
}

impl Reconciler {
    /// Reads again what is published, and keeps what the sensors reported.
    pub(super) fn rescan(&mut self) -> Result<(), MapsError> {
        (self.published, self.free_space) = scan_published(&mut self.maps)?;
        self.shared = shared(&self.maps)?;
        self.locations = MemberLocations::new(&self.published);
        self.rewrite_member_words();
        self.stale = false;
        Ok(())
    }

    /// Corrects the words of members. A change that failed half-way may have published words that missed a
    /// report of a sensor, and a daemon may have died between two words of one backend. Standbys follow with
    /// the next plan.
    pub(super) fn rewrite_member_words(&self) {
        for group in self.published.groups.values() {
            for (at, member) in (group.group.head.members..).zip(&group.members) {
                let Some(there) = self.maps.member(at) else { continue };
                let known = self.states.get(group.pool, &member.address);
                let known = known.unwrap_or_else(|| MemberStatus::from_word(there));
                let hop = self.next_hops.index_of(&member.address) as u16;
                let word = known.apply_to(there).with_next_hop(hop);
                if word != there {
                    self.maps.set_member(at, word);
                }
            }
        }
    }
}

fn read(maps: &WritableMaps) -> Result<Published, MapsError> {
    let mut published = Published::default();
    for service in maps.services()? {
        published.services.insert(service.key, service);
    }
    published.vips = maps.vips()?;
    for index in 0..maps.pool_count() {
        let word = maps.pool(index);
        let version = |at| {
            let descriptor = maps.descriptor(at).filter(|_| at != 0)?;
            Some(Version { at, descriptor })
        };
        let Some(current) = version(word.current()) else { continue };
        let previous = version(word.previous());
        let pool = PublishedPool { current, previous, adopting: word.is_adopting() };
        for &group in pool.versions().flat_map(Version::groups) {
            if let Some(read) = read_group(maps, index, group)? {
                let table = TableRef(read.group.head.table);
                published.tables.extend(read.table.map(|name| (name, table)));
                published.groups.insert(group, read);
            }
        }
        published.pools.insert(index, pool);
    }
    Ok(published)
}

fn read_group(
    maps: &WritableMaps,
    pool: u32,
    index: u32,
) -> Result<Option<PublishedGroup>, MapsError> {
    let Some(group) = maps.group(index) else { return Ok(None) };
    let ranks = 0..group.head.member_count;
    let member = |rank| {
        let word = maps.member(group.head.members.checked_add(rank)?)?;
        let backend = maps.backend(word.backend())?;
        let id = BackendId { index: word.backend(), incarnation: word.incarnation() };
        let address = address_of(&backend.address, backend.version);
        let at = group.head.members + rank;
        let limiter = if word.is_limited() { maps.member_limiter(at) } else { NO_LIMITER };
        let out = word.is_marked_out();
        Some(PublishedMember { address, id, weighted: None, rate: None, limiter, out })
    };
    let Some(members) = ranks.map(member).collect::<Option<Vec<_>>>() else { return Ok(None) };
    let table = match maps.table(TableRef(group.head.table), group.head.shape()) {
        Ok(table) => table.name(),
        Err(MapsError::NoTable { .. }) => None,
        Err(error) => return Err(error),
    };
    Ok(Some(PublishedGroup { group, pool, table, terms: None, members }))
}

/// States of backends that several pools have.
pub(super) fn shared(maps: &WritableMaps) -> Result<SharedStates, MapsError> {
    let mut shared = SharedStates::new();
    for SharedBackend { pool, backend, state } in maps.shared_backends()? {
        shared.entry(backend).or_default().insert(pool, state);
    }
    Ok(shared)
}

/// Status and next hops, from the words of members and backends.
pub(super) fn members(
    maps: &WritableMaps,
    published: &Published,
    shared: &SharedStates,
) -> (MemberStates, NextHopTable) {
    let (mut states, mut next_hops) = (MemberStates::default(), NextHopTable::new());
    for group in published.groups.values() {
        for (rank, member) in group.members.iter().enumerate() {
            let at = group.group.head.members + rank as u32;
            let word = maps.member(at).unwrap_or(MemberWord(0));
            states.recover(group.pool, member.address, MemberStatus::from_word(word));
            let index = u32::from(word.next_hop());
            next_hops.recover(member.address, index, maps.next_hop(index));
        }
    }
    for (index, word) in maps.backend_states() {
        let backend = maps.backend(index);
        let Some(backend) = backend.filter(|b| b.incarnation == word.incarnation()) else {
            continue;
        };
        let address = address_of(&backend.address, backend.version);
        let id = BackendId { index, incarnation: word.incarnation() };
        if word.is_shared() {
            for (pool, state) in shared.get(&index).into_iter().flatten() {
                states.recover_backend_state(*pool, address, id, *state);
            }
        } else {
            states.recover_backend_state(word.pool(), address, id, word.accepts_in(word.pool()));
        }
        let index = u32::from(word.next_hop());
        next_hops.recover(address, index, maps.next_hop(index));
    }
    (states, next_hops)
}
