//! What sharing costs one balancer.

use std::{
    iter::Sum,
    ops::{Add, AddAssign},
    time::Duration,
};

use nix::time::{ClockId, clock_gettime};

/// Counted over a time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) rounds: u64,
    /// Messages that were sent, and their bytes as protobuf.
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    /// Writes of the ledger, and their bytes as JSON.
    pub(crate) writes: u64,
    pub(crate) written: u64,
    /// CPU time to decide, to make and encode messages, to decode and take those of peers, and to encode the ledger.
    pub(crate) deciding: Duration,
    pub(crate) sending: Duration,
    pub(crate) receiving: Duration,
    pub(crate) storing: Duration,
}

impl Cost {
    /// All CPU time.
    pub(crate) fn cpu(&self) -> Duration {
        self.deciding + self.sending + self.receiving + self.storing
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            rounds: self.rounds + other.rounds,
            messages: self.messages + other.messages,
            bytes: self.bytes + other.bytes,
            writes: self.writes + other.writes,
            written: self.written + other.written,
            deciding: self.deciding + other.deciding,
            sending: self.sending + other.sending,
            receiving: self.receiving + other.receiving,
            storing: self.storing + other.storing,
        }
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), Add::add)
    }
}

/// CPU time of this thread: what other programs do beside it does not count.
pub(crate) fn cpu_time() -> Duration {
    // The clock is there on every Linux. Without it all times would be 0, which the figures would show.
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}

/// Does something, and adds the CPU time that it took.
pub(crate) fn timed<T>(total: &mut Duration, work: impl FnOnce() -> T) -> T {
    let before = cpu_time();
    let done = work();
    *total += cpu_time().saturating_sub(before);
    done
}
