//! Ranges of the numbers in a configuration. Validation uses them, and so do file parser and command line, which can
//! point out a mistake earlier.

use std::ops::RangeInclusive;

use lb_common::abi::{limits::CHUNK_WORDS, slot::TableShape};

pub const PORTS: RangeInclusive<u32> = 1..=65_535;
/// Slots of a table; primes alone are allowed. The most is the largest prime whose table fits one chunk, however many
/// members it has.
pub const SLOTS: RangeInclusive<u32> = 7..=419_423;
/// Weights of backends; 0 takes none.
pub const WEIGHTS: RangeInclusive<u32> = 0..=1_000_000;
/// Largest outer packets, bytes. The least is that of IPv6 (RFC 8200, 5); a tunnel of IPv4 is held to
/// the same.
pub const MTUS: RangeInclusive<u32> = 1280..=65_535;
/// Panic thresholds, percent.
pub const PANIC_THRESHOLDS: RangeInclusive<u32> = 1..=100;
/// Consecutive probes for `rise` and `fall`.
pub const ROUNDS: RangeInclusive<u32> = 1..=100;
/// Jitters of intervals, percent.
pub const JITTERS: RangeInclusive<u32> = 0..=50;
/// Statuses of HTTP.
pub const STATUSES: RangeInclusive<u32> = 100..=599;
/// Most prefixes of VIPs.
pub const MOST_VIP_RANGES: usize = 10_000;
/// Balancers that share the capacities.
pub const BALANCERS: RangeInclusive<u32> = 1..=1000;

/// The range of a field by its name in a file; `None` if the field is not a whole number.
pub fn field_range(name: &str) -> Option<RangeInclusive<u32>> {
    Some(match name {
        "port" | "gue_port" | "host_probe_port" => PORTS,
        "slots" => SLOTS,
        "weight" => WEIGHTS,
        "mtu" => MTUS,
        "panic_threshold_percent" => PANIC_THRESHOLDS,
        "rise" | "fall" => ROUNDS,
        "jitter_percent" => JITTERS,
        "status_min" | "status_max" => STATUSES,
        "balancers" => BALANCERS,
        _ => return None,
    })
}

/// What tables have of a chunk: all words but its first.
const CHUNK: u32 = CHUNK_WORDS - 1;
/// A table of the most slots, with ranks of two bytes.
const LARGEST: TableShape = TableShape { slots: *SLOTS.end(), members: u32::MAX >> 1 };
/// The next prime.
const TOO_LARGE: TableShape = TableShape { slots: 419_429, ..LARGEST };
const _: () = assert!(LARGEST.words() <= CHUNK && TOO_LARGE.words() > CHUNK);
