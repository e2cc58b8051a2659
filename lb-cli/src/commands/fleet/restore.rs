//! `spillway fleet restore`.

use serde::Serialize;
use spillway_proto::v1::{self, restore_fleet_request::Source};

use super::{Consent, Names, show};
use crate::{
    arguments::Options,
    client::{DaemonClient, block_on},
    commands::{
        changes::Changes,
        confirm::{ForceArgument, confirm, require_force},
        objects::parse_name,
    },
    failure::{Exit, Failure},
    output::{Report, print, print_stderr},
};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Whose configuration the fleet has from now on: `etcd`, or `this` balancer's, also by its name
    #[arg(long, value_name = "SOURCE", value_parser = parse_name)]
    from: String,
    #[command(flatten)]
    force: ForceArgument,
    #[command(flatten)]
    consent: Consent,
}

#[derive(Serialize)]
pub(super) struct Restored {
    fleet: String,
    /// `etcd`, or the name of the balancer.
    from: String,
    /// The new generation of the fleet; `null`: a dry run, which makes none.
    fleet_generation: Option<u64>,
    #[serde(flatten)]
    changes: Changes,
    #[serde(skip)]
    is_dry_run: bool,
}

/// # Errors
/// The source is another balancer, the user does not agree, or the daemon refuses or does not answer.
pub(super) fn run(options: Options, arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { from, force: ForceArgument { force }, consent } = arguments;
    consent.require("fleet restore", &format!("fleet restore --from {from}"))?;
    let restored = block_on(async {
        let mut daemon = DaemonClient::connect(&options).await?;
        let (names, status) = Names::ask(&mut daemon).await?;
        let source = parse_source(from, &status)?;
        let mut call = async |validate_only| {
            let source = Some(source);
            let force = *force;
            daemon.restore_fleet(v1::RestoreFleetRequest { source, validate_only, force }).await
        };
        let answer = match consent.asks() {
            true => {
                let seen = call(true).await?;
                let changes = seen.changes.unwrap_or_default();
                require_force(&changes.warnings)?;
                let changes = Changes::new(changes, true);
                let differs = !changes.changes.is_empty() || !changes.warnings().is_empty();
                if differs {
                    show(&changes);
                }
                print_stderr(&meaning(&names, source));
                confirm("Go on?").await?;
                call(false).await?
            }
            false => call(consent.dry_run).await?,
        };
        Ok(Restored::new(status, source, answer, consent.dry_run))
    })?;
    print(&restored, options.output)
}

/// The source that a word means.
///
/// # Errors
/// It is another balancer, which alone has its configuration.
fn parse_source(word: &str, status: &v1::FleetStatus) -> Result<Source, Failure> {
    match word {
        "etcd" => Ok(Source::Etcd(true)),
        "this" => Ok(Source::ThisBalancer(true)),
        name if name == status.balancer => Ok(Source::ThisBalancer(true)),
        name if status.members.iter().any(|member| member.name == name) => {
            let message = format!("--from {name}: another balancer's configuration is only there");
            let hint =
                format!("nothing was changed; run `spillway fleet restore --from this` at {name}");
            Err(Failure::new(Exit::Usage, message).hint(hint))
        }
        name => {
            let message = format!("--from {name}: neither `etcd` nor `this` balancer");
            let hint = "nothing was changed; for the configuration of another balancer, run `spillway fleet restore \
                        --from this` there";
            Err(Failure::new(Exit::Usage, message).hint(hint))
        }
    }
}

/// What restoring means for the other balancers, before the question.
fn meaning(Names { fleet, balancer }: &Names, source: Source) -> String {
    match source {
        Source::ThisBalancer(_) => format!(
            "All balancers of {fleet} get the configuration of {balancer}; what etcd has is replaced, and stays in the \
             history."
        ),
        Source::Etcd(_) => format!(
            "All balancers of {fleet} get the configuration that etcd has; what {balancer} has in force is replaced."
        ),
    }
}

impl Restored {
    pub(super) fn new(
        status: v1::FleetStatus,
        source: Source,
        answer: v1::RestoreFleetResponse,
        is_dry_run: bool,
    ) -> Self {
        let from = match source {
            Source::ThisBalancer(_) => status.balancer,
            Source::Etcd(_) => "etcd".into(),
        };
        let generation = Some(answer.generation).filter(|it| *it > 0 && !is_dry_run);
        Self {
            fleet: status.fleet,
            from,
            fleet_generation: generation,
            changes: Changes::new(answer.changes.unwrap_or_default(), is_dry_run),
            is_dry_run,
        }
    }

    fn sentence(&self) -> String {
        let Self { fleet, from, .. } = self;
        match self.fleet_generation {
            _ if self.is_dry_run => {
                let is_same = self.changes.changes.is_empty() && self.changes.warnings().is_empty();
                let same = if is_same { ": nothing differs" } else { "" };
                format!("dry run: fleet {fleet} would get the configuration of {from}{same}\n")
            }
            Some(generation) => {
                format!(
                    "fleet {fleet} has the configuration of {from}, as generation {generation}\n"
                )
            }
            None => format!("fleet {fleet} has the configuration of {from}\n"),
        }
    }
}

impl Report for Restored {
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

    fn status() -> v1::FleetStatus {
        let member =
            |name: &str| v1::FleetMember { name: name.into(), ..v1::FleetMember::default() };
        v1::FleetStatus {
            fleet: "edge".into(),
            balancer: "lb-1".into(),
            member: true,
            members: vec![member("lb-1"), member("lb-2")],
            ..v1::FleetStatus::default()
        }
    }

    #[test]
    fn only_this_balancer_and_etcd_can_be_a_source() {
        let source = |word| parse_source(word, &status());
        assert_eq!(source("etcd"), Ok(Source::Etcd(true)));
        assert_eq!(source("this"), Ok(Source::ThisBalancer(true)));
        assert_eq!(source("lb-1"), Ok(Source::ThisBalancer(true)));
        let other = source("lb-2").unwrap_err();
        assert_eq!(other.exit, Exit::Usage);
        let hint = "nothing was changed; run `spillway fleet restore --from this` at lb-2";
        assert_eq!(other.hint.as_deref(), Some(hint));
        let unknown = source("lb-9").unwrap_err();
        assert_eq!((unknown.exit, unknown.hint.unwrap().contains("there")), (Exit::Usage, true));
    }

    #[test]
    fn it_says_which_configuration_the_fleet_has() {
        let change = change_message(v1::change::Kind::Removed, "service web", &[], 0);
        let answer = |changes| v1::RestoreFleetResponse {
            generation: 9,
            changes: Some(v1::ApplyResult { generation: 9, changes, ..Default::default() }),
        };
        let restored = |source, changes, dry_run| {
            Restored::new(status(), source, answer(changes), dry_run).table()
        };
        assert_eq!(
            restored(Source::ThisBalancer(true), Vec::new(), false),
            "fleet edge has the configuration of lb-1, as generation 9\n"
        );
        assert_eq!(
            restored(Source::Etcd(true), vec![change.clone()], false),
            "fleet edge has the configuration of etcd, as generation 9\n- service web\n"
        );
        assert_eq!(
            restored(Source::Etcd(true), Vec::new(), true),
            "dry run: fleet edge would get the configuration of etcd: nothing differs\n"
        );
        assert_eq!(
            restored(Source::Etcd(true), vec![change], true),
            "\
dry run: fleet edge would get the configuration of etcd
- service web
open connections: none move
"
        );
    }
}
