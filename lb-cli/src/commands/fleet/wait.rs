//! `--wait`: until all live balancers of a fleet have a change in force.

use std::time::Duration;

use lb_config::document;
use spillway_proto::v1;
use tokio::time::{Instant, sleep};
use tonic::Code;

use super::BalancerGenerations;
use crate::{
    client::DaemonClient,
    commands::changes::Changes,
    failure::{Exit, Failure},
    output::print_stderr,
};

/// Time between the first two questions; it doubles up to [`MAX_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// Time between two lines about the balancers that lag.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);
/// Longest time that can be given.
const MAX_LIMIT: Duration = Duration::from_secs(86_400);

/// Whether to wait for the other balancers; part of every command that changes the configuration.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub(crate) struct WaitArgument {
    /// Wait until all live balancers of the fleet have the change in force, at most 30s or this long
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "30s", value_parser = parse_wait, conflicts_with = "dry_run")]
    wait: Option<Duration>,
}

/// The time after `--wait=`.
pub(crate) fn parse_wait(text: &str) -> Result<Duration, String> {
    match document::parse_duration(text) {
        Ok(limit) if limit > MAX_LIMIT => Err("give at most 24h".into()),
        Ok(limit) => Ok(limit),
        Err(error) => Err(error.to_string()),
    }
}

impl WaitArgument {
    /// Waits, if asked to, until the generation of `changes` is in force everywhere, and notes in them where it is. Outside
    /// of a fleet there is nothing to wait for.
    ///
    /// # Errors
    /// Balancers lag at the limit, or the daemon does not answer any more. The change stays.
    pub(crate) async fn wait(
        self,
        daemon: &mut DaemonClient,
        changes: &mut Changes,
    ) -> Result<(), Failure> {
        let Some(limit) = self.wait else { return Ok(()) };
        let generation = changes.generation;
        let ask = async || daemon.fleet_status().await;
        wait_for_all(generation, limit, &mut changes.balancers, ask).await
    }
}

async fn wait_for_all(
    generation: u64,
    limit: Duration,
    balancers: &mut BalancerGenerations,
    mut ask: impl AsyncFnMut() -> Result<v1::FleetStatus, Failure>,
) -> Result<(), Failure> {
    let started = Instant::now();
    let (mut reported, mut pause) = (started, FIRST_PAUSE);
    loop {
        let status = match ask().await {
            Ok(status) if status.member => status,
            // A daemon that does not know the call is in no fleet either.
            Ok(_) => return Ok(()),
            Err(failure) if failure.code == Some(Code::Unimplemented) => return Ok(()),
            Err(failure) => {
                let hint = format!(
                    "generation {generation} was put in force; `spillway fleet status` shows which balancers have it"
                );
                return Err(failure.hint(hint));
            }
        };
        *balancers = BalancerGenerations::from(&status);
        let Some(lagging) = balancers.lagging(generation) else { return Ok(()) };
        let elapsed = started.elapsed();
        if elapsed >= limit {
            return Err(too_late(generation, limit, &lagging, &status));
        }
        if reported.elapsed() >= REPORT_INTERVAL {
            reported = Instant::now();
            print_stderr(&format!("waiting for {lagging}"));
        }
        sleep(pause.min(limit - elapsed)).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

fn too_late(generation: u64, limit: Duration, lagging: &str, status: &v1::FleetStatus) -> Failure {
    let message = format!(
        "generation {generation} is not in force everywhere after {}: not yet at {lagging}",
        spell_wait(limit)
    );
    let hint = match (&*status.conflict, &*status.etcd_problem) {
        ("", "") => {
            "the change stays; `spillway fleet status` says what is wrong with them".to_owned()
        }
        ("", problem) => format!("the change stays; etcd: {problem}"),
        (conflict, _) => {
            format!("the change stays; conflict: {conflict}; `spillway fleet restore` decides")
        }
    };
    Failure::new(Exit::Failure, message).hint(hint)
}

/// `30 s`, `500 ms`
pub(crate) fn spell_wait(duration: Duration) -> String {
    match duration.as_millis() {
        whole if whole % 1_000 == 0 => format!("{} s", whole / 1_000),
        milliseconds => format!("{milliseconds} ms"),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches as _};

    use super::*;

    fn status(generations: &[u64]) -> v1::FleetStatus {
        let member = |(index, generation): (usize, &u64)| v1::FleetMember {
            name: format!("lb-{}", index + 1),
            alive: true,
            generation: *generation,
            ..Default::default()
        };
        v1::FleetStatus {
            fleet: "edge".into(),
            balancer: "lb-1".into(),
            member: true,
            members: generations.iter().enumerate().map(member).collect(),
            ..Default::default()
        }
    }

    /// Waits 30 s for generation 8 at balancers whose generations `at` says, by the seconds that have passed. Returns those
    /// too.
    async fn waited(
        at: impl Fn(u64) -> Result<v1::FleetStatus, Failure>,
    ) -> (Result<(), Failure>, Option<String>, u64) {
        let started = Instant::now();
        let mut balancers = BalancerGenerations::default();
        let ask = async || at(started.elapsed().as_secs());
        let done = wait_for_all(8, Duration::from_secs(30), &mut balancers, ask).await;
        (done, balancers.line(8), started.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_once_the_last_balancer_has_the_generation() {
        let lagging = |seconds| Ok(status(&[8, 9, if seconds < 12 { 7 } else { 8 }]));
        let (done, line, seconds) = waited(lagging).await;
        assert_eq!((done, line.unwrap().as_str()), (Ok(()), "in force at all 3 balancers"));
        assert!((12..=13).contains(&seconds), "{seconds}");
    }

    #[tokio::test(start_paused = true)]
    async fn at_the_limit_those_that_lag_are_named() {
        let (done, line, seconds) = waited(|_| Ok(status(&[8, 7, 0]))).await;
        let failure = done.unwrap_err();
        assert_eq!(
            failure.to_string(),
            "error: generation 8 is not in force everywhere after 30 s: not yet at lb-2 (generation 7), lb-3 (no \
             generation)\n\
             hint: the change stays; `spillway fleet status` says what is wrong with them"
        );
        assert_eq!((failure.exit, seconds), (Exit::Failure, 30));
        assert!(line.unwrap().starts_with("in force at 1 of 3 balancers; "));
        let cut_off = v1::FleetStatus { etcd_problem: "no leader".into(), ..status(&[8, 7]) };
        let failure = waited(|_| Ok(cut_off.clone())).await.0.unwrap_err();
        assert_eq!(failure.hint.as_deref(), Some("the change stays; etcd: no leader"));
        let conflict = v1::FleetStatus { conflict: "older".into(), ..cut_off };
        let failure = waited(|_| Ok(conflict.clone())).await.0.unwrap_err();
        assert!(failure.hint.unwrap().contains("conflict: older; `spillway fleet restore`"));
    }

    #[tokio::test(start_paused = true)]
    async fn outside_of_a_fleet_it_ends_at_once() {
        let alone = (Ok(()), None, 0);
        assert_eq!(waited(|_| Ok(v1::FleetStatus::default())).await, alone);
        let older = || Failure {
            code: Some(Code::Unimplemented),
            ..Failure::new(Exit::Failure, "does not support this call")
        };
        assert_eq!(waited(|_| Err(older())).await, alone);
        // One that leaves meanwhile.
        let left = |seconds| match seconds {
            0..3 => Ok(status(&[8, 7])),
            _ => Ok(v1::FleetStatus::default()),
        };
        assert_eq!(waited(left).await.0, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_daemon_that_does_not_answer_any_more_ends_it() {
        let lost = |_| Err(Failure::new(Exit::Unavailable, "no answer"));
        let failure = waited(lost).await.0.unwrap_err();
        assert_eq!(failure.exit, Exit::Unavailable);
        assert!(failure.hint.unwrap().starts_with("generation 8 was put in force"));
    }

    #[test]
    fn the_limit_is_optional_and_has_a_unit() {
        let parse = |words: &[&str]| {
            let command = Command::new("x").arg(clap::Arg::new("dry_run").long("dry-run"));
            let command = WaitArgument::augment_args(command.arg(clap::Arg::new("file")));
            let matches = command.try_get_matches_from([&["x"], words].concat());
            let matches = matches.map_err(|error| error.to_string())?;
            Ok::<_, String>(WaitArgument::from_arg_matches(&matches).unwrap().wait)
        };
        let seconds = |seconds| Ok(Some(Duration::from_secs(seconds)));
        assert_eq!(parse(&[]), Ok(None));
        assert_eq!(parse(&["--wait"]), seconds(30));
        assert_eq!(parse(&["--wait", "file"]), seconds(30));
        assert_eq!(parse(&["--wait=2m"]), seconds(120));
        for (word, cause) in
            [("10", "give a unit: ms, s, m, h or d"), ("-1s", "as in 30s"), ("25h", "at most 24h")]
        {
            let error = parse(&[&format!("--wait={word}")]).unwrap_err();
            assert!(error.contains(cause), "{word}: {error}");
        }
    }
}
