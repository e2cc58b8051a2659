//! The stream of a watch: a snapshot, then events.

use std::{
    collections::VecDeque,
    mem,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{Stream, stream};
use spillway_proto::v1::{self, ErrorReason, snapshot_begin::Cause, watch_response::Event};
use tokio::{
    sync::{Notify, broadcast, broadcast::error::RecvError},
    task::AbortHandle,
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use super::{
    all_backends::{Answer, encoded_backends},
    convert::{self, ApiError, IntoStatus, OrStatus},
};
use crate::access::Lease;
use lb_control::command::{self, Actor, Commands, Stopping, Subscription, WatchPosition};

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
    cause: Cause,
    place: Option<Lease<Actor>>,
    stop: CancellationToken,
) -> WatchStream {
    let Subscription { snapshot, position, since, events } = subscription;
    let watcher = Watcher {
        commands,
        snapshot: snapshot.map(|it| snapshot_messages(&it, cause, position)).unwrap_or_default(),
        position,
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
    snapshot: VecDeque<Answer>,
    /// After the last event that was sent.
    position: WatchPosition,
    events: EventQueue,
    /// Time of the last snapshot because of lag.
    caught_up: Option<Instant>,
    ended: bool,
    _place: Option<Lease<Actor>>,
}

impl Watcher {
    async fn next(&mut self) -> Result<Answer, Status> {
        loop {
            if let Some(message) = self.snapshot.pop_front() {
                return Ok(message);
            }
            match self.events.next().await {
                Ok(event) => {
                    self.position = self.position.next();
                    return Ok(Answer::Event(event, self.position));
                }
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
        let Subscription { snapshot, position, since, events } =
            self.commands.watch_again().await.or_status()?.or_status()?;
        let messages = |it: Arc<_>| snapshot_messages(&it, Cause::Lag, position);
        self.snapshot = snapshot.map(messages).unwrap_or_default();
        (self.position, self.events) = (position, EventQueue::follow(since, events));
        self.caught_up = Some(now);
        Ok(())
    }
}

/// Bytes of backends after which another message of a snapshot begins.
const MESSAGE_BYTES: usize = 1 << 20;

/// A snapshot as messages: its begin, the backends in parts, its end.
fn snapshot_messages(
    status: &command::Status,
    cause: Cause,
    position: WatchPosition,
) -> VecDeque<Answer> {
    let status_message = Some(convert::without_backends(status));
    let begin = v1::SnapshotBegin { cause: cause.into(), status: status_message };
    let watch = |event, resume_token: String| {
        Answer::Watch(v1::WatchResponse { event: Some(event), resume_token }.into())
    };
    let mut messages = VecDeque::from([watch(Event::SnapshotBegin(begin), String::new())]);
    let (mut parts, mut bytes) = (Vec::new(), 0);
    for part in encoded_backends(status) {
        bytes += part.len();
        parts.push(part);
        if bytes >= MESSAGE_BYTES {
            messages.push_back(Answer::SnapshotBackends(mem::take(&mut parts)));
            bytes = 0;
        }
    }
    if !parts.is_empty() {
        messages.push_back(Answer::SnapshotBackends(parts));
    }
    messages.push_back(watch(Event::SnapshotEnd(v1::SnapshotEnd {}), position.to_string()));
    messages
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
    events: VecDeque<Arc<command::Event>>,
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
    fn follow(
        since: Vec<Arc<command::Event>>,
        mut events: broadcast::Receiver<Arc<command::Event>>,
    ) -> Self {
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

    async fn next(&self) -> Result<Arc<command::Event>, QueueEnd> {
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

    fn pop(&self) -> Option<Result<Arc<command::Event>, QueueEnd>> {
        let mut queue = self.queue();
        match queue.events.pop_front() {
            Some(event) => {
                queue.objects -= event.objects();
                Some(Ok(event))
            }
            None => queue.end.map(Err),
        }
    }

    fn push(&self, event: Arc<command::Event>) -> Option<QueueEnd> {
        let mut queue = self.queue();
        let objects = queue.objects + event.objects();
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
