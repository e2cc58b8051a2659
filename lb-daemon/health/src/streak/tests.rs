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
    let mut said: Vec<Option<Health>> = Vec::new();
    for event in events {
        let result = match event {
            Event::Result(result) => *result,
            Event::Edit(rise, fall) => {
                streak.judge_by(*rise as u32, *fall as u32);
                continue;
            }
        };
        let before = said.last().copied().flatten();
        let news = streak.record(result);
        assert!(news.is_none() || news != before, "told twice");
        said.push(news.or(before));
        assert_eq!(streak.undecided().is_some(), news.or(before).is_none());
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
