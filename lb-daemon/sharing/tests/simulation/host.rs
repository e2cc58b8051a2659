//! One host: its disk, its kernel, and its daemon while that runs.

use std::{collections::BTreeMap, time::Duration};

use lb_model::Name;
use lb_sharing::{
    Demand, DemandAverage, GroupKey, Ledger, Message, ReportedCapacity, Sharing,
    epoch::{Epoch, Membership},
};

use super::kernel::Kernel;

#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) name: Name,
    pub(crate) disk: Ledger,
    pub(crate) kernel: Kernel,
    pub(crate) daemon: Option<Daemon>,
    /// Offered connections a second, by group.
    pub(crate) demand: BTreeMap<GroupKey, f64>,
    /// Whether the kernel runs.
    pub(crate) is_up: bool,
    /// When it has booted, while it boots.
    pub(crate) boots_at: Option<Duration>,
    pub(crate) reaches_etcd: bool,
    /// It came back with an old copy of its disk, during or after this epoch, and was not forgotten in a later one.
    pub(crate) old_disk: Option<u64>,
    /// It was told to leave the fleet.
    pub(crate) leaves: bool,
    pub(crate) has_left: bool,
    /// The last epoch whose result the kernel enforces.
    pub(crate) enforced_epoch: u64,
}

#[derive(Debug)]
pub(crate) struct Daemon {
    pub(crate) sharing: Sharing,
    averages: BTreeMap<GroupKey, DemandAverage>,
    /// The write that is under way: what is written, and when it is done.
    pub(crate) writing: Option<(Ledger, Duration)>,
    pub(crate) next_round: Duration,
    pub(crate) last_round: Duration,
    /// What it saw last of etcd.
    pub(crate) seen: (Membership, Option<Epoch>),
    pub(crate) sees_next: Duration,
    pub(crate) refuses: bool,
    pub(crate) writes: u64,
}

impl Host {
    pub(crate) fn new(name: Name, disk: Ledger) -> Self {
        Self {
            name,
            disk,
            kernel: Kernel::default(),
            daemon: None,
            demand: BTreeMap::new(),
            is_up: true,
            boots_at: None,
            reaches_etcd: true,
            old_disk: None,
            leaves: false,
            has_left: false,
            enforced_epoch: 0,
        }
    }

    /// Starts the daemon with what the disk has.
    pub(crate) fn start(&mut self, now: Duration, lost_maps: Option<Vec<Name>>) {
        self.disk.incarnation += 1;
        let lost_maps = lost_maps.map(|peers| peers.into_iter().collect());
        self.daemon = Some(Daemon {
            sharing: {
                let mut sharing =
                    Sharing::start(self.name.clone(), self.disk.clone(), now, lost_maps);
                if self.leaves {
                    sharing.leave();
                }
                sharing
            },
            averages: BTreeMap::new(),
            writing: None,
            next_round: now,
            last_round: now,
            seen: (Membership::default(), None),
            sees_next: now,
            refuses: false,
            writes: 0,
        });
    }

    /// Enforces what the daemon says.
    pub(crate) fn enforce(&mut self, capacity: impl Fn(&GroupKey) -> f64, now: Duration) {
        let Some(daemon) = &self.daemon else { return };
        for (group, parts) in daemon.sharing.enforced() {
            self.kernel.enforce(group, parts, capacity(group), now);
        }
        let epoch = daemon.sharing.ledger().epoch;
        if self.old_disk.is_some_and(|at| epoch > at) {
            self.old_disk = None;
        }
        self.enforced_epoch = epoch;
    }

    /// The daemon looks at its counters and decides. Returns whether a ledger has to be written.
    pub(crate) fn round(
        &mut self,
        capacity: impl Fn(&GroupKey) -> f64,
        now: Duration,
    ) -> Option<Ledger> {
        let daemon = self.daemon.as_mut()?;
        daemon.last_round = now;
        for (group, limiter) in &self.kernel.limiters {
            let average = daemon.averages.entry(group.clone()).or_default();
            average.record(now, limiter.limiter.offered);
            let capacity = match capacity(group) {
                0.0 => ReportedCapacity::Closed,
                rate => ReportedCapacity::PerSecond(rate),
            };
            let demand = Demand { per_second: average.per_second(), capacity, may_send: true };
            daemon.sharing.set_demand(group, demand);
        }
        if daemon.writing.is_some() {
            return None;
        }
        daemon.sharing.round(now).cloned()
    }

    pub(crate) fn messages(&mut self, to: &[Name], now: Duration) -> Vec<(Name, Message)> {
        let messages = |daemon: &mut Daemon| daemon.sharing.messages(now, to);
        self.daemon.as_mut().map(messages).unwrap_or_default()
    }
}
