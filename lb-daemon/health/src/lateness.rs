//! How late checks start.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Cells per power of two: a quantile is at most a sixteenth too large.
const FINE: u32 = 16;

/// Cells up to 2^40 us, twelve days.
const CELLS: usize = 40 * FINE as usize;

/// A histogram of how late checks start, for any reason: the machine, this daemon, or the limit of concurrent
/// checks.
#[derive(Debug)]
pub struct Lateness {
    cells: Box<[AtomicU64]>,
    most: AtomicU64,
}

impl Default for Lateness {
    fn default() -> Self {
        let cells = (0..CELLS).map(|_| AtomicU64::new(0)).collect();
        Self { cells, most: AtomicU64::new(0) }
    }
}

impl Lateness {
    /// Records a delay.
    pub(crate) fn record(&self, late: Duration) {
        let microseconds = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
        if let Some(cell) = self.cells.get(cell(microseconds)) {
            cell.fetch_add(1, Ordering::Relaxed);
        }
        self.most.fetch_max(microseconds, Ordering::Relaxed);
    }

    /// Number of recorded delays.
    pub fn count(&self) -> u64 {
        self.cells.iter().map(|cell| cell.load(Ordering::Relaxed)).sum()
    }

    /// The quantile, per mille.
    pub fn quantile(&self, per_mille: u64) -> Duration {
        let wanted = (self.count() * per_mille).div_ceil(1000);
        let mut so_far = 0;
        for (cell, count) in self.cells.iter().enumerate() {
            so_far += count.load(Ordering::Relaxed);
            if so_far >= wanted {
                return Duration::from_micros(top(cell)).min(self.most());
            }
        }
        self.most()
    }

    /// The largest delay.
    pub fn most(&self) -> Duration {
        Duration::from_micros(self.most.load(Ordering::Relaxed))
    }

    /// Resets it.
    pub fn clear(&self) {
        self.cells.iter().for_each(|cell| cell.store(0, Ordering::Relaxed));
        self.most.store(0, Ordering::Relaxed);
    }
}

/// The cell of a number of microseconds: below [`FINE`] one each, then sixteen per power of two.
fn cell(microseconds: u64) -> usize {
    let doublings = microseconds.max(1).ilog2().saturating_sub(FINE.ilog2());
    let within = microseconds >> doublings;
    usize::try_from(u64::from(doublings * FINE) + within).unwrap_or(CELLS).min(CELLS - 1)
}

/// The largest number of a cell.
fn top(cell: usize) -> u64 {
    let (cell, fine) = (cell as u64, u64::from(FINE));
    match cell / fine {
        0 => cell,
        doublings => ((fine + cell % fine + 1) << (doublings - 1)) - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_counts_in_the_cell_whose_top_is_next() {
        for number in (0..5000).chain([1 << 20, (1 << 30) + 12_345]) {
            let at = cell(number);
            assert!(top(at) >= number, "{number}");
            assert!(at == 0 || top(at - 1) < number, "{number}");
            assert!(top(at) - number <= number / 16, "{number}");
        }
    }

    #[test]
    fn quantiles_are_those_of_what_was_counted() {
        let lateness = Lateness::default();
        assert_eq!(lateness.quantile(990), Duration::ZERO);
        for number in 1..=1000 {
            lateness.record(Duration::from_micros(number));
        }
        assert_eq!(lateness.count(), 1000);
        let micros = |per_mille| lateness.quantile(per_mille).as_micros();
        assert!((500..=532).contains(&micros(500)), "{}", micros(500));
        assert!((990..=1000).contains(&micros(990)), "{}", micros(990));
        assert_eq!((micros(1000), lateness.most().as_micros()), (1000, 1000));
        lateness.clear();
        assert_eq!((lateness.count(), lateness.most()), (0, Duration::ZERO));
    }
}
