//! What the state loop is given at its start and shares with other parts of the daemon.

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use lb_common::abi::sizes::MapSizes;
use tokio::sync::watch;

use super::MarkOutDecisions;
use crate::{
    command::OverrideEnds,
    counters::{HealthCounters, PublishCounters},
    health_state::HoldDowns,
    loops::AllLoopCounters,
};
use lb_base::conditions::Conditions;
use lb_config::{Requested, document::Document};
use lb_model::{
    Ipv4Prefix, Name, capacity::Portions, map_memory::Budget, own_addresses::OwnAddresses,
};
use lb_publish::publisher::FollowedHost;
use lb_store::{Revision, StoreCounters};

#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The balancer's own region.
    pub region: Option<Name>,
    /// The prefix that sources of IPv4 tunnels are from.
    pub source_prefix: Option<Ipv4Prefix>,
    pub balancer_addresses: BalancerAddresses,
    /// What this host is to VIPs.
    pub host: FollowedHost,
    /// Where the directory of names is written for the command line.
    pub state_directory: PathBuf,
    /// How much the maps hold.
    pub sizes: MapSizes,
    /// Memory that the maps use and may use.
    pub map_memory: Budget,
    /// Problems in all parts of the daemon.
    pub conditions: Conditions,
    pub waiting_settings: WaitingSettings,
    pub publish_counters: PublishCounters,
    pub health_counters: HealthCounters,
    pub loop_counters: AllLoopCounters,
    pub store_counters: StoreCounters,
    /// Those that an earlier daemon knew, and what the next one is to know.
    pub hold_downs: HoldDowns,
    /// This balancer's portions of the capacities at the start, so that a member of a fleet opens no limit before it hears
    /// of the others. The loops' `portions` change them.
    pub portions: Portions,
    pub followed: FollowedFile,
    pub override_ends: OverrideEnds,
    pub membership: Membership,
    pub mark_out_decisions: MarkOutDecisions,
    /// [`Revision::CURRENT`], except in tests of a later one.
    pub schema: Revision,
    /// Whether the followed file may replace a configuration of a newer schema.
    pub any_schema: bool,
}

/// Whether the balancer is a member of a fleet. Then only generations of the fleet are put in force. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Membership(Arc<AtomicBool>);

impl Membership {
    pub fn is_member(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Counts for each apply whose turn comes after this.
    pub fn set(&self, is_member: bool) {
        self.0.store(is_member, Ordering::Release);
    }
}

/// The configuration file that is read at each start and reload, if there is one. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct FollowedFile(Arc<Mutex<Option<PathBuf>>>);

impl FollowedFile {
    pub fn new(path: Option<PathBuf>) -> Self {
        Self(Arc::new(Mutex::new(path)))
    }

    pub fn path(&self) -> Option<PathBuf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set(&self, path: Option<PathBuf>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = path;
    }

    /// The path, and the configuration if the file is readable and valid.
    pub fn read(&self) -> Option<(PathBuf, Option<Requested>)> {
        let path = self.path()?;
        let text = fs::read_to_string(&path).ok();
        let document = text.and_then(|text| Document::parse(&text).ok());
        let requested = document.and_then(|document| lb_config::validate(&document.into()).ok());
        Some((path, requested))
    }
}

/// The addresses of this balancer that services do not get unless that is forced, as they are now. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct BalancerAddresses(watch::Sender<OwnAddresses>);

impl BalancerAddresses {
    pub fn set(&self, addresses: OwnAddresses) {
        self.0.send_replace(addresses);
    }

    pub(super) fn now(&self) -> OwnAddresses {
        self.0.borrow().clone()
    }
}

/// Names of changed settings that need a restart, as of the last reload. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct WaitingSettings(watch::Sender<Vec<String>>);

impl WaitingSettings {
    pub fn set(&self, names: Vec<String>) {
        if *self.0.borrow() == names {
            return;
        }
        if names.is_empty() {
            tracing::info!("no changed setting needs a restart any more");
        } else {
            tracing::warn!("changed settings that need a restart: {}", names.join(", "));
        }
        self.0.send_replace(names);
    }

    pub fn now(&self) -> Vec<String> {
        self.0.borrow().clone()
    }

    pub fn changes(&self) -> watch::Receiver<Vec<String>> {
        self.0.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_wait_until_they_are_unchanged() {
        let waiting = WaitingSettings::default();
        let mut changes = waiting.changes();
        waiting.set(vec!["region".into()]);
        assert!(changes.has_changed().unwrap());
        assert_eq!(waiting.now(), ["region"]);
        changes.mark_unchanged();
        waiting.set(vec!["region".into()]);
        assert!(!changes.has_changed().unwrap());
        waiting.set(Vec::new());
        assert!(changes.has_changed().unwrap() && waiting.now().is_empty());
    }
}
