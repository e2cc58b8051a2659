//! One pass through the flow table, in rounds.

use lb_common::{
    abi::{
        backend::BackendStateWord,
        clock::Coarse,
        pool::PoolLine,
        zone::{ZONES, Zone},
    },
    flow_table::{Owner, Place},
};

use lb_maps::FlowMaps;

/// Buckets looked at in one round.
const ROUND: u32 = 16_384;
/// The packet path's clock may be this far ahead, in coarse units: a second, which may reach into another unit.
const AHEAD: u64 = 2;
/// A check that was turned on within this time before a pass may be of a cell that the pass has not met, in coarse units:
/// packets that stored it and then took their cells.
const SETTLED: u64 = Coarse::units(64) + AHEAD;

#[derive(Clone, Debug)]
pub(super) struct Pass {
    began: Coarse,
    /// Zones of which a cell was met that turns their check on.
    in_use: Vec<bool>,
    /// Cells by zone, without those that are half-open.
    counts: Vec<u32>,
    /// Where the next round continues.
    bucket: u32,
    erased: u64,
}

/// What came of a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) erased: u64,
    pub(super) zones: usize,
    pub(super) pools: usize,
}

impl Pass {
    pub(super) fn begin(now: Coarse) -> Self {
        Self {
            began: now,
            in_use: vec![false; ZONES as usize],
            counts: vec![0; ZONES as usize],
            bucket: 0,
            erased: 0,
        }
    }

    /// Looks at the next cells; the outcome once these were the last.
    pub(super) fn round(&mut self, maps: &FlowMaps, now: Coarse) -> Option<Outcome> {
        let table = maps.table();
        for (at, owner, place) in table.cells(self.bucket, ROUND) {
            let is_gone = |place: Place| {
                let placed = place.placement();
                let state = maps.backend_state(placed.backend);
                state == BackendStateWord::GONE || state.incarnation() != placed.incarnation
            };
            if owner == Owner::BUSY {
                continue;
            }
            if is_over(owner, now) || is_gone(place) {
                self.erased += u64::from(table.erase(at, owner));
            } else {
                let zone = usize::from(owner.zone());
                self.counts[zone] += u32::from(!owner.is_half_open());
                self.in_use[zone] |= owner.turns_check_on();
            }
        }
        self.bucket = self.bucket.saturating_add(ROUND);
        (self.bucket >= table.buckets()).then(|| self.finish(maps))
    }

    /// Turns off the checks of zones without a cell, then those of pools without such a zone. If a flow got a cell
    /// meanwhile, its zone and its pool have another time now, and their checks stay on.
    fn finish(&self, maps: &FlowMaps) -> Outcome {
        let mut outcome = Outcome { erased: self.erased, ..Outcome::default() };
        let total = self.counts.iter().copied().map(u64::from).sum();
        maps.set_count(0, total);
        for (pool, line) in
            (1..).map(|pool| (pool, maps.pool_line(pool))).take(maps.pool_count() as usize - 1)
        {
            let zones = (line.zones().first() as usize..).take(line.zones().count() as usize);
            let counts = zones.filter_map(|zone| self.counts.get(zone).copied().map(u64::from));
            maps.set_count(pool, counts.sum());
        }
        for (pool, line) in maps.pools_with_displaced() {
            let zones = line.zones();
            let mut is_any_on = false;
            for number in (zones.first()..).take(zones.count() as usize) {
                let zone = maps.zone(number);
                let in_use = self.in_use.get(number as usize).is_none_or(|in_use| *in_use);
                if zone.has_displaced() && !in_use && is_settled(zone, self.began) {
                    maps.clear_zone(number, zone.last_displaced);
                    outcome.zones += 1;
                } else {
                    is_any_on |= zone.has_displaced();
                }
            }
            if !is_any_on && self.is_clearable(&line) {
                maps.clear(pool, line.last_displaced);
                outcome.pools += 1;
            }
        }
        outcome
    }

    fn is_clearable(&self, line: &PoolLine) -> bool {
        is_settled(Zone { cleared: 0, last_displaced: line.last_displaced }, self.began)
    }
}

/// Whether a cell is over by any CPU's clock.
const fn is_over(owner: Owner, now: Coarse) -> bool {
    owner.left(now) <= -(AHEAD as i64)
}

/// Whether a check was turned on long enough ago for a pass that began then.
const fn is_settled(zone: Zone, began: Coarse) -> bool {
    began.0.saturating_sub(zone.last_displaced) > SETTLED
}

#[cfg(test)]
mod tests {
    use super::*;
    use lb_common::flow_table::{FlowKey, State};

    #[test]
    fn a_cell_is_over_once_all_clocks_say_so() {
        let now = Coarse(0x2_0005);
        for (left, is_over_then) in
            [(5, false), (0, false), (-1, false), (-2, true), (-9_000, true)]
        {
            let until = Coarse(now.0.wrapping_add_signed(left));
            let owner = Owner::new(FlowKey(7 << 40), false, 1, State::Open, until);
            assert_eq!(is_over(owner, now), is_over_then, "{left}");
        }
    }

    #[test]
    fn a_check_that_was_turned_on_a_moment_ago_stays_on() {
        let zone = |ago: u64| Zone { cleared: 0, last_displaced: 10_000 - ago };
        for (ago, settled) in [(0, false), (62, false), (63, true), (5_000, true)] {
            assert_eq!(is_settled(zone(ago), Coarse(10_000)), settled, "{ago}");
        }
        assert!(!is_settled(Zone { cleared: 0, last_displaced: 10_002 }, Coarse(10_000)));
    }
}
