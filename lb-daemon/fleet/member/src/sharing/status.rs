//! What can be seen of sharing from outside.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use lb_model::Name;
use lb_sharing::{GroupKey, GroupReport, Parts, ReportedCapacity, epoch::Statement};
use tokio::time::Instant;

use super::PeerErrors;

/// The state of sharing after its last round.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SharingStatus {
    /// By group.
    pub(crate) groups: BTreeMap<GroupKey, GroupShare>,
    /// All peers of the view but this balancer.
    pub(crate) peers: BTreeMap<Name, PeerStatus>,
    /// Which start of this balancer it is, as its peers know it. It can rise while it runs, and has to be written to the
    /// fleet's record of this balancer then too.
    pub(crate) incarnation: u64,
    /// The last epoch whose result it has.
    pub(crate) epoch: u64,
    /// The epoch for which it said what it owns, and which is not closed.
    pub(crate) frozen: Option<u64>,
    /// What it has to say in etcd of the others.
    pub(crate) statement: Option<Statement>,
    /// Its store is an old copy: it owns nothing until the others have forgotten it.
    pub(crate) store_is_old: bool,
    /// Its peers have the result of an epoch that it took no part in: it enforces nothing until it has that too.
    pub(crate) is_overtaken: bool,
    /// Its maps were lost, and it enforces nothing until its peers have said what they know, or for ten seconds.
    pub(crate) is_waiting_for_peers: bool,
    /// Why the store is old, if it was seen at the start.
    pub(crate) lost_ledger: Option<String>,
    pub(crate) is_leaving: bool,
    /// It owns nothing and nothing is on its way to it. It may be removed from the members, in a transaction that compares
    /// that this is still the generation in force: a later one may give it portions of new groups.
    pub(crate) has_left: Option<u64>,
    /// Portions of the groups of this generation are in force. Those of groups that it created may be nothing.
    pub(crate) enforced_generation: u64,
    /// As before, with its own portions of all groups that the generation created.
    pub(crate) adopted_generation: u64,
    /// Why the ledger was not stored last time.
    pub(crate) store_error: Option<String>,
    /// Why portions are not in force.
    pub(crate) enforce_error: Option<String>,
    /// Why the counters were not read last time.
    pub(crate) counters_error: Option<String>,
}

/// A group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GroupShare {
    /// What this balancer owns, as it is stored.
    pub(crate) owned: Parts,
    /// What is in force: nothing, if others may own it.
    pub(crate) enforced: Parts,
    /// What it gave to others that they are not known to have.
    pub(crate) on_its_way: Parts,
    /// Offered connections a second; `None`: not known yet.
    pub(crate) demand: Option<f64>,
    /// The capacity of the fleet as this balancer sees it, if it sends to the group.
    pub(crate) capacity: Option<ReportedCapacity>,
}

/// A peer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PeerStatus {
    /// When its last message came.
    pub(crate) last_heard: Option<Instant>,
    pub(crate) incarnation: u64,
    /// It has heard from this balancer since its last start.
    pub(crate) hears_this: bool,
    pub(crate) epoch: u64,
    /// Version of its program.
    pub(crate) version: String,
    /// By how many milliseconds its wall clock is ahead of this balancer's; `None`: not known.
    pub(crate) clock_ahead_ms: Option<i64>,
    pub(crate) store_is_old: bool,
    pub(crate) is_leaving: bool,
    pub(crate) errors: PeerErrors,
    /// What it said of each group.
    pub(crate) groups: Arc<BTreeMap<GroupKey, GroupReport>>,
}

/// A balancer whose last message is older is silent: they come four times a second.
const SILENT: Duration = Duration::from_secs(5);

impl PeerStatus {
    /// Whether its messages come.
    pub(crate) fn is_heard(&self) -> bool {
        self.last_heard.is_some_and(|at| at.elapsed() < SILENT)
    }
}
