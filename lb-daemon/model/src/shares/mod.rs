//! The share of its slots' new connections that each member of a group takes. Pure.
//!
//! The table says which slots a member owns. Its ramp says for which of them new connections go to the next member
//! on the slot's list. Only the ratio of shares counts: if all members have a small share, they take everything. By
//! themselves members never give away more than half of their group's slots, by weight, because a packet reads at most
//! twenty entries of lists before it takes a standby. Weights of overrides are kept beyond that.

mod balance;
mod distribution;
#[cfg(test)]
mod tests;

use std::time::Duration;

use lb_common::{
    abi::{member::FULL_RAMP, slot::RANKS_PER_SLOT},
    path::FURTHER_SLOTS,
};

pub use balance::{Balanced, balance};
pub use distribution::distribution;

/// Smallest share of a member in slow start.
const FIRST: f64 = 0.05;
/// Smallest share of their own slots that the members of a group take together, of what overrides leave them.
const KEPT: f64 = 0.5;

/// A member that can take new connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sharer {
    /// Its weight, above 0.
    pub weight: u32,
    /// Share of what its weight gives it, above 0 and at most 1.
    pub share: f64,
    /// Share of its weight that overrides leave it, above 0 and at most 1.
    pub asked: f64,
}

impl Sharer {
    fn wanted(&self) -> f64 {
        self.share * self.asked
    }
}

/// The share of a member in slow start, by the time since it came up.
pub fn started(up: Duration, slow_start: Duration) -> f64 {
    if up >= slow_start {
        return 1.0;
    }
    (up.as_secs_f64() / slow_start.as_secs_f64()).max(FIRST)
}

/// The ramps of the members of a group, in their order.
pub fn ramps(sharers: &[Sharer]) -> Vec<u8> {
    let factor = factor(sharers);
    let ramp = |sharer: &Sharer| {
        let share = (sharer.wanted() * factor).clamp(0.0, 1.0);
        // The conversion saturates. A share above 0 gives at least the smallest ramp.
        ((share * f64::from(FULL_RAMP)).round() as u8).max(1)
    };
    sharers.iter().map(ramp).collect()
}

/// Entries that a search looks at in a region before it takes a standby.
const LISTED: i32 = (1 + FURTHER_SLOTS as i32) * RANKS_PER_SLOT as i32;

/// Share of a group's new connections that no entry of the lists takes, if its members take `kept` of their own slots, by
/// weight. They go to a standby, which has the whole share that its weight gives it.
pub fn missed(kept: f64) -> f64 {
    (1.0 - kept.clamp(0.0, 1.0)).powi(LISTED)
}

/// The smallest factor for all shares that makes one of them whole and keeps enough slots.
fn factor(sharers: &[Sharer]) -> f64 {
    let largest = sharers.iter().map(Sharer::wanted).fold(0.0, f64::max);
    if largest <= 0.0 {
        return 1.0;
    }
    let most_asked = sharers.iter().map(|sharer| sharer.asked).fold(0.0, f64::max);
    let left = |sharer: &Sharer| f64::from(sharer.weight) * sharer.asked / most_asked;
    let whole: f64 = sharers.iter().map(left).sum();
    let mut sorted = sharers.to_vec();
    sorted.sort_by(|one, other| other.wanted().total_cmp(&one.wanted()));
    // With the first `n` of them whole, the others' parts are in proportion; the fewest that keep enough.
    let mut kept = 0.0;
    let mut rest: f64 = sorted.iter().map(|s| f64::from(s.weight) * s.wanted()).sum();
    for sharer in &sorted {
        let factor = (KEPT * whole - kept) / rest;
        if factor <= 1.0 / sharer.wanted() {
            return factor.max(1.0 / largest);
        }
        kept += f64::from(sharer.weight);
        rest -= f64::from(sharer.weight) * sharer.wanted();
    }
    1.0 / sorted.last().map_or(1.0, Sharer::wanted)
}
