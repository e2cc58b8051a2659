//! What became of a SYN, and when that was decided.

use std::collections::HashMap;
use std::net::SocketAddrV4;

use super::{Arrival, Sent};

/// A SYN that was decided somewhere between its sender and a backend. Times are nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Decision {
    /// When it was sent.
    pub sent: u64,
    /// When it arrived.
    pub arrived: u64,
    /// The clock of ticks when it was sent: a kernel that decides by it went by no earlier time.
    pub earliest: u64,
    /// The clock of ticks when it had surely arrived: nor did it go by a later one.
    pub latest: u64,
    /// Whether the near region has it.
    pub near: bool,
}

impl Decision {
    /// Those of the SYNs that arrived, in the order in which they were sent; `near` says which backends
    /// are.
    pub fn all(
        sources: &[SocketAddrV4],
        sent: &[Sent],
        arrivals: &HashMap<SocketAddrV4, Arrival>,
        near: impl Fn(usize) -> bool,
    ) -> Vec<Self> {
        let decision = |(source, sending): (&SocketAddrV4, &Sent)| {
            let arrival = arrivals.get(source)?;
            // The first that was sent after this one had arrived; after the last the exact clock.
            let later = sent.get(sent.partition_point(|later| later.at < arrival.at));
            Some(Self {
                sent: sending.at,
                arrived: arrival.at,
                earliest: sending.ticked,
                latest: later.map_or(arrival.at, |later| later.ticked),
                near: near(arrival.backend),
            })
        };
        sources.iter().zip(sent).filter_map(decision).collect()
    }

    /// How far the clock of ticks was behind when it was sent.
    pub fn behind(&self) -> u64 {
        self.sent.saturating_sub(self.earliest)
    }
}
