//! Asks before a change that stops packets.

use std::io::{self, BufRead as _, IsTerminal as _};

use spillway_proto::v1::{self, movement::Effect};
use tokio::task::spawn_blocking;

use super::changes::format_share;
use crate::{
    failure::{Exit, Failure},
    output::print_stderr,
};

/// Reasons that a failure names; a dry run prints all of them.
const MOST_REASONS: usize = 3;

/// How often a change is tried that another one overtakes.
const MAX_TRIES: usize = 10;

/// Whether a change may remove much at once or let services have addresses of balancers; part of every command that can.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub(crate) struct ForceArgument {
    /// Remove more than 30 % of a pool of at least four backends, all backends of a service, or all there are; let services have
    /// addresses of balancers
    #[arg(long)]
    pub(crate) force: bool,
}

/// Part of a command that needs no force.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub(crate) struct NoForce {}

/// Arguments that say whether a change is forced.
pub(crate) trait Force: clap::Args + Copy + std::fmt::Debug {
    fn force(&self) -> bool;
}

impl Force for ForceArgument {
    fn force(&self) -> bool {
        self.force
    }
}

impl Force for NoForce {
    fn force(&self) -> bool {
        false
    }
}

/// The failure of a change that the daemon refuses without force, known from a dry run.
///
/// # Errors
/// The change needs force.
pub(crate) fn require_force(warnings: &[v1::Warning]) -> Result<(), Failure> {
    let needs = warnings.iter().filter(|it| it.reason() == v1::WarningReason::ForceRequired);
    let needs: Vec<_> = needs.map(|warning| warning.text.clone()).collect();
    if needs.is_empty() {
        return Ok(());
    }
    let hint = "nothing was changed; look at it with --dry-run, and if that is meant, make the change again with --force";
    Err(Failure::new(Exit::Conflict, listed(&needs)).hint(hint))
}

/// Whether to ask before packets stop; part of every command that can stop some.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub(crate) struct Confirmation {
    /// Do not ask before packets stop; needed for that if standard input is not a terminal
    #[arg(long, short)]
    yes: bool,
}

/// The daemon's answer to a change, which says what the change stops.
pub(crate) trait StopsPackets {
    /// What stops, a clause each; empty: nothing.
    fn stops(&self) -> Vec<String>;

    /// What whoever calls should know.
    fn warnings(&self) -> &[v1::Warning];

    /// The generation in force, if the change can be limited to it.
    fn generation(&self) -> Option<u64> {
        None
    }
}

/// How a change is requested.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) dry_run: bool,
    /// The generation of the dry run before, if there was one.
    pub(crate) seen: Option<u64>,
}

impl Confirmation {
    /// Makes a change. Unless `--yes` is given, a dry run comes first, and the user must agree to what it stops. If another
    /// change comes in between, all of that is done again.
    ///
    /// # Errors
    /// Those of `call`, and that the user does not agree or cannot be asked.
    pub(crate) async fn change<A: StopsPackets>(
        self,
        dry_run: bool,
        mut call: impl AsyncFnMut(Request) -> Result<A, Failure>,
    ) -> Result<A, Failure> {
        if dry_run || self.yes {
            return call(Request { dry_run, seen: None }).await;
        }
        let mut tries = 1;
        loop {
            let seen = call(Request { dry_run: true, seen: None }).await?;
            // There is nothing to ask before.
            require_force(seen.warnings())?;
            self.agree(&seen.stops()).await?;
            match call(Request { dry_run: false, seen: seen.generation() }).await {
                // If the user gave a generation, the next dry run fails.
                Err(failure) if failure.is_overtaken() && tries < MAX_TRIES => tries += 1,
                done => return done,
            }
        }
    }

    /// Asks whether this may stop, unless `--yes` is given or nothing stops.
    ///
    /// # Errors
    /// The user does not agree, or cannot be asked.
    pub(crate) async fn agree(self, stops: &[String]) -> Result<(), Failure> {
        if self.yes || stops.is_empty() {
            return Ok(());
        }
        if !io::stdin().is_terminal() {
            return Err(Failure::new(
                Exit::Usage,
                format!("this stops packets: {}", listed(stops)),
            )
            .hint("nothing was changed; if that is meant, add --yes"));
        }
        print_stderr("This stops packets:");
        stops.iter().for_each(|reason| print_stderr(&format!("  {reason}")));
        confirm("Go on?").await
    }
}

fn listed(stops: &[String]) -> String {
    let named = stops.iter().take(MOST_REASONS).cloned().collect::<Vec<_>>().join(", ");
    match stops.len().saturating_sub(MOST_REASONS) {
        0 => named,
        more => format!("{named}, and {more} more"),
    }
}

/// For a command that always asks. `command` is what the user gave.
///
/// # Errors
/// Standard input is no terminal, and --yes is missing.
pub(crate) fn require_terminal(name: &str, command: &str) -> Result<(), Failure> {
    if io::stdin().is_terminal() {
        return Ok(());
    }
    let message =
        format!("{name} asks before it changes anything, and standard input is not a terminal");
    let hint = format!("nothing was changed; see `spillway {command} --dry-run`, then add --yes");
    Err(Failure::new(Exit::Usage, message).hint(hint))
}

/// Asks on standard error, and reads the answer from standard input. Meanwhile the connection answers the daemon, which
/// would close it otherwise.
///
/// # Errors
/// The answer is not yes.
pub(crate) async fn confirm(question: &str) -> Result<(), Failure> {
    print_stderr(&format!("{question} [y/N]"));
    let read = || {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map(|_| line)
    };
    let answer = spawn_blocking(read).await.ok().and_then(Result::ok).unwrap_or_default();
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::new(Exit::Failure, "not confirmed").hint("nothing was changed")),
    }
}

impl StopsPackets for v1::ApplyResult {
    fn stops(&self) -> Vec<String> {
        let ends = self.movements.iter().filter(|movement| movement.effect() == Effect::End);
        let ends = ends.map(|v1::Movement { text, share, .. }| {
            let share = match format_share(*share) {
                all if all == "all" => all,
                part => format!("{part} of the"),
            };
            format!("{share} connections of {text} are no longer balanced")
        });
        let unknown =
            self.movements_unknown.then(|| "it is not known which connections end".into());
        ends.chain(unserved(&self.warnings)).chain(unknown).collect()
    }

    fn warnings(&self) -> &[v1::Warning] {
        &self.warnings
    }

    fn generation(&self) -> Option<u64> {
        Some(self.generation)
    }
}

impl StopsPackets for v1::SetOverridesResponse {
    fn stops(&self) -> Vec<String> {
        unserved(&self.warnings).collect()
    }

    fn warnings(&self) -> &[v1::Warning] {
        &self.warnings
    }
}

/// The pools that lose their last backend for new connections.
fn unserved(warnings: &[v1::Warning]) -> impl Iterator<Item = String> {
    let unserved = warnings.iter().filter(|it| it.reason() == v1::WarningReason::PoolUnserved);
    unserved.map(|warning| warning.text.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn movement(text: &str, effect: Effect, share: f64) -> v1::Movement {
        v1::Movement { text: text.into(), effect: effect.into(), share, object: None }
    }

    fn warning(reason: v1::WarningReason, text: &str) -> v1::Warning {
        v1::Warning { reason: reason.into(), text: text.into(), object: None }
    }

    #[test]
    fn what_ends_and_pools_without_a_backend_stop_packets() {
        let result = v1::ApplyResult {
            movements: vec![
                movement("service web", Effect::End, 1.0),
                movement("service dns", Effect::End, 0.25),
                movement("pool web", Effect::Settle, 1.0),
                movement("pool web: backend 10.0.0.1", Effect::AtOnce, 1.0),
            ],
            warnings: vec![
                warning(v1::WarningReason::PoolUnserved, "pool a has no backend left"),
                warning(v1::WarningReason::PoolEmpty, "pool b has no backends"),
            ],
            ..v1::ApplyResult::default()
        };
        let expected = [
            "all connections of service web are no longer balanced",
            "25.0% of the connections of service dns are no longer balanced",
            "pool a has no backend left",
        ];
        assert_eq!(result.stops(), expected);
    }

    #[test]
    fn if_it_is_not_known_what_moves_something_may_stop() {
        let result = v1::ApplyResult { movements_unknown: true, ..v1::ApplyResult::default() };
        assert_eq!(result.stops(), ["it is not known which connections end"]);
    }

    #[test]
    fn three_reasons_are_listed() {
        let stops = ["a", "b", "c", "d", "e"].map(str::to_owned);
        assert_eq!(listed(&stops[..1]), "a");
        assert_eq!(listed(&stops[..3]), "a, b, c");
        assert_eq!(listed(&stops), "a, b, c, and 2 more");
    }

    fn result(generation: u64, stops: bool) -> v1::ApplyResult {
        let movements = stops.then(|| movement("service web", Effect::End, 1.0));
        let movements = movements.into_iter().collect();
        v1::ApplyResult { generation, movements, ..v1::ApplyResult::default() }
    }

    #[tokio::test]
    async fn a_dry_run_comes_first_unless_yes_is_given() {
        let run = async |yes, dry_run, result: v1::ApplyResult| {
            let mut calls = Vec::new();
            let call = async |request: Request| {
                calls.push((request.dry_run, request.seen));
                Ok(result.clone())
            };
            let done = Confirmation { yes }.change(dry_run, call).await;
            (done.is_ok(), calls)
        };
        let dry = (true, None);
        assert_eq!(run(false, false, result(7, false)).await, (true, vec![dry, (false, Some(7))]));
        assert_eq!(run(true, false, result(7, true)).await, (true, vec![(false, None)]));
        assert_eq!(run(false, true, result(7, true)).await, (true, vec![dry]));
    }

    /// The user is not asked about what the daemon would refuse.
    #[tokio::test]
    async fn what_needs_force_ends_after_the_dry_run() {
        let text = "pool web loses 5 of 10 backends, more than 30 %: this needs --force";
        let mut answer = result(7, true);
        answer.warnings = vec![
            warning(v1::WarningReason::PoolEmpty, "pool b has no backends"),
            warning(v1::WarningReason::ForceRequired, text),
        ];
        let mut calls = Vec::new();
        let call = async |request: Request| {
            calls.push(request.dry_run);
            Ok(answer.clone())
        };
        let failure = Confirmation::default().change(false, call).await.unwrap_err();
        assert_eq!((failure.exit, &*failure.message), (Exit::Conflict, text));
        assert!(failure.hint.unwrap().contains("--force"));
        assert_eq!(calls, [true]);
    }

    #[tokio::test]
    async fn what_another_change_overtakes_is_looked_at_again() {
        let mut calls = Vec::new();
        let call = async |request: Request| {
            calls.push((request.dry_run, request.seen));
            match calls.len() {
                2 => Err(Failure {
                    code: Some(tonic::Code::Aborted),
                    ..Failure::new(Exit::Conflict, "")
                }),
                number => Ok(result(number as u64, false)),
            }
        };
        Confirmation::default().change(false, call).await.unwrap();
        let dry = (true, None);
        assert_eq!(calls, [dry, (false, Some(1)), dry, (false, Some(3))]);
    }
}
