//! The sweeper of displaced entries: forgets displaced entries that nobody needs, and turns off the displaced check of pools whose
//! connections are all at home.
//!
//! Packets turn a displaced check on by storing when they last displaced a connection; the sweeper turns
//! it off by storing that very time as `cleared`, once the handshake entries of that time have expired and no
//! displaced entry is left. It has a thread and maps of its own and shares nothing with the state's loop. It
//! remembers nothing that a start needs: what a dead daemon left open, the next one closes.
//!
//! It counts the displaced entries on the way, and lets no more be added than the tables have left.

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
    event::Event,
    limiter::{ADOPTIONS_V4, ADOPTIONS_V6, DISPLACED_V4, DISPLACED_V6, LimitWord},
};
use pass::{Outcome, Pass};
use tokio::time::{MissedTickBehavior, interval};

use lb_base::{conditions::Conditions, error_chain, heartbeat::Heartbeat};
use lb_maps::{DisplacedMaps, MapsError, clock};
use lb_model::capacity::{budget, shares};

/// Time between two rounds.
const PACE: Duration = Duration::from_secs(1);
/// Rest between two passes while a check could be turned off, in coarse units.
const REST: u64 = Coarse::units(5);
/// Rest between two passes while no check could be, so that idle displaced entries go all the same.
const LONG_REST: u64 = Coarse::units(60);

/// Sweeps displaced entries.
#[derive(Debug)]
pub struct DisplacedSweeper {
    maps: DisplacedMaps,
    pass: Option<Pass>,
    /// When the last pass ended.
    ended: Option<Coarse>,
}

/// What a round of the keeper came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// Nothing was to be done.
    Idle,
    /// It looked at some displaced entries, and there are more.
    UnderWay,
    /// A pass over all of them is done.
    Done {
        /// Displaced entries that it took out.
        purged: u64,
        /// Checks that it turned off.
        closed: usize,
    },
}

impl DisplacedSweeper {
    /// A sweeper over the pinned maps.
    ///
    /// # Errors
    /// [`MapsError`] says which pin is missing, forbidden or of another layout.
    pub fn open(bpffs: &Path) -> Result<Self, MapsError> {
        Ok(Self { maps: DisplacedMaps::open(bpffs)?, pass: None, ended: None })
    }

    /// Keeps them until `stop` is done. It blocks its thread while it works, so it should have one of
    /// its own.
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
                tracing::warn!(error = failed, "gates: displaced entries are not looked after");
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
            tracing::debug!(purged, closed, "gates");
        }
        Ok(())
    }

    /// One round: a bounded number of displaced entries is looked at.
    ///
    /// # Errors
    /// What the kernel answers; the next round begins a new pass.
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

    /// Makes the budgets what is left of the tables: in a table of connections that all go on, a new
    /// displaced entry would otherwise push out one in use, however slowly they come.
    fn budget(&self, [v4, v6]: [u32; 2]) {
        let tables = &self.maps.tables;
        let free = [
            tables.displaced_v4.sure_room().saturating_sub(v4),
            tables.displaced_v6.sure_room().saturating_sub(v6),
        ];
        for (limiter, limit) in budgets(free) {
            self.maps.set_budget(limiter, limit);
        }
    }

    /// A new pass, where it is time for one.
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

// What of the displaced entries' tables may be filled by whom.

/// The packet path's own limiters with the limits for tables that have so many free entries, of IPv4 and
/// of IPv6.
pub(super) fn budgets(free: [u32; 2]) -> [(u32, LimitWord); 4] {
    let [[v4, adopted_v4], [v6, adopted_v6]] = free.map(shares);
    [
        (DISPLACED_V4, budget(v4)),
        (DISPLACED_V6, budget(v6)),
        (ADOPTIONS_V4, budget(adopted_v4)),
        (ADOPTIONS_V6, budget(adopted_v6)),
    ]
}

// Says, for as long as it lasts, that new connections leave homes that cannot have them though nothing will
// remember where they are.

/// What it is called among the conditions.
const SUBJECT: &str = "displaced";
const CAUSE: &str = "there is no budget for more, and new connections whose home is unhealthy or drained go elsewhere \
                     all the same: once their handshake is over they may be sent home and reset; `spillway stats` \
                     counts them as displaced_without_budget, and larger tables (--displaced) have more budget";

/// How long none must have come before it is over.
const QUIET: Duration = Duration::from_secs(60);

/// Whether such connections came lately.
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

    /// Takes in how many there have been up to now.
    pub(super) fn look(&mut self, counted: u64, now: Instant) {
        let before = self.counted.replace(counted);
        if before.is_some_and(|before| counted > before) {
            self.last = Some(now);
            self.conditions.begin(SUBJECT, CAUSE);
        } else if self.last.is_some_and(|last| now - last >= QUIET) {
            self.last = None;
            self.conditions.end(SUBJECT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lasts_from_the_first_to_a_minute_after_the_last() {
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
