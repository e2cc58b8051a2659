//! `spillway fleet status`: the balancers of a fleet, how they share capacities, and where they differ.

use serde::Serialize;
use spillway_proto::v1;

use super::{
    Names,
    generations::listed,
    problems::{Problem, find_problems, held_back_by},
};
use crate::{
    arguments::Options,
    client::{DaemonClient, block_on},
    failure::{Exit, Failure},
    output::print,
};

/// Problems that the failure of `--check` names.
const MOST_PROBLEMS: usize = 3;

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Exit with status 1 if anything is wrong, for scripts: a balancer is not alive, not ready, behind or differs, or
    /// has a condition; etcd does not answer; there is a conflict; or this balancer is no member
    #[arg(long)]
    check: bool,
}

/// A fleet as one balancer sees it.
#[derive(Serialize)]
pub(super) struct FleetReport {
    /// `null`: the settings name none.
    pub(super) fleet: Option<String>,
    /// The balancer that answers.
    pub(super) balancer: Option<String>,
    /// Whether it is a member. What follows is `null` or empty if it is not.
    pub(super) member: bool,
    /// Whether its settings ask for no certificates.
    pub(super) insecure: bool,
    /// What is wrong with etcd; `null`: it answers.
    pub(super) etcd_problem: Option<String>,
    pub(super) etcd_problem_since: Option<String>,
    /// Why this balancer does not follow etcd; `null`: it does.
    pub(super) conflict: Option<String>,
    pub(super) revision: Option<i64>,
    pub(super) generation: Option<u64>,
    /// That this balancer has in force; `null`: none.
    revision_in_force: Option<i64>,
    epoch: Option<u64>,
    /// Whether portions wait until all have said what they own.
    epoch_open: bool,
    /// The latest schema revision of configurations that all balancers understand; `null`: unknown.
    pub(super) schema_revision: Option<u32>,
    /// Balancers that understand no later one although others do.
    pub(super) held_back_by: Vec<String>,
    pub(super) being_forgotten: Vec<String>,
    pub(super) balancers: Vec<Balancer>,
    pub(super) groups: Vec<SharedGroup>,
    pub(super) problems: Vec<Problem>,
}

#[derive(Serialize)]
pub(super) struct Balancer {
    pub(super) name: String,
    pub(super) address: String,
    pub(super) region: Option<String>,
    pub(super) alive: bool,
    pub(super) ready: bool,
    /// Why it is not; `null`: it is, or nothing is known.
    pub(super) not_ready_cause: Option<String>,
    /// `null`: unknown.
    pub(super) version: Option<String>,
    /// `null`: unknown.
    pub(super) revision: Option<i64>,
    /// `null`: none, or unknown.
    pub(super) generation: Option<u64>,
    /// The latest schema revision of configurations that it understands; `null`: unknown.
    pub(super) schema_revision: Option<u32>,
    /// Digest of its tables; `null`: unknown.
    pub(super) tables: Option<String>,
    /// The balancer whose tables its own are compared with; `null`: they cannot be compared.
    compared_with: Option<String>,
    /// Whether they are equal.
    pub(super) tables_agree: Option<bool>,
    pub(super) differing_pools: Vec<String>,
    pub(super) conditions: Vec<String>,
    /// `null`: no message came yet, or it is this balancer.
    pub(super) heard_ms_ago: Option<u64>,
    /// Why messages to it or from it are not taken; `null`: they are.
    pub(super) peer_problem: Option<String>,
}

/// The capacity of a pool's backends in a region.
#[derive(Serialize)]
pub(super) struct SharedGroup {
    pub(super) pool: String,
    pub(super) region: String,
    /// `null`: no limit, or not known.
    pub(super) capacity_per_second: Option<f64>,
    pub(super) capacity_unknown: bool,
    pub(super) shares: Vec<Share>,
    /// What this balancer gave to others, and is not known to have arrived; 0 to 1.
    in_flight: f64,
}

#[derive(Serialize)]
pub(super) struct Share {
    pub(super) balancer: String,
    /// 0 to 1.
    pub(super) portion: f64,
    pub(super) demand_per_second: f64,
}

/// # Errors
/// The daemon does not answer, or `--check` is given and anything is wrong.
pub(super) fn run(options: Options, arguments: &Arguments) -> Result<(), Failure> {
    let status = block_on(async { DaemonClient::connect(&options).await?.fleet_status().await })?;
    let report = FleetReport::new(status);
    print(&report, options.output)?;
    if arguments.check { report.check() } else { Ok(()) }
}

fn given(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

impl FleetReport {
    pub(super) fn new(status: v1::FleetStatus) -> Self {
        let (problems, held_back_by) = (find_problems(&status), held_back_by(&status));
        let of_member = status.member;
        Self {
            fleet: given(status.fleet),
            balancer: given(status.balancer),
            member: of_member,
            insecure: status.insecure,
            etcd_problem: given(status.etcd_problem),
            etcd_problem_since: status.etcd_problem_since.map(|since| since.to_string()),
            conflict: given(status.conflict),
            revision: of_member.then_some(status.revision),
            generation: Some(status.generation).filter(|generation| *generation > 0),
            revision_in_force: Some(status.revision_in_force).filter(|revision| *revision > 0),
            epoch: of_member.then_some(status.epoch),
            epoch_open: status.epoch_open,
            schema_revision: Some(status.schema_revision).filter(|revision| *revision > 0),
            held_back_by,
            being_forgotten: status.being_forgotten,
            balancers: status.members.into_iter().map(Balancer::new).collect(),
            groups: status.groups.into_iter().map(SharedGroup::new).collect(),
            problems,
        }
    }

    /// What a balancer that is no member is told: what it is, and what to do.
    pub(super) fn outside(&self) -> (String, &'static str) {
        match (&self.fleet, &self.balancer) {
            (None, _) => (
                "this balancer's settings name no fleet".into(),
                "to share a configuration and capacities with others, add the table [fleet] to them, see \
                 /usr/share/doc/spillway/docs/fleet.md",
            ),
            (Some(fleet), balancer) => {
                let balancer = balancer.as_deref().unwrap_or("this balancer");
                let what = format!("{balancer} is not a member of fleet {fleet}");
                (what, "`spillway fleet join` makes it one")
            }
        }
    }

    /// # Errors
    /// Anything is wrong.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if !self.member {
            let (what, hint) = self.outside();
            return Err(Failure::new(Exit::Failure, what).hint(hint));
        }
        if self.problems.is_empty() {
            return Ok(());
        }
        let hint = match self.conflict {
            Some(_) => "`spillway fleet restore` decides which configuration the fleet has",
            None => {
                "run `spillway fleet status` here, and at the balancers that are named, if they answer"
            }
        };
        let problems: Vec<_> = self.problems.iter().map(|problem| problem.text.clone()).collect();
        let fleet = self.fleet.as_deref().unwrap_or_default();
        let message = format!("fleet {fleet}: {}", listed(&problems, MOST_PROBLEMS, "; "));
        Err(Failure::new(Exit::Failure, message).hint(hint))
    }
}

impl Balancer {
    fn new(member: v1::FleetMember) -> Self {
        Self {
            tables_agree: member.tables_agree,
            compared_with: given(member.compared_with),
            schema_revision: member.schema_revision,
            name: member.name,
            address: member.address,
            region: given(member.region),
            alive: member.alive,
            ready: member.ready,
            not_ready_cause: given(member.not_ready_cause),
            version: given(member.version),
            revision: Some(member.revision).filter(|revision| *revision > 0),
            generation: Some(member.generation).filter(|generation| *generation > 0),
            tables: given(member.tables),
            differing_pools: member.differing_pools,
            conditions: member.conditions,
            heard_ms_ago: member.heard_ms_ago,
            peer_problem: given(member.peer_problem),
        }
    }
}

impl SharedGroup {
    fn new(group: v1::SharedGroup) -> Self {
        let share = |it: v1::GroupShare| Share {
            balancer: it.balancer,
            portion: it.portion,
            demand_per_second: it.demand_per_second,
        };
        Self {
            pool: group.pool,
            region: group.region,
            capacity_per_second: group.capacity_per_second,
            capacity_unknown: group.capacity_unknown,
            shares: group.shares.into_iter().map(share).collect(),
            in_flight: group.in_flight,
        }
    }
}

impl Names {
    /// Those of the balancer that a connection leads to.
    ///
    /// # Errors
    /// The daemon does not answer.
    pub(super) async fn ask(daemon: &mut DaemonClient) -> Result<(Self, v1::FleetStatus), Failure> {
        let status = daemon.fleet_status().await?;
        Ok((Self::new(&status), status))
    }
}
