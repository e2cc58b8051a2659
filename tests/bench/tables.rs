//! How long a slot table takes to build.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use lb_model::maglev::{BuildError, Member, TableSpec};
use serde_json::{Value, json};

/// Slots of the tables.
pub(crate) const SLOTS: u32 = 65_537;
/// Members of the tables.
pub(crate) const MEMBERS: [u16; 3] = [10, 100, 1000];

/// Median time of a build.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableTime {
    /// Members, of equal weight.
    pub(crate) members: u16,
    /// Slots.
    pub(crate) slots: u32,
    /// From unsorted members to finished words.
    pub(crate) time: Duration,
}

impl TableTime {
    /// Milliseconds.
    pub(crate) fn ms(&self) -> f64 {
        self.time.as_secs_f64() * 1e3
    }

    /// As it stands in the report.
    pub(crate) fn to_json(self) -> Value {
        json!({ "case": "table build", "members": self.members, "slots": self.slots, "ms": self.ms() })
    }
}

/// Builds each table so many times, once at least.
///
/// # Errors
/// Members or slots that make no table.
pub(crate) fn measure(repeats: usize) -> Result<Vec<TableTime>, BuildError> {
    let measured = MEMBERS.into_iter().map(|members| {
        Ok(TableTime { members, slots: SLOTS, time: build_time(members, SLOTS, repeats)? })
    });
    measured.collect()
}

fn build_time(members: u16, slots: u32, repeats: usize) -> Result<Duration, BuildError> {
    let group: Vec<_> = (0..members)
        .rev()
        .map(|n| Member {
            key: IpAddr::from(Ipv4Addr::from_bits(0x0a00_0000 + u32::from(n))).into(),
            weight: 1,
        })
        .collect();
    let mut times = Vec::new();
    for _ in 0..repeats.max(1) {
        let begin = Instant::now();
        black_box(TableSpec::new(black_box(&group), slots)?.build());
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}
