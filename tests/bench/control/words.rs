//! Member words of a pool, as the packet path reads them.

use std::net::IpAddr;

use anyhow::{Context as _, Result};
use lb_common::abi::member::{Accepts, MemberWord};
use lb_common::abi::service::ServiceKey;
use lb_maps::PinnedMaps;

use super::configuration::VIP;

const TCP: u8 = 6;

/// Where the words of a pool's members are. A pool that is published anew has them elsewhere.
#[derive(Debug)]
pub(crate) struct Members<'m> {
    maps: &'m PinnedMaps,
    pool: u32,
    /// The descriptor that the places are of.
    version: u32,
    /// Index and identity of each member's word, with its address, in the order of addresses.
    places: Vec<(IpAddr, u32, u32)>,
}

impl<'m> Members<'m> {
    /// Finds the pool of the service on a port of the VIP.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub(crate) fn find(maps: &'m PinnedMaps, port: u16) -> Result<Self> {
        let service = maps.service(&ServiceKey::new(VIP.into(), port, TCP))?;
        let pool = service.with_context(|| format!("no service on port {port}"))?.pool;
        let mut members = Self { maps, pool, version: 0, places: Vec::new() };
        members.refresh();
        anyhow::ensure!(!members.places.is_empty(), "the pool of port {port} has no member");
        Ok(members)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// The place of a backend; places do not change while backends do not.
    pub(crate) fn place(&self, address: IpAddr) -> Option<usize> {
        self.places.iter().position(|(there, ..)| *there == address)
    }

    /// Whether a member takes new connections. None: the pool is being changed; look again.
    pub(crate) fn is_up(&mut self, place: usize) -> Option<bool> {
        if self.maps.pool(self.pool).now() != self.version {
            self.refresh();
        }
        let &(_, index, identity) = self.places.get(place)?;
        let word = self.maps.member(index)?;
        // Read after the version: a block that was freed in between may be another pool's already.
        if self::identity(word) != identity {
            self.version = 0;
            return None;
        }
        Some(word.accepts() == Accepts::All)
    }

    /// How many take new connections now.
    pub(crate) fn count_up(&mut self) -> usize {
        (0..self.len()).filter(|place| self.is_up(*place) == Some(true)).count()
    }

    /// Finds the words again. What changes meanwhile is found by the next look.
    fn refresh(&mut self) {
        let version = self.maps.pool(self.pool).now();
        let Some(descriptor) = self.maps.descriptor(version) else { return };
        let groups = descriptor.groups.iter().take(descriptor.group_count as usize);
        let mut places = Vec::new();
        for group in groups.filter_map(|index| self.maps.group(*index)) {
            for index in (0..group.head.member_count).map(|rank| group.head.members + rank) {
                let Some(word) = self.maps.member(index) else { return };
                let Some(backend) = self.maps.backend(word.backend()) else { return };
                let address =
                    lb_common::abi::service::address_of(&backend.address, backend.version);
                places.push((address, index, identity(word)));
            }
        }
        places.sort_unstable();
        if self.maps.pool(self.pool).now() == version {
            (self.version, self.places) = (version, places);
        }
    }
}

/// Backend and incarnation of a word.
const fn identity(word: MemberWord) -> u32 {
    word.backend() | (word.incarnation() as u32) << 24
}
