//! The stream of a watcher.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{Stream, stream};
use spillway_proto::v1::WatchResponse;
use tokio::{
    sync::{Notify, broadcast, broadcast::error::RecvError},
    task::AbortHandle,
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::convert::{self, IntoStatus, OrStatus};
use crate::access::Lease;
use lb_control::command::{self, Actor, Commands, Event, Stopping, Subscription};

/// Events that wait for a watcher that does not read, and what they may be about, in objects. Beyond
/// that they are dropped, and the watcher gets a snapshot when it reads again.
const EVENTS: usize = 4096;
const OBJECTS: usize = 16_384;

/// Least time between two such snapshots. A watcher that needs more is too slow to follow.
const CATCH_UP: Duration = Duration::from_secs(10);

/// What a watcher gets.
pub(super) type WatchStream = Pin<Box<dyn Stream<Item = Result<WatchResponse, Status>> + Send>>;

/// A subscription's snapshot, then its events. Whoever lags behind gets a new snapshot; whoever does
/// again and again is told that it is too slow, and that is the end.
pub(super) fn stream(
    commands: Commands,
    subscription: Subscription,
    place: Option<Lease<Actor>>,
    stop: CancellationToken,
) -> WatchStream {
    let Subscription { snapshot, events } = subscription;
    let watcher = Watcher {
        commands,
        snapshot: Some(Box::new(snapshot)),
        events: Events::follow(events),
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
    /// What is to be sent before any event.
    snapshot: Option<Box<command::Status>>,
    events: Events,
    /// When it last got a snapshot because it lagged behind.
    caught_up: Option<Instant>,
    ended: bool,
    _place: Option<Lease<Actor>>,
}

impl Watcher {
    async fn next(&mut self) -> Result<WatchResponse, Status> {
        loop {
            if let Some(snapshot) = self.snapshot.take() {
                return Ok(convert::snapshot(&snapshot));
            }
            match self.events.next().await {
                Ok(event) => return Ok(convert::event(&event)),
                Err(End::Stopping) => return Err(Stopping.into_status()),
                Err(End::Full) => self.catch_up().await?,
            }
        }
    }

    async fn catch_up(&mut self) -> Result<(), Status> {
        let now = Instant::now();
        if self.caught_up.is_some_and(|last| now.duration_since(last) < CATCH_UP) {
            return Err(Status::resource_exhausted(
                "changes come faster than this watch reads them: watch again, and read faster",
            ));
        }
        let Subscription { snapshot, events } =
            self.commands.watch().await.or_status()?.or_status()?;
        (self.snapshot, self.events) = (Some(Box::new(snapshot)), Events::follow(events));
        self.caught_up = Some(now);
        Ok(())
    }
}

/// Events that wait for a watcher: not more than there is room for, so that a watcher that does not read
/// has the daemon keep nothing that all others have read.
struct Events {
    waiting: Arc<Waiting>,
    follower: AbortHandle,
}

#[derive(Default)]
struct Waiting {
    queue: Mutex<Queue>,
    news: Notify,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<Event>,
    /// What they are about, in objects.
    objects: usize,
    end: Option<End>,
}

#[derive(Clone, Copy)]
enum End {
    /// There is no room for what comes.
    Full,
    /// The daemon stops.
    Stopping,
}

impl Events {
    fn follow(mut events: broadcast::Receiver<Event>) -> Self {
        let waiting = Arc::new(Waiting::default());
        let queue = Arc::clone(&waiting);
        let follower = tokio::spawn(async move {
            loop {
                let end = match events.recv().await {
                    Ok(event) => queue.push(event),
                    Err(RecvError::Lagged(_)) => queue.end(End::Full),
                    Err(RecvError::Closed) => queue.end(End::Stopping),
                };
                queue.news.notify_one();
                if end.is_some() {
                    return;
                }
            }
        });
        Self { waiting, follower: follower.abort_handle() }
    }

    /// The next event, or why there is none.
    async fn next(&self) -> Result<Event, End> {
        loop {
            if let Some(next) = self.waiting.pop() {
                return next;
            }
            self.waiting.news.notified().await;
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

impl Waiting {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What comes next, if it is there.
    fn pop(&self) -> Option<Result<Event, End>> {
        let mut queue = self.queue();
        match queue.events.pop_front() {
            Some(event) => {
                queue.objects -= objects(&event);
                Some(Ok(event))
            }
            None => queue.end.map(Err),
        }
    }

    fn push(&self, event: Event) -> Option<End> {
        let mut queue = self.queue();
        let objects = queue.objects + objects(&event);
        let is_full =
            queue.events.len() >= EVENTS || (objects > OBJECTS && !queue.events.is_empty());
        if is_full {
            drop(queue);
            return self.end(End::Full);
        }
        queue.objects = objects;
        queue.events.push_back(event);
        None
    }

    fn end(&self, end: End) -> Option<End> {
        let mut queue = self.queue();
        if let End::Full = end {
            // A snapshot takes the place of all of them.
            *queue = Queue::default();
        }
        queue.end = Some(end);
        queue.end
    }
}

/// How many objects an event is about.
fn objects(event: &Event) -> usize {
    match event {
        Event::Generation(applied) => 1 + applied.changes.len() + applied.movements.len(),
        Event::Backend(_) | Event::Region(_) => 1,
    }
}
