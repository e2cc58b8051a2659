use proptest::prelude::*;

use super::*;
use Health::{Failing, Passing, Silent};

/// What happens to a probe.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A check ended so.
    Result(Health),
    /// An edit that asks the same: rise and fall.
    Edit(usize, usize),
}

/// What is said after each result, `None` while nothing is decided, from the rules as the documents word
/// them: looks for whole rows in the history instead of counting.
fn naive(mut rise: usize, mut fall: usize, events: &[Event]) -> Vec<Option<Health>> {
    let mut said: Vec<Option<Health>> = Vec::new();
    let mut history: Vec<Health> = Vec::new();
    for event in events {
        match event {
            Event::Edit(other_rise, other_fall) => {
                (rise, fall) = (*other_rise, *other_fall);
                continue;
            }
            Event::Result(result) => history.push(*result),
        }
        let end = history.len();
        let last = |row: usize| history.iter().rev().take(row).copied();
        let row_of = |row: usize, is: fn(Health) -> bool| end >= row && last(row).all(is);
        let passed_before = history[..end - 1].contains(&Passing);
        let before = said.last().copied().flatten();
        let up = before == Some(Passing);
        let next = match (up, history[end - 1]) {
            (false, Passing) if !passed_before => Some(Passing),
            (false, _) if row_of(rise, |result| result == Passing) => Some(Passing),
            (true, _) if !row_of(fall, |result| result != Passing) => Some(Passing),
            _ if before.is_none() && !row_of(fall, |result| result != Passing) => None,
            _ if row_of(fall, |result| result == Silent) => Some(Silent),
            _ => Some(Failing),
        };
        said.push(next);
    }
    said
}

/// What a streak says after each result.
fn said(rise: u32, fall: u32, events: &[Event]) -> Vec<Option<Health>> {
    let mut streak = Streak::new(rise, fall);
    say(&mut streak, None, events)
}

/// What a streak says after each result, and what stands at the end: before the first result `standing`.
fn say(streak: &mut Streak, standing: Option<Health>, events: &[Event]) -> Vec<Option<Health>> {
    let mut said: Vec<Option<Health>> = Vec::new();
    for event in events {
        let result = match event {
            Event::Result(result) => *result,
            Event::Edit(rise, fall) => {
                streak.judge_by(*rise as u32, *fall as u32);
                continue;
            }
        };
        let before = said.last().copied().unwrap_or(standing);
        let was_undecided = streak.health().is_none();
        let news = streak.record(result);
        assert!(news.is_none() || news != before || was_undecided, "told twice");
        said.push(news.or(before));
        let is_undecided = streak.health().is_none();
        assert_eq!(streak.undecided().is_some(), is_undecided);
        assert!(!is_undecided || news.or(before).is_none() || standing == Some(Passing));
    }
    said
}

proptest! {
    #[test]
    fn streaks_say_what_the_rules_say(
        rise in 1usize..6,
        fall in 1usize..6,
        events in prop::collection::vec(
            prop_oneof![
                6 => Just(Event::Result(Passing)),
                6 => Just(Event::Result(Failing)),
                12 => Just(Event::Result(Silent)),
                1 => (1usize..6, 1usize..6).prop_map(|(rise, fall)| Event::Edit(rise, fall)),
            ],
            0..200,
        ),
    ) {
        prop_assert_eq!(said(rise as u32, fall as u32, &events), naive(rise, fall, &events));
    }
}

/// `.` passes, `x` fails though the host is there, `o` shows no sign of the host; below stands what is
/// said after each: `+` up, `-` unfit, `0` dead, `?` nothing yet.
#[test]
fn rows_of_results_by_hand() {
    for (rise, fall, history, expected) in [
        // The first success suffices; a first failure is one of a row.
        (2, 3, ".", "+"),
        (2, 3, "x.", "?+"),
        (2, 3, "xx.xx.xxx", "??++++++-"),
        (2, 3, "xxxx.", "??--+"),
        (2, 3, "oooo.", "??00+"),
        (2, 3, "xooo", "??-0"),
        (2, 1, "x", "-"),
        (2, 1, "o.", "0+"),
        // An application that fails and recovers.
        (2, 3, ".xx.xxx..", "++++++--+"),
        (2, 3, ".xxx.x..xxx", "+++----+++-"),
        // A host that is gone: three silences in a row, no sooner and no later.
        (2, 3, ".oo.ooo", "++++++0"),
        (2, 3, ".ooo..", "+++0-+"),
        // One sign of it among them, and it is not dead.
        (2, 3, ".xoo", "+++-"),
        (2, 3, ".oxo", "+++-"),
        (2, 3, ".oox", "+++-"),
        // Unfit first, gone later: the row counts from the first silence.
        (2, 3, ".xxxxooo", "+++----0"),
        (2, 3, ".xooo", "+++-0"),
        (2, 3, ".xxxooxoooo", "+++------00"),
        // Dead, and there again: the first sign is enough, whichever.
        (2, 3, ".oooox", "+++00-"),
        (3, 3, ".ooo.ooo", "+++0---0"),
        (2, 3, ".ooox..", "+++0--+"),
    ] {
        let results: Vec<_> = history
            .chars()
            .map(|c| match c {
                '.' => Event::Result(Passing),
                'x' => Event::Result(Failing),
                _ => Event::Result(Silent),
            })
            .collect();
        let said = said(rise, fall, &results).into_iter().map(|health| match health {
            Some(Passing) => '+',
            Some(Failing) => '-',
            Some(Silent) => '0',
            None => '?',
        });
        assert_eq!(said.collect::<String>(), expected, "{history}, rise {rise}, fall {fall}");
    }
}

/// Below stands where the next result may bring another state nearer.
#[test]
fn doubt_is_where_a_row_has_begun() {
    for (history, expected) in [
        (".xxx..", " ?? ? "),
        (".x.xx", " ? ??"),
        ("xx.", "?? "),
        ("xxx.", "??  "),
        ("ooo..o", "??   ?"),
        (".ooo.", " ?? ?"),
        (".xxxx.x..", " ??  ? ? "),
    ] {
        let mut streak = Streak::new(2, 3);
        let doubts = history.chars().map(|c| {
            streak.record(match c {
                '.' => Passing,
                'x' => Failing,
                _ => Silent,
            });
            if streak.is_in_doubt() { '?' } else { ' ' }
        });
        assert_eq!(doubts.collect::<String>(), expected, "{history}");
    }
}

/// What a restart makes of a streak: the next daemon has the rise and fall of the configuration.
fn restarted(streak: &Streak, rise: u32, fall: u32) -> Streak {
    let saved = StreakCounts::unpack(StreakCounts::pack(streak.counts()));
    assert_eq!(saved, streak.counts());
    let text = serde_json::to_string(&saved).unwrap();
    match serde_json::from_str(&text).unwrap() {
        Some(counts) => Streak::restored(rise, fall, counts),
        None if streak.has_passed => Streak::passed_before(rise, fall),
        None => Streak::new(rise, fall),
    }
}

fn result() -> impl Strategy<Value = Event> {
    prop_oneof![Just(Passing), Just(Failing), Just(Silent)].prop_map(Event::Result)
}

proptest! {
    /// Restarts between any two results change nothing that is said, not even several in a row.
    #[test]
    fn a_restart_changes_nothing(
        (rise, fall) in (1u32..6, 1u32..6),
        edited in prop::option::of((1u32..6, 1u32..6)),
        before in prop::collection::vec(result(), 0..40),
        between in prop::collection::vec(result(), 0..3),
        after in prop::collection::vec(result(), 0..20),
    ) {
        let mut continued = Streak::new(rise, fall);
        let said = say(&mut continued, None, &before);
        let (rise, fall) = edited.unwrap_or((rise, fall));
        continued.judge_by(rise, fall);
        let mut restored = restarted(&continued, rise, fall);
        let mut standing = said.last().copied().flatten();
        for part in [&between, &after] {
            let said = say(&mut continued, standing, part);
            prop_assert_eq!(&say(&mut restored, standing, part), &said);
            standing = said.last().copied().unwrap_or(standing);
            restored = restarted(&restored, rise, fall);
            // A probe that fails or passes all the time causes no writes.
            prop_assert_eq!(restored.counts(), continued.counts());
        }
    }

    /// Whatever a file says, a streak needs a result to decide, and as many as `rise` or `fall` at most.
    #[test]
    fn wrong_counts_decide_nothing_by_themselves(
        (rise, fall, word) in (1u32..6, 1u32..6, any::<u64>()),
        events in prop::collection::vec(result(), 1..20),
    ) {
        let Some(counts) = StreakCounts::unpack(word) else { return Ok(()) };
        let mut streak = Streak::restored(rise, fall, counts);
        let health = streak.health();
        prop_assert!(health != Some(Passing));
        prop_assert!(streak.passed < rise && streak.failed < fall && streak.silent <= fall);
        say(&mut streak, health, &events);
        let up = vec![Event::Result(Passing); rise as usize];
        say(&mut streak, None, &up);
        prop_assert_eq!(streak.health(), Some(Passing));
        let down = vec![Event::Result(Silent); fall as usize];
        say(&mut streak, Some(Passing), &down);
        prop_assert_eq!(streak.health(), Some(Silent));
    }
}

/// Above stands what happened before a restart, below what is said after it.
#[test]
fn streaks_go_on_after_a_restart() {
    for (rise, fall, before, after, expected) in [
        // Two of three successes.
        (3, 3, ".xxx..", ".", "+"),
        (3, 3, ".xxx..", "x...", "---+"),
        (3, 3, ".xxx", "...", "--+"),
        // Two of three failures.
        (2, 3, ".xx", "x", "-"),
        (2, 3, ".xx", ".xxx", "+++-"),
        (2, 3, "xx", "x", "-"),
        (2, 3, "xx", ".", "+"),
        // What passes and then fails needs `rise` again.
        (3, 3, "...", "xxx...", "++---+"),
        // It has never passed.
        (3, 3, "xxx", ".", "+"),
        // The host: two of three silences, one sign.
        (2, 3, ".xxxoo", "o", "0"),
        (2, 3, ".ooo", "oox", "00-"),
        (2, 3, ".ooo", "..", "-+"),
        (2, 3, ".oo", "o", "0"),
        (2, 3, ".xo", "o", "-"),
    ] {
        let results = |history: &str| -> Vec<Event> {
            let result = |c| match c {
                '.' => Passing,
                'x' => Failing,
                _ => Silent,
            };
            history.chars().map(result).map(Event::Result).collect()
        };
        let mut streak = Streak::new(rise, fall);
        let standing = say(&mut streak, None, &results(before)).last().copied().flatten();
        let mut restored = restarted(&streak, rise, fall);
        let said =
            say(&mut restored, standing, &results(after)).into_iter().map(|said| match said {
                Some(Passing) => '+',
                Some(Failing) => '-',
                Some(Silent) => '0',
                None => '?',
            });
        assert_eq!(said.collect::<String>(), expected, "{before} then {after}");
    }
}
