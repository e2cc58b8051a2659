//! Events on their way to watchers.

use std::{sync::Arc, time::Instant};

use tokio::sync::broadcast;

use super::{event_log::EventLog, shared_snapshot::SharedSnapshot};
use crate::command::{Event, MAX_EVENTS, Status, Subscription, WatchPosition};

#[derive(Debug)]
pub(super) struct Announcements {
    watchers: broadcast::Sender<Arc<Event>>,
    log: EventLog,
    shared_snapshot: SharedSnapshot,
}

impl Announcements {
    pub(super) fn new() -> Self {
        let (watchers, _) = broadcast::channel(MAX_EVENTS);
        Self { watchers, log: EventLog::new(), shared_snapshot: SharedSnapshot::default() }
    }

    pub(super) fn announce(&mut self, event: Event) {
        let event = Arc::new(event);
        self.shared_snapshot.add(&event);
        self.log.add(Arc::clone(&event));
        // Without watchers there is no receiver.
        let _ = self.watchers.send(event);
    }

    /// Goes on from a position, if the events since are still there.
    pub(super) fn resume(&self, from: WatchPosition) -> Option<Subscription> {
        let since = self.log.since(from)?;
        let events = self.watchers.subscribe();
        Some(Subscription { snapshot: None, position: from, since, events })
    }

    /// Begins with a snapshot of now.
    pub(super) fn begin(&self, snapshot: Arc<Status>) -> Subscription {
        let (position, events) = (self.log.position(), self.watchers.subscribe());
        Subscription { snapshot: Some(snapshot), position, since: Vec::new(), events }
    }

    /// Begins with the shared snapshot and the events since, if there is one.
    pub(super) fn begin_shared(&mut self, now: Instant) -> Option<Subscription> {
        let (snapshot, position, since) = self.shared_snapshot.get(now)?;
        let events = self.watchers.subscribe();
        Some(Subscription { snapshot: Some(snapshot), position, since, events })
    }

    pub(super) fn share(&mut self, snapshot: Arc<Status>, now: Instant) {
        self.shared_snapshot.set(snapshot, self.log.position(), now);
    }

    /// Frees what is not shared any longer.
    pub(super) fn expire(&mut self, now: Instant) {
        self.shared_snapshot.expire(now);
    }
}
