//! Places for connections. Where all are taken, the connection that is idle longest gives its place to
//! a new one.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Places. Clones are of the same ones.
#[derive(Clone, Debug)]
pub(super) struct Places(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    free: Arc<Semaphore>,
    taken: Mutex<Taken>,
    /// A connection became idle.
    idle: Notify,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    connections: HashMap<u64, Held>,
}

#[derive(Debug)]
struct Held {
    /// Since when it has been idle; `None`: a request is being answered.
    idle_since: Option<Instant>,
    end: Arc<Notify>,
}

/// The place of a connection, which is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    number: u64,
    end: Arc<Notify>,
    _permit: OwnedSemaphorePermit,
}

/// While it lives, a request is being answered.
#[derive(Debug)]
pub(super) struct Answering(Arc<Place>);

impl Places {
    pub(super) fn new(most: usize) -> Self {
        let (taken, idle) = (Mutex::default(), Notify::new());
        Self(Arc::new(Inner { free: Arc::new(Semaphore::new(most)), taken, idle }))
    }

    /// Waits for a place, and ends the connection that is idle longest if none is free.
    pub(super) async fn take(&self) -> Place {
        loop {
            let idle = self.0.idle.notified();
            tokio::pin!(idle);
            // From here on no news is missed.
            idle.as_mut().enable();
            if let Ok(permit) = Arc::clone(&self.0.free).try_acquire_owned() {
                return self.place(permit);
            }
            if self.end_longest_idle() {
                // It gives its place back as soon as its task runs.
                if let Ok(permit) = Arc::clone(&self.0.free).acquire_owned().await {
                    return self.place(permit);
                }
            }
            tokio::select! {
                Ok(permit) = Arc::clone(&self.0.free).acquire_owned() => return self.place(permit),
                () = idle => {}
            }
        }
    }

    fn place(&self, permit: OwnedSemaphorePermit) -> Place {
        let (mut taken, end) = (self.taken(), Arc::new(Notify::new()));
        let number = taken.next;
        taken.next += 1;
        let held = Held { idle_since: Some(Instant::now()), end: Arc::clone(&end) };
        taken.connections.insert(number, held);
        Place { places: self.clone(), number, end, _permit: permit }
    }

    /// Tells the connection that is idle longest to end; `false`: none is idle.
    fn end_longest_idle(&self) -> bool {
        let mut taken = self.taken();
        let idle = taken.connections.iter().filter_map(|(n, held)| Some((held.idle_since?, *n)));
        let Some((_, number)) = idle.min() else { return false };
        // Nobody ends it a second time.
        if let Some(held) = taken.connections.remove(&number) {
            held.end.notify_one();
        }
        true
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Done when the connection must give way.
    pub(super) async fn given_up(&self) {
        self.end.notified().await;
    }

    /// A request has come. It is answered until what this returns is dropped.
    pub(super) fn answering(self: &Arc<Self>) -> Answering {
        self.set_idle_since(None);
        Answering(Arc::clone(self))
    }

    /// Some of an answer was sent: a client that reads is not the one that is idle longest.
    pub(super) fn sent(&self) {
        let mut taken = self.places.taken();
        let held = taken.connections.get_mut(&self.number);
        if let Some(Some(since)) = held.map(|held| held.idle_since.as_mut()) {
            *since = Instant::now();
        }
    }

    fn set_idle_since(&self, since: Option<Instant>) {
        if let Some(held) = self.places.taken().connections.get_mut(&self.number) {
            held.idle_since = since;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().connections.remove(&self.number);
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.set_idle_since(Some(Instant::now()));
        self.0.places.0.idle.notify_one();
    }
}
