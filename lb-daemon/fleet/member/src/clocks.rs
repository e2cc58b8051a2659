//! Whether this balancer's wall clock can be believed. Overrides end by it, for all balancers: one whose clock is wrong would
//! end them too early, and set ones that end at once or much too late.

use std::time::Duration;

use lb_fleet::reader::Snapshot;

use super::Member;

/// Clocks that differ by more do not agree.
const TOLERANCE: Duration = Duration::from_secs(5);

/// How long a daemon ends nothing after its start: at boot a clock may be wrong until it is synchronized, and peers have not
/// been heard.
const FIRST_COMPARISON: Duration = Duration::from_secs(30);

/// What others are ahead of a clock, milliseconds: the median of them, if the clock agrees with no majority of all clocks,
/// itself among them.
fn deviation(mut ahead: Vec<i64>) -> Option<i64> {
    let agrees = |ahead: &&i64| Duration::from_millis(ahead.unsigned_abs()) <= TOLERANCE;
    let agreeing = 1 + ahead.iter().filter(agrees).count();
    let all = 1 + ahead.len();
    if agreeing * 2 > all {
        return None;
    }
    ahead.sort_unstable();
    ahead.get(ahead.len() / 2).copied()
}

/// `None`: the clock can be believed.
fn sentence(ahead: Vec<i64>) -> Option<String> {
    let deviation = deviation(ahead)?;
    let seconds = Duration::from_millis(deviation.unsigned_abs()).as_secs();
    let direction = if deviation > 0 { "behind" } else { "ahead of" };
    Some(format!(
        "the clock of this balancer is {seconds} s {direction} those of others, and agrees with no majority of them: it ends no \
         overrides, and sets none that end by themselves, until that is corrected"
    ))
}

impl Member {
    /// Why nothing may end by this balancer's wall clock; `None`: it may.
    pub(super) fn clock_problem(&self) -> Option<String> {
        let status = self.sharing().status();
        let status = status.borrow();
        let heard = status.peers.values().filter(|it| it.is_heard());
        sentence(heard.filter_map(|it| it.clock_ahead_ms).collect())
    }

    /// Whether this balancer's clock was compared with another one since the start. Without others there is none.
    pub(super) fn has_compared_clock(&self, snapshot: &Snapshot) -> bool {
        let status = self.sharing().status();
        let status = status.borrow();
        let heard = status.peers.values().filter(|it| it.is_heard() && it.clock_ahead_ms.is_some());
        let others = snapshot.alive.keys().filter(|name| *name != self.name());
        is_compared(self.started().elapsed(), others.count(), heard.count())
    }
}

/// `others` are alive, and the clocks of `heard` are known.
const fn is_compared(up: Duration, others: usize, heard: usize) -> bool {
    up.as_millis() >= FIRST_COMPARISON.as_millis() && (others == 0 || heard > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_by_a_clock_that_was_compared_with_none() {
        let second = Duration::from_secs(1);
        for (up, others, heard, expected) in [
            (29, 0, 0, false),
            (30, 0, 0, true),
            (29, 1, 1, false),
            (30, 1, 0, false),
            (3_000, 3, 0, false),
            (30, 3, 1, true),
        ] {
            assert_eq!(is_compared(up * second, others, heard), expected, "{up} {others} {heard}");
        }
    }

    #[test]
    fn a_clock_is_believed_that_agrees_with_most() {
        for ahead in [&[][..], &[3_000], &[-5_000, 5_000], &[1, 90_000], &[0, 1, -90_000, 90_000]] {
            assert_eq!(deviation(ahead.to_vec()), None, "{ahead:?}");
        }
        // Of two that differ nobody knows which one is wrong.
        for (ahead, expected) in [
            (&[5_001][..], 5_001),
            (&[-90_000], -90_000),
            (&[90_000, 90_001, 90_002], 90_001),
            (&[0, 90_000, 90_001], 90_000),
            (&[i64::MIN, i64::MIN, i64::MAX], i64::MIN),
        ] {
            assert_eq!(deviation(ahead.to_vec()), Some(expected), "{ahead:?}");
        }
    }

    #[test]
    fn the_sentence_says_by_how_much() {
        assert!(sentence(vec![-90_000]).unwrap().contains("is 90 s ahead of those of others"));
        assert!(sentence(vec![3_600_400]).unwrap().contains("is 3600 s behind those of others"));
        assert_eq!(sentence(vec![400]), None);
    }
}
