//! The membership in a fleet, which acts through the loops.

use std::{
    net::IpAddr,
    path::{self, Path},
    sync::Arc,
};

use super::Start;
use crate::app::{Failure, arguments::BalancerArguments};
use lb_common::abi::names;
use lb_control::{
    command::Commands,
    members::PortionCommands,
    state::{self, MarkOutDecision, MarkOutDecisions},
};
use lb_fleet::FleetSettings;
use lb_maps::{Pins, StartRecord};
use lb_member::{Membership, MembershipRecord};
use lb_model::{Name, capacity::Portions};

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
            let file = arguments.path.config.as_ref().and_then(|file| path::absolute(file).ok());
            let mismatch = Mismatch {
                record,
                file: file.as_deref(),
                started: StartRecord::read(pins),
                state_directory: &arguments.state_dir,
            };
            return Err(mismatch.failure(named));
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

/// Settings that are not those of the fleet that this balancer has joined.
struct Mismatch<'a> {
    record: &'a MembershipRecord,
    /// The settings file.
    file: Option<&'a Path>,
    /// How the last daemon was started, which had the settings of the fleet.
    started: Option<StartRecord>,
    state_directory: &'a Path,
}

impl Mismatch<'_> {
    /// `named`: the fleet and the balancer in the settings.
    fn failure(&self, named: Option<(&Name, &Name)>) -> Failure {
        let MembershipRecord { fleet, balancer, .. } = self.record;
        let said = match named {
            Some((fleet, name)) => format!("{name} of fleet {fleet}"),
            None => "no fleet".into(),
        };
        // `spillway fleet leave` needs a daemon that runs, and this one does not.
        let record = MembershipRecord::path(self.state_directory);
        Failure::new(format!(
            "this balancer has joined as {balancer} of fleet {fleet}, but the settings say {said}"
        ))
        .hint(format!(
            "{}; to take it out of the fleet, run `spillway fleet leave` once it runs, or move {} away: it then starts \
             as an independent balancer, and the others forget it after 30 s",
            self.as_before(),
            record.display(),
        ))
    }

    /// How to start it with the settings of its fleet.
    fn as_before(&self) -> String {
        let MembershipRecord { fleet, balancer, .. } = self.record;
        let before = self.started.as_ref().and_then(StartRecord::settings_file);
        match (self.file, before, &self.started) {
            (Some(_), Some(before), _) if self.file != Some(&*before) => {
                format!("start it with the settings file that it had, {}", before.display())
            }
            (Some(file), ..) => format!(
                "set `name = \"{fleet}\"` and `balancer = \"{balancer}\"` in the table [fleet] of {}, as they were",
                file.display()
            ),
            (None, _, Some(started)) => format!("start it as before: `{}`", started.shell()),
            (None, _, None) => format!(
                "start it with --fleet-name {fleet}, --fleet-balancer {balancer} and the other settings of its fleet, or \
                 with the settings file that has them"
            ),
        }
    }
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
        override_ends: start.shared.override_ends.clone(),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn hint(file: Option<&str>, started: Option<&str>) -> String {
        let record = MembershipRecord::new(name("edge"), name("lb-1"));
        let command = |line: &str| line.split(' ').map(str::to_owned).collect();
        let started = started
            .map(|line| StartRecord { directory: "/srv/l b".into(), command: command(line) });
        let (file, state_directory) = (file.map(Path::new), Path::new("/var/lib/spillway"));
        let text =
            Mismatch { record: &record, file, started, state_directory }.failure(None).to_string();
        let (sentence, hint) = text.split_once("\nhint: ").unwrap();
        assert_eq!(
            sentence,
            "spillwayd: this balancer has joined as lb-1 of fleet edge, but the settings say no fleet"
        );
        let (before, leave) = hint.split_once("; ").unwrap();
        assert_eq!(
            leave,
            "to take it out of the fleet, run `spillway fleet leave` once it runs, or move \
             /var/lib/spillway/fleet.json away: it then starts as an independent balancer, and the others forget it after \
             30 s"
        );
        before.to_owned()
    }

    #[test]
    fn a_member_without_its_settings_is_told_how_to_start_and_not_only_to_leave() {
        let line = "/usr/sbin/spillwayd balancer --config b.toml";
        assert_eq!(
            hint(None, Some(line)),
            format!("start it as before: `cd '/srv/l b' && {line}`"),
        );
        assert_eq!(
            hint(Some("/etc/a.toml"), Some(line)),
            "start it with the settings file that it had, /srv/l b/b.toml"
        );
        let set = |file: &str| {
            format!(
                "set `name = \"edge\"` and `balancer = \"lb-1\"` in the table [fleet] of {file}, as they were"
            )
        };
        assert_eq!(hint(Some("/srv/l b/b.toml"), Some(line)), set("/srv/l b/b.toml"));
        assert_eq!(hint(Some("/etc/a.toml"), None), set("/etc/a.toml"));
        assert_eq!(
            hint(None, None),
            "start it with --fleet-name edge, --fleet-balancer lb-1 and the other settings of its fleet, or with the \
             settings file that has them"
        );
    }
}
