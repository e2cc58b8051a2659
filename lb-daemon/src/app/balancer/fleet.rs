//! The membership in a fleet, which acts through the loops.

use std::{net::IpAddr, sync::Arc};

use super::Start;
use crate::app::{Failure, arguments::BalancerArguments};
use lb_common::abi::names;
use lb_control::{
    command::Commands,
    members::PortionCommands,
    state::{self, MarkOutDecision, MarkOutDecisions},
};
use lb_fleet::FleetSettings;
use lb_maps::Pins;
use lb_member::{Membership, MembershipRecord};
use lb_model::capacity::Portions;

const FLEET_RECORD_HINT: &str = "move the file away to start as an independent balancer; it can join its fleet again, once the others have forgotten it";

/// What a balancer begins with as the member of a fleet, or as none.
pub(super) struct FleetResources {
    settings: Option<FleetSettings>,
    record: Option<MembershipRecord>,
    /// The portions of capacities that it had at its end.
    pub(super) portions: Portions,
    /// The maps of the packet path are made anew.
    lost_maps: bool,
    /// What the loops know of the membership.
    pub(super) is_member: state::Membership,
    pub(super) homes: MarkOutDecisions,
}

impl FleetResources {
    /// The address that the settings have other balancers reach this one at.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.settings.as_ref().map(|settings| settings.address.ip())
    }
}

/// What is stored of the membership in a fleet, beside the settings.
pub(super) fn open_fleet(
    arguments: &BalancerArguments,
    pins: &Pins,
) -> Result<FleetResources, Failure> {
    let settings = arguments.fleet()?;
    let record = MembershipRecord::read(&arguments.state_dir)
        .map_err(|error| Failure::from_chain(&error).hint(FLEET_RECORD_HINT))?;
    if let Some(record) = &record {
        let named = settings.as_ref().map(|settings| (&settings.fleet, &settings.name));
        if named != Some((&record.fleet, &record.balancer)) {
            let (fleet, balancer) = (&record.fleet, &record.balancer);
            let said = match named {
                Some((fleet, name)) => format!("{name} of fleet {fleet}"),
                None => "no fleet".into(),
            };
            return Err(Failure::new(format!(
                "this balancer has joined as {balancer} of fleet {fleet}, but the settings say {said}"
            ))
            .hint("set it as it was; to change it, leave the fleet first: `spillway fleet leave`"));
        }
    }
    let lost_maps = !pins.map(names::ARRAYS).exists();
    let portions = match (&record, &settings) {
        (Some(_), Some(settings)) => {
            lb_member::stored_portions(&arguments.state_dir, settings, lost_maps)
        }
        _ => Portions::default(),
    };
    let (is_member, homes) = (state::Membership::default(), MarkOutDecisions::default());
    is_member.set(record.is_some());
    if record.is_some() {
        homes.decide(MarkOutDecision::Unknown);
    }
    Ok(FleetResources { settings, record, portions, lost_maps, is_member, homes })
}

/// Resumes a membership that is stored. Its own [`Membership::stop`] ends it.
pub(super) fn start_fleet(
    start: &Start,
    resources: FleetResources,
    commands: &Commands,
    portions: PortionCommands,
) -> Membership {
    let FleetResources { settings, record, lost_maps, is_member, homes, .. } = resources;
    let membership = Membership::new(lb_member::Context {
        settings,
        commands: commands.clone(),
        conditions: start.shared.conditions.clone(),
        portions,
        homes,
        is_member,
        state_directory: start.counters.state_directory.clone(),
        lost_maps,
        answers: Arc::new(lb_member::OwnAnswers {
            commands: commands.clone(),
            counters: start.counters.clone(),
        }),
    });
    if let Some(record) = record {
        let membership = membership.clone();
        tokio::spawn(async move { membership.resume(record).await });
    }
    membership
}
