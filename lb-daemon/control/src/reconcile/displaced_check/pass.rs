//! One pass over all displaced entries, a round at a time.

use std::collections::{BTreeMap, BTreeSet};

use lb_common::{
    abi::{
        clock::Coarse,
        connection::{DisplacedWord, flow_of_v4, flow_of_v6},
    },
    flow_hash::FlowTuple,
};

use super::{
    entry_status::{Homes, Said},
    expiry::{self, Circumstances},
};
use lb_maps::{DisplacedMaps, FlowTable, MapsError, PinnedMaps};

/// Displaced entries looked at in one round.
pub(super) const ROUND: u32 = 65_536;

/// A pass under way.
#[derive(Clone, Debug)]
pub(super) struct Pass {
    /// Pools that could be closed when it began, with their last displacement.
    ripe: BTreeMap<u32, u64>,
    /// Pools that have a displaced entry left.
    held: BTreeSet<u32>,
    /// Where it goes on.
    place: Place,
    /// Displaced entries that it took out.
    purged: u64,
    /// Those that it left, of IPv4 and of IPv6.
    kept: [u32; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    V4(Option<u32>),
    V6(Option<u32>),
    End,
}

/// What a pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) purged: u64,
    pub(super) closed: usize,
    /// Displaced entries that are left, of IPv4 and of IPv6.
    pub(super) kept: [u32; 2],
}

impl Pass {
    pub(super) fn begin(ripe: BTreeMap<u32, u64>) -> Self {
        Self { ripe, held: BTreeSet::new(), place: Place::V4(None), purged: 0, kept: [0; 2] }
    }

    /// Goes on for a round; what it did, if that was the last.
    ///
    /// # Errors
    /// What the kernel answers; nothing may be concluded from this pass then.
    pub(super) fn round(
        &mut self,
        gates: &mut DisplacedMaps,
        now: Coarse,
    ) -> Result<Option<Outcome>, MapsError> {
        let (maps, tables) = gates.parts();
        self.place = match self.place {
            Place::V4(from) => {
                let table = &mut tables.displaced_v4;
                let (kept, next) = self.walk((maps, table), flow_of_v4, from, now)?;
                self.kept[0] += kept;
                next.map_or(Place::V6(None), |next| Place::V4(Some(next)))
            }
            Place::V6(from) => {
                let table = &mut tables.displaced_v6;
                let (kept, next) = self.walk((maps, table), flow_of_v6, from, now)?;
                self.kept[1] += kept;
                next.map_or(Place::End, |next| Place::V6(Some(next)))
            }
            Place::End => Place::End,
        };
        Ok((self.place == Place::End).then(|| self.end(gates)))
    }

    /// Looks at some displaced entries, takes out those that go, and returns how many it left, and where to go
    /// on.
    fn walk<const N: usize>(
        &mut self,
        (maps, table): (&PinnedMaps, &mut FlowTable<N>),
        flow_of: fn(&[u64; N]) -> FlowTuple,
        from: Option<u32>,
        now: Coarse,
    ) -> Result<(u32, Option<u32>), MapsError> {
        let (entries, next) = table.read(from, ROUND)?;
        let mut homes = Homes::new(maps);
        let mut kept = 0;
        for (key, word) in entries {
            let (flow, word) = (flow_of(&key), DisplacedWord(word));
            let said = homes.about(&flow, word)?;
            // A packet may have changed it, or a command its home, since it was read.
            if expiry::goes(word, now, self.circumstances(said))
                && homes.holds(&flow, said)?
                && table.get(&key)? == Some(word.0)
            {
                table.remove(&key)?;
                self.purged += 1;
                continue;
            }
            kept += 1;
            if let Said::Service { pool, .. } = said {
                self.held.insert(pool);
            }
        }
        Ok((kept, next))
    }

    fn circumstances(&self, said: Said) -> Circumstances {
        match said {
            Said::NoService => Circumstances { gone: true, at_home: false, ripe: false },
            Said::Service { pool, gone, at_home, .. } => {
                Circumstances { gone, at_home, ripe: self.ripe.contains_key(&pool) }
            }
        }
    }

    /// Turns off the displaced check of pools that were ripe and have no displaced entry left. One that placed a connection
    /// away from home meanwhile says another time now, so its check stays on.
    fn end(&self, gates: &DisplacedMaps) -> Outcome {
        let free = self.ripe.iter().filter(|(pool, _)| !self.held.contains(pool));
        let closed =
            free.inspect(|(pool, last_displaced)| gates.clear(**pool, **last_displaced)).count();
        Outcome { purged: self.purged, closed, kept: self.kept }
    }
}
