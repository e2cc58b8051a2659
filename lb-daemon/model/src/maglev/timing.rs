use std::{
    hint::black_box,
    net::{IpAddr, Ipv4Addr},
    time::{Duration, Instant},
};

use super::{BuildError, Member, TableSpec};

/// Median time of `repeats` builds (one at least) of a table of equal members, from unsorted members
/// to finished words.
///
/// # Errors
/// Those of [`TableSpec::new`].
pub fn build_time(members: u16, slots: u32, repeats: usize) -> Result<Duration, BuildError> {
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
