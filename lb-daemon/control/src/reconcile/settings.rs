//! What the daemon is told of the packet path at its start, beside the configuration.

use std::collections::{BTreeMap, BTreeSet};

use lb_common::abi::limiter::LimitWord;

/// The most that a rate can be, a second.
pub const MOST_ANSWERS: u32 = 1_000_000;

/// What the packet path is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Ids of the VLANs whose tag goes on what leaves by an interface, by index of the interface.
    pub vlans: BTreeMap<u32, u16>,
    /// Indices of the interfaces that have the program.
    pub attached: BTreeSet<u32>,
    /// ICMP errors that it may make, a second; 0: none. Each is at most 1,280 bytes, so what a flood of packets
    /// that are too large can have sent is 100 Mbit/s by default.
    pub icmp_errors: u32,
    /// Echo requests that it answers, a second; 0: none.
    pub icmp_echoes: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            vlans: BTreeMap::new(),
            attached: BTreeSet::new(),
            icmp_errors: 10_000,
            icmp_echoes: 1_000,
        }
    }
}

/// So many a second, a tenth of them at once.
pub(super) fn per_second(number: u32) -> LimitWord {
    const SECOND: u64 = 1_000_000_000 * LimitWord::PER_NANOSECOND;
    match number {
        0 => LimitWord::CLOSED,
        number => LimitWord::new(SECOND / u64::from(number), number / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_an_interval_and_a_tenth_of_a_second_at_once() {
        let thousand = per_second(1_000);
        assert_eq!((thousand.interval(), thousand.burst()), (16_000_000, 100));
        let most = per_second(MOST_ANSWERS);
        assert_eq!((most.interval(), most.burst()), (16_000, 100_000));
        let one = per_second(1);
        assert_eq!((one.interval(), one.burst()), (16_000_000_000, 1), "one may always come");
        assert!(per_second(0).is_closed());
    }
}
