//! `spillway fleet join`.

use std::io::{self, IsTerminal as _};

use serde::Serialize;
use spillway_proto::v1;

use super::{Consent, Names, show};
use crate::{
    arguments::Options,
    client::{DaemonClient, block_on},
    commands::{changes::Changes, confirm::confirm},
    failure::{Exit, Failure},
    output::{Report, count, print},
};

/// How often joining is tried while the fleet's configuration changes.
const MAX_TRIES: usize = 10;

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Only check, and print what would change
    #[arg(long)]
    dry_run: bool,
    /// Do not ask before the fleet's configuration replaces another one; needed for that if standard input is not a
    /// terminal
    #[arg(long, short, conflicts_with = "dry_run")]
    yes: bool,
    /// Found the fleet if it does not exist, although etcd has other fleets
    #[arg(long)]
    new: bool,
}

#[derive(Serialize)]
pub(super) struct Joined {
    fleet: String,
    balancer: String,
    joined: bool,
    /// Whether the fleet has its configuration.
    founded: bool,
    /// Generation of the fleet; `null`: it has none.
    fleet_generation: Option<u64>,
    #[serde(flatten)]
    changes: Changes,
    #[serde(skip)]
    is_dry_run: bool,
}

/// # Errors
/// The settings name no fleet, the balancer is a member, the user does not agree, or the daemon refuses or does not answer.
pub(super) fn run(options: Options, arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { dry_run, yes, new } = *arguments;
    let joined = block_on(async {
        let mut daemon = DaemonClient::connect(&options).await?;
        let (names, status) = Names::ask(&mut daemon).await?;
        let call = async |request| {
            daemon.join_fleet(v1::JoinFleetRequest { new_fleet: new, ..request }).await
        };
        let answer = join(Consent { dry_run, yes }, &names, call).await?;
        Ok(Joined::new(status, answer, dry_run))
    })?;
    print(&joined, options.output)
}

/// Joins; asks before a configuration is replaced, and again if the fleet has got another one meanwhile.
async fn join(
    consent: Consent,
    names: &Names,
    mut call: impl AsyncFnMut(v1::JoinFleetRequest) -> Result<v1::JoinFleetResponse, Failure>,
) -> Result<v1::JoinFleetResponse, Failure> {
    let request = |validate_only, replace_configuration| v1::JoinFleetRequest {
        replace_configuration,
        validate_only,
        new_fleet: false,
    };
    if consent.dry_run {
        return call(request(true, false)).await;
    }
    for _ in 0..MAX_TRIES {
        let is_agreed = match consent.yes {
            true => true,
            false => {
                let seen = call(request(true, false)).await?;
                agree(names, seen).await?
            }
        };
        let answer = call(request(false, is_agreed)).await?;
        if answer.joined {
            return Ok(answer);
        }
    }
    let Names { fleet, balancer } = names;
    let message = format!("{balancer} did not join: the configuration of {fleet} keeps changing");
    Err(Failure::new(Exit::Conflict, message).hint("nothing was changed; try again, or add --yes"))
}

/// Asks whether the fleet's configuration may replace that of this balancer. `false`: it need not, they are equal, or this
/// balancer has none.
///
/// # Errors
/// The user does not agree, or cannot be asked.
async fn agree(names: &Names, seen: v1::JoinFleetResponse) -> Result<bool, Failure> {
    let changes = Changes::new(seen.changes.unwrap_or_default(), true);
    if !seen.replaces_configuration {
        return Ok(false);
    }
    let Names { fleet, balancer } = names;
    let number = count(changes.changes.len() as u64, "change");
    if !io::stdin().is_terminal() {
        let message =
            format!("the configuration of {fleet} would replace that of {balancer}: {number}");
        return Err(Failure::new(Exit::Usage, message).hint(
            "nothing was changed; see `spillway fleet join --dry-run`, and if that is meant, add --yes",
        ));
    }
    show(&changes);
    let generation = seen.generation;
    confirm(&format!(
        "Replace the configuration of {balancer} by that of {fleet}, generation {generation}?"
    ))
    .await?;
    Ok(true)
}

impl Joined {
    pub(super) fn new(
        status: v1::FleetStatus,
        answer: v1::JoinFleetResponse,
        is_dry_run: bool,
    ) -> Self {
        let v1::JoinFleetResponse { joined, founded, generation, changes, .. } = answer;
        Self {
            fleet: status.fleet,
            balancer: status.balancer,
            joined,
            founded,
            fleet_generation: Some(generation).filter(|generation| *generation > 0),
            changes: Changes::new(changes.unwrap_or_default(), is_dry_run),
            is_dry_run,
        }
    }

    fn sentence(&self) -> String {
        let Self { fleet, balancer, .. } = self;
        let (dry_run, is, founded) = match self.is_dry_run {
            true => ("dry run: ", "would be", "would found"),
            false => ("", "is", "founded"),
        };
        match (self.founded, self.fleet_generation) {
            (true, Some(generation)) => format!(
                "{dry_run}{balancer} {founded} fleet {fleet}, with its configuration as generation {generation}\n"
            ),
            // A dry run knows no number yet.
            (true, None) => format!("{dry_run}{balancer} {founded} fleet {fleet}\n"),
            (false, Some(generation)) => format!(
                "{dry_run}{balancer} {is} a member of fleet {fleet}, with generation {generation} in force\n"
            ),
            (false, None) => format!(
                "{dry_run}{balancer} {is} a member of fleet {fleet}, which has no configuration yet: `spillway apply` gives it one\n"
            ),
        }
    }
}

impl Report for Joined {
    fn table(&self) -> String {
        self.sentence() + &self.changes.details()
    }

    fn wide(&self) -> String {
        self.sentence() + &self.changes.wide_details()
    }

    fn warnings(&self) -> Vec<String> {
        self.changes.warnings()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::changes::change_message;

    fn answer(joined: bool, changes: usize) -> v1::JoinFleetResponse {
        let change = || change_message(v1::change::Kind::Added, "service web", &[], 0);
        v1::JoinFleetResponse {
            joined,
            founded: false,
            generation: 8,
            replaces_configuration: changes > 0,
            changes: Some(v1::ApplyResult {
                generation: 8,
                changes: (0..changes).map(|_| change()).collect(),
                ..Default::default()
            }),
        }
    }

    /// Joins while the fleet answers these one after the other; returns the requests, as (dry run, replaces).
    async fn joined(
        (dry_run, yes): (bool, bool),
        mut answers: Vec<v1::JoinFleetResponse>,
    ) -> (Result<bool, Failure>, Vec<(bool, bool)>) {
        let names = Names { fleet: "fleet edge".into(), balancer: "lb-2".into() };
        let mut requests = Vec::new();
        let call = async |request: v1::JoinFleetRequest| {
            requests.push((request.validate_only, request.replace_configuration));
            Ok(if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() })
        };
        let done = join(Consent { dry_run, yes }, &names, call).await;
        (done.map(|answer| answer.joined), requests)
    }

    #[tokio::test]
    async fn an_equal_configuration_needs_no_consent() {
        let (done, requests) =
            joined((false, false), vec![answer(false, 0), answer(true, 0)]).await;
        assert_eq!((done, requests), (Ok(true), vec![(true, false), (false, false)]));
        let (done, requests) = joined((false, true), vec![answer(true, 3)]).await;
        assert_eq!((done, requests), (Ok(true), vec![(false, true)]));
        let (done, requests) = joined((true, false), vec![answer(false, 3)]).await;
        assert_eq!((done, requests), (Ok(false), vec![(true, false)]));
    }

    #[tokio::test]
    async fn a_balancer_without_a_configuration_is_not_asked() {
        let nothing_replaced =
            |joined| v1::JoinFleetResponse { replaces_configuration: false, ..answer(joined, 3) };
        let answers = vec![nothing_replaced(false), nothing_replaced(true)];
        let (done, requests) = joined((false, false), answers).await;
        assert_eq!((done, requests), (Ok(true), vec![(true, false), (false, false)]));
    }

    #[tokio::test]
    async fn what_changes_in_between_is_looked_at_again() {
        let equal = || answer(false, 0);
        let answers = vec![equal(), equal(), equal(), answer(true, 0)];
        let (done, requests) = joined((false, false), answers).await;
        assert_eq!(done, Ok(true));
        assert_eq!(requests, [(true, false), (false, false), (true, false), (false, false)]);
        // It does not go on for ever.
        let (done, requests) = joined((false, false), vec![equal()]).await;
        assert_eq!((done.unwrap_err().exit, requests.len()), (Exit::Conflict, 2 * MAX_TRIES));
    }

    fn sentences(answer: v1::JoinFleetResponse, is_dry_run: bool) -> String {
        let status = v1::FleetStatus {
            fleet: "edge".into(),
            balancer: "lb-2".into(),
            ..v1::FleetStatus::default()
        };
        Joined::new(status, answer, is_dry_run).table()
    }

    #[test]
    fn it_says_what_happened() {
        assert_eq!(
            sentences(answer(true, 1), false),
            "lb-2 is a member of fleet edge, with generation 8 in force\n+ service web\n"
        );
        assert_eq!(
            sentences(answer(false, 1), true),
            "\
dry run: lb-2 would be a member of fleet edge, with generation 8 in force
+ service web
open connections: none move
"
        );
        let founded = v1::JoinFleetResponse { founded: true, generation: 1, ..answer(true, 0) };
        assert_eq!(
            sentences(founded.clone(), false),
            "lb-2 founded fleet edge, with its configuration as generation 1\n"
        );
        let founds = v1::JoinFleetResponse { generation: 0, ..founded };
        assert_eq!(sentences(founds, true), "dry run: lb-2 would found fleet edge\n");
        let empty = v1::JoinFleetResponse { generation: 0, ..answer(true, 0) };
        assert_eq!(
            sentences(empty, false),
            "lb-2 is a member of fleet edge, which has no configuration yet: `spillway apply` gives it one\n"
        );
    }

    #[test]
    fn json_has_the_changes_like_every_change() {
        let status = v1::FleetStatus { fleet: "edge".into(), ..v1::FleetStatus::default() };
        let json = serde_json::to_value(Joined::new(status, answer(true, 1), false)).unwrap();
        assert_eq!((&json["joined"], &json["founded"]), (&true.into(), &false.into()));
        assert_eq!((&json["fleet_generation"], &json["generation"]), (&8.into(), &8.into()));
        assert_eq!(json["changes"][0]["text"], "service web");
        assert_eq!(json["dry_run"], false);
    }
}
