//! Turns the results of a probe's checks into what the probe says of the backend.

use super::{
    Health,
    agent_report::{AgentReport, ReportState},
    check::{Failure, LineResult},
    streak::{Streak, StreakCounts},
    targets::Judgement,
};
use lb_model::{CheckKind, HealthCheck};

/// Where agent reports come from, and whether the check decides without them.
#[derive(Clone, Debug)]
enum ReportSource {
    None,
    /// A header of the HTTP answer. The status decides.
    Header(ReportState),
    /// An agent. Only its report decides, not whether it answers.
    Agent(ReportState),
}

/// The state of a probe's results.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    streak: Streak,
    source: ReportSource,
    last: Option<Judgement>,
}

impl Judge {
    pub(super) fn new(check: &HealthCheck) -> Self {
        let report = || ReportState::new(check.fall);
        let source = match &check.kind {
            CheckKind::Agent(_) => ReportSource::Agent(report()),
            CheckKind::Http(http) if http.agent_header.is_some() => ReportSource::Header(report()),
            _ => ReportSource::None,
        };
        Self { streak: Streak::new(check.rise, check.fall), source, last: None }
    }

    /// Continues where an earlier daemon stopped; `None`: with a check that passed then.
    pub(super) fn restored(check: &HealthCheck, counts: Option<StreakCounts>) -> Self {
        let HealthCheck { rise, fall, .. } = *check;
        let streak = match counts {
            Some(counts) => Streak::restored(rise, fall, counts),
            None => Streak::passed_before(rise, fall),
        };
        Self { streak, ..Self::new(check) }
    }

    /// Continues with the results of the same check, judged by the new `rise` and `fall` from the next result on.
    pub(super) fn carried_over(&self, check: &HealthCheck) -> Self {
        let mut judge = self.clone();
        judge.streak.judge_by(check.rise, check.fall);
        match &mut judge.source {
            ReportSource::Header(report) | ReportSource::Agent(report) => {
                report.judge_by(check.fall)
            }
            ReportSource::None => {}
        }
        judge
    }

    /// What a restart must not forget of the results.
    pub(super) fn counts(&self) -> Option<StreakCounts> {
        self.streak.counts()
    }

    /// The last judgement.
    pub(super) fn last(&self) -> Option<&Judgement> {
        self.last.as_ref()
    }

    /// Whether a row of results has begun that could change the judgement.
    pub(super) fn is_in_doubt(&self) -> bool {
        let report = match &self.source {
            ReportSource::Agent(report) => report.is_in_doubt(),
            // A header that cannot be read fails with its status, or changes nothing.
            ReportSource::Header(_) | ReportSource::None => false,
        };
        report || self.streak.is_in_doubt()
    }

    /// Records the result of a check. Returns the judgement if it changed: another health, another reason while it
    /// is bad or undecided, or another agent report.
    pub(super) fn record(
        &mut self,
        answer: Result<(), Failure>,
        line: Option<LineResult>,
    ) -> Option<Judgement> {
        let (result, why) = match &answer {
            Ok(()) => (Health::Passing, String::new()),
            Err(failure) => (failure.health(), failure.to_string()),
        };
        let (result, why) = match &mut self.source {
            ReportSource::None => (result, why),
            ReportSource::Header(report) => {
                report.take(line, &why, false);
                (result, why)
            }
            ReportSource::Agent(report) => {
                report.take(line, &why, result == Health::Silent);
                match report.down() {
                    Some(down) => (Health::Failing, format!("the backend says {down}")),
                    None => (Health::Passing, String::new()),
                }
            }
        };
        self.decide(result, why)
    }

    fn decide(&mut self, result: Health, why: String) -> Option<Judgement> {
        let failed = result != Health::Passing;
        let (report, silent) = match &self.source {
            ReportSource::None => (AgentReport::default(), false),
            ReportSource::Header(report) => (report.report(), false),
            ReportSource::Agent(report) => (report.report(), report.is_silent()),
        };
        let changed = self.streak.record(result);
        let undecided = self.streak.undecided();
        if undecided.is_some() {
            self.last = Some(Judgement { health: Health::Failing, undecided, why, silent, report });
            return self.last.clone();
        }
        // After a restart the first result is news, even if it does not change the health.
        let decided = if self.last.is_none() { self.streak.health() } else { changed };
        let (health, why) = match (decided, &self.last) {
            // The host answers again, but `rise` is not reached: no failure gives a reason.
            (Some(health), _) if health != Health::Passing && !failed => {
                (health, self.streak.rising())
            }
            (Some(health), _) => (health, why),
            (None, None) => return None,
            (None, Some(last)) => {
                let another = failed && last.health != Health::Passing && last.why != why;
                if !another && last.silent == silent && !last.report.is_news(&report) {
                    return None;
                }
                (last.health, if another { why } else { last.why.clone() })
            }
        };
        self.last.replace(Judgement { health, undecided, why, silent, report });
        self.last.clone()
    }
}

impl ReportState {
    /// Takes a line, or the reason why there is none.
    fn take(&mut self, line: Option<LineResult>, why: &str, silent: bool) {
        match line {
            Some(Ok(line)) => self.update(line),
            Some(Err(unreadable)) => self.miss(&unreadable, silent),
            None => self.miss(why, silent),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Row, agent_report::ReportLine, check::NoConnection};
    use lb_model::{AgentCheck, Via};

    fn silence() -> Result<(), Failure> {
        let why = NoConnection::TimedOut(Duration::from_millis(100));
        Err(Failure::NoConnection { why, sign: None, vip: None })
    }

    fn check(kind: CheckKind, fall: u32) -> HealthCheck {
        HealthCheck {
            kind,
            tls: None,
            via: Via::Address,
            port: 80,
            interval: Duration::from_secs(1),
            fast_interval: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
            rise: 2,
            fall,
            jitter_percent: 0,
            host_probe: lb_model::HostProbe::Auto,
            host_probe_port: HealthCheck::DEFAULT_HOST_PROBE_PORT,
        }
    }

    #[test]
    fn an_edit_keeps_what_an_agent_said_and_the_row_that_ends_it() {
        let agent = |fall| check(CheckKind::Agent(AgentCheck::default()), fall);
        let mut judge = Judge::new(&agent(3));
        let drain = ReportLine::parse(b"drain").unwrap();
        let judgement = judge.record(Ok(()), Some(Ok(drain))).expect("it passes");
        assert!(judgement.report.drain.is_some());
        assert_eq!(judge.record(silence(), None), None);
        let mut judge = judge.carried_over(&agent(2));
        assert_eq!(judge.last(), Some(&judgement));
        // The second of two checks without a report.
        let judgement = judge.record(silence(), None).expect("nothing stands any more");
        assert!(judgement.report.drain.is_none() && judgement.report.report_error.is_some());
    }

    #[test]
    fn a_dead_host_that_answers_again_is_told_with_how_far_it_is() {
        let mut judge = Judge::new(&check(CheckKind::Tcp, 1));
        let mut report = Vec::new();
        for answer in [Ok(()), silence(), Ok(()), Ok(())] {
            report.extend(
                judge.record(answer, None).map(|judgement| (judgement.health, judgement.why)),
            );
        }
        let gone = "no connection within 100 ms, and the host is silent";
        assert_eq!(
            report,
            [
                (Health::Passing, String::new()),
                (Health::Silent, gone.to_owned()),
                (Health::Failing, "passed 1 of 2".to_owned()),
                (Health::Passing, String::new()),
            ]
        );
    }

    /// After a restart, what is said of the first result and the one after it.
    #[test]
    fn the_first_result_after_a_restart_is_told_whatever_it_is() {
        let check = |rise| HealthCheck { rise, ..check(CheckKind::Tcp, 3) };
        let gone = "no connection within 100 ms, and the host is silent";
        let of_rise = |passed: u32| format!("passed {passed} of 3");
        let (pass, fail): (fn() -> _, fn() -> _) = (|| Ok(()), silence);
        let down = |passes| {
            let mut results = vec![pass(), fail(), fail(), fail()];
            results.extend((0..passes).map(|_| pass()));
            results
        };
        for (before, after, expected) in [
            (
                down(1),
                vec![pass(), pass()],
                vec![(Health::Failing, of_rise(2)), (Health::Passing, String::new())],
            ),
            (down(2), vec![pass()], vec![(Health::Passing, String::new())]),
            (down(0), vec![fail(), fail()], vec![(Health::Silent, gone.into())]),
            (down(0), vec![pass()], vec![(Health::Failing, of_rise(1))]),
            (vec![pass()], vec![pass(), pass()], vec![(Health::Passing, String::new())]),
        ] {
            let mut judge = Judge::new(&check(3));
            for answer in before {
                judge.record(answer, None);
            }
            let mut judge = Judge::restored(&check(3), judge.counts());
            assert_eq!(judge.last(), None);
            let told = after.into_iter().filter_map(|answer| judge.record(answer, None));
            let told: Vec<_> = told.map(|it| (it.health, it.why)).collect();
            assert_eq!(told, expected);
        }
        // Two of three failures do not say what it is, and the third one does.
        let mut judge = Judge::new(&check(3));
        for answer in [pass(), fail(), fail()] {
            judge.record(answer, None);
        }
        let judgement = Judge::restored(&check(3), judge.counts()).record(fail(), None).unwrap();
        assert_eq!((judgement.health, judgement.undecided), (Health::Silent, None));
        let mut judge = Judge::restored(&check(3), None);
        let judgement = judge.record(fail(), None).unwrap();
        assert_eq!(judgement.undecided, Some(Row { failed: 1, fall: 3 }));
    }
}
