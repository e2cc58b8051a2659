//! One pass through the flow table, in rounds.

use lb_common::{
    abi::{
        backend::BackendStateWord,
        clock::Coarse,
        pool::PoolLine,
        zone::{ZONES, Zone},
    },
    flow_table::{Owner, Place, Position},
};

use lb_maps::FlowMaps;

/// The maps as a pass sees them.
pub(super) trait WalkedMaps {
    fn buckets(&self) -> u32;
    /// The cells of some buckets from one on, that are or were a flow's.
    fn cells(&self, first: u32, count: u32) -> impl Iterator<Item = (Position, Owner, Place)>;
    /// Erases a cell, unless a packet has changed its first word since it was read.
    fn erase(&self, at: Position, owner: Owner) -> bool;
    fn backend_state(&self, backend: u32) -> BackendStateWord;
    /// Pools, and the index 0, which none has.
    fn pool_count(&self) -> u32;
    fn pool_line(&self, pool: u32) -> PoolLine;
    fn zone(&self, zone: u32) -> Zone;
    /// How many cells a pool has, about; 0: all pools.
    fn count(&self, pool: u32) -> u64;
    /// Sets it.
    fn set_count(&self, pool: u32, cells: u64);
    /// Turns off the displaced check of a pool, unless a flow got a cell after `last_displaced`.
    fn clear(&self, pool: u32, last_displaced: u64);
    /// The same of a zone.
    fn clear_zone(&self, zone: u32, last_displaced: u64);
}

impl WalkedMaps for FlowMaps {
    fn buckets(&self) -> u32 {
        self.table().buckets()
    }
    fn cells(&self, first: u32, count: u32) -> impl Iterator<Item = (Position, Owner, Place)> {
        self.table().cells(first, count)
    }
    fn erase(&self, at: Position, owner: Owner) -> bool {
        self.table().erase(at, owner)
    }
    fn backend_state(&self, backend: u32) -> BackendStateWord {
        (**self).backend_state(backend)
    }
    fn pool_count(&self) -> u32 {
        (**self).pool_count()
    }
    fn pool_line(&self, pool: u32) -> PoolLine {
        (**self).pool_line(pool)
    }
    fn zone(&self, zone: u32) -> Zone {
        (**self).zone(zone)
    }
    fn count(&self, pool: u32) -> u64 {
        self.flow_count(pool)
    }
    fn set_count(&self, pool: u32, cells: u64) {
        self.set_count(pool, cells);
    }
    fn clear(&self, pool: u32, last_displaced: u64) {
        self.clear(pool, last_displaced);
    }
    fn clear_zone(&self, zone: u32, last_displaced: u64) {
        self.clear_zone(zone, last_displaced);
    }
}

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
    /// What the maps said of each pool when the pass began.
    counts_before: Vec<u64>,
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
            counts_before: Vec::new(),
            bucket: 0,
            erased: 0,
        }
    }

    /// Looks at the next cells; the outcome once these were the last.
    pub(super) fn round(&mut self, maps: &impl WalkedMaps, now: Coarse) -> Option<Outcome> {
        if self.bucket == 0 {
            self.counts_before = (0..maps.pool_count()).map(|pool| maps.count(pool)).collect();
        }
        for (at, owner, place) in maps.cells(self.bucket, ROUND) {
            let is_gone = |place: Place| {
                let placed = place.placement();
                let state = maps.backend_state(placed.backend);
                state == BackendStateWord::GONE || state.incarnation() != placed.incarnation
            };
            if owner == Owner::BUSY {
                continue;
            }
            if is_over(owner, now) || is_gone(place) {
                self.erased += u64::from(maps.erase(at, owner));
            } else {
                let zone = usize::from(owner.zone());
                self.counts[zone] += u32::from(!owner.is_half_open());
                self.in_use[zone] |= owner.turns_check_on();
            }
        }
        self.bucket = self.bucket.saturating_add(ROUND);
        (self.bucket >= maps.buckets()).then(|| self.finish(maps))
    }

    /// Turns off the checks of zones without a cell, then those of pools without such a zone. If a flow got a cell
    /// meanwhile, its zone and its pool have another time now, and their checks stay on.
    fn finish(&self, maps: &impl WalkedMaps) -> Outcome {
        let mut outcome = Outcome { erased: self.erased, ..Outcome::default() };
        let total = self.counts.iter().copied().map(u64::from).sum();
        self.set_count(maps, 0, total);
        for (pool, line) in
            (1..).map(|pool| (pool, maps.pool_line(pool))).take(maps.pool_count() as usize - 1)
        {
            let zones = (line.zones().first() as usize..).take(line.zones().count() as usize);
            let counts = zones.filter_map(|zone| self.counts.get(zone).copied().map(u64::from));
            self.set_count(maps, pool, counts.sum());
        }
        let lines = (0..maps.pool_count()).map(|pool| (pool, maps.pool_line(pool)));
        for (pool, line) in lines.filter(|(_, line)| line.has_displaced()) {
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

    /// Sets a count to what the pass has counted, and to what packets have counted since it began, of which it may have met
    /// some: a pool gets too few cells rather than too many until the next pass is over.
    fn set_count(&self, maps: &impl WalkedMaps, pool: u32, counted: u64) {
        let before = self.counts_before.get(pool as usize).copied().unwrap_or_default();
        maps.set_count(pool, counted + maps.count(pool).saturating_sub(before));
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
    use std::{
        cell::{Cell, RefCell},
        collections::BTreeMap,
    };

    use proptest::{collection::vec, prelude::*};

    use super::*;
    use lb_common::{
        abi::{connection::Placement, member::Accepts, zone::ZoneRange},
        flow_table::{FlowKey, State},
    };

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

    /// A table of three rounds.
    const BUCKETS: u32 = 2 * ROUND + 100;
    const NOW: Coarse = Coarse(0x2_0000);
    /// Zones of each pool; pool 2 has those after pool 1's. The last pool is gone: its zones are pool 1's since.
    const RANGES: [ZoneRange; 4] =
        [ZoneRange::new(0, 0), ZoneRange::new(10, 4), ZoneRange::new(14, 2), ZoneRange::new(11, 2)];
    /// Backends: none, one that is there, one whose number is another's since.
    const STATES: [BackendStateWord; 3] = [
        BackendStateWord::GONE,
        BackendStateWord::new(5, Accepts::Nothing, 1, 1),
        BackendStateWord::new(6, Accepts::All, 1, 1),
    ];

    #[derive(Default)]
    struct Fake {
        cells: RefCell<BTreeMap<(u32, u32), (Owner, Place)>>,
        lines: RefCell<Vec<PoolLine>>,
        zones: RefCell<BTreeMap<u32, Zone>>,
        counts: RefCell<Vec<u64>>,
        /// Stores of counts.
        stored: Cell<u64>,
    }

    impl Fake {
        fn new() -> Self {
            let line = |zones: ZoneRange| PoolLine { zones: zones.0, ..PoolLine::default() };
            let counts = RefCell::new(vec![77; RANGES.len()]);
            Self { lines: RefCell::new(RANGES.map(line).to_vec()), counts, ..Self::default() }
        }

        /// What a packet does that takes a cell: it stores the time first.
        fn take(&self, at: (u32, u32), cell: (Owner, Place), now: Coarse) {
            self.note(cell.0, now);
            self.cells.borrow_mut().insert(at, cell);
        }

        fn note(&self, owner: Owner, now: Coarse) {
            let zone = u32::from(owner.zone());
            if owner.turns_check_on() {
                let has = |zones: ZoneRange| {
                    (zones.first()..zones.first() + zones.count()).contains(&zone)
                };
                let mut lines = self.lines.borrow_mut();
                let line = &mut lines[1 + usize::from(has(RANGES[2]))];
                line.last_displaced = line.last_displaced.max(now.0);
                self.zones.borrow_mut().entry(zone).or_default().last_displaced = now.0;
            }
        }

        /// Rounds until the pass is over; before each a packet may take cells.
        fn pass(&self, now: Coarse, mut packets: impl FnMut(u64)) -> (Outcome, u64) {
            let (mut pass, mut rounds) = (Pass::begin(now), 0);
            loop {
                packets(rounds);
                rounds += 1;
                if let Some(outcome) = pass.round(self, Coarse(now.0 + rounds)) {
                    return (outcome, rounds);
                }
            }
        }
    }

    impl WalkedMaps for Fake {
        fn buckets(&self) -> u32 {
            BUCKETS
        }
        fn cells(&self, first: u32, count: u32) -> impl Iterator<Item = (Position, Owner, Place)> {
            let cells = self.cells.borrow();
            let last = first.saturating_add(count).min(BUCKETS);
            let range = cells.range((first, 0)..(last, 0)).filter(|(_, (owner, _))| owner.0 != 0);
            let read = |(&(bucket, cell), &(owner, place)): (&(u32, u32), &(Owner, Place))| {
                (Position::new(bucket, cell), owner, place)
            };
            range.map(read).collect::<Vec<_>>().into_iter()
        }
        fn erase(&self, at: Position, owner: Owner) -> bool {
            let mut cells = self.cells.borrow_mut();
            let at = (at.bucket(), at.cell());
            let is_there = cells.get(&at).is_some_and(|cell| cell.0 == owner);
            is_there && cells.remove(&at).is_some()
        }
        fn backend_state(&self, backend: u32) -> BackendStateWord {
            STATES[backend as usize]
        }
        fn pool_count(&self) -> u32 {
            RANGES.len() as u32
        }
        fn pool_line(&self, pool: u32) -> PoolLine {
            self.lines.borrow()[pool as usize]
        }
        fn zone(&self, zone: u32) -> Zone {
            self.zones.borrow().get(&zone).copied().unwrap_or_default()
        }
        fn count(&self, pool: u32) -> u64 {
            self.counts.borrow()[pool as usize]
        }
        fn set_count(&self, pool: u32, cells: u64) {
            self.stored.set(self.stored.get() + 1);
            self.counts.borrow_mut()[pool as usize] = cells;
        }
        fn clear(&self, pool: u32, last_displaced: u64) {
            self.lines.borrow_mut()[pool as usize].cleared = last_displaced;
        }
        fn clear_zone(&self, zone: u32, last_displaced: u64) {
            self.zones.borrow_mut().entry(zone).or_default().cleared = last_displaced;
        }
    }

    #[derive(Clone, Debug)]
    struct Taken {
        at: (u32, u32),
        zone: u16,
        state: State,
        datagrams: bool,
        left: i64,
        placement: Placement,
        /// When, in coarse units before the pass; or before which of its rounds, by a packet that stored the time so many
        /// units before the pass.
        when: Result<u64, (u64, u64)>,
    }

    impl Taken {
        fn cell(&self) -> (Owner, Place) {
            let key = FlowKey(7 << 40 | u64::from(self.at.0));
            let until = Coarse(NOW.0.wrapping_add_signed(self.left));
            let owner = Owner::new(key, self.datagrams, self.zone, self.state, until);
            (owner, Place::new(self.placement, 9))
        }
    }

    fn taken() -> impl Strategy<Value = Taken> {
        let states =
            [State::Open, State::HalfOpen, State::HalfOpenAtHome, State::SeenOnce, State::Closing];
        let bucket = prop_oneof![0..4_u32, ROUND - 2..ROUND + 2, BUCKETS - 3..BUCKETS];
        let left = prop_oneof![1 => -400..10_i64, 3 => 10..700_i64];
        let placement = prop_oneof![
            4 => Just(Placement { backend: 1, incarnation: 5 }),
            1 => (0..3_u32).prop_map(|backend| Placement { backend, incarnation: 5 }),
        ];
        let when = prop_oneof![(0..1_000_u64).prop_map(Ok), (0..3_u64, 0..=62_u64).prop_map(Err)];
        let state = prop::sample::select(states.to_vec());
        let cell = ((bucket, 0..4_u32), 10..16_u16, state, any::<bool>(), left, placement, when);
        cell.prop_map(|(at, zone, state, datagrams, left, placement, when)| Taken {
            at,
            zone,
            state,
            datagrams,
            left,
            placement,
            when,
        })
    }

    proptest! {
        /// A second implementation, over the cells alone: what stays, what is counted for whom, and which checks are on.
        #[test]
        fn a_pass_leaves_the_checks_of_all_cells_on_and_no_others(
            taken in vec(taken(), 0..20),
        ) {
            let fake = Fake::new();
            // The earliest first: a later one at its place takes its cell.
            let mut before: Vec<_> = taken.iter().filter_map(|it| Some((it.when.ok()?, it))).collect();
            before.sort_by_key(|(ago, _)| u64::MAX - ago);
            for (ago, taken) in before {
                fake.take(taken.at, taken.cell(), Coarse(NOW.0 - ago));
            }
            let mut late: Vec<_> = taken.iter().filter_map(|it| Some((it.when.err()?.1, it))).collect();
            late.sort_by_key(|(ago, _)| u64::MAX - ago);
            for (ago, taken) in late {
                let now = Coarse(NOW.0 - ago);
                if fake.zone(taken.zone.into()).last_displaced < now.0 {
                    fake.note(taken.cell().0, now);
                }
            }
            let first: BTreeMap<_, _> = fake.cells.borrow().clone();
            let (zones, lines) = (fake.zones.borrow().clone(), fake.lines.borrow().clone());
            let is_quiet = taken.iter().all(|taken| taken.when.is_ok());
            let (outcome, rounds) = fake.pass(NOW, |round| {
                let is_now = |taken: &&Taken| taken.when.is_err_and(|(before, _)| before == round);
                for taken in taken.iter().filter(is_now) {
                    fake.cells.borrow_mut().insert(taken.at, taken.cell());
                }
            });
            prop_assert_eq!(rounds, 3);
            let end = fake.cells.borrow().clone();
            // Packets find every cell: the checks of its zone and its pool are on.
            for (owner, _) in end.values().filter(|cell| cell.0.turns_check_on()) {
                prop_assert!(fake.zone(owner.zone().into()).has_displaced(), "{owner:?}");
                let pool = if owner.zone() < 14 { 1 } else { 2 };
                prop_assert!(fake.pool_line(pool).has_displaced(), "{owner:?}");
            }
            if is_quiet {
                // What is gone is what is over by now, or at a backend that is gone.
                let round_of = |bucket: u32| u64::from(bucket / ROUND) + 1;
                let stays = |(at, (owner, place)): &(&(u32, u32), &(Owner, Place))| {
                    let left = i64::from((owner.0 as u16).wrapping_sub((NOW.0 + round_of(at.0)) as u16) as i16);
                    left > -2 && place.placement() == Placement { backend: 1, incarnation: 5 }
                };
                let kept: BTreeMap<_, _> =
                    first.iter().filter(stays).map(|(at, cell)| (*at, *cell)).collect();
                prop_assert_eq!(&end, &kept);
                prop_assert_eq!(outcome.erased as usize, first.len() - kept.len());
                let of = |pool: u32| {
                    let zones = RANGES[pool as usize];
                    let mine = move |owner: &Owner| {
                        let zone = u32::from(owner.zone());
                        pool == 0 || zone >= zones.first() && zone < zones.first() + zones.count()
                    };
                    kept.values().map(|cell| cell.0).filter(mine).collect::<Vec<_>>()
                };
                let counts: Vec<u64> = (0..4)
                    .map(|pool| of(pool).iter().filter(|owner| !owner.is_half_open()).count() as u64)
                    .collect();
                prop_assert_eq!(&*fake.counts.borrow(), &counts);
                for zone in 10..16 {
                    let before = zones.get(&zone).copied().unwrap_or_default();
                    let is_used = kept.values().any(|(owner, _)| {
                        u32::from(owner.zone()) == zone && owner.turns_check_on()
                    });
                    let is_new = before.last_displaced + 62 >= NOW.0;
                    let expected = before.has_displaced() && (is_used || is_new);
                    prop_assert_eq!(fake.zone(zone).has_displaced(), expected, "{}", zone);
                }
                for pool in [1, 2] {
                    let before = lines[pool as usize];
                    let zones = RANGES[pool as usize];
                    let is_used = (zones.first()..zones.first() + zones.count())
                        .any(|zone| fake.zone(zone).has_displaced());
                    let is_new = before.last_displaced + 62 >= NOW.0;
                    let expected = before.has_displaced() && (is_used || is_new);
                    prop_assert_eq!(fake.pool_line(pool).has_displaced(), expected, "{}", pool);
                }
            }
        }
    }

    /// What a daemon before had counted, and packets since, stands until all cells were met: packets would else take the
    /// table for an empty one.
    #[test]
    fn a_start_leaves_counts_as_they_are_until_the_first_pass_is_over() {
        let fake = Fake::new();
        let at = Placement { backend: 1, incarnation: 5 };
        for bucket in [3, ROUND + 3, BUCKETS - 1] {
            let key = FlowKey(7 << 40 | u64::from(bucket));
            let owner = Owner::new(key, false, 12, State::Open, Coarse(NOW.0 + 600));
            fake.take((bucket, 0), (owner, Place::new(at, 9)), NOW);
        }
        let (_, rounds) = fake.pass(NOW, |_| {
            assert_eq!((fake.stored.get(), &*fake.counts.borrow()), (0, &vec![77; 4]));
        });
        assert_eq!((rounds, &*fake.counts.borrow()), (3, &vec![3, 3, 0, 3]));
    }

    /// A pass takes seconds, in which a forger opens half of the table.
    #[test]
    fn cells_that_are_opened_during_a_pass_count() {
        let fake = Fake::new();
        let (_, rounds) = fake.pass(NOW, |round| {
            // By packets, in buckets that the pass has looked at already.
            let opened = if round == 0 { 0 } else { 1_000 };
            fake.counts.borrow_mut().iter_mut().for_each(|count| *count += opened);
        });
        assert_eq!((rounds, &*fake.counts.borrow()), (3, &vec![2_000; 4]));
        fake.pass(NOW, |_| {});
        assert_eq!(*fake.counts.borrow(), vec![0; 4]);
    }
}
