//! Rise and fall: what a row of results says.

/// Counts results in a row of one probe.
#[derive(Debug)]
pub(super) struct Streak {
    rise: u32,
    fall: u32,
    status: Status,
    /// Results in a row that speak against the status.
    against: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// No result yet.
    Unknown,
    /// It has never passed: the first success suffices.
    NeverUp,
    Up,
    Down,
}

impl Streak {
    pub(super) fn new(rise: u32, fall: u32) -> Self {
        Self { rise, fall, status: Status::Unknown, against: 0 }
    }

    /// Takes the next result; true if it changes what the probe says.
    pub(super) fn record(&mut self, passed: bool) -> bool {
        let (needed, next) = match (self.status, passed) {
            (Status::Unknown | Status::NeverUp, true) => (1, Status::Up),
            (Status::Unknown, false) => (1, Status::NeverUp),
            (Status::Up, false) => (self.fall, Status::Down),
            (Status::Down, true) => (self.rise, Status::Up),
            (Status::NeverUp | Status::Down, false) | (Status::Up, true) => {
                self.against = 0;
                return false;
            }
        };
        self.against += 1;
        if self.against < needed {
            return false;
        }
        self.against = 0;
        self.status = next;
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Indices of the results that change what is said, from the rules as the API words them: looks
    /// for whole rows in the history instead of counting.
    fn naive(rise: usize, fall: usize, history: &[bool]) -> Vec<usize> {
        let mut changes = Vec::new();
        if history.first() == Some(&false) {
            changes.push(0);
        }
        let Some(first_success) = history.iter().position(|passed| *passed) else { return changes };
        changes.push(first_success);
        let mut from = first_success + 1;
        let mut up = true;
        loop {
            let row = if up { fall } else { rise };
            let ends = (from + row..=history.len())
                .find(|end| history[end - row..*end].iter().all(|passed| *passed != up));
            let Some(end) = ends else { return changes };
            changes.push(end - 1);
            from = end;
            up = !up;
        }
    }

    proptest! {
        #[test]
        fn streaks_change_where_the_rules_say(
            rise in 1usize..6,
            fall in 1usize..6,
            history in prop::collection::vec(any::<bool>(), 0..200),
        ) {
            let mut streak = Streak::new(rise as u32, fall as u32);
            let changes: Vec<_> =
                (0..history.len()).filter(|i| streak.record(history[*i])).collect();
            prop_assert_eq!(changes, naive(rise, fall, &history));
        }
    }

    /// `.` passes, `x` fails; the upper row marks the results that change what is said.
    #[test]
    fn rise_2_and_fall_3_by_hand() {
        for (history, changes) in [
            (".", "^"),
            ("x", "^"),
            ("xxxx.", "^   ^"),
            (".xx.xxx..", "^     ^ ^"),
            (".xxx.x..xxx", "^  ^   ^  ^"),
        ] {
            let mut streak = Streak::new(2, 3);
            let got: String =
                history.chars().map(|c| if streak.record(c == '.') { '^' } else { ' ' }).collect();
            assert_eq!(got.trim_end(), changes, "{history}");
        }
    }
}
