//! Limits on what one client, and all clients of a listener, may have of the API at a time.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use spillway_proto::v1::ErrorReason;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::{Code, Status};

use super::convert::ApiError;
use lb_base::rate_limited_log::RateLimit;
use lb_control::command::Actor;
use lb_secure::{
    access::{Lease, Quota, QuotaExceeded},
    refusals::{ApiLimit, ApiListener, ApiRefusals},
};

/// Connections of the socket, in total and of one user.
const LOCAL_CONNECTIONS: (usize, usize) = (256, 128);
/// Calls under way of a listener, streams included, in total and of one client.
const CALLS: (usize, usize) = (1024, 256);
/// Watches over the socket, in total and of one user.
const LOCAL_WATCHES: (usize, usize) = (256, 128);
/// Watches over TLS, in total and of one client.
const REMOTE_WATCHES: (usize, usize) = (64, 16);
/// Calls of one client that are worked at; its other calls wait.
const LOCAL_AT_WORK: usize = 16;
const REMOTE_AT_WORK: usize = 4;
/// Calls over TLS that are worked at. The state's queue has room for 64, so calls over the socket always fit in.
const ALL_REMOTE_AT_WORK: usize = 16;
/// Large requests and large answers on their way over the socket, in total and of one user; each may be of 64 MiB.
const LOCAL_TRANSFERS: (usize, usize) = (8, 4);
/// And over TLS, in total and of one client.
const REMOTE_TRANSFERS: (usize, usize) = (4, 2);
const HINT: &str = "end some of them, or wait until they end, and try again; \
                    /usr/share/doc/spillway/docs/api.md lists the limits";
/// Log lines a second about refusals.
const LINES: u32 = 5;

/// The limits. Clones share the counts.
#[derive(Clone, Debug)]
pub(super) struct Limits(Arc<LimitsInner>);

#[derive(Debug)]
struct LimitsInner {
    connections: Quota<u32>,
    local: ListenerLimits,
    remote: ListenerLimits,
    refusals: ApiRefusals,
    lines: RateLimit,
}

/// Limits of one listener.
#[derive(Debug)]
struct ListenerLimits {
    calls: Quota<Actor>,
    watches: Quota<Actor>,
    at_work: Turns,
    transfers: Turns,
}

/// Permits that clients wait for, instead of being refused.
#[derive(Debug)]
struct Turns {
    all: Arc<Semaphore>,
    of_one: Mutex<HashMap<Actor, Weak<Semaphore>>>,
    most_of_one: usize,
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    _of_one: Option<OwnedSemaphorePermit>,
    _of_all: Option<OwnedSemaphorePermit>,
}

/// The permit of a call that is worked at.
pub(super) type WorkPermit = Turn;

/// The permit of a large request or answer that is on its way.
pub(super) type TransferPermit = Turn;

impl ListenerLimits {
    fn new(watches: (usize, usize), at_work: (usize, usize), transfers: (usize, usize)) -> Self {
        Self {
            calls: Quota::new(CALLS.0, CALLS.1),
            watches: Quota::new(watches.0, watches.1),
            at_work: Turns::new(at_work),
            transfers: Turns::new(transfers),
        }
    }
}

impl Turns {
    fn new((all, most_of_one): (usize, usize)) -> Self {
        Self { all: Arc::new(Semaphore::new(all)), of_one: Mutex::default(), most_of_one }
    }

    async fn take(&self, actor: &Actor) -> Turn {
        // Calls of the same client wait for each other first. The semaphores are never closed.
        let of_one = self.of_one(actor).acquire_owned().await.ok();
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok();
        Turn { _of_one: of_one, _of_all: of_all }
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
    pub(super) fn new(refusals: ApiRefusals) -> Self {
        Self(Arc::new(LimitsInner {
            connections: Quota::new(LOCAL_CONNECTIONS.0, LOCAL_CONNECTIONS.1),
            local: ListenerLimits::new(
                LOCAL_WATCHES,
                (Semaphore::MAX_PERMITS, LOCAL_AT_WORK),
                LOCAL_TRANSFERS,
            ),
            remote: ListenerLimits::new(
                REMOTE_WATCHES,
                (ALL_REMOTE_AT_WORK, REMOTE_AT_WORK),
                REMOTE_TRANSFERS,
            ),
            refusals,
            lines: RateLimit::default(),
        }))
    }

    /// Takes a connection of a user of the socket; `None`: the limit is reached.
    pub(super) fn connection(&self, uid: u32) -> Option<Lease<u32>> {
        let taken = self.0.connections.take(uid);
        taken.map_err(|over| self.refused(&Actor::user(uid), ApiLimit::Connections, over)).ok()
    }

    /// Takes a call of a client, until the lease is dropped.
    pub(super) fn call(&self, actor: &Actor) -> Result<Lease<Actor>, Status> {
        let taken = self.limits_of(actor).1.calls.take(actor.clone());
        taken.map_err(|over| self.refused(actor, ApiLimit::Calls, over))
    }

    /// Takes a watch of a client, until the lease is dropped.
    pub(super) fn watch(&self, actor: &Actor) -> Result<Lease<Actor>, Status> {
        let taken = self.limits_of(actor).1.watches.take(actor.clone());
        taken.map_err(|over| self.refused(actor, ApiLimit::Watches, over))
    }

    /// Waits until a call of a client may be worked at.
    pub(super) async fn work(&self, actor: &Actor) -> WorkPermit {
        self.limits_of(actor).1.at_work.take(actor).await
    }

    /// Waits until a large request of a client may be read, or a large answer made.
    pub(super) async fn transfer(&self, actor: &Actor) -> TransferPermit {
        self.limits_of(actor).1.transfers.take(actor).await
    }

    fn limits_of(&self, actor: &Actor) -> (ApiListener, &ListenerLimits) {
        match actor {
            Actor::Certificate(_) => (ApiListener::Tls, &self.0.remote),
            Actor::User { .. } | Actor::File(_) | Actor::Fleet { .. } | Actor::Unknown => {
                (ApiListener::Socket, &self.0.local)
            }
        }
    }

    fn refused(&self, actor: &Actor, limit: ApiLimit, over: QuotaExceeded) -> Status {
        let listener = self.limits_of(actor).0;
        self.0.refusals.count(listener, limit);
        let cause = format!("{}: there are {over}", limit.name());
        if let Some(left_out) = self.0.lines.now(LINES) {
            tracing::warn!(client = %actor, listener = listener.name(), left_out, "API: call refused: {cause}");
        }
        ApiError::new(Code::ResourceExhausted, ErrorReason::ApiLimit, cause).hint(HINT).into()
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
    fn calls_of_one_client_and_of_a_listener_are_limited() {
        let limits = Limits::new(ApiRefusals::default());
        let of = |number| (0..CALLS.1).map(|_| limits.call(&viewer(number))).collect::<Vec<_>>();
        let mut held: Vec<_> = (0..CALLS.0 / CALLS.1).map(of).collect();
        assert!(held.iter().flatten().all(Result::is_ok));
        let of_one = limits.call(&viewer(0)).unwrap_err();
        assert_eq!(of_one.message(), "calls: there are 256 of this client, which is the limit");
        let of_all = limits.call(&viewer(99)).unwrap_err();
        assert_eq!(of_all.message(), "calls: there are 1024 of all clients, which is the limit");
        // The other listener has limits of its own.
        limits.call(&Actor::user(0)).unwrap();
        held[0].pop();
        limits.call(&viewer(0)).unwrap();
    }

    #[tokio::test]
    async fn one_client_s_work_leaves_room_for_others() {
        let limits = Limits::new(ApiRefusals::default());
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
        let _local = at_work(&Actor::user(0), LOCAL_AT_WORK).await;
        others.pop();
        let _next = limits.work(&viewer(99)).now_or_never().unwrap();
    }
}
