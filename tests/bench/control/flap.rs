//! The order in which a backend fails and recovers, and what is measured of it.

use std::time::Duration;

use super::backends::FailedAnswer;

/// Where a backend is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It answers that all is well, and is awaited to be up.
    Recovering,
    /// It answers that it fails, and is awaited to be no longer up.
    Failing,
    /// It is no longer up, and was first seen so then; its answer is still being written.
    Seen(Duration),
}

/// What a backend is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// To go on as it does.
    Stay,
    /// To fail.
    Fail,
    /// To pass, after this time from its failing answer to the change in the map.
    Pass(Duration),
    /// To pass. The map changed without a failing answer: the check failed by itself, as by its timeout.
    PassUnasked,
}

/// One backend that fails as soon as it is up, and passes as soon as it is not. It waits for the daemon, so no failure is
/// missed, but there are fewer of them while the daemon is slow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flap(Phase);

impl Flap {
    /// One that passes, and is not up yet.
    pub(crate) const fn new() -> Self {
        Self(Phase::Recovering)
    }

    /// What follows from a look at the map, and then at the answer.
    pub(crate) fn look(&mut self, now: Duration, is_up: bool, answer: FailedAnswer) -> Turn {
        match (self.0, is_up) {
            (Phase::Recovering, true) => {
                self.0 = Phase::Failing;
                Turn::Fail
            }
            (Phase::Recovering, false) | (Phase::Failing, true) => Turn::Stay,
            (Phase::Failing, false) => self.seen(now, answer),
            (Phase::Seen(seen), _) => self.seen(seen, answer),
        }
    }

    /// How long a failure has been waited for, if there is one that the map does not show.
    pub(crate) fn waits(&self, now: Duration, answer: FailedAnswer) -> Option<Duration> {
        match (self.0, answer) {
            (Phase::Failing, FailedAnswer::Written(written)) => Some(now.saturating_sub(written)),
            _ => None,
        }
    }

    fn seen(&mut self, seen: Duration, answer: FailedAnswer) -> Turn {
        self.0 = match answer {
            FailedAnswer::UnderWay => Phase::Seen(seen),
            _ => Phase::Recovering,
        };
        match answer {
            FailedAnswer::UnderWay => Turn::Stay,
            FailedAnswer::None => Turn::PassUnasked,
            // The daemon may be faster than the server's clock.
            FailedAnswer::Written(written) => Turn::Pass(seen.saturating_sub(written)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_delay_is_from_the_first_answer_to_the_first_look_without_it() {
        let mut flap = Flap::new();
        assert_eq!(flap.look(at(1), false, FailedAnswer::None), Turn::Stay);
        assert_eq!(flap.look(at(2), true, FailedAnswer::None), Turn::Fail);
        assert_eq!(flap.look(at(3), true, FailedAnswer::None), Turn::Stay);
        assert_eq!(flap.waits(at(3), FailedAnswer::None), None);
        let answer = FailedAnswer::Written(at(10));
        assert_eq!(flap.look(at(12), true, answer), Turn::Stay);
        assert_eq!(flap.waits(at(12), answer), Some(at(2)));
        assert_eq!(flap.look(at(15), false, answer), Turn::Pass(at(5)));
        assert_eq!(flap.look(at(16), false, answer), Turn::Stay);
        assert_eq!(flap.waits(at(16), answer), None);
        assert_eq!(flap.look(at(20), true, answer), Turn::Fail);
    }

    #[test]
    fn a_change_that_is_seen_before_the_answer_is_written_counts_from_its_look() {
        let mut flap = Flap(Phase::Failing);
        assert_eq!(flap.look(at(5), false, FailedAnswer::UnderWay), Turn::Stay);
        assert_eq!(flap.look(at(6), false, FailedAnswer::Written(at(6))), Turn::Pass(at(0)));
        let mut flap = Flap(Phase::Failing);
        assert_eq!(flap.look(at(5), false, FailedAnswer::UnderWay), Turn::Stay);
        assert_eq!(flap.look(at(9), true, FailedAnswer::Written(at(4))), Turn::Pass(at(1)));
    }

    #[test]
    fn a_change_without_an_answer_is_no_sample() {
        let mut flap = Flap(Phase::Failing);
        assert_eq!(flap.look(at(5), false, FailedAnswer::None), Turn::PassUnasked);
        assert_eq!(flap.look(at(6), true, FailedAnswer::None), Turn::Fail);
    }
}
