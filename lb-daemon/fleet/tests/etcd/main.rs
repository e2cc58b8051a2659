//! The fleet's part of etcd, against real clusters.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed unwrap is a failed test")]

mod cluster;
mod commits;
mod epochs;
mod following;
mod growth;
mod members;
mod presence;
mod restores;
mod security;
mod silent;
mod space;
mod versions;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use lb_fleet::{
    Fleet,
    commit::{Attempt, Committed, Draft},
    documents::WallTime,
    reader::{READ_AGAIN, Reader, Snapshot, View},
};
use lb_model::Name;
use tokio::{sync::watch, time::timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use cluster::PATIENCE;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn draft(configuration: &[u8]) -> Draft {
    Draft {
        parts: [configuration.to_vec()].into(),
        members_seen: i64::MAX,
        live: BTreeSet::from([name("lb-1")]),
        groups: BTreeSet::new(),
        settles: Duration::ZERO,
        author: "alice".into(),
        reason: "test".into(),
        applied_at: WallTime::from(std::time::UNIX_EPOCH),
    }
}

fn attempt(base: Option<&Committed>, configuration: &[u8]) -> Attempt {
    Attempt::new(base, draft(configuration)).unwrap()
}

async fn commit(fleet: &Fleet, base: Option<&Committed>, configuration: &[u8]) -> Committed {
    fleet.commit(&attempt(base, configuration)).await.unwrap()
}

/// Bytes that do not repeat.
fn noise(length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(length as u64);
    (0..length).map(|_| random.u8(..)).collect()
}

/// A reader that runs until it is dropped.
struct Following {
    view_rx: watch::Receiver<View>,
    _shutdown: DropGuard,
}

impl Following {
    fn new(fleet: &Fleet) -> Self {
        Self::reading_again(fleet, READ_AGAIN)
    }

    fn reading_again(fleet: &Fleet, every: Duration) -> Self {
        Self::tracing_from(fleet, every, || Some(0))
    }

    fn tracing_from(
        fleet: &Fleet,
        every: Duration,
        traced_from: impl Fn() -> Option<u64> + Send + Sync + 'static,
    ) -> Self {
        let (reader, view_rx) = Reader::new(fleet.clone(), every, Box::new(traced_from));
        let shutdown = CancellationToken::new();
        tokio::spawn(reader.run(shutdown.clone()));
        Self { view_rx, _shutdown: shutdown.drop_guard() }
    }

    async fn until(&mut self, what: &str, mut holds: impl FnMut(&View) -> bool) -> View {
        let found = timeout(PATIENCE, self.view_rx.wait_for(|view| holds(view))).await;
        let found = found.ok().map(|view| view.unwrap().clone());
        found.unwrap_or_else(|| panic!("not {what}: {:?}", self.view_rx.borrow().connection))
    }

    async fn until_generation(&mut self, number: u64) -> Arc<Snapshot> {
        let is_there = |view: &View| generation(view) == Some(number);
        let view = self.until(&format!("generation {number}"), is_there).await;
        view.snapshot.unwrap()
    }
}

/// All that is there now.
async fn look(fleet: &Fleet) -> Arc<Snapshot> {
    let mut following = Following::new(fleet);
    following.until("read", |view| view.snapshot.is_some()).await.snapshot.unwrap()
}

fn generation(view: &View) -> Option<u64> {
    let configuration = view.snapshot.as_ref()?.configuration.as_ref()?;
    Some(configuration.committed.document.body.number)
}
