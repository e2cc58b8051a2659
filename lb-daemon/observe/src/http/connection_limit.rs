//! A limit of connections. At the limit, a new connection evicts the longest idle one of the source that has most.

use std::{
    cmp::Reverse,
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Clones share the limit.
#[derive(Clone, Debug)]
pub(super) struct ConnectionLimit(Arc<LimitInner>);

#[derive(Debug)]
struct LimitInner {
    free: Arc<Semaphore>,
    taken: Mutex<OpenConnections>,
    /// Notified when a connection becomes idle.
    idle: Notify,
}

#[derive(Debug, Default)]
struct OpenConnections {
    next: u64,
    connections: HashMap<u64, OpenConnection>,
}

#[derive(Debug)]
struct OpenConnection {
    source: IpAddr,
    /// `None`: a request is being answered.
    idle_since: Option<Instant>,
    end: Arc<Notify>,
}

/// The slot of a connection, released on drop.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    limit: ConnectionLimit,
    number: u64,
    end: Arc<Notify>,
    _permit: OwnedSemaphorePermit,
}

/// Marks the connection as busy until it is dropped.
#[derive(Debug)]
pub(super) struct Answering(Arc<ConnectionSlot>);

impl ConnectionLimit {
    pub(super) fn new(most: usize) -> Self {
        let (taken, idle) = (Mutex::default(), Notify::new());
        Self(Arc::new(LimitInner { free: Arc::new(Semaphore::new(most)), taken, idle }))
    }

    /// Waits for a slot, and evicts an idle connection if none is free.
    pub(super) async fn take(&self, source: IpAddr) -> ConnectionSlot {
        loop {
            let idle = self.0.idle.notified();
            tokio::pin!(idle);
            // From here on no notification is missed.
            idle.as_mut().enable();
            if let Ok(permit) = Arc::clone(&self.0.free).try_acquire_owned() {
                return self.slot(permit, source);
            }
            if self.evict_idle() {
                // The evicted connection releases its slot as soon as its task runs.
                if let Ok(permit) = Arc::clone(&self.0.free).acquire_owned().await {
                    return self.slot(permit, source);
                }
            }
            tokio::select! {
                Ok(permit) = Arc::clone(&self.0.free).acquire_owned() => return self.slot(permit, source),
                () = idle => {}
            }
        }
    }

    fn slot(&self, permit: OwnedSemaphorePermit, source: IpAddr) -> ConnectionSlot {
        let (mut taken, end) = (self.taken(), Arc::new(Notify::new()));
        let number = taken.next;
        taken.next += 1;
        let held =
            OpenConnection { source, idle_since: Some(Instant::now()), end: Arc::clone(&end) };
        taken.connections.insert(number, held);
        ConnectionSlot { limit: self.clone(), number, end, _permit: permit }
    }

    /// Evicts the longest idle connection of the source that has most, so that one source alone evicts no other's;
    /// `false`: none is idle.
    fn evict_idle(&self) -> bool {
        let mut taken = self.taken();
        let mut of_source: HashMap<IpAddr, usize> = HashMap::new();
        taken.connections.values().for_each(|held| *of_source.entry(held.source).or_default() += 1);
        let idle = taken.connections.iter().filter_map(|(number, held)| {
            Some((Reverse(of_source[&held.source]), held.idle_since?, *number))
        });
        let Some((.., number)) = idle.min() else { return false };
        // Removed, so that it is evicted once only.
        if let Some(held) = taken.connections.remove(&number) {
            held.end.notify_one();
        }
        true
    }

    fn taken(&self) -> MutexGuard<'_, OpenConnections> {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionSlot {
    /// Completes when the connection must end.
    pub(super) async fn evicted(&self) {
        self.end.notified().await;
    }

    /// Marks the connection as busy while a request is answered.
    pub(super) fn answering(self: &Arc<Self>) -> Answering {
        self.set_idle_since(None);
        Answering(Arc::clone(self))
    }

    /// Restarts the idle time after part of an answer was sent: a client that reads is not idle.
    pub(super) fn sent(&self) {
        let mut taken = self.limit.taken();
        let held = taken.connections.get_mut(&self.number);
        if let Some(Some(since)) = held.map(|held| held.idle_since.as_mut()) {
            *since = Instant::now();
        }
    }

    fn set_idle_since(&self, since: Option<Instant>) {
        if let Some(held) = self.limit.taken().connections.get_mut(&self.number) {
            held.idle_since = since;
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.limit.taken().connections.remove(&self.number);
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.set_idle_since(Some(Instant::now()));
        self.0.limit.0.idle.notify_one();
    }
}
