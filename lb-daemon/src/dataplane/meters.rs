//! What reconciling asks of limits and hosts.

use lb_common::abi::{host::HostWord, limits::MAX_BACKENDS, meter::LimitWord};

use super::{WritableMaps, maps::Maps, raw::Mapping};

impl<M: AsRef<Mapping>> Maps<M> {
    /// A meter's limit; a meter out of range has none.
    pub fn limit(&self, meter: u32) -> LimitWord {
        self.meter(meter).map_or(LimitWord::UNLIMITED, |meter| LimitWord(meter.limit))
    }

    /// The hosts that are not gone, by backend index.
    pub fn hosts(&self) -> impl Iterator<Item = (u32, HostWord)> + '_ {
        let hosts = (0..MAX_BACKENDS).map(|index| (index, self.host(index)));
        hosts.filter(|(_, host)| *host != HostWord::GONE)
    }
}

impl WritableMaps {
    /// Exceptions there is room for, of IPv4 and of IPv6 connections.
    pub fn exception_room(&self) -> [u32; 2] {
        self.exception_room
    }
}
