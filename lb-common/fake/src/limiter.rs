//! A limiter outside the kernel, enforced by the packet path's own admission, for simulations.

use std::{cell::Cell, time::Duration};

use lb_common::{
    abi::limiter::LimitWord,
    admission::{self, Debit, debit},
};

/// The words of one limiter, with what it was offered and has admitted.
#[derive(Debug)]
pub struct FakeLimiter {
    limit: Cell<u64>,
    arrival: Cell<u64>,
    /// Connections since it was made.
    pub offered: u64,
    pub admitted: u64,
}

impl FakeLimiter {
    /// One that admits nothing.
    pub fn closed() -> Self {
        Self {
            limit: Cell::new(LimitWord::CLOSED.0),
            arrival: Cell::new(0),
            offered: 0,
            admitted: 0,
        }
    }

    /// Enforces another limit from now on.
    pub fn change_limit(&mut self, limit: LimitWord, now: Duration) {
        admission::change_limit(&self.limit, &self.arrival, limit, nanoseconds(now));
    }

    /// Offers connections. Returns how many are admitted.
    pub fn offer(&mut self, connections: u64, now: Duration) -> u64 {
        let now = nanoseconds(now);
        let is_admitted =
            |_: &u64| debit(|| LimitWord(self.limit.get()), &self.arrival, now) == Debit::Admitted;
        let admitted = (0..connections).filter(is_admitted).count() as u64;
        self.offered += connections;
        self.admitted += admitted;
        admitted
    }

    /// Connections that were not admitted, since it was made.
    pub fn refused(&self) -> u64 {
        self.offered - self.admitted
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
