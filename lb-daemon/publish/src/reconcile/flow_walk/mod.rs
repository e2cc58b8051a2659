//! The walk through the flow table: erases cells that are over before their time could come round again, and turns off the
//! displaced checks of zones and pools whose flows are all at home.
//!
//! Packets turn a check on by storing when a flow of the zone last got a cell. The walk turns it off by storing that same
//! time as `cleared`, once it has met no cell of the zone. It has its own thread and its own maps and shares nothing with
//! the state loop. It keeps nothing that a start would need: checks that a dead daemon left on are turned off by the next
//! one.

mod pass;

use std::{
    future::Future,
    path::Path,
    time::{Duration, Instant},
};

use lb_common::abi::{clock::Coarse, counter::Event};
use pass::{Outcome, Pass};
use tokio::time::{MissedTickBehavior, interval};

use lb_base::{
    conditions::{ConditionReason, Conditions, Subject},
    error_chain,
    heartbeat::Heartbeat,
};
use lb_maps::{FlowMaps, MapsError, clock};

/// Time between two rounds.
const PACE: Duration = Duration::from_secs(1);
/// Pause between two passes while a check is on, in coarse units.
const REST: u64 = Coarse::units(5);
/// Pause between two passes while none is, in coarse units: a cell's time comes round after ten hours.
const LONG_REST: u64 = Coarse::units(60);

#[derive(Debug)]
pub struct FlowWalk {
    maps: FlowMaps,
    pass: Option<Pass>,
    /// When the last pass ended.
    ended: Option<Coarse>,
}

/// What a round did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// There was nothing to do.
    Idle,
    /// It looked at some cells, and there are more.
    UnderWay,
    /// All cells were looked at.
    Done {
        /// Cells erased.
        erased: u64,
        /// Zones whose checks were turned off.
        zones: usize,
        /// Pools whose checks were turned off.
        pools: usize,
    },
}

impl FlowWalk {
    /// Opens the pinned maps.
    ///
    /// # Errors
    /// [`MapsError`] says which pin is missing, forbidden or of another layout.
    pub fn open(bpffs: &Path) -> Result<Self, MapsError> {
        Ok(Self { maps: FlowMaps::open(bpffs)?, pass: None, ended: None })
    }

    /// Walks until `stop` is done. It blocks its thread while it works, so it needs its own.
    pub async fn run(
        mut self,
        conditions: Conditions,
        heartbeat: Heartbeat,
        stop: impl Future<Output = ()>,
    ) {
        tokio::pin!(stop);
        let mut condition = FullCondition::new(conditions);
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
                tracing::warn!(error = failed, "the flow table cannot be walked through");
            }
            logged = failed;
            heartbeat.beat();
        }
    }

    fn turn(&mut self, condition: &mut FullCondition) -> Result<(), String> {
        let count = |event| self.maps.event(event).map_err(|error| error_chain::message(&error));
        let counted = count(Event::FlowNoRoom)? + count(Event::RemapNoRoom)?;
        condition.look(counted, Instant::now());
        let now = clock::now().map_err(|error| error_chain::message(&error))?;
        if let Round::Done { erased, zones, pools } = self.round(Coarse::from_nanoseconds(now))
            && (erased, zones, pools) != (0, 0, 0)
        {
            tracing::debug!(erased, zones, pools, "walked through the flow table");
        }
        Ok(())
    }

    /// One round, which looks at a bounded number of cells.
    pub fn round(&mut self, now: Coarse) -> Round {
        let Some(mut pass) = self.pass.take().or_else(|| self.begin(now)) else {
            return Round::Idle;
        };
        self.ended = Some(now);
        match pass.round(&self.maps, now) {
            None => {
                self.pass = Some(pass);
                Round::UnderWay
            }
            Some(Outcome { erased, zones, pools }) => Round::Done { erased, zones, pools },
        }
    }

    /// A new pass, if it is time for one.
    fn begin(&self, now: Coarse) -> Option<Pass> {
        let is_any_on = self.maps.pools_with_displaced().next().is_some();
        let rest = if is_any_on { REST } else { LONG_REST };
        let is_due = self.ended.is_none_or(|ended| now.0.saturating_sub(ended.0) >= rest);
        is_due.then(|| Pass::begin(now))
    }
}

/// Subject of the condition.
const SUBJECT: Subject = Subject::new(ConditionReason::FlowTableFull, "flows");
const CAUSE: &str = "the flow table has no room for some flows: new connections stay at a full home, or are refused there; \
                     those whose home is unhealthy or drained go to another backend, but are reset when home is back \
                     (displaced_without_cell); open ones that a remap moves are reset when it ends (remap_no_room). \
                     `spillway stats` counts them; a larger table (--flows) has more room";

/// How long no such flow may come before the condition ends.
const QUIET: Duration = Duration::from_secs(60);

/// The condition that flows find no room in the flow table.
#[derive(Debug)]
pub(super) struct FullCondition {
    conditions: Conditions,
    counted: Option<u64>,
    last: Option<Instant>,
}

impl FullCondition {
    pub(super) fn new(conditions: Conditions) -> Self {
        Self { conditions, counted: None, last: None }
    }

    /// Takes the number of such flows so far.
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
    fn the_condition_ends_a_minute_after_the_last_flow() {
        let conditions = Conditions::default();
        let (mut condition, start) = (FullCondition::new(conditions.clone()), Instant::now());
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
