//! The sweeper of displaced entries: removes entries that are no longer needed, and turns off the displaced
//! check of pools whose connections are all at home.
//!
//! Packets turn a check on by storing when they last displaced a connection. The sweeper turns it off by
//! storing that same time as `cleared`, once the handshake entries of that time have expired and no displaced
//! entry is left. It has its own thread and its own maps and shares nothing with the state loop. It keeps
//! nothing that a start would need: checks that a dead daemon left on are turned off by the next one.
//!
//! It also counts the displaced entries, and sets the budgets for new ones to the space that is left.

mod entry_status;
mod expiry;
mod pass;

use std::{
    collections::BTreeMap,
    future::Future,
    path::Path,
    time::{Duration, Instant},
};

use lb_common::abi::{
    clock::Coarse,
    counter::Event,
    limiter::{ADOPTIONS_V4, ADOPTIONS_V6, DISPLACED_V4, DISPLACED_V6, LimitWord},
};
use pass::{Outcome, Pass};
use tokio::time::{MissedTickBehavior, interval};

use lb_base::{
    conditions::{ConditionReason, Conditions, Subject},
    error_chain,
    heartbeat::Heartbeat,
};
use lb_maps::{DisplacedMaps, MapsError, clock};
use lb_model::capacity::{displaced_budget, split_displaced_room};

/// Time between two rounds.
const PACE: Duration = Duration::from_secs(1);
/// Pause between two passes while a check could be turned off, in coarse units.
const REST: u64 = Coarse::units(5);
/// Pause between two passes while none could be, so that idle entries are removed too.
const LONG_REST: u64 = Coarse::units(60);

#[derive(Debug)]
pub struct DisplacedSweeper {
    maps: DisplacedMaps,
    pass: Option<Pass>,
    /// When the last pass ended.
    ended: Option<Coarse>,
}

/// What a round did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// There was nothing to do.
    Idle,
    /// It looked at some entries, and there are more.
    UnderWay,
    /// All entries were looked at.
    Done {
        /// Entries removed.
        purged: u64,
        /// Checks turned off.
        closed: usize,
    },
}

impl DisplacedSweeper {
    /// Opens the pinned maps.
    ///
    /// # Errors
    /// [`MapsError`] says which pin is missing, forbidden or of another layout.
    pub fn open(bpffs: &Path) -> Result<Self, MapsError> {
        Ok(Self { maps: DisplacedMaps::open(bpffs)?, pass: None, ended: None })
    }

    /// Sweeps until `stop` is done. It blocks its thread while it works, so it needs its own.
    pub async fn run(
        mut self,
        conditions: Conditions,
        heartbeat: Heartbeat,
        stop: impl Future<Output = ()>,
    ) {
        tokio::pin!(stop);
        let mut condition = BudgetCondition::new(conditions);
        let mut turns = interval(PACE.min(heartbeat.interval()));
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut logged = None;
        loop {
            tokio::select! {
                biased;
                () = &mut stop => return,
                _ = turns.tick() => {}
            }
            let failed = self.turn(&mut condition).err();
            if failed.is_some() && failed != logged {
                tracing::warn!(error = failed, "displaced entries cannot be swept");
            }
            logged = failed;
            heartbeat.beat();
        }
    }

    fn turn(&mut self, condition: &mut BudgetCondition) -> Result<(), String> {
        let counted = self.maps.event(Event::DisplacedWithoutBudget);
        condition.look(counted.map_err(|error| error_chain::message(&error))?, Instant::now());
        let now = clock::now().map_err(|error| error_chain::message(&error))?;
        let round = self
            .round(Coarse::from_nanoseconds(now))
            .map_err(|error| error_chain::message(&error))?;
        if let Round::Done { purged, closed } = round
            && (purged, closed) != (0, 0)
        {
            tracing::debug!(purged, closed, "displaced entries swept");
        }
        Ok(())
    }

    /// One round, which looks at a bounded number of entries.
    ///
    /// # Errors
    /// The kernel refused a step; the next round begins a new pass.
    pub fn round(&mut self, now: Coarse) -> Result<Round, MapsError> {
        let Some(mut pass) = self.pass.take().or_else(|| self.begin(now)) else {
            return Ok(Round::Idle);
        };
        self.ended = Some(now);
        match pass.round(&mut self.maps, now)? {
            None => {
                self.pass = Some(pass);
                Ok(Round::UnderWay)
            }
            Some(Outcome { purged, closed, kept }) => {
                self.budget(kept);
                Ok(Round::Done { purged, closed })
            }
        }
    }

    /// Sets the budgets to the space that is left in the tables. If all connections of a full table stay
    /// open, a new entry would evict one in use, at whatever rate new ones come.
    fn budget(&self, [v4, v6]: [u32; 2]) {
        let tables = &self.maps.tables;
        let free = [
            tables.displaced_v4.safe_entries().saturating_sub(v4),
            tables.displaced_v6.safe_entries().saturating_sub(v6),
        ];
        for (limiter, limit) in budgets(free) {
            self.maps.set_budget(limiter, limit);
        }
    }

    /// A new pass, if it is time for one.
    fn begin(&self, now: Coarse) -> Option<Pass> {
        let with_displaced: Vec<_> = self.maps.pools_with_displaced().collect();
        let clearable = with_displaced.iter().filter(|(_, line)| expiry::can_turn_off(line, now));
        let clearable: BTreeMap<_, _> =
            clearable.map(|(pool, line)| (*pool, line.last_displaced)).collect();
        let rest = if clearable.is_empty() { LONG_REST } else { REST };
        let rested = self.ended.is_none_or(|ended| now.0.saturating_sub(ended.0) >= rest);
        (rested && !with_displaced.is_empty()).then(|| Pass::begin(clearable))
    }
}

/// The limits of new entries for tables with so many free entries, of IPv4 and of IPv6.
pub(super) fn budgets(free: [u32; 2]) -> [(u32, LimitWord); 4] {
    let [[v4, adopted_v4], [v6, adopted_v6]] = free.map(split_displaced_room);
    [
        (DISPLACED_V4, displaced_budget(v4)),
        (DISPLACED_V6, displaced_budget(v6)),
        (ADOPTIONS_V4, displaced_budget(adopted_v4)),
        (ADOPTIONS_V6, displaced_budget(adopted_v6)),
    ]
}

/// Subject of the condition.
const SUBJECT: Subject = Subject::new(ConditionReason::DisplacedBudget, "displaced");
const CAUSE: &str = "the budget for new entries is used up: new connections whose home is unhealthy or drained still \
                     go to another backend, but may be reset after their handshake; `spillway stats` counts them as \
                     displaced_without_budget; larger tables (--displaced) have more budget";

/// How long no such connection may come before the condition ends.
const QUIET: Duration = Duration::from_secs(60);

/// The condition that new connections leave an unavailable home, but there is no budget for an entry that
/// remembers it.
#[derive(Debug)]
pub(super) struct BudgetCondition {
    conditions: Conditions,
    counted: Option<u64>,
    last: Option<Instant>,
}

impl BudgetCondition {
    pub(super) fn new(conditions: Conditions) -> Self {
        Self { conditions, counted: None, last: None }
    }

    /// Takes the number of such connections so far.
    pub(super) fn look(&mut self, counted: u64, now: Instant) {
        let before = self.counted.replace(counted);
        if before.is_some_and(|before| counted > before) {
            self.last = Some(now);
            self.conditions.begin(&SUBJECT, CAUSE);
        } else if self.last.is_some_and(|last| now - last >= QUIET) {
            self.last = None;
            self.conditions.end(&SUBJECT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_condition_ends_a_minute_after_the_last_connection() {
        let conditions = Conditions::default();
        let (mut condition, start) = (BudgetCondition::new(conditions.clone()), Instant::now());
        let mut at = |second: u64, counted| {
            condition.look(counted, start + Duration::from_secs(second));
            conditions.now().len()
        };
        assert_eq!(at(0, 70), 0, "those of an earlier daemon");
        assert_eq!(at(1, 70), 0);
        assert_eq!(at(2, 71), 1);
        assert_eq!(at(40, 72), 1);
        assert_eq!(at(99, 72), 1);
        assert_eq!(at(100, 72), 0);
        assert_eq!(at(200, 73), 1);
    }
}
