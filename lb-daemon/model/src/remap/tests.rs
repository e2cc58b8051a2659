use proptest::{collection::vec, prelude::*};

use super::*;

const SECOND: Duration = Duration::from_secs(1);
/// Settle time of most tests.
const SETTLE: Duration = Duration::from_secs(60);

#[test]
fn it_is_over_after_its_settle_time() {
    let start = Instant::now();
    let settling = Settling::begin(start);
    assert!(!settling.is_over(SETTLE, start + 59 * SECOND));
    assert!(settling.is_over(SETTLE, start + 60 * SECOND));
    assert_eq!(settling.since(), start);
}

#[test]
fn another_change_begins_the_settle_time_anew() {
    let start = Instant::now();
    let mut settling = Settling::begin(start);
    settling.change(start + 50 * SECOND);
    assert_eq!(settling.ends_at(SETTLE), start + 110 * SECOND);
    assert_eq!(settling.since(), start);
}

#[test]
fn changes_that_continue_make_it_overdue_but_do_not_end_it() {
    let start = Instant::now();
    let mut settling = Settling::begin(start);
    for second in 1..200 {
        let now = start + second * SECOND;
        settling.change(now);
        assert!(!settling.is_over(SETTLE, now));
        assert_eq!(settling.is_overdue(SETTLE, now), second >= 180, "{second}");
    }
}

proptest! {
    #[test]
    fn whatever_it_moves_has_the_whole_settle_time(
        settle in 1u64..86_400,
        changes in vec(0u64..400_000, 0..40),
    ) {
        let settle = Duration::from_secs(settle);
        let start = Instant::now();
        let mut changes = changes;
        changes.sort_unstable();
        let mut settling = Settling::begin(start);
        let mut last = start;
        for ms in changes {
            let at = start + settle * (ms as u32) / 50_000;
            if settling.is_over(settle, at) {
                break;
            }
            settling.change(at);
            last = at;
        }
        prop_assert_eq!(settling.ends_at(settle), last + settle);
        prop_assert!(!settling.is_over(settle, last + settle - Duration::from_nanos(1)));
    }
}
