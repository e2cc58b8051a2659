//! What a probe makes of what came of its checks.

use super::{
    Health,
    agent_report::{Said, Standing},
    check::{Failure, Heard},
    streak::Streak,
    targets::Judgement,
};
use lb_model::{HealthCheck, Probe};

/// Who is asked what it says of itself, and whether that decides.
#[derive(Clone, Debug)]
enum Listening {
    /// Nobody.
    No,
    /// A header beside the status, which decides.
    Header(Standing),
    /// An agent: only what it says counts, and not whether it is there.
    Agent(Standing),
}

/// What a probe has said, and what becomes of it.
#[derive(Clone, Debug)]
pub(super) struct Hearing {
    streak: Streak,
    listening: Listening,
    last: Option<Judgement>,
}

impl Hearing {
    pub(super) fn new(check: &HealthCheck) -> Self {
        let standing = || Standing::new(check.fall);
        let listening = match &check.probe {
            Probe::Agent(_) => Listening::Agent(standing()),
            Probe::Http(http) if http.agent_header.is_some() => Listening::Header(standing()),
            _ => Listening::No,
        };
        Self { streak: Streak::new(check.rise, check.fall), listening, last: None }
    }

    /// What was made of the same question so far, judged by `check` from the next result on.
    pub(super) fn carried_over(&self, check: &HealthCheck) -> Self {
        let mut hearing = self.clone();
        hearing.streak.judge_by(check.rise, check.fall);
        match &mut hearing.listening {
            Listening::Header(standing) | Listening::Agent(standing) => {
                standing.judge_by(check.fall)
            }
            Listening::No => {}
        }
        hearing
    }

    /// What was said last.
    pub(super) fn last(&self) -> Option<&Judgement> {
        self.last.as_ref()
    }

    /// Whether a row has begun that would change what the probe says.
    pub(super) fn is_in_doubt(&self) -> bool {
        let standing = match &self.listening {
            Listening::Agent(standing) => standing.is_in_doubt(),
            // Its row is the status's own, or a header that is not there.
            Listening::Header(_) | Listening::No => false,
        };
        standing || self.streak.is_in_doubt()
    }

    /// Takes what came of a check; what is to be said now, if it is news: another health, or while that
    /// is bad or undecided another reason for it, or another word of the backend.
    pub(super) fn after(
        &mut self,
        answer: Result<(), Failure>,
        heard: Option<Heard>,
    ) -> Option<Judgement> {
        let (result, why) = match &answer {
            Ok(()) => (Health::Passing, String::new()),
            Err(failure) => (failure.health(), failure.to_string()),
        };
        let (result, why) = match &mut self.listening {
            Listening::No => (result, why),
            Listening::Header(standing) => {
                standing.take(heard, &why, false);
                (result, why)
            }
            Listening::Agent(standing) => {
                standing.take(heard, &why, result == Health::Silent);
                match standing.down() {
                    Some(down) => (Health::Failing, format!("the backend says {down}")),
                    None => (Health::Passing, String::new()),
                }
            }
        };
        self.news(result, why)
    }

    fn news(&mut self, result: Health, why: String) -> Option<Judgement> {
        let failed = result != Health::Passing;
        let (said, silent) = match &self.listening {
            Listening::No => (Said::default(), false),
            Listening::Header(standing) => (standing.said(), false),
            Listening::Agent(standing) => (standing.said(), standing.is_silent()),
        };
        let changed = self.streak.record(result);
        let undecided = self.streak.undecided();
        if undecided.is_some() {
            self.last = Some(Judgement { health: Health::Failing, undecided, why, silent, said });
            return self.last.clone();
        }
        let (health, why) = match (changed, &self.last) {
            // A host that is there again and has still to rise: no check failed that gives a reason.
            (Some(health), _) if health != Health::Passing && !failed => {
                (health, self.streak.rising())
            }
            (Some(health), _) => (health, why),
            (None, None) => return None,
            (None, Some(last)) => {
                let another = failed && last.health != Health::Passing && last.why != why;
                if !another && last.silent == silent && !last.said.is_news(&said) {
                    return None;
                }
                (last.health, if another { why } else { last.why.clone() })
            }
        };
        self.last.replace(Judgement { health, undecided, why, silent, said });
        self.last.clone()
    }
}

impl Standing {
    /// Takes what came, or why nothing did.
    fn take(&mut self, heard: Option<Heard>, why: &str, silent: bool) {
        match heard {
            Some(Ok(word)) => self.hear(word),
            Some(Err(unreadable)) => self.miss(&unreadable, silent),
            None => self.miss(why, silent),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{agent_report::Word, check::NoConnection};
    use lb_model::{AgentCheck, Via};

    fn silence() -> Result<(), Failure> {
        let why = NoConnection::InTime(Duration::from_millis(100));
        Err(Failure::NoConnection { why, sign: None })
    }

    fn check(probe: Probe, fall: u32) -> HealthCheck {
        HealthCheck {
            probe,
            tls: None,
            via: Via::Address,
            port: 80,
            interval: Duration::from_secs(1),
            fast_interval: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
            rise: 2,
            fall,
            jitter_percent: 0,
        }
    }

    #[test]
    fn an_edit_keeps_what_an_agent_said_and_the_row_that_ends_it() {
        let agent = |fall| check(Probe::Agent(AgentCheck::default()), fall);
        let mut hearing = Hearing::new(&agent(3));
        let drain = Word::parse(b"drain").unwrap();
        let says = hearing.after(Ok(()), Some(Ok(drain))).expect("it passes");
        assert!(says.said.drain.is_some());
        assert_eq!(hearing.after(silence(), None), None);
        let mut hearing = hearing.carried_over(&agent(2));
        assert_eq!(hearing.last(), Some(&says));
        // The second of two that nothing was heard of.
        let says = hearing.after(silence(), None).expect("nothing stands any more");
        assert!(says.said.drain.is_none() && says.said.unheard.is_some());
    }

    #[test]
    fn a_dead_host_that_answers_again_is_told_with_how_far_it_is() {
        let mut hearing = Hearing::new(&check(Probe::Tcp, 1));
        let mut said = Vec::new();
        for answer in [Ok(()), silence(), Ok(()), Ok(())] {
            said.extend(hearing.after(answer, None).map(|says| (says.health, says.why)));
        }
        let gone = "no connection within 100 ms, and the host is silent";
        assert_eq!(
            said,
            [
                (Health::Passing, String::new()),
                (Health::Silent, gone.to_owned()),
                (Health::Failing, "passed 1 of 2".to_owned()),
                (Health::Passing, String::new()),
            ]
        );
    }
}
