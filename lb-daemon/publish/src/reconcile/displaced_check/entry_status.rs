//! What the maps say about a displaced entry, cached for one round.

use std::collections::{BTreeMap, btree_map::Entry};

use lb_common::{
    abi::{
        connection::{DisplacedWord, Placement},
        member::Accepts,
        pool::PoolWord,
    },
    flow_hash::FlowTuple,
    path::{self, Tables, select},
};

use lb_maps::{Mapping, MapsError, PinnedMaps, ServiceView};

pub(super) struct EntryLookup<'m> {
    maps: &'m PinnedMaps,
    /// By index; services seen in this round.
    services: BTreeMap<u32, Option<ServiceView<'m>>>,
}

/// What the maps say about a displaced entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryStatus {
    NoService,
    Service {
        pool: u32,
        /// The pool's word when the entry was looked up.
        published: PoolWord,
        /// Whether the pool no longer has the entry's backend.
        gone: bool,
        /// Whether the connection would be at the same backend without the entry.
        at_home: bool,
    },
}

impl<'m> EntryLookup<'m> {
    pub(super) fn new(maps: &'m PinnedMaps) -> Self {
        Self { maps, services: BTreeMap::new() }
    }

    pub(super) fn look_up(
        &mut self,
        flow: &FlowTuple,
        word: DisplacedWord,
    ) -> Result<EntryStatus, MapsError> {
        let maps = self.maps;
        let Some(service) = maps.service_of(flow)? else { return Ok(EntryStatus::NoService) };
        // All ports of a service share a pool.
        let service = match self.services.entry(service.index) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(place) => place.insert(maps.service_view(service)?),
        };
        let Some(service) = service else { return Ok(EntryStatus::NoService) };
        let placed = word.placement();
        Ok(EntryStatus::Service {
            pool: service.service().pool,
            published: service.pool().word(),
            gone: is_gone(maps, service, placed)?,
            at_home: is_at_home(service, flow, placed),
        })
    }

    /// Whether a status is still true: a service may have been added, or a pool's home may have changed.
    pub(super) fn still_holds(
        &self,
        flow: &FlowTuple,
        status: EntryStatus,
    ) -> Result<bool, MapsError> {
        match status {
            EntryStatus::NoService => Ok(self.maps.service_of(flow)?.is_none()),
            EntryStatus::Service { pool, published, .. } => Ok(self.maps.pool(pool) == published),
        }
    }
}

/// Whether the pool no longer has the backend, or another backend has its number. If the backend accepts
/// nothing, only the pool's groups tell whether the pool has it.
fn is_gone(
    maps: &PinnedMaps,
    service: &ServiceView<'_, Mapping>,
    placed: Placement,
) -> Result<bool, MapsError> {
    if maps.backend_state(placed.backend).incarnation() != placed.incarnation {
        return Ok(true);
    }
    if service.pool().backends.contains_key(&placed.backend) {
        return Ok(false);
    }
    Ok(maps.state_in(service.service().pool, placed.backend)? == Accepts::Nothing)
}

/// Whether the connection's home is at the backend, in both the current and the previous version.
fn is_at_home(service: &ServiceView<'_, Mapping>, flow: &FlowTuple, placed: Placement) -> bool {
    let published = service.pool().word();
    [published.current(), published.previous()].into_iter().filter(|version| *version != 0).all(
        |version| {
            service.descriptor(version).is_some_and(|descriptor| {
                let hash = path::flow_hash(service.service(), descriptor, flow);
                select::home(service, descriptor, hash)
                    .is_ok_and(|home| select::placement(home.member) == placed)
            })
        },
    )
}
