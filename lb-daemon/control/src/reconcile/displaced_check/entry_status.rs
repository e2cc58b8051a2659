//! What the maps say about a displaced entry, for the time of a round.

use std::collections::{BTreeMap, btree_map::Entry};

use lb_common::{
    abi::{displaced::DisplacedWord, handshake::Placement, member::Accepts, pool::PoolWord},
    flow_hash::FlowTuple,
    path::{self, Tables, select},
};

use lb_maps::{Mapping, MapsError, PinnedMaps, ServiceView};

/// Services that were met, as they are.
pub(super) struct EntryLookup<'m> {
    maps: &'m PinnedMaps,
    /// By index.
    services: BTreeMap<u32, Option<ServiceView<'m>>>,
}

/// What the maps say about a displaced entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryStatus {
    /// There is no such service.
    NoService,
    /// There is.
    Service {
        /// Its pool.
        pool: u32,
        /// What that had published.
        published: PoolWord,
        /// Its pool does not have its backend any more.
        gone: bool,
        /// Without it the connection would be at the same place.
        at_home: bool,
    },
}

impl<'m> EntryLookup<'m> {
    pub(super) fn new(maps: &'m PinnedMaps) -> Self {
        Self { maps, services: BTreeMap::new() }
    }

    /// What they say about one.
    ///
    /// # Errors
    /// What the kernel answers.
    pub(super) fn look_up(
        &mut self,
        flow: &FlowTuple,
        word: DisplacedWord,
    ) -> Result<EntryStatus, MapsError> {
        let maps = self.maps;
        let Some(service) = maps.service_of(flow)? else { return Ok(EntryStatus::NoService) };
        // Ports of one service are decided alike.
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

    /// Whether what was said still holds: a service may have come, or a pool's home changed, since.
    ///
    /// # Errors
    /// What the kernel answers.
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

/// Whether the pool does not have a backend any more, or somebody else has its number. Who is dead in a pool may be
/// one that it does not have, so then its groups are asked.
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

/// Whether a connection's home is there, by each meaning of home that counts.
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
