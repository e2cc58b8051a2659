//! The stream of a watcher.

use std::pin::Pin;

use futures::{Stream, stream};
use spillway_proto::v1::WatchResponse;
use tokio::sync::broadcast::error::RecvError;
use tonic::Status;

use crate::{
    command::{self, Commands, Event, Stopping, Subscription},
    stop::Stop,
};

/// What a watcher gets.
pub(super) type WatchStream = Pin<Box<dyn Stream<Item = Result<WatchResponse, Status>> + Send>>;

/// A subscription's snapshot, then its events. Whoever lags behind gets a new snapshot.
pub(super) fn stream(commands: Commands, subscription: Subscription, stop: Stop) -> WatchStream {
    let Subscription { snapshot, events } = subscription;
    let watcher = Watcher { commands, snapshot: Some(Box::new(snapshot)), events, ended: false };
    let stopping = stop.wait();
    Box::pin(stream::unfold((watcher, Box::pin(stopping)), |(mut watcher, mut stopping)| async {
        if watcher.ended {
            return None;
        }
        let item = tokio::select! {
            item = watcher.next() => item,
            () = &mut stopping => Err(Stopping.into()),
        };
        watcher.ended = item.is_err();
        Some((item, (watcher, stopping)))
    }))
}

struct Watcher {
    commands: Commands,
    /// What is to be sent before any event.
    snapshot: Option<Box<command::Status>>,
    events: tokio::sync::broadcast::Receiver<Event>,
    ended: bool,
}

impl Watcher {
    async fn next(&mut self) -> Result<WatchResponse, Status> {
        loop {
            if let Some(snapshot) = self.snapshot.take() {
                return Ok((&*snapshot).into());
            }
            match self.events.recv().await {
                Ok(event) => return Ok((&event).into()),
                Err(RecvError::Closed) => return Err(Stopping.into()),
                Err(RecvError::Lagged(_)) => {
                    let Subscription { snapshot, events } = self.commands.watch().await??;
                    (self.snapshot, self.events) = (Some(Box::new(snapshot)), events);
                }
            }
        }
    }
}
