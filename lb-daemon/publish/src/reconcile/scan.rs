//! Reads from the maps what is in use, after a start and after a change that failed half-way.
//!
//! Limits stay as they are: what they depend on comes with the next plan.

use std::sync::Arc;

use lb_common::abi::{limiter::NO_LIMITER, service::address_of, slot::TableRef};

use super::{
    ReconcileError, Reconciler,
    free_space::{Extent, FreeSpace},
    published::{Published, PublishedGroup, PublishedMember, PublishedPool, Version},
};
use lb_maps::{MapsError, WritableMaps};
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
    /// Reads again what is published, and has the owner of member words do the same.
    pub(super) async fn rescan(&mut self) -> Result<(), ReconcileError> {
        let (published, free_space) = scan_published(&mut self.maps)?;
        // The maps do not say it, and words of VIPs go on following the host meanwhile.
        let unserved = std::mem::take(&mut self.published.unserved);
        self.published = Published { unserved, ..published };
        self.free_space = free_space;
        // What the owner knows of pools and backends may be of a change that did not get through.
        self.planned = None;
        self.show();
        let groups = self.published.groups.clone();
        self.steps.take(move |words| words.see_again(&groups)).await??;
        self.stale = false;
        Ok(())
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
        let Some(current) = version(word.latest()) else { continue };
        let previous = version(word.now()).filter(|_| word.next() != 0);
        let zones = maps.pool_line(index).zones();
        let zones = Extent { start: zones.first(), length: zones.count() };
        let pool = PublishedPool { current, previous, zones };
        for &group in pool.versions().flat_map(Version::groups) {
            if let Some(read) = read_group(maps, index, group)? {
                let table = TableRef(read.group.head.table);
                published.tables.extend(read.table.map(|name| (name, table)));
                published.groups.insert(group, Arc::new(read));
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
