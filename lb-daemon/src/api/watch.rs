//! The stream of a watch: a snapshot, then events.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{Stream, stream};
use spillway_proto::v1::ErrorReason;
use tokio::{
    sync::{Notify, broadcast, broadcast::error::RecvError},
    task::AbortHandle,
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use super::{
    all_backends::Answer,
    convert::{ApiError, IntoStatus, OrStatus},
};
use crate::access::Lease;
use lb_control::command::{self, Actor, Commands, Event, Stopping, Subscription};

/// Limits of events that wait for a slow client: their number, and the objects in them. Beyond a limit they are dropped,
/// and the client gets a snapshot when it reads again.
const MAX_EVENTS: usize = 4096;
const MAX_OBJECTS: usize = 16_384;

/// Least time between two such snapshots. A client that needs more is too slow.
const CATCH_UP: Duration = Duration::from_secs(10);

pub(super) type WatchStream = Pin<Box<dyn Stream<Item = Result<Answer, Status>> + Send>>;

/// A subscription's snapshot, then its events. A client that lags behind gets a new snapshot; if it lags again within
/// [`CATCH_UP`], the stream ends with an error.
pub(super) fn stream(
    commands: Commands,
    subscription: Subscription,
    place: Option<Lease<Actor>>,
    stop: CancellationToken,
) -> WatchStream {
    let Subscription { snapshot, since, events } = subscription;
    let watcher = Watcher {
        commands,
        snapshot: Some(snapshot),
        events: EventQueue::follow(since, events),
        caught_up: None,
        ended: false,
        _place: place,
    };
    let stopping = stop.cancelled_owned();
    Box::pin(stream::unfold((watcher, Box::pin(stopping)), |(mut watcher, mut stopping)| async {
        if watcher.ended {
            return None;
        }
        let item = tokio::select! {
            item = watcher.next() => item,
            () = &mut stopping => Err(Stopping.into_status()),
        };
        watcher.ended = item.is_err();
        Some((item, (watcher, stopping)))
    }))
}

struct Watcher {
    commands: Commands,
    /// To be sent before any event.
    snapshot: Option<Arc<command::Status>>,
    events: EventQueue,
    /// Time of the last snapshot because of lag.
    caught_up: Option<Instant>,
    ended: bool,
    _place: Option<Lease<Actor>>,
}

impl Watcher {
    async fn next(&mut self) -> Result<Answer, Status> {
        loop {
            if let Some(snapshot) = self.snapshot.take() {
                return Ok(Answer::Snapshot(snapshot));
            }
            match self.events.next().await {
                Ok(event) => return Ok(Answer::Event(event)),
                Err(QueueEnd::Stopping) => return Err(Stopping.into_status()),
                Err(QueueEnd::Full) => self.catch_up().await?,
            }
        }
    }

    async fn catch_up(&mut self) -> Result<(), Status> {
        let now = Instant::now();
        if self.caught_up.is_some_and(|last| now.duration_since(last) < CATCH_UP) {
            let message = "this client reads events too slowly: watch again, and read faster";
            let (code, reason) = (Code::ResourceExhausted, ErrorReason::WatchTooSlow);
            return Err(ApiError::new(code, reason, message).into());
        }
        let Subscription { snapshot, since, events } =
            self.commands.watch_again().await.or_status()?.or_status()?;
        (self.snapshot, self.events) = (Some(snapshot), EventQueue::follow(since, events));
        self.caught_up = Some(now);
        Ok(())
    }
}

/// A bounded queue of events for one client. A task moves events into it, so that a slow client does not make the shared
/// channel keep events that all others have read.
struct EventQueue {
    waiting: Arc<SharedQueue>,
    follower: AbortHandle,
}

#[derive(Default)]
struct SharedQueue {
    queue: Mutex<Queue>,
    news: Notify,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<Arc<Event>>,
    /// Objects in the events.
    objects: usize,
    end: Option<QueueEnd>,
}

#[derive(Clone, Copy)]
enum QueueEnd {
    /// A limit was exceeded.
    Full,
    /// The daemon stops.
    Stopping,
}

impl EventQueue {
    /// Begins with the events of a subscription that were before it.
    fn follow(since: Vec<Arc<Event>>, mut events: broadcast::Receiver<Arc<Event>>) -> Self {
        let waiting = Arc::new(SharedQueue::default());
        since.into_iter().for_each(|event| {
            waiting.push(event);
        });
        let queue = Arc::clone(&waiting);
        let follower = tokio::spawn(async move {
            loop {
                let end = match events.recv().await {
                    Ok(event) => queue.push(event),
                    Err(RecvError::Lagged(_)) => queue.end(QueueEnd::Full),
                    Err(RecvError::Closed) => queue.end(QueueEnd::Stopping),
                };
                queue.news.notify_one();
                if end.is_some() {
                    return;
                }
            }
        });
        Self { waiting, follower: follower.abort_handle() }
    }

    async fn next(&self) -> Result<Arc<Event>, QueueEnd> {
        loop {
            if let Some(next) = self.waiting.pop() {
                return next;
            }
            self.waiting.news.notified().await;
        }
    }
}

impl Drop for EventQueue {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

impl SharedQueue {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pop(&self) -> Option<Result<Arc<Event>, QueueEnd>> {
        let mut queue = self.queue();
        match queue.events.pop_front() {
            Some(event) => {
                queue.objects -= objects(&event);
                Some(Ok(event))
            }
            None => queue.end.map(Err),
        }
    }

    fn push(&self, event: Arc<Event>) -> Option<QueueEnd> {
        let mut queue = self.queue();
        let objects = queue.objects + objects(&event);
        let is_full =
            queue.events.len() >= MAX_EVENTS || (objects > MAX_OBJECTS && !queue.events.is_empty());
        if is_full {
            drop(queue);
            return self.end(QueueEnd::Full);
        }
        queue.objects = objects;
        queue.events.push_back(event);
        None
    }

    fn end(&self, end: QueueEnd) -> Option<QueueEnd> {
        let mut queue = self.queue();
        if let QueueEnd::Full = end {
            // A snapshot replaces all waiting events.
            *queue = Queue::default();
        }
        queue.end = Some(end);
        queue.end
    }
}

/// Number of objects in an event.
fn objects(event: &Event) -> usize {
    match event {
        Event::Generation(applied) => 1 + applied.changes.len() + applied.movements.len(),
        Event::Overrides(change) => 1 + change.set.len() + change.ended.len(),
        Event::Backend(_) | Event::Region(_) => 1,
    }
}
