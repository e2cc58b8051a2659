//! The snapshot for watchers that lag. A storm makes many lag at once, and each snapshot takes the status loop's time for
//! all backends, so they share one: whoever comes later gets the events since then too.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::command::{Event, MAX_EVENT_OBJECTS, MAX_EVENTS, Status, WatchPosition};

/// How long a snapshot is shared: it also has what no event tells, such as conditions.
const SHARED_FOR: Duration = Duration::from_secs(1);

/// Most events that a watcher gets after it, and most objects in them: a quarter of what may wait for one.
const MOST_EVENTS: usize = MAX_EVENTS / 4;
const MOST_OBJECTS: usize = MAX_EVENT_OBJECTS / 4;

#[derive(Debug, Default)]
pub(super) struct SharedSnapshot(Option<Shared>);

#[derive(Debug)]
struct Shared {
    snapshot: Arc<Status>,
    position: WatchPosition,
    taken: Instant,
    /// The events since.
    since: Vec<Arc<Event>>,
    /// Objects in them.
    objects: usize,
    /// With so many events a new snapshot costs less.
    most: usize,
}

impl SharedSnapshot {
    /// The snapshot and all events since, if it may be shared still.
    pub(super) fn get(
        &mut self,
        now: Instant,
    ) -> Option<(Arc<Status>, WatchPosition, Vec<Arc<Event>>)> {
        self.expire(now);
        let Shared { snapshot, position, since, .. } = self.0.as_ref()?;
        Some((Arc::clone(snapshot), *position, since.clone()))
    }

    pub(super) fn set(&mut self, snapshot: Arc<Status>, position: WatchPosition, now: Instant) {
        let most = snapshot.backends().count().min(MOST_EVENTS);
        self.0 =
            Some(Shared { snapshot, position, taken: now, since: Vec::new(), objects: 0, most });
    }

    /// Adds an event. A snapshot is not shared any longer if a new one costs less than the events since, or if a
    /// configuration came into force, of which the event does not tell all.
    pub(super) fn add(&mut self, event: &Arc<Event>) {
        let Some(shared) = &mut self.0 else { return };
        shared.objects += event.objects();
        let is_much = shared.since.len() >= shared.most || shared.objects > MOST_OBJECTS;
        if is_much || matches!(**event, Event::Generation(_)) {
            self.0 = None;
        } else {
            shared.since.push(Arc::clone(event));
        }
    }

    /// Frees it once it is not shared any longer.
    pub(super) fn expire(&mut self, now: Instant) {
        self.0.take_if(|shared| now.saturating_duration_since(shared.taken) >= SHARED_FOR);
    }
}
