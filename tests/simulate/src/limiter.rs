//! The limit of a group on one host, enforced by the packet path's own admission.

use std::{cell::Cell, time::Duration};

use lb_common::{
    abi::limiter::LimitWord,
    admission::{self, Debit, debit},
};
use lb_model::capacity::{Capacity, Portion, Share};
use lb_sharing::Parts;

use crate::fleet::STEP;

/// One limiter, with what it was offered and has admitted.
pub(crate) struct Limiter {
    limit: Cell<u64>,
    arrival: Cell<u64>,
    parts: Parts,
    /// Connections since the start.
    pub(crate) offered: u64,
    pub(crate) admitted: u64,
}

impl Limiter {
    /// One that admits nothing.
    pub(crate) fn closed() -> Self {
        Self {
            limit: Cell::new(LimitWord::CLOSED.0),
            arrival: Cell::new(0),
            parts: Parts::NONE,
            offered: 0,
            admitted: 0,
        }
    }

    /// Enforces `parts` of a capacity of `per_second` connections.
    pub(crate) fn enforce(&mut self, parts: Parts, per_second: f64, now: Duration) {
        if self.parts == parts {
            return;
        }
        self.parts = parts;
        let Some(portion) = Portion::new(parts.fraction()) else { return };
        let share = Share { portion, tick: nanoseconds(STEP) };
        let limit = share.group_limit(Capacity::PerSecond(per_second));
        admission::change_limit(&self.limit, &self.arrival, limit, nanoseconds(now));
    }

    /// Offers connections. Returns how many are admitted.
    pub(crate) fn offer(&mut self, connections: u64, now: Duration) -> u64 {
        let now = nanoseconds(now);
        let is_admitted =
            |_: &u64| debit(|| LimitWord(self.limit.get()), &self.arrival, now) == Debit::Admitted;
        let admitted = (0..connections).filter(is_admitted).count() as u64;
        self.offered += connections;
        self.admitted += admitted;
        admitted
    }

    /// Connections that were not admitted, since the start.
    pub(crate) fn refused(&self) -> u64 {
        self.offered - self.admitted
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
