//! A limit, told another way than the code under test does.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::Decision;

const SECOND: f64 = 1e9;
/// Bursts are counted in such parts of a connection.
const PART: f64 = 1.0 / 16.0;
/// Floating-point numbers are not exact.
const CRUMB: f64 = 1e-6;

/// A limit of new connections.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Connections a second.
    pub per_second: f64,
    /// Length of the kernel's tick, seconds.
    pub tick: f64,
}

/// How a run of decisions kept a limit.
#[derive(Clone, Copy, Debug)]
pub struct Judgement {
    /// Connections that some window had more than the limit times its length; the burst at most.
    pub excess: f64,
    /// Place of the first that overflowed, from 0.
    pub first_overflowed: usize,
    /// Admitted from the first that overflowed on, as a share of what the limit admits in that time; 1 if none overflowed,
    /// because their sender was too slow.
    pub utilisation: f64,
    /// What of that could be: less than the whole where for longer than the burst takes too few came.
    pub possible: f64,
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { excess, first_overflowed, utilisation, possible } = self;
        write!(f, "at most {excess:.2} above the limit in any window, ")?;
        write!(
            f,
            "the first that overflowed is number {}, then {utilisation:.4} used ",
            first_overflowed + 1
        )?;
        write!(f, "of {possible:.4}")
    }
}

impl Limit {
    /// Connections that may come at once: those of a tenth of a second, at least ten.
    pub fn burst(&self) -> f64 {
        (self.per_second * 0.1).max(10.0)
    }

    /// Looks at decisions, in the order in which they were made: every window, every single one, and
    /// what was used of the limit. The near region has admitted nothing for longer than its burst
    /// takes.
    ///
    /// # Errors
    /// Says which window or decision is wrong.
    pub fn judge(&self, decisions: &[Decision]) -> Result<Judgement> {
        let excess = self.excess(decisions);
        ensure!(
            excess <= self.burst(),
            "{excess:.2} more than the limit in one window, allowed are {}",
            self.burst()
        );
        self.ensure_each(decisions)?;
        let first_overflowed = decisions.iter().position(|decision| !decision.near);
        let first_overflowed = first_overflowed.unwrap_or(decisions.len());
        let rest = &decisions[first_overflowed..];
        let time = rest.last().map_or(0, |last| last.sent - rest[0].sent) as f64 / SECOND;
        let admitted = rest.iter().filter(|decision| decision.near).count();
        let moments = decisions.iter().map(|decision| Duration::from_nanos(decision.sent));
        let admitted_by_one = self.admits(moments).into_iter().skip(first_overflowed);
        let possible = admitted_by_one.filter(|is_admitted| *is_admitted).count();
        let share = |count: usize| match rest {
            [] => 1.0,
            _ => count as f64 / (self.per_second * time),
        };
        let (utilisation, possible) = (share(admitted), share(possible));
        Ok(Judgement { excess, first_overflowed, utilisation, possible })
    }

    /// The most that any window has above the limit times its length. A window goes from when its first
    /// connection was sent to when its last one had arrived. The limit goes by a clock of ticks; a
    /// tick is in the burst, so what a window begins later than a tick after that clock stood still
    /// is not counted.
    fn excess(&self, decisions: &[Decision]) -> f64 {
        let Some(zero) = decisions.first().map(|first| first.sent) else { return 0.0 };
        let limit_until = |time: f64| self.per_second * (time - zero as f64) / SECOND;
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        let near = decisions.iter().filter(|decision| decision.near);
        for (before, decision) in near.enumerate() {
            let stood = (decision.behind() as f64 - self.tick * SECOND).max(0.0);
            least = least.min(before as f64 - limit_until(decision.sent as f64 - stood));
            most = most.max((before + 1) as f64 - limit_until(decision.arrived as f64) - least);
        }
        most
    }

    /// Which of the connections that come at these times, in order and after none for longer than the burst takes, one limiter
    /// admits, by a clock without ticks.
    pub fn admits(&self, moments: impl IntoIterator<Item = Duration>) -> Vec<bool> {
        let size = self.burst() - self.per_second * self.tick;
        let (mut content, mut before) = (size, Duration::ZERO);
        let mut admit = |at: Duration| {
            let since = at.saturating_sub(before).as_secs_f64();
            content = (content + since * self.per_second).min(size);
            before = before.max(at);
            let is_admitted = content >= 1.0;
            content -= f64::from(u8::from(is_admitted));
            is_admitted
        };
        moments.into_iter().map(&mut admit).collect()
    }

    /// Follows the decisions with a bucket that each admitted connection takes one out of, and that
    /// holds the burst less what a tick hides. Its content is known up to the times between which each
    /// decision was made, and a tick, by which one clock of ticks may be ahead of another.
    fn ensure_each(&self, decisions: &[Decision]) -> Result<()> {
        let Some(zero) = decisions.first().map(|first| first.earliest) else { return Ok(()) };
        let size = self.burst() - self.per_second * self.tick;
        // When the bucket is full again: at the earliest, at the latest.
        let (mut early, mut late) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        let left = |full: f64, now: f64| size - (full - now).max(0.0) * self.per_second;
        for (number, decision) in decisions.iter().enumerate() {
            let from = (decision.earliest - zero) as f64 / SECOND;
            let to = (decision.latest - zero) as f64 / SECOND + self.tick;
            if decision.near {
                let most = left(early, to);
                ensure!(most > 1.0 - CRUMB, "number {number} was admitted: {most:.3} were left");
                early = early.max(from) + 1.0 / self.per_second;
                late = late.max(to) + 1.0 / self.per_second;
            } else {
                let least = left(late, from) - PART;
                ensure!(least < 1.0, "number {number} overflowed: {least:.3} were left");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Limit = Limit { per_second: 10.0, tick: 0.004 };

    /// Decisions so many milliseconds after the first, by a clock without ticks.
    fn decisions(all: &[(u64, bool)]) -> Vec<Decision> {
        let at = |milliseconds: u64| (5_000 + milliseconds) * 1_000_000;
        let decision = |&(after, near)| Decision {
            sent: at(after),
            arrived: at(after),
            earliest: at(after),
            latest: at(after),
            near,
        };
        all.iter().map(decision).collect()
    }

    /// So many at once, and then one every 50 ms of which every other is admitted.
    fn kept(at_once: u64) -> Vec<(u64, bool)> {
        let first = (0..at_once).map(|_| (0, true));
        first.chain((1..40).map(|number| (50 * number, number % 2 == 1))).collect()
    }

    #[test]
    fn a_limit_that_is_kept_is_found_kept() {
        let judgement = TEN.judge(&decisions(&kept(9))).unwrap();
        assert_eq!(judgement.first_overflowed, 10);
        assert!((judgement.excess - 9.5).abs() < 1e-9, "{judgement:?}");
        // 19 in the 1.85 s after the first that overflowed.
        assert!((judgement.utilisation - 19.0 / 18.5).abs() < 1e-9, "{judgement:?}");
        assert_eq!(judgement.possible, judgement.utilisation);
    }

    #[test]
    fn below_the_limit_nothing_overflows() {
        let slow: Vec<_> = (0..40).map(|number| (101 * number, true)).collect();
        let judgement = TEN.judge(&decisions(&slow)).unwrap();
        assert_eq!(judgement.first_overflowed, 40);
        assert_eq!((judgement.utilisation, judgement.possible), (1.0, 1.0));
    }

    #[test]
    fn one_more_and_one_less_are_seen() {
        let error = |all: &[(u64, bool)]| TEN.judge(&decisions(all)).unwrap_err().to_string();
        let said = "11.50 more than the limit in one window, allowed are 10";
        assert_eq!(error(&kept(11)), said);
        let mut less = kept(9);
        less[6].1 = false;
        assert!(error(&less).starts_with("number 6 overflowed: 3.8"));
    }

    #[test]
    fn a_window_may_begin_anywhere() {
        // After two idle seconds eleven come at once.
        let mut all = kept(9);
        all.extend((0..11).map(|_| (4_000, true)));
        let said = TEN.judge(&decisions(&all)).unwrap_err().to_string();
        assert_eq!(said, "11.00 more than the limit in one window, allowed are 10");
    }
}
