use proptest::{collection::vec, prelude::*};

use super::*;

const SECOND: Duration = Duration::from_secs(1);
/// Settle time of most tests.
const SETTLE: Duration = Duration::from_secs(60);

/// Seconds after a beginning at which a phase begins, looked at every half second. The packet path follows at once.
fn phases(settling: &Settling, start: Instant) -> Vec<(Phase, Duration)> {
    let mut found: Vec<(Phase, Duration)> = Vec::new();
    let mut settling = *settling;
    for half in 0..1000 {
        let after = half * SECOND / 2;
        let phase = settling.phase(SETTLE, start + after);
        settling.observe(phase >= Phase::Adopting, start + after);
        if found.last().is_none_or(|(last, _)| *last != phase) {
            found.push((phase, after));
        }
    }
    found
}

#[test]
fn it_settles_then_adopts_in_the_last_third() {
    let start = Instant::now();
    let settling = Settling::begin(start);
    let expected = [
        (Phase::Settling, Duration::ZERO),
        (Phase::Adopting, 40 * SECOND),
        (Phase::Over, 60 * SECOND),
    ];
    assert_eq!(phases(&settling, start), expected);
    assert_eq!(settling.since(), start);
}

#[test]
fn another_change_begins_the_settle_time_anew() {
    let start = Instant::now();
    let mut settling = Settling::begin(start);
    settling.change(start + 50 * SECOND);
    let expected = [
        (Phase::Settling, Duration::ZERO),
        (Phase::Adopting, 90 * SECOND),
        (Phase::Over, 110 * SECOND),
    ];
    assert_eq!(phases(&settling, start), expected);
}

#[test]
fn after_three_settle_times_it_is_over_though_changes_continue() {
    let start = Instant::now();
    let mut settling = Settling::begin(start);
    for second in 1..180 {
        settling.change(start + second * SECOND);
    }
    let expected = [
        (Phase::Settling, Duration::ZERO),
        (Phase::Adopting, 160 * SECOND),
        (Phase::Over, 180 * SECOND),
    ];
    assert_eq!(phases(&settling, start), expected);
}

#[test]
fn a_refused_adoption_gives_it_time_to_try_again_but_not_for_ever() {
    let start = Instant::now();
    let mut settling = Settling::begin(start);
    // Refusals of other pools, before this one adopts.
    settling.refuse(start + 39 * SECOND);
    assert_eq!(phases(&settling, start).last(), Some(&(Phase::Over, 60 * SECOND)));
    settling.refuse(start + 55 * SECOND);
    assert_eq!(phases(&settling, start).last(), Some(&(Phase::Over, 75 * SECOND)));
    for second in 56..120 {
        settling.refuse(start + second * SECOND);
    }
    assert_eq!(phases(&settling, start).last(), Some(&(Phase::Over, 120 * SECOND)));
    settling.change(start + 119 * SECOND);
    assert_eq!(phases(&settling, start).last(), Some(&(Phase::Over, 179 * SECOND)));
}

#[test]
fn a_daemon_that_was_stopped_adopts_before_it_is_over() {
    let start = Instant::now();
    let mut settling = Settling::begin(start);
    // Nobody looked between these: the whole last third went by.
    settling.observe(false, start + 30 * SECOND);
    let back = start + 500 * SECOND;
    settling.observe(false, back);
    assert_eq!(settling.phase(SETTLE, back), Phase::Adopting);
    settling.observe(true, back + SECOND);
    assert_eq!(settling.phase(SETTLE, back + 20 * SECOND), Phase::Adopting);
    assert_eq!(settling.phase(SETTLE, back + 21 * SECOND), Phase::Over);
    assert_eq!(settling.ends_at(SETTLE), back + 21 * SECOND);

    // One that was stopped while connections were adopted loses no time: the packet path went on.
    let mut settling = Settling::begin(start);
    settling.observe(true, start + 41 * SECOND);
    settling.observe(true, back);
    assert_eq!(settling.phase(SETTLE, back), Phase::Over);
}

#[test]
fn a_change_ends_the_adoption_and_it_begins_anew() {
    let start = Instant::now();
    let mut settling = Settling::begin(start);
    settling.observe(true, start + 40 * SECOND);
    settling.change(start + 50 * SECOND);
    settling.observe(false, start + 51 * SECOND);
    // 110 s after the beginning the second settle time is over.
    assert_eq!(settling.phase(SETTLE, start + 110 * SECOND), Phase::Adopting);
    settling.observe(true, start + 110 * SECOND);
    assert_eq!(settling.phase(SETTLE, start + 129 * SECOND), Phase::Adopting);
    assert_eq!(settling.phase(SETTLE, start + 130 * SECOND), Phase::Over);
}

proptest! {
    #[test]
    fn it_ends_between_one_and_four_settle_times_and_adopts_for_a_third(
        settle in 1u64..86_400,
        events in vec((0u64..200_000, any::<bool>()), 0..40),
    ) {
        let settle = Duration::from_secs(settle);
        let start = Instant::now();
        let mut events = events;
        events.sort_unstable();
        let mut settling = Settling::begin(start);
        let mut last = start;
        for (ms, change) in events {
            let at = start + settle * (ms as u32) / 50_000;
            if settling.phase(settle, at) == Phase::Over {
                break;
            }
            if change {
                settling.change(at);
                last = at;
            } else {
                settling.refuse(at);
            }
        }
        let (adopts, ends) = (settling.adopts_at(settle), settling.ends_at(settle));
        prop_assert!(ends >= start + settle);
        prop_assert!(ends <= start + 4 * settle);
        prop_assert!(ends >= (last + settle).min(start + 3 * settle));
        prop_assert!(ends - adopts >= settle / 3);
        prop_assert_eq!(settling.phase(settle, adopts), Phase::Adopting);
        settling.observe(true, adopts);
        prop_assert_eq!(settling.ends_at(settle), ends);
        prop_assert_eq!(settling.phase(settle, ends), Phase::Over);
    }
}
