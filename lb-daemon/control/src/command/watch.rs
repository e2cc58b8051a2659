//! What watchers get: a snapshot, and then events, each of which has its position.

use std::{fmt, net::IpAddr, str::FromStr, sync::Arc};

use tokio::sync::broadcast;

use super::{Applied, BackendStatus, GroupStatus, OverridesEvent, Status};
use lb_model::Name;

#[derive(Debug)]
pub struct Subscription {
    /// `None`: the watcher goes on from its position.
    pub snapshot: Option<Arc<Status>>,
    /// That of the snapshot, or of the watcher.
    pub position: WatchPosition,
    /// Changes between that position and the subscription.
    pub since: Vec<Arc<Event>>,
    /// Changes after the subscription. A watcher that lags too far behind must subscribe again.
    pub events: broadcast::Receiver<Arc<Event>>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Generation(Applied),
    /// Changes of backends' states, their reasons, or their next hops.
    Backends(BackendsEvent),
    /// Changes of what groups can take.
    Groups(GroupsEvent),
    /// Overrides are others, or are stored now.
    Overrides(OverridesEvent),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct BackendsEvent {
    /// As they are now.
    pub changed: Vec<BackendStatus>,
    /// Pool and address of those that the configuration no longer has.
    pub removed: Vec<(Name, IpAddr)>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupsEvent {
    /// As they are now.
    pub changed: Vec<GroupStatus>,
    /// Pool and region of those that the configuration no longer has.
    pub removed: Vec<(Name, Name)>,
}

/// Most events that are kept for a watcher that is away, and most that wait for one that is slow.
pub const MAX_EVENTS: usize = 4096;
/// Most objects in these events. An object takes up to a kilobyte.
pub const MAX_EVENT_OBJECTS: usize = 16_384;

impl Event {
    /// Number of objects in it, by which memory is bounded.
    pub fn objects(&self) -> usize {
        1 + match self {
            Self::Generation(applied) => applied.changes.len() + applied.movements.len(),
            Self::Backends(it) => it.changed.len() + it.removed.len(),
            Self::Groups(it) => it.changed.len() + it.removed.len(),
            Self::Overrides(change) => change.set.len() + change.ended.len(),
        }
    }
}

/// How far a watcher has read the events of a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchPosition {
    /// A random number of each life of a daemon: events of another one are others.
    pub life: u64,
    /// Events so far.
    pub number: u64,
}

impl WatchPosition {
    /// After the next event.
    #[must_use]
    pub fn next(self) -> Self {
        Self { number: self.number + 1, ..self }
    }
}

impl fmt::Display for WatchPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}", self.life, self.number)
    }
}

impl FromStr for WatchPosition {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (life, number) = text.split_once('-').ok_or(())?;
        let life = u64::from_str_radix(life, 16).map_err(drop)?;
        Ok(Self { life, number: number.parse().map_err(drop)? })
    }
}
