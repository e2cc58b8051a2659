use proptest::{collection::vec, prelude::*};

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const TIMES: HoldDownTimes =
    HoldDownTimes { first: Duration::from_secs(10), longest: Duration::from_secs(60) };

/// Fails, passes a second later, and returns how long it is then held.
fn flap(hold_down: &mut HoldDown, now: &mut Instant) -> Option<u64> {
    hold_down.fail(*now, TIMES);
    *now += SECOND;
    hold_down.pass(*now, TIMES);
    hold_down.length().map(|length| length.as_secs())
}

#[test]
fn each_failure_soon_after_a_return_doubles_the_hold_up_to_the_bound() {
    let (mut hold_down, mut now) = (HoldDown::default(), Instant::now());
    assert_eq!(flap(&mut hold_down, &mut now), None, "the first return");
    for (nth, expected) in [10, 20, 40, 60, 60, 60].into_iter().enumerate() {
        now += 5 * SECOND;
        assert_eq!(flap(&mut hold_down, &mut now), Some(expected));
        assert_eq!(hold_down.failures() as usize, nth + 1);
        let hold = Duration::from_secs(expected);
        assert!(!hold_down.release(now + hold - SECOND / 1000));
        assert_eq!(hold_down.left(now + SECOND), Some(hold - SECOND));
        now += hold;
        assert!(hold_down.release(now) && !hold_down.is_held() && !hold_down.release(now));
    }
}

#[test]
fn a_backend_that_was_up_for_long_is_forgiven() {
    let (mut hold_down, mut now) = (HoldDown::default(), Instant::now());
    flap(&mut hold_down, &mut now);
    assert_eq!(flap(&mut hold_down, &mut now), Some(10));
    now += 10 * SECOND;
    assert!(hold_down.release(now));
    // The time counts from the end of the hold.
    let mut at_the_bound = (hold_down, now + 60 * SECOND);
    assert_eq!(flap(&mut at_the_bound.0, &mut at_the_bound.1), Some(20));
    now += 60 * SECOND + SECOND / 1000;
    assert_eq!(flap(&mut hold_down, &mut now), None);
    assert_eq!(flap(&mut hold_down, &mut now), Some(10), "counting starts from one");
}

#[test]
fn a_failure_while_it_is_held_counts_and_repeated_ones_do_not() {
    let (mut hold_down, mut now) = (HoldDown::default(), Instant::now());
    flap(&mut hold_down, &mut now);
    assert_eq!(flap(&mut hold_down, &mut now), Some(10));
    assert_eq!(flap(&mut hold_down, &mut now), Some(20));
    for _ in 0..3 {
        hold_down.fail(now, TIMES);
    }
    hold_down.pass(now, TIMES);
    let held = hold_down;
    hold_down.pass(now + SECOND, TIMES);
    assert_eq!(hold_down, held, "the hold does not begin anew");
    assert_eq!((held.failures(), held.length()), (3, Some(40 * SECOND)));
}

#[test]
fn without_a_time_no_backend_is_held() {
    let off = HoldDownTimes { first: Duration::ZERO, ..TIMES };
    let (mut hold_down, now) = (HoldDown::default(), Instant::now());
    for _ in 0..100 {
        hold_down.fail(now, off);
        hold_down.pass(now, off);
        assert!(!hold_down.is_held());
    }
}

/// Milliseconds until the next event, and what it is: a result of checks, or a look whether a hold is over.
fn events() -> impl Strategy<Value = Vec<(u64, u8)>> {
    vec((prop_oneof![0u64..2_000, 0u64..400_000], 0u8..3), 0..200)
}

proptest! {
    /// Compared with a count by hand from the times of failures and returns alone.
    #[test]
    fn holds_are_bounded_and_a_backend_that_keeps_passing_comes_up(
        events in events(), first in 0u64..100, longest in 1u64..400,
    ) {
        let longest = Duration::from_secs(longest);
        let times = HoldDownTimes { first: Duration::from_secs(first).min(longest), longest };
        let (mut hold_down, mut now) = (HoldDown::default(), Instant::now());
        // The oracle: whether it passes, is held, has come back before, and failures in a row; and when it came up or
        // will.
        let (mut passes, mut held, mut returned, mut row, mut up_at) =
            (true, false, false, 0u32, now);
        for (after, event) in events {
            now += Duration::from_millis(after);
            match event {
                0 => {
                    let recent = returned && (held || now - up_at <= longest);
                    if passes {
                        row = if recent { row + 1 } else { 0 };
                    }
                    (passes, held) = (false, false);
                    hold_down.fail(now, times);
                }
                1 => {
                    if !passes {
                        let hold = (0..row).fold(Duration::ZERO, |hold, nth| {
                            if nth == 0 { times.first } else { (2 * hold).min(longest) }
                        });
                        (passes, held, returned) = (true, !hold.is_zero(), true);
                        up_at = now + hold;
                    }
                    hold_down.pass(now, times);
                }
                _ => {
                    hold_down.release(now);
                }
            }
            // It comes up when it is looked at, with a result of checks or without.
            if held && event != 0 && now >= up_at {
                (held, up_at) = (false, now);
            }
            prop_assert_eq!(hold_down.is_held(), held);
            prop_assert_eq!(hold_down.left(now), held.then(|| up_at.saturating_duration_since(now)));
            prop_assert!(hold_down.length().is_none_or(|length| length <= longest));
        }
        hold_down.pass(now, times);
        hold_down.pass(now + longest, times);
        prop_assert!(!hold_down.is_held());
    }
}

/// How a restart finds a backend in the maps: as its state was.
fn accepts(passes: bool, hold_down: &HoldDown) -> Accepts {
    match (passes, hold_down.is_held()) {
        (true, false) => Accepts::All,
        (true, true) | (false, _) => Accepts::OpenOnly,
    }
}

/// Through the file and back, as nanoseconds of another clock.
fn written_and_read(hold_down: HoldDown, origin: Instant) -> HoldDown {
    let written = hold_down.convert(|time| (time - origin).as_nanos() as u64);
    let text = serde_json::to_string(&written).unwrap();
    let read: HoldDown<u64> = serde_json::from_str(&text).unwrap();
    read.convert(|time| origin + Duration::from_nanos(time))
}

proptest! {
    /// A restart at any moment changes neither how long a backend is held nor how often it failed in a row. The file may be
    /// a moment old.
    #[test]
    fn a_restart_changes_no_hold(
        events in events(), restarts in vec(any::<bool>(), 200), gap in 0u64..2_000,
    ) {
        let origin = Instant::now();
        let (mut continued, mut restarted) = (HoldDown::default(), HoldDown::default());
        let (mut now, mut passes) = (origin, true);
        for ((after, event), restarts) in events.into_iter().zip(restarts) {
            now += Duration::from_millis(after);
            for hold_down in [&mut continued, &mut restarted] {
                match event {
                    0 => hold_down.fail(now, TIMES),
                    1 => hold_down.pass(now, TIMES),
                    _ => drop(hold_down.release(now)),
                }
            }
            passes = if event < 2 { event == 1 } else { passes };
            if restarts && restarted != HoldDown::default() {
                let there = accepts(passes, &restarted);
                let saved_at = now;
                now += Duration::from_millis(gap);
                let read = written_and_read(restarted, origin);
                restarted = read.restored(saved_at, there, TIMES, now).unwrap();
            }
            // A hold that was over when the daemon started is released by its first result.
            if continued.is_held() && !restarted.is_held() {
                prop_assert_eq!(continued.left(now), Some(Duration::ZERO));
                prop_assert!(passes);
                let over = continued.until().unwrap();
                continued.release(over);
            }
            prop_assert_eq!(continued, restarted);
            prop_assert_eq!(continued.is_forgiven(now, TIMES), restarted.is_forgiven(now, TIMES));
        }
    }

    /// Whatever a file says, a backend is held for no longer than the longest hold, and comes up.
    #[test]
    fn wrong_times_hold_nothing_for_long(
        failures in any::<u32>(), phase in 0u8..4, times in any::<(u32, u32)>(), there in 0u8..3,
    ) {
        let origin = Instant::now();
        let now = origin + Duration::from_secs(1 << 31);
        let at = |seconds| origin + Duration::from_secs(u64::from(seconds));
        let phase = match phase {
            0 => Phase::Calm,
            1 => Phase::Down,
            2 => Phase::Held { since: at(times.0), until: at(times.1) },
            _ => Phase::Returned { at: at(times.0) },
        };
        let there = [Accepts::Nothing, Accepts::OpenOnly, Accepts::All][usize::from(there)];
        let read = HoldDown { failures, phase };
        let Some(mut hold_down) = read.restored(now, there, TIMES, now) else {
            panic!("it is not old");
        };
        prop_assert!(hold_down.length().is_none_or(|length| length <= TIMES.longest));
        prop_assert!(hold_down.left(now).is_none_or(|left| left <= TIMES.longest));
        prop_assert!(!(there == Accepts::All && hold_down.is_held()));
        hold_down.pass(now, TIMES);
        hold_down.pass(now + TIMES.longest, TIMES);
        prop_assert!(!hold_down.is_held());
        prop_assert_eq!(read.restored(now, there, TIMES, now + TIMES.longest + SECOND), None);
    }
}

/// The maps are newer than the file: a daemon that was killed had a second at most that it did not write down.
#[test]
fn the_maps_are_right_where_the_file_is_old() {
    let (mut hold_down, mut now) = (HoldDown::default(), Instant::now());
    flap(&mut hold_down, &mut now);
    let returned = hold_down;
    assert_eq!(flap(&mut hold_down, &mut now), Some(10));
    let (held, mut down) = (hold_down, hold_down);
    down.fail(now, TIMES);
    let restored = |it: HoldDown, there| it.restored(now, there, TIMES, now + SECOND).unwrap();
    // It is up: it came up after that, and the next failure is one soon after a return.
    for it in [held, down] {
        let mut up = restored(it, Accepts::All);
        assert!(!up.is_held());
        up.fail(now + 2 * SECOND, TIMES);
        assert_eq!(up.failures(), it.failures() + 1);
    }
    // Its host is gone, which is a failure, unless that was known.
    for (it, failures) in [(returned, 1), (held, 2), (down, 2)] {
        let mut gone = restored(it, Accepts::Nothing);
        assert_eq!((gone.failures(), gone.phase), (failures, Phase::Down));
        gone.pass(now + 2 * SECOND, TIMES);
        assert!(gone.is_held());
    }
    for it in [returned, held, down] {
        assert_eq!(restored(it, Accepts::OpenOnly), it);
    }
    // A hold that was over before the daemon started has ended when it should have.
    let over = held.restored(now, Accepts::OpenOnly, TIMES, now + 11 * SECOND).unwrap();
    assert_eq!((over.failures(), over.phase), (1, Phase::Returned { at: now + 10 * SECOND }));
}
