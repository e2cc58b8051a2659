//! Says, for as long as it lasts, that new connections leave homes that cannot have them though nothing will
//! remember where they are.

use std::time::{Duration, Instant};

use lb_base::conditions::Conditions;

/// What it is called among the conditions.
const SUBJECT: &str = "displaced";
const CAUSE: &str = "there is no budget for more, and new connections whose home is unhealthy or drained go elsewhere \
                     all the same: once their handshake is over they may be sent home and reset; `spillway stats` \
                     counts them as displaced_without_budget, and larger tables (--displaced) have more budget";

/// How long none must have come before it is over.
const QUIET: Duration = Duration::from_secs(60);

/// Whether such connections came lately.
#[derive(Debug)]
pub(super) struct Unremembered {
    conditions: Conditions,
    counted: Option<u64>,
    last: Option<Instant>,
}

impl Unremembered {
    pub(super) fn new(conditions: Conditions) -> Self {
        Self { conditions, counted: None, last: None }
    }

    /// Takes in how many there have been up to now.
    pub(super) fn look(&mut self, counted: u64, now: Instant) {
        let before = self.counted.replace(counted);
        if before.is_some_and(|before| counted > before) {
            self.last = Some(now);
            self.conditions.begin(SUBJECT, CAUSE);
        } else if self.last.is_some_and(|last| now - last >= QUIET) {
            self.last = None;
            self.conditions.end(SUBJECT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lasts_from_the_first_to_a_minute_after_the_last() {
        let conditions = Conditions::default();
        let (mut unremembered, start) = (Unremembered::new(conditions.clone()), Instant::now());
        let mut at = |second: u64, counted| {
            unremembered.look(counted, start + Duration::from_secs(second));
            conditions.now().len()
        };
        assert_eq!(at(0, 70), 0, "those of an earlier daemon");
        assert_eq!(at(1, 70), 0);
        assert_eq!(at(2, 71), 1);
        assert_eq!(at(40, 72), 1);
        assert_eq!(at(99, 72), 1);
        assert_eq!(at(100, 72), 0);
        assert_eq!(at(200, 73), 1);
    }
}
