//! What is wrong with a fleet, in sentences.

use serde::Serialize;
use spillway_proto::v1;

use super::generations::listed;
use crate::output::whole_seconds;

/// Pools that a sentence names.
const MOST_POOLS: usize = 5;

/// Messages come four times a second; a balancer whose last one is older is silent, milliseconds.
const SILENT_MS: u64 = 5_000;

/// What a problem is about; programs rely on the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ProblemReason {
    /// etcd does not answer or takes no changes.
    Etcd,
    /// This balancer does not follow etcd until a restore decides.
    Conflict,
    NotAlive,
    NotReady,
    /// It has an earlier generation or revision in force than etcd has.
    Behind,
    /// It has a later generation in force than etcd has.
    Ahead,
    /// Its tables send connections to other backends than those of another balancer of its region.
    TablesDiffer,
    /// It says itself what is wrong.
    Condition,
    /// Messages to it or from it are not taken.
    Peer,
    /// No messages come from it.
    Silent,
    /// This balancer is a member only by its own account.
    Removed,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Problem {
    /// `null`: it is the whole fleet's.
    balancer: Option<String>,
    pub(super) reason: ProblemReason,
    pub(super) text: String,
}

/// Balancers that do not understand the latest schema revision that any balancer understands: the fleet uses nothing of it
/// until they are upgraded. During an upgrade this is as it should be, so it is no problem.
pub(super) fn held_back_by(status: &v1::FleetStatus) -> Vec<String> {
    let understood = status.members.iter().filter_map(|it| Some((it, it.schema_revision?)));
    let latest = understood.clone().map(|(_, revision)| revision).max().unwrap_or_default();
    let older = understood.filter(|(_, revision)| *revision < latest);
    older.map(|(it, _)| it.name.clone()).collect()
}

/// Everything that is wrong: first what concerns the fleet, then balancer by balancer.
pub(super) fn find_problems(status: &v1::FleetStatus) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut of_fleet = |reason, text| problems.push(Problem { balancer: None, reason, text });
    if !status.etcd_problem.is_empty() {
        let since = status.etcd_problem_since.map(|since| since.to_string());
        of_fleet(ProblemReason::Etcd, etcd_line(&status.etcd_problem, since.as_deref(), "etcd: "));
    }
    if !status.conflict.is_empty() {
        of_fleet(ProblemReason::Conflict, format!("conflict: {}", status.conflict));
    }
    if status.member && status.members.is_empty() {
        let text = "this balancer does not take part in its fleet yet, `spillway status` says why";
        of_fleet(ProblemReason::NotReady, text.to_owned());
    } else if status.member && !status.members.iter().any(|it| it.name == status.balancer) {
        let text = format!(
            "the fleet has removed {}: leave by `spillway fleet leave`, and join again",
            status.balancer
        );
        of_fleet(ProblemReason::Removed, text);
    }
    for member in &status.members {
        let found = member_problems(status, member);
        let problem =
            |(reason, text)| Problem { balancer: Some(member.name.clone()), reason, text };
        problems.extend(found.into_iter().map(problem));
    }
    problems
}

/// `connection refused (since 2026-03-04T05:06:07Z)`
pub(super) fn etcd_line(problem: &str, since: Option<&str>, before: &str) -> String {
    let since = since.map(|since| format!(" (since {})", whole_seconds(since)));
    format!("{before}{problem}{}", since.unwrap_or_default())
}

fn member_problems(
    status: &v1::FleetStatus,
    member: &v1::FleetMember,
) -> Vec<(ProblemReason, String)> {
    let name = &member.name;
    if !member.alive {
        // What is known of it is old.
        let mut text = format!("{name} is not alive: it does not renew its lease in etcd");
        let mut shares = status.groups.iter().flat_map(|group| &group.shares);
        if !status.groups.is_empty() && !shares.any(|share| share.balancer == *name) {
            text += &format!(
                ", and the others have its portions; if it is gone for good, `spillway fleet remove {name}`"
            );
        }
        return vec![(ProblemReason::NotAlive, text)];
    }
    let mut found = Vec::new();
    if !member.ready {
        let mut text = format!("{name} is not ready to take traffic");
        if !member.not_ready_cause.is_empty() {
            text += &format!(", it says: {}", member.not_ready_cause);
        }
        found.push((ProblemReason::NotReady, text));
    }
    found.extend(generation_problem(status, member));
    if member.tables_agree == Some(false) {
        let with = match &*member.compared_with {
            here if here == status.balancer => "here",
            with => with,
        };
        let text = match &*member.differing_pools {
            [] => format!("{name} has other tables than {with}"),
            [pool] => format!("{name}: pool {pool} has other tables than {with}"),
            pools => {
                let pools = listed(pools, MOST_POOLS, ", ");
                format!("{name}: pools {pools} have other tables than {with}")
            }
        };
        found.push((ProblemReason::TablesDiffer, text));
    }
    let conditions = member.conditions.iter();
    found.extend(conditions.map(|it| (ProblemReason::Condition, format!("{name}: {it}"))));
    if !member.peer_problem.is_empty() {
        let text = format!("{name}: {}", member.peer_problem);
        found.push((ProblemReason::Peer, text));
    } else if *name != status.balancer
        // Before there is a configuration nobody has anything to say.
        && status.generation > 0
        && member.heard_ms_ago.is_none_or(|ago| ago >= SILENT_MS)
    {
        let own = status.members.iter().find(|it| it.name == status.balancer);
        let address = own.map(|own| &*own.address).filter(|address| !address.is_empty());
        let address = address.unwrap_or("its address");
        let since = match member.heard_ms_ago {
            Some(ago) => format!("for {} s", ago / 1_000),
            None => "yet".to_owned(),
        };
        let text = format!(
            "{name}: no message came from it {since}; it has to reach this balancer at {address}"
        );
        found.push((ProblemReason::Silent, text));
    }
    found
}

/// What a member has in force, if that is not what etcd has.
fn generation_problem(
    status: &v1::FleetStatus,
    member: &v1::FleetMember,
) -> Option<(ProblemReason, String)> {
    let (name, there, here) = (&member.name, member.generation, status.generation);
    let etcd = match here {
        0 => "etcd has none".to_owned(),
        generation => format!("etcd has {generation}"),
    };
    if there == 0 && here > 0 {
        let text = format!("{name} has no generation in force, {etcd}");
        return Some((ProblemReason::Behind, text));
    }
    if there != here {
        let reason = if there < here { ProblemReason::Behind } else { ProblemReason::Ahead };
        return Some((reason, format!("{name} has generation {there} in force, {etcd}")));
    }
    // Overrides have revisions too.
    let is_behind = member.revision > 0 && member.revision < status.revision;
    is_behind.then(|| {
        let (there, here) = (member.revision, status.revision);
        (ProblemReason::Behind, format!("{name} has revision {there} in force, etcd has {here}"))
    })
}
