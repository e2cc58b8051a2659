//! How much of the API one client, and one door, may have at a time.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

use super::convert::hinted;
use crate::{
    access::{Lease, Quota, QuotaExceeded},
    metrics::{ApiLimit, Door, Live},
};
use lb_base::rate_limited_log::RateLimit;
use lb_control::command::Actor;

/// Connections of the socket, and of one user of it.
const LOCAL_CONNECTIONS: (usize, usize) = (256, 128);
/// Calls under way at a door, streams included, and of one client.
const CALLS: (usize, usize) = (1024, 256);
/// Watches over the socket, and of one user.
const LOCAL_WATCHES: (usize, usize) = (64, 32);
/// Watches over TLS, and of one client.
const REMOTE_WATCHES: (usize, usize) = (64, 16);
/// Calls of one client that the daemon works at; others of the client wait.
const LOCAL_AT_WORK: usize = 16;
const REMOTE_AT_WORK: usize = 4;
/// Calls over TLS that the daemon works at. The state has a queue of 64: the socket's always have room in it.
const ALL_REMOTE_AT_WORK: usize = 16;
/// What a client may do whose call is refused.
const HINT: &str = "end some of them, or wait until they end, and try again; \
                    /usr/share/doc/spillway/docs/api.md lists the limits";
/// Lines a second about what is refused.
const LINES: u32 = 5;

/// The limits. Clones count together.
#[derive(Clone, Debug)]
pub(super) struct Limits(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    connections: Quota<u32>,
    local: Share,
    remote: Share,
    live: Live,
    lines: RateLimit,
}

/// What a door has for its clients.
#[derive(Debug)]
struct Share {
    calls: Quota<Actor>,
    watches: Quota<Actor>,
    at_work: Arc<Semaphore>,
    of_one: Mutex<HashMap<Actor, Weak<Semaphore>>>,
    most_of_one: usize,
}

/// While it lives, the daemon works at a call.
#[derive(Debug)]
pub(super) struct AtWork {
    _of_one: Option<OwnedSemaphorePermit>,
    _of_all: Option<OwnedSemaphorePermit>,
}

impl Share {
    fn new(watches: (usize, usize), at_work: (usize, usize)) -> Self {
        Self {
            calls: Quota::new(CALLS.0, CALLS.1),
            watches: Quota::new(watches.0, watches.1),
            at_work: Arc::new(Semaphore::new(at_work.0)),
            of_one: Mutex::default(),
            most_of_one: at_work.1,
        }
    }

    fn of_one(&self, actor: &Actor) -> Arc<Semaphore> {
        let mut all = self.of_one.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(there) = all.get(actor).and_then(Weak::upgrade) {
            return there;
        }
        all.retain(|_, semaphore| semaphore.strong_count() > 0);
        let new = Arc::new(Semaphore::new(self.most_of_one));
        all.insert(actor.clone(), Arc::downgrade(&new));
        new
    }
}

impl Limits {
    pub(super) fn new(live: Live) -> Self {
        Self(Arc::new(Inner {
            connections: Quota::new(LOCAL_CONNECTIONS.0, LOCAL_CONNECTIONS.1),
            local: Share::new(LOCAL_WATCHES, (Semaphore::MAX_PERMITS, LOCAL_AT_WORK)),
            remote: Share::new(REMOTE_WATCHES, (ALL_REMOTE_AT_WORK, REMOTE_AT_WORK)),
            live,
            lines: RateLimit::default(),
        }))
    }

    /// A connection of a user of the socket; `None`: there are enough.
    pub(super) fn connection(&self, uid: u32) -> Option<Lease<u32>> {
        let taken = self.0.connections.take(uid);
        taken.map_err(|over| self.refused(&Actor::User(uid), ApiLimit::Connections, over)).ok()
    }

    /// A call of a client, until it has ended.
    ///
    /// # Errors
    /// There are enough.
    pub(super) fn call(&self, actor: &Actor) -> Result<Lease<Actor>, Status> {
        let taken = self.of(actor).1.calls.take(actor.clone());
        taken.map_err(|over| self.refused(actor, ApiLimit::Calls, over))
    }

    /// A watch of a client, until it has ended.
    ///
    /// # Errors
    /// There are enough.
    pub(super) fn watch(&self, actor: &Actor) -> Result<Lease<Actor>, Status> {
        let taken = self.of(actor).1.watches.take(actor.clone());
        taken.map_err(|over| self.refused(actor, ApiLimit::Watches, over))
    }

    /// Waits until the daemon may work at a call of a client.
    pub(super) async fn work(&self, actor: &Actor) -> AtWork {
        let share = self.of(actor).1;
        // First those of the same client wait for each other; nobody closes a semaphore.
        let of_one = share.of_one(actor).acquire_owned().await.ok();
        let of_all = Arc::clone(&share.at_work).acquire_owned().await.ok();
        AtWork { _of_one: of_one, _of_all: of_all }
    }

    fn of(&self, actor: &Actor) -> (Door, &Share) {
        match actor {
            Actor::Certificate(_) => (Door::Tls, &self.0.remote),
            Actor::User(_) | Actor::File(_) | Actor::Unknown => (Door::Socket, &self.0.local),
        }
    }

    fn refused(&self, actor: &Actor, limit: ApiLimit, over: QuotaExceeded) -> Status {
        let door = self.of(actor).0;
        self.0.live.api_refused(door, limit);
        let cause = format!("{}: there are {over}", limit.name());
        if let Some(left_out) = self.0.lines.now(LINES) {
            tracing::warn!(client = %actor, door = door.name(), left_out, "API: refused: {cause}");
        }
        hinted(Status::resource_exhausted(cause), HINT)
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, future::join_all};

    use super::*;

    fn viewer(number: usize) -> Actor {
        Actor::Certificate(format!("viewer-{number}.example"))
    }

    #[test]
    fn calls_of_one_client_and_of_a_door_have_their_number() {
        let limits = Limits::new(Live::default());
        let of = |number| (0..CALLS.1).map(|_| limits.call(&viewer(number))).collect::<Vec<_>>();
        let mut held: Vec<_> = (0..CALLS.0 / CALLS.1).map(of).collect();
        assert!(held.iter().flatten().all(Result::is_ok));
        let of_one = limits.call(&viewer(0)).unwrap_err();
        assert_eq!(of_one.message(), "calls: there are 256 of this client, which is the limit");
        let of_all = limits.call(&viewer(99)).unwrap_err();
        assert_eq!(of_all.message(), "calls: there are 1024 of all clients, which is the limit");
        // The other door has its own.
        limits.call(&Actor::User(0)).unwrap();
        held[0].pop();
        limits.call(&viewer(0)).unwrap();
    }

    #[tokio::test]
    async fn one_client_s_work_leaves_room_for_others() {
        let limits = Limits::new(Live::default());
        let at_work = async |actor: &Actor, number: usize| {
            let held = (0..number).map(|_| limits.work(actor));
            join_all(held).await
        };
        let _first = at_work(&viewer(0), REMOTE_AT_WORK).await;
        assert!(limits.work(&viewer(0)).now_or_never().is_none(), "it waits for its own");
        let mut others = Vec::new();
        for number in 1..ALL_REMOTE_AT_WORK / REMOTE_AT_WORK {
            others.push(at_work(&viewer(number), REMOTE_AT_WORK).await);
        }
        assert!(limits.work(&viewer(99)).now_or_never().is_none(), "it waits for all of TLS");
        let _local = at_work(&Actor::User(0), LOCAL_AT_WORK).await;
        others.pop();
        let _next = limits.work(&viewer(99)).now_or_never().unwrap();
    }
}
