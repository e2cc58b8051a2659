//! What the member loop leaves for the state loop: the newest of each member and next hop. However long the state loop waits
//! for a disk, this does not grow beyond them.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use tokio::sync::mpsc::{self, error::TrySendError};

use super::{Member, MemberUpdate};
use lb_base::queue::{QueueCounters, Waiting};
use lb_model::{
    Name,
    next_hop::{NextHop, NoNextHop},
};

/// The newest of all that changed.
#[derive(Debug, Default)]
pub(crate) struct Newest {
    /// While there is anything: all of it is one entry of the state loop's queue.
    waiting: Option<Waiting>,
    pub(crate) members: BTreeMap<(Name, IpAddr), Arc<Member>>,
    pub(crate) next_hops: BTreeMap<IpAddr, Result<NextHop, NoNextHop>>,
}

/// The member loop's side.
#[derive(Debug)]
pub(crate) struct MailboxSender {
    newest: Arc<Mutex<Newest>>,
    signal: mpsc::Sender<()>,
    counters: QueueCounters,
}

/// The state loop's side.
#[derive(Debug)]
pub(crate) struct Mailbox {
    newest: Arc<Mutex<Newest>>,
    signal: mpsc::Receiver<()>,
}

pub(crate) fn mailbox(counters: &QueueCounters) -> (MailboxSender, Mailbox) {
    let newest = Arc::default();
    let (signal_tx, signal) = mpsc::channel(1);
    let sender = MailboxSender {
        newest: Arc::clone(&newest),
        signal: signal_tx,
        counters: counters.clone(),
    };
    (sender, Mailbox { newest, signal })
}

/// Held only while something is put in or all is taken out.
fn lock(newest: &Mutex<Newest>) -> MutexGuard<'_, Newest> {
    newest.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MailboxSender {
    pub(super) fn put(&self, updates: &[MemberUpdate]) {
        let mut newest = lock(&self.newest);
        newest.waiting.get_or_insert_with(|| self.counters.enter());
        for update in updates {
            match update {
                MemberUpdate::Member { pool, address, member, .. } => {
                    newest.members.insert((pool.clone(), *address), Arc::clone(member));
                }
                MemberUpdate::NextHop { address, hop } => {
                    newest.next_hops.insert(*address, hop.clone());
                }
            }
        }
        drop(newest);
        match self.signal.try_send(()) {
            // It was signalled already, or the daemon is stopping.
            Ok(()) | Err(TrySendError::Full(()) | TrySendError::Closed(())) => {}
        }
    }
}

impl Mailbox {
    /// Waits until something may have been put in; false if the member loop has ended.
    pub(crate) async fn changed(&mut self) -> bool {
        self.signal.recv().await.is_some()
    }

    /// Takes all out.
    pub(crate) fn take(&self) -> Newest {
        let mut newest = std::mem::take(&mut *lock(&self.newest));
        if let Some(waiting) = newest.waiting.take() {
            waiting.end(Instant::now());
        }
        newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_newest_is_kept_and_the_end_is_seen() {
        let counters = QueueCounters::default();
        let (sender, mut mailbox) = mailbox(&counters);
        let address = IpAddr::from([10, 0, 0, 1]);
        let failed = |why: &str| Err(NoNextHop::Other(why.into()));
        for why in ["first", "second"] {
            sender.put(&[MemberUpdate::NextHop { address, hop: failed(why) }]);
        }
        assert!(mailbox.changed().await);
        assert_eq!(counters.length(), 1);
        assert_eq!(mailbox.take().next_hops, [(address, failed("second"))].into());
        assert!(mailbox.take().next_hops.is_empty());
        assert_eq!((counters.length(), counters.waiting().read().count), (0, 1));
        drop(sender);
        assert!(!mailbox.changed().await);
    }
}
