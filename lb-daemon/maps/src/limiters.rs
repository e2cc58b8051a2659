//! What reconciling asks of limits and handshake entries.

use lb_common::abi::{
    clock::Coarse,
    connection::{CELLS_PER_LINE, HandshakeEntry},
    limiter::LimitWord,
};

use super::{WritableMaps, maps::Maps, raw::Mapping};

/// Free places that a CPU may have for itself.
const FREE_PLACES_OF_A_CPU: u32 = 128;

/// How many of a table's entries can be there without that one of them has had to go.
///
/// A table of the kernel's hands its free places to CPUs 128 at a time, and takes as many from others
/// where none are left to hand out (`LOCAL_FREE_TARGET`, kernel/bpf/bpf_lru_list.c). So when the first
/// one has to go, each CPU may still have that many which nobody uses: these do not count, as long as
/// the table is large enough for that to leave something.
pub(super) fn sure_room(entries: u32) -> u32 {
    let cpus = aya::util::nr_cpus().unwrap_or(1) as u32;
    entries - FREE_PLACES_OF_A_CPU.saturating_mul(cpus).min(entries / 2)
}

impl<M: AsRef<Mapping>> Maps<M> {
    /// A limiter's limit; a limiter out of range has none.
    pub fn limit(&self, limiter: u32) -> LimitWord {
        self.limiter(limiter).map_or(LimitWord::UNLIMITED, |limiter| LimitWord(limiter.limit))
    }

    /// Cells of handshake entries that are young enough to count at `now`, and cells in all. Reads the whole
    /// table of lines, 8 MiB.
    pub fn records_held(&self, now: Coarse) -> (u64, u64) {
        let lines = self.handshakes.entries();
        let cells = (0..lines).filter_map(|line| self.handshakes.get(line)).flat_map(|line| {
            let cell = move |at: usize| HandshakeEntry {
                syn: line.words[2 * at],
                decision: line.words[2 * at + 1],
            };
            (0..CELLS_PER_LINE as usize).map(cell)
        });
        let held = cells.filter(|entry| !entry.is_expired(now)).count();
        (held as u64, u64::from(lines) * u64::from(CELLS_PER_LINE))
    }
}

impl WritableMaps {
    /// Displaced entries of IPv4 and of IPv6 connections that there is room for without another's place.
    pub fn displaced_room(&self) -> [u32; 2] {
        self.displaced_room.map(sure_room)
    }
}
