//! What sharing reads of the packet path, and how it limits it.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use lb_base::error_chain;
use lb_control::{
    command::{Commands, GroupStatus},
    members::PortionCommands,
};
use lb_fleet::FleetSettings;
use lb_model::capacity::{Portion, Portions};
use lb_sharing::Parts;
use tokio::sync::watch;

use super::{
    follower::InForce,
    sharing::{Enforcer, GroupCounters, GroupLoad, GroupLoads, GroupName, LedgerFile},
};

/// The portions that this balancer had at its end. Of a fleet nothing is admitted that is not certain: nothing at all if
/// the ledger cannot be used, or if the maps are gone, so that it may be an old copy.
pub fn stored_portions(
    state_directory: &Path,
    settings: &FleetSettings,
    lost_maps: bool,
) -> Portions {
    let (fleet, balancer) = (settings.fleet.clone(), settings.name.clone());
    let ledger = LedgerFile::new(state_directory, fleet, balancer).read();
    let owned = match ledger {
        Ok(ledger) if !lost_maps && !ledger.is_old_copy => ledger.owned,
        _ => BTreeMap::new(),
    };
    // Of two groups of one name the younger one is there.
    let portions =
        owned.into_iter().map(|(group, parts)| ((group.pool, group.region), portion(parts)));
    Portions::Fleet(Arc::new(portions.collect()))
}

/// The counters of groups.
#[derive(Debug)]
pub(super) struct Counters {
    commands: Commands,
    in_force: watch::Receiver<InForce>,
}

impl Counters {
    pub(super) fn new(commands: Commands, in_force: watch::Receiver<InForce>) -> Self {
        Self { commands, in_force }
    }
}

impl GroupCounters for Counters {
    async fn read(&self) -> Result<GroupLoads, String> {
        // Before the counters: a generation that comes meanwhile is not claimed.
        let generation = self.in_force.borrow().generation;
        let regions = self.commands.regions(None).await.map_err(|error| error.to_string())?;
        let regions = regions.map_err(|refusal| error_chain::message(&refusal))?;
        Ok(GroupLoads { generation, groups: regions.regions.iter().map(load).collect() })
    }
}

fn load(group: &GroupStatus) -> GroupLoad {
    let counters = &group.reading.counters;
    GroupLoad {
        pool: group.pool.clone(),
        region: group.region.clone(),
        capacity: group.reading.capacity(),
        offered: counters.offered,
        refused: counters.refused + counters.overflow_out + counters.over_capacity,
    }
}

fn portion(parts: Parts) -> Portion {
    Portion::new(parts.fraction()).unwrap_or(Portion::NONE)
}

/// The limits of groups and of their members.
#[derive(Debug)]
pub(super) struct Limits {
    portions: PortionCommands,
}

impl Limits {
    pub(super) fn new(portions: PortionCommands) -> Self {
        Self { portions }
    }
}

impl Enforcer for Limits {
    async fn enforce(&self, portions: BTreeMap<GroupName, Parts>) -> Result<(), String> {
        let portions = portions.into_iter().map(|(group, parts)| (group, portion(parts)));
        self.portions.enforce(Arc::new(portions.collect())).await.map_err(|error| error.to_string())
    }
}
