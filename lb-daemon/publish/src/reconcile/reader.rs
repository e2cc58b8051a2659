//! Reads the packet path for the status.

use std::{collections::BTreeMap, sync::Arc};

use lb_common::abi::limiter::NO_LIMITER;
use tokio::sync::watch;

use super::{
    ReconcileError, TableChecksums, checksum, pool_checksums,
    published::{Published, PublishedGroup},
    words::reading_members,
};
use lb_maps::{Attached, Interface, MapsError, PinnedMaps};
use lb_model::capacity::{GroupReading, Portion};

/// The groups that new connections use, by index of the pool, nearest first.
pub(super) type ReadGroups = Vec<(u32, Arc<PublishedGroup>)>;

/// Groups that no plan has described yet are left out.
pub(super) fn read_groups(published: &Published) -> ReadGroups {
    let pools = published.pools.iter();
    let groups = pools.flat_map(|(pool, it)| it.current.groups().iter().map(move |at| (*pool, at)));
    let groups = groups.filter_map(|(pool, at)| Some((pool, published.groups.get(at)?)));
    let described = groups
        .filter(|(_, group)| group.group.limiter != NO_LIMITER && group.terms.is_some())
        .map(|(pool, group)| (pool, Arc::clone(group)));
    described.collect()
}

/// What the status loop needs of the packet path: it reads it.
pub trait PathReader: Send {
    /// Digest over what the packet path decides by.
    ///
    /// # Errors
    /// The maps cannot be read.
    fn checksum(&mut self) -> Result<u64, ReconcileError>;

    /// The same of each pool, by its index.
    ///
    /// # Errors
    /// The maps cannot be read.
    fn pool_checksums(&mut self) -> Result<BTreeMap<u32, u64>, ReconcileError>;

    /// The groups of each pool in order, with their counters.
    ///
    /// # Errors
    /// The maps cannot be read.
    fn readings(&self) -> Result<Vec<GroupReading>, ReconcileError>;

    /// Interfaces with the packet program.
    fn interfaces(&self) -> Vec<InterfaceStatus>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceStatus {
    pub name: String,
    /// `native` or `generic`, as the kernel reports it; `None` if the program is not attached.
    pub mode: Option<String>,
}

/// Reads the maps with file descriptors of its own, and so beside whoever writes them.
#[derive(Debug)]
pub struct Reader {
    maps: PinnedMaps,
    attached: Arc<Attached>,
    groups: watch::Receiver<Arc<ReadGroups>>,
    checksums: TableChecksums,
}

impl Reader {
    pub(super) fn new(
        maps: PinnedMaps,
        attached: Arc<Attached>,
        groups: watch::Receiver<Arc<ReadGroups>>,
    ) -> Self {
        Self { maps, attached, groups, checksums: TableChecksums::default() }
    }

    fn reading(
        &self,
        pool: u32,
        group: &PublishedGroup,
    ) -> Result<Option<GroupReading>, MapsError> {
        let Some(terms) = &group.terms else { return Ok(None) };
        Ok(Some(GroupReading {
            pool,
            region: group.group.region,
            settings: terms.settings,
            portion: Portion::equal(terms.balancers),
            members: reading_members(&self.maps, group),
            limit: self.maps.limit(group.group.limiter),
            counters: self.maps.group_connections(group.group.limiter)?,
        }))
    }
}

impl PathReader for Reader {
    fn checksum(&mut self) -> Result<u64, ReconcileError> {
        Ok(checksum(&self.maps, &mut self.checksums)?)
    }

    fn pool_checksums(&mut self) -> Result<BTreeMap<u32, u64>, ReconcileError> {
        Ok(pool_checksums(&self.maps, &mut self.checksums)?)
    }

    fn readings(&self) -> Result<Vec<GroupReading>, ReconcileError> {
        let groups = Arc::clone(&self.groups.borrow());
        let readings =
            groups.iter().filter_map(|(pool, group)| self.reading(*pool, group).transpose());
        Ok(readings.collect::<Result<_, _>>()?)
    }

    fn interfaces(&self) -> Vec<InterfaceStatus> {
        self.attached.interfaces().into_iter().map(Into::into).collect()
    }
}

impl From<Interface> for InterfaceStatus {
    fn from(interface: Interface) -> Self {
        Self { name: interface.name, mode: interface.mode.map(|mode| mode.to_string()) }
    }
}
