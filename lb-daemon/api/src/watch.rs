//! The stream of a watch: a snapshot, then events.

use std::{
    collections::VecDeque,
    iter, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::stream;
use prost::Message;
use spillway_proto::v1::{self, ErrorReason, snapshot_begin::Cause, watch_response::Event};
use tokio::{
    sync::{Notify, broadcast, broadcast::error::RecvError},
    task::AbortHandle,
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, codegen::BoxStream};

use super::{
    all_backends::{Answer, encoded_backends},
    convert::{self, ApiError, IntoStatus, OrStatus},
};
use lb_control::command::{
    self, Actor, Commands, MAX_EVENT_OBJECTS, MAX_EVENTS, Stopping, Subscription, WatchPosition,
};
use lb_secure::access::Lease;

/// Least time between two such snapshots. A client that needs more is too slow.
const CATCH_UP: Duration = Duration::from_secs(10);

/// A subscription's snapshot, then its events. A client that lags behind gets a new snapshot; if it lags again within
/// [`CATCH_UP`], the stream ends with an error.
pub(super) fn stream(
    commands: Commands,
    subscription: Subscription,
    cause: Cause,
    place: Option<Lease<Actor>>,
    stop: CancellationToken,
) -> BoxStream<Answer> {
    let Subscription { snapshot, position, since, events } = subscription;
    let watcher = Watcher {
        commands,
        pending: snapshot.map(|it| snapshot_messages(&it, cause, position)).unwrap_or_default(),
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
    /// To be sent before any further event: a snapshot, or parts of an event.
    pending: VecDeque<Answer>,
    /// After the last event that was taken from the queue.
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
            if let Some(message) = self.pending.pop_front() {
                return Ok(message);
            }
            match self.events.next().await {
                Ok(event) => {
                    self.position = self.position.next();
                    self.pending = event_messages(&event, self.position);
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
        self.pending = snapshot.map(messages).unwrap_or_default();
        (self.position, self.events) = (position, EventQueue::follow(since, events));
        self.caught_up = Some(now);
        Ok(())
    }
}

/// Bytes of objects after which another message of a snapshot begins, or of an event that is larger than the next.
const MESSAGE_BYTES: usize = 1 << 20;
/// Largest event in one message, bytes: clients take 4 MiB unless they are told otherwise.
const MAX_EVENT_BYTES: usize = 3 << 20;

/// Most overrides of a message of a snapshot.
const MESSAGE_OVERRIDES: usize = 2_000;

fn message(event: Event, resume_token: String) -> Answer {
    Answer::Watch(v1::WatchResponse { event: Some(event), resume_token }.into())
}

/// An event as messages: one, unless it is too large.
fn event_messages(event: &command::Event, position: WatchPosition) -> VecDeque<Answer> {
    let event = convert::event(event);
    if event.encoded_len() <= MAX_EVENT_BYTES {
        return [message(event, position.to_string())].into();
    }
    let mut parts: Vec<_> = match event {
        Event::Backends(v1::BackendsChange { removed, backends }) => {
            let removed = split(removed).map(|removed| {
                Event::Backends(v1::BackendsChange { removed, ..Default::default() })
            });
            let backends = split(backends).map(|backends| {
                Event::Backends(v1::BackendsChange { backends, ..Default::default() })
            });
            removed.chain(backends).collect()
        }
        Event::Groups(v1::GroupsChange { removed, groups }) => {
            let removed = split(removed)
                .map(|removed| Event::Groups(v1::GroupsChange { removed, ..Default::default() }));
            let groups = split(groups)
                .map(|groups| Event::Groups(v1::GroupsChange { groups, ..Default::default() }));
            removed.chain(groups).collect()
        }
        Event::Generation(change) => {
            let all = change.changes.len();
            let changes = split(change.changes).next().unwrap_or_default();
            let more_changes = change.more_changes + (all - changes.len()) as u64;
            vec![Event::Generation(v1::GenerationChange { changes, more_changes, ..change })]
        }
        other => vec![other],
    };
    let last = parts.pop().map(|last| message(last, position.to_string()));
    // A watch that goes on from here gets the whole event again.
    parts.into_iter().map(|part| message(part, String::new())).chain(last).collect()
}

/// Lists of up to [`MESSAGE_BYTES`].
fn split<M: Message>(list: Vec<M>) -> impl Iterator<Item = Vec<M>> {
    let mut list = list.into_iter().peekable();
    iter::from_fn(move || {
        let (mut part, mut bytes) = (Vec::new(), 0);
        while let Some(next) = list.next_if(|_| bytes < MESSAGE_BYTES) {
            bytes += next.encoded_len();
            part.push(next);
        }
        (!part.is_empty()).then_some(part)
    })
}

/// A snapshot as messages: its begin, the backends in parts, its end.
fn snapshot_messages(
    status: &command::Status,
    cause: Cause,
    position: WatchPosition,
) -> VecDeque<Answer> {
    let mut head = convert::without_backends(status);
    let (overrides, revision) = (mem::take(&mut head.overrides), head.overrides_revision);
    let begin = v1::SnapshotBegin { cause: cause.into(), status: Some(head) };
    let mut messages = VecDeque::from([message(Event::SnapshotBegin(begin), String::new())]);
    for part in overrides.chunks(MESSAGE_OVERRIDES) {
        let (set, unstored) = (part.to_vec(), status.overrides.is_unstored);
        let overrides = v1::OverridesChange { revision, set, ended: Vec::new(), unstored };
        messages.push_back(message(Event::Overrides(overrides), String::new()));
    }
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
    messages.push_back(message(Event::SnapshotEnd(v1::SnapshotEnd {}), position.to_string()));
    messages
}

/// A bounded queue of events for one client: beyond [`MAX_EVENTS`] or [`MAX_EVENT_OBJECTS`] they are dropped, and the client
/// gets a snapshot when it reads again. A task moves events into it, so that a slow client does not make the shared
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
        // Once it is full, nothing may follow: what comes after a gap would look as if nothing was missing.
        let is_full = since.into_iter().any(|event| waiting.push(event).is_some());
        let queue = Arc::clone(&waiting);
        let follower = tokio::spawn(async move {
            if is_full {
                return;
            }
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
        if queue.end.is_some() {
            return queue.end;
        }
        let objects = queue.objects + event.objects();
        let is_full = queue.events.len() >= MAX_EVENTS
            || (objects > MAX_EVENT_OBJECTS && !queue.events.is_empty());
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

#[cfg(test)]
mod tests {
    use super::*;
    use lb_control::command::BackendsEvent;
    use lb_model::Name;

    fn removed(number: usize) -> Arc<command::Event> {
        let one = (Name::new("web").unwrap(), [10, 0, 0, 1].into());
        let removed = vec![one; number];
        command::Event::Backends(BackendsEvent { removed, ..BackendsEvent::default() }).into()
    }

    /// What comes after a gap is not sent as if nothing was missed.
    #[tokio::test]
    async fn nothing_follows_events_that_were_dropped() {
        let (tx, rx) = broadcast::channel(8);
        let since = vec![removed(MAX_EVENT_OBJECTS - 10), removed(20), removed(1)];
        let queue = EventQueue::follow(since, rx);
        // Nobody may listen any more.
        let _ = tx.send(removed(1));
        tokio::task::yield_now().await;
        assert!(matches!(queue.next().await, Err(QueueEnd::Full)));
        assert!(matches!(queue.next().await, Err(QueueEnd::Full)));

        let (tx, rx) = broadcast::channel(8);
        let queue = EventQueue::follow(vec![removed(MAX_EVENT_OBJECTS - 10)], rx);
        for number in [20, 1] {
            let _ = tx.send(removed(number));
            tokio::task::yield_now().await;
        }
        assert!(matches!(queue.next().await, Err(QueueEnd::Full)));
    }

    #[test]
    fn an_event_that_is_too_large_is_several_messages_with_one_token() {
        let position = WatchPosition { life: 1, number: 7 };
        let messages = |event: &command::Event| -> Vec<(usize, usize, String)> {
            let watch = |answer| match answer {
                Answer::Watch(message) => *message,
                other => panic!("{other:?}"),
            };
            let parts = event_messages(event, position).into_iter().map(watch);
            let part = |it: v1::WatchResponse| {
                let bytes = it.encoded_len();
                let Some(Event::Backends(change)) = it.event else { panic!("{it:?}") };
                (bytes, change.removed.len(), it.resume_token)
            };
            parts.map(part).collect()
        };
        let small = messages(&removed(10));
        assert_eq!((small.len(), small[0].1, &*small[0].2), (1, 10, "0000000000000001-7"));
        let large = messages(&removed(200_000));
        assert!(large.len() > 3 && large.iter().all(|(bytes, ..)| *bytes < 4 << 20));
        assert_eq!(large.iter().map(|(_, count, _)| count).sum::<usize>(), 200_000);
        let (last, others) = large.split_last().unwrap();
        assert_eq!(last.2, "0000000000000001-7");
        assert!(others.iter().all(|(.., token)| token.is_empty()));
    }

    /// A generation that one message cannot have all of: it would be refused by the client, at each attempt again.
    #[test]
    fn a_generation_that_is_too_large_says_how_many_changes_it_leaves_out() {
        use lb_model::{ObjectReference, diff};
        let change = diff::Change {
            kind: diff::Kind::Changed,
            object: ObjectReference::Region(Name::new("eu").unwrap()),
            fields: vec![diff::FieldChange {
                field: "overflow_to",
                old: "x".repeat(2_000),
                new: "none".into(),
                region: None,
                note: String::new(),
            }],
            slots_moved: 0,
        };
        let changes = vec![change; 6_000];
        let applied = command::Applied { generation: 7, changes, ..command::Applied::default() };
        let position = WatchPosition { life: 1, number: 7 };
        let mut messages = event_messages(&command::Event::Generation(applied), position);
        let [Answer::Watch(message)] = messages.make_contiguous() else {
            panic!("not one message")
        };
        assert!(message.encoded_len() < 4 << 20 && !message.resume_token.is_empty());
        let Some(Event::Generation(told)) = &message.event else { panic!("{message:?}") };
        assert!(told.changes.len() > 100, "{}", told.changes.len());
        assert_eq!(told.changes.len() as u64 + told.more_changes, 6_000);
    }
}
