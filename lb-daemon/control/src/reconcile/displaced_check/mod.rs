//! The sweeper of displaced entries: forgets displaced entries that nobody needs, and turns off the displaced check of pools whose
//! connections are all at home.
//!
//! Packets turn a displaced check on by storing when they last displaced a connection; the sweeper turns
//! it off by storing that very time as `cleared`, once the handshake entries of that time have expired and no
//! displaced entry is left. It has a thread and maps of its own and shares nothing with the state's loop. It
//! remembers nothing that a start needs: what a dead daemon left open, the next one closes.
//!
//! It counts the displaced entries on the way, and lets no more be added than the tables have left.

mod budgets;
mod homes;
mod judge;
mod pass;
mod unremembered;

use std::{
    collections::BTreeMap,
    future::Future,
    path::Path,
    time::{Duration, Instant},
};

use lb_common::abi::{clock::Coarse, event::Event};
use tokio::time::{MissedTickBehavior, interval};

pub(super) use budgets::budgets;
use lb_base::{conditions::Conditions, error_chain, heartbeat::Heartbeat};
use lb_maps::{DisplacedMaps, MapsError, clock};
use pass::{Outcome, Pass};
use unremembered::Unremembered;

/// Time between two rounds.
const PACE: Duration = Duration::from_secs(1);
/// Rest between two passes while a check could be turned off, in coarse units.
const REST: u64 = Coarse::units(5);
/// Rest between two passes while no check could be, so that idle displaced entries go all the same.
const LONG_REST: u64 = Coarse::units(60);

/// Sweeps displaced entries.
#[derive(Debug)]
pub struct DisplacedSweeper {
    gates: DisplacedMaps,
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
        Ok(Self { gates: DisplacedMaps::open(bpffs)?, pass: None, ended: None })
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
        let mut unremembered = Unremembered::new(conditions);
        let mut turns = interval(PACE.min(heartbeat.interval()));
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut said = None;
        loop {
            tokio::select! {
                biased;
                () = &mut stop => return,
                _ = turns.tick() => {}
            }
            let failed = self.turn(&mut unremembered).err();
            if failed.is_some() && failed != said {
                tracing::warn!(error = failed, "gates: displaced entries are not looked after");
            }
            said = failed;
            heartbeat.beat();
        }
    }

    fn turn(&mut self, unremembered: &mut Unremembered) -> Result<(), String> {
        let counted = self.gates.event(Event::DisplacedWithoutBudget);
        unremembered.look(counted.map_err(|error| error_chain::message(&error))?, Instant::now());
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
        match pass.round(&mut self.gates, now)? {
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
        let tables = &self.gates.tables;
        let free = [
            tables.displaced_v4.safe_entries().saturating_sub(v4),
            tables.displaced_v6.safe_entries().saturating_sub(v6),
        ];
        for (limiter, limit) in budgets(free) {
            self.gates.set_budget(limiter, limit);
        }
    }

    /// A new pass, where it is time for one.
    fn begin(&self, now: Coarse) -> Option<Pass> {
        let open: Vec<_> = self.gates.pools_with_displaced().collect();
        let ripe = open.iter().filter(|(_, line)| judge::is_ripe(line, now));
        let ripe: BTreeMap<_, _> = ripe.map(|(pool, line)| (*pool, line.last_displaced)).collect();
        let rest = if ripe.is_empty() { LONG_REST } else { REST };
        let rested = self.ended.is_none_or(|ended| now.0.saturating_sub(ended.0) >= rest);
        (rested && !open.is_empty()).then(|| Pass::begin(ripe))
    }
}
