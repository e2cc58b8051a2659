//! One pass over all displaced entries, in rounds.

use std::collections::{BTreeMap, BTreeSet};

use lb_common::{
    abi::{
        clock::Coarse,
        connection::{DisplacedWord, flow_of_v4, flow_of_v6},
    },
    flow_hash::FlowTuple,
};

use super::{
    entry_status::{EntryLookup, EntryStatus},
    expiry::{self, EntryContext},
};
use lb_maps::{DisplacedMaps, FlowTable, MapsError, PinnedMaps};

/// Entries looked at in one round.
pub(super) const ROUND: u32 = 65_536;

#[derive(Clone, Debug)]
pub(super) struct Pass {
    /// Pools whose check could be turned off when the pass began, with their last displacement.
    clearable: BTreeMap<u32, u64>,
    /// Pools that still have a displaced entry.
    in_use: BTreeSet<u32>,
    /// Where the next round continues.
    position: Position,
    /// Entries removed.
    purged: u64,
    /// Entries kept, of IPv4 and of IPv6.
    kept: [u32; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    V4(Option<u32>),
    V6(Option<u32>),
    End,
}

/// What a pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) purged: u64,
    pub(super) closed: usize,
    /// Entries kept, of IPv4 and of IPv6.
    pub(super) kept: [u32; 2],
}

impl Pass {
    pub(super) fn begin(clearable: BTreeMap<u32, u64>) -> Self {
        Self {
            clearable,
            in_use: BTreeSet::new(),
            position: Position::V4(None),
            purged: 0,
            kept: [0; 2],
        }
    }

    /// Runs one round. Returns what the pass did if that was the last.
    ///
    /// # Errors
    /// The kernel refused a step; nothing may be concluded from this pass.
    pub(super) fn round(
        &mut self,
        displaced: &mut DisplacedMaps,
        now: Coarse,
    ) -> Result<Option<Outcome>, MapsError> {
        let (maps, tables) = displaced.parts();
        self.position = match self.position {
            Position::V4(from) => {
                let table = &mut tables.displaced_v4;
                let (kept, next) = self.walk((maps, table), flow_of_v4, from, now)?;
                self.kept[0] += kept;
                next.map_or(Position::V6(None), |next| Position::V4(Some(next)))
            }
            Position::V6(from) => {
                let table = &mut tables.displaced_v6;
                let (kept, next) = self.walk((maps, table), flow_of_v6, from, now)?;
                self.kept[1] += kept;
                next.map_or(Position::End, |next| Position::V6(Some(next)))
            }
            Position::End => Position::End,
        };
        Ok((self.position == Position::End).then(|| self.finish(displaced)))
    }

    /// Looks at some entries and removes those that are not needed. Returns how many it kept, and where to
    /// continue.
    fn walk<const N: usize>(
        &mut self,
        (maps, table): (&PinnedMaps, &mut FlowTable<N>),
        flow_of: fn(&[u64; N]) -> FlowTuple,
        from: Option<u32>,
        now: Coarse,
    ) -> Result<(u32, Option<u32>), MapsError> {
        let (entries, next) = table.read(from, ROUND)?;
        let mut lookup = EntryLookup::new(maps);
        let mut kept = 0;
        for (key, word) in entries {
            let (flow, word) = (flow_of(&key), DisplacedWord(word));
            let status = lookup.look_up(&flow, word)?;
            // Since it was read, a packet may have changed the entry, or a command its home.
            if expiry::is_expired(word, now, self.circumstances(status))
                && lookup.still_holds(&flow, status)?
                && table.get(&key)? == Some(word.0)
            {
                table.remove(&key)?;
                self.purged += 1;
                continue;
            }
            kept += 1;
            if let EntryStatus::Service { pool, .. } = status {
                self.in_use.insert(pool);
            }
        }
        Ok((kept, next))
    }

    fn circumstances(&self, status: EntryStatus) -> EntryContext {
        match status {
            EntryStatus::NoService => EntryContext { gone: true, at_home: false, clearable: false },
            EntryStatus::Service { pool, gone, at_home, .. } => {
                EntryContext { gone, at_home, clearable: self.clearable.contains_key(&pool) }
            }
        }
    }

    /// Turns off the checks of clearable pools that have no entry left. If a connection was displaced
    /// meanwhile, the pool has another time now, and its check stays on.
    fn finish(&self, displaced: &DisplacedMaps) -> Outcome {
        let free = self.clearable.iter().filter(|(pool, _)| !self.in_use.contains(pool));
        let closed = free
            .inspect(|(pool, last_displaced)| displaced.clear(**pool, **last_displaced))
            .count();
        Outcome { purged: self.purged, closed, kept: self.kept }
    }
}
