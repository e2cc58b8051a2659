//! `spillway fleet leave` and `remove`.

use lb_base::nearest;
use serde::Serialize;
use spillway_proto::v1;
use tonic::Code;

use super::{Consent, Names};
use crate::{
    arguments::Options,
    client::{DaemonClient, block_on},
    commands::{confirm::confirm, objects::parse_name},
    failure::{Exit, Failure},
    output::{Report, print, print_stderr},
};

#[derive(clap::Args, Debug)]
pub(crate) struct LeaveArguments {
    /// Do not give portions of the capacities to the others first, and leave even if etcd does not answer; the others
    /// create the portions again once they forget this balancer
    #[arg(long)]
    abandon: bool,
    #[command(flatten)]
    consent: Consent,
}

#[derive(Serialize)]
struct Left {
    fleet: String,
    balancer: String,
    dry_run: bool,
    /// Whether the others have to create its portions again.
    abandoned: bool,
}

/// # Errors
/// The balancer is no member, the user does not agree, or the daemon refuses or does not answer.
pub(super) fn leave(options: Options, arguments: &LeaveArguments) -> Result<(), Failure> {
    let LeaveArguments { abandon, consent } = *arguments;
    let command = if abandon { "fleet leave --abandon" } else { "fleet leave" };
    consent.require("fleet leave", command)?;
    let left = block_on(async {
        let mut daemon = DaemonClient::connect(&options).await?;
        let (names, status) = Names::ask(&mut daemon).await?;
        let mut call = async |validate_only| {
            daemon.leave_fleet(v1::LeaveFleetRequest { abandon, validate_only }).await
        };
        let answer = match consent.asks() {
            true => {
                // What is refused is not asked about.
                call(true).await?;
                print_stderr(&meaning(&names, abandon));
                confirm(&format!("Leave {}?", names.fleet)).await?;
                call(false).await?
            }
            false => call(consent.dry_run).await?,
        };
        let v1::FleetStatus { fleet, balancer, .. } = status;
        Ok(Left { fleet, balancer, dry_run: consent.dry_run, abandoned: answer.abandoned })
    })?;
    print(&left, options.output)
}

/// What leaving means, before the question.
fn meaning(Names { fleet, balancer }: &Names, abandon: bool) -> String {
    let portions = match abandon {
        true => {
            "Its portions of the capacities are lost until the others forget it; while it forwards packets beside them, \
             more connections than the capacities may be admitted."
        }
        false => "Its portions of the capacities go to the others first.",
    };
    format!(
        "{balancer} keeps the configuration that it has, and changes of {fleet} do not get there any more. {portions}"
    )
}

impl Report for Left {
    fn table(&self) -> String {
        let Self { fleet, balancer, .. } = self;
        match self.dry_run {
            true => format!("dry run: {balancer} would leave fleet {fleet}\n"),
            false => {
                format!(
                    "{balancer} has left fleet {fleet}, and keeps the configuration that it has\n"
                )
            }
        }
    }

    fn warnings(&self) -> Vec<String> {
        let lost = format!(
            "its portions of the capacities were not given away: the others create them again once they forget it. They \
             list it until `spillway fleet remove {}` at one of them",
            self.balancer
        );
        if self.abandoned { vec![lost] } else { Vec::new() }
    }
}

#[derive(clap::Args, Debug)]
pub(crate) struct RemoveArguments {
    /// Name of the balancer
    #[arg(value_parser = parse_name)]
    name: String,
    #[command(flatten)]
    consent: Consent,
}

#[derive(Serialize)]
struct Removed {
    fleet: String,
    removed: String,
    dry_run: bool,
}

/// # Errors
/// There is no such member, it is this balancer, the user does not agree, or the daemon refuses or does not answer.
pub(super) fn remove(options: Options, arguments: &RemoveArguments) -> Result<(), Failure> {
    let RemoveArguments { name, consent } = arguments;
    consent.require("fleet remove", &format!("fleet remove {name}"))?;
    let removed = block_on(async {
        let mut daemon = DaemonClient::connect(&options).await?;
        let (names, status) = Names::ask(&mut daemon).await?;
        if status.member && *name == status.balancer {
            return Err(Failure::new(Exit::Usage, format!("{name} is the balancer that is asked"))
                .hint("nothing was changed; `spillway fleet leave` makes it independent"));
        }
        let mut call = async |validate_only| {
            let request = v1::RemoveFleetMemberRequest { name: name.clone(), validate_only };
            let done = daemon.remove_fleet_member(request).await;
            done.map_err(|failure| with_members(failure, name, &status))
        };
        match consent.asks() {
            true => {
                call(true).await?;
                print_stderr(&format!(
                    "The others create the portions of {name} again. While it forwards packets beside them, more \
                     connections than the capacities may be admitted."
                ));
                confirm(&format!("Remove {name} from {}?", names.fleet)).await?;
                call(false).await?;
            }
            false => call(consent.dry_run).await?,
        }
        Ok(Removed { fleet: status.fleet.clone(), removed: name.clone(), dry_run: consent.dry_run })
    })?;
    print(&removed, options.output)
}

/// Names the members in a refusal of an unknown name.
fn with_members(failure: Failure, name: &str, status: &v1::FleetStatus) -> Failure {
    if failure.code != Some(Code::NotFound) {
        return failure;
    }
    let names: Vec<_> = status.members.iter().map(|it| it.name.as_str()).collect();
    match nearest(name, names.iter().copied()) {
        Some(meant) => failure.hint(format!(
            "nothing was changed; did you mean {meant}? `spillway fleet status` lists the balancers"
        )),
        None => failure.hint("nothing was changed; `spillway fleet status` lists the balancers"),
    }
}

impl Report for Removed {
    fn table(&self) -> String {
        let Self { fleet, removed, dry_run } = self;
        match dry_run {
            true => format!("dry run: {removed} would be removed from fleet {fleet}\n"),
            false => format!("{removed} is removed from fleet {fleet}\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaving_says_what_it_means() {
        let names = || Names { fleet: "fleet edge".into(), balancer: "lb-2".into() };
        assert_eq!(
            meaning(&names(), false),
            "lb-2 keeps the configuration that it has, and changes of fleet edge do not get there any more. Its \
             portions of the capacities go to the others first."
        );
        assert!(meaning(&names(), true).contains("more connections than the capacities"));
        let left = |dry_run, abandoned| {
            let left = Left { fleet: "edge".into(), balancer: "lb-2".into(), dry_run, abandoned };
            (left.table(), left.warnings().len())
        };
        let done = "lb-2 has left fleet edge, and keeps the configuration that it has\n";
        assert_eq!(left(false, false), (done.into(), 0));
        assert_eq!(left(false, true), (done.into(), 1));
        assert_eq!(left(true, false), ("dry run: lb-2 would leave fleet edge\n".into(), 0));
    }
}
