//! Stretches of the tour in which nothing changes, and what must be true of them.

use anyhow::{Result, ensure};
use serde::Serialize;

use super::load::Run;

/// A stretch between two changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Phase {
    pub(crate) name: String,
    /// Backends that serve in it, by their numbers.
    pub(crate) serving: Vec<usize>,
    /// Seconds since 1970: the last change before it was in force.
    pub(crate) from: f64,
    /// Seconds since 1970: the next change began.
    pub(crate) to: f64,
    /// Requests in the log of each backend.
    pub(crate) logged: Vec<u64>,
}

impl Phase {
    /// Counts what each backend logged in it.
    pub(crate) fn count(&mut self, logs: &[(String, Vec<f64>)]) {
        let inside = |time: &&f64| (self.from..self.to).contains(*time);
        self.logged =
            logs.iter().map(|(_, times)| times.iter().filter(inside).count() as u64).collect();
    }

    /// Those that serve share alike, within five standard deviations of what a fair hash gives, and
    /// nobody else has anything.
    pub(crate) fn check_shares(&self, names: &[String]) -> Result<()> {
        let total: u64 = self.logged.iter().sum();
        let name = &self.name;
        ensure!(total > 0, "{name}: no requests");
        let share = 1.0 / self.serving.len() as f64;
        let mean = total as f64 * share;
        let deviation = (mean * (1.0 - share)).sqrt();
        for (backend, logged) in self.logged.iter().enumerate() {
            let who = &names[backend];
            if self.serving.contains(&backend) {
                let off = (*logged as f64 - mean).abs();
                ensure!(
                    off <= 5.0 * deviation,
                    "{name}: {who} had {logged} of {total} requests; {mean:.0} ± {deviation:.0} \
                     are fair"
                );
            } else {
                ensure!(*logged == 0, "{name}: {who} had {logged} requests, but should have none");
            }
        }
        Ok(())
    }
}

/// No request failed in a run of the load during which nothing changed.
pub(crate) fn check_failures(phases: &[Phase], runs: &[Run]) -> Result<()> {
    for run in runs {
        let quiet = phases.iter().find(|phase| phase.from <= run.from && run.to <= phase.to);
        if let Some(phase) = quiet {
            let (name, failed) = (&phase.name, run.report.failed);
            ensure!(failed == 0, "{name}: {failed} requests failed while nothing changed");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use lb_tests::traffic::SiegeReport;

    use super::*;

    fn phase(logged: &[u64]) -> Phase {
        let (name, serving) = ("quiet".to_owned(), vec![0, 1]);
        Phase { name, serving, from: 10.0, to: 20.0, logged: logged.to_vec() }
    }

    #[test]
    fn fair_shares_pass_and_others_do_not() {
        let names = ["a", "b", "c"].map(String::from);
        let verdict =
            |logged: &[u64]| phase(logged).check_shares(&names).map_err(|e| e.to_string());
        assert_eq!(verdict(&[500, 500, 0]), Ok(()));
        // 1000 requests over two: the standard deviation is 15.8.
        assert_eq!(verdict(&[579, 421, 0]), Ok(()));
        let unfair = "quiet: a had 580 of 1000 requests; 500 ± 16 are fair";
        assert_eq!(verdict(&[580, 420, 0]), Err(unfair.into()));
        let stray = "quiet: c had 1 requests, but should have none";
        assert_eq!(verdict(&[500, 499, 1]), Err(stray.into()));
        assert_eq!(verdict(&[0, 0, 0]), Err("quiet: no requests".into()));
    }

    #[test]
    fn only_what_lies_in_the_act_is_counted() {
        let mut phase = phase(&[]);
        phase.count(&[("a".into(), vec![9.9, 10.0, 19.9, 20.0]), ("b".into(), vec![])]);
        assert_eq!(phase.logged, [2, 0]);
    }

    #[test]
    fn failures_count_only_where_nothing_changed() {
        let run = |from, to| Run {
            from,
            to,
            report: SiegeReport { answered: 1, failed: 1, ..Default::default() },
        };
        assert!(check_failures(&[phase(&[])], &[run(9.0, 12.0), run(19.0, 21.0)]).is_ok());
        assert!(check_failures(&[phase(&[])], &[run(11.0, 12.0)]).is_err());
    }
}
