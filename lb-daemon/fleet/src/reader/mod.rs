//! Follows what a fleet shares: reads all of it at one revision of etcd, then watches what changes.
//!
//! Whatever goes wrong, everything is read again. It is also read again every minute, because watches lose events in
//! practice without an error (etcd#17612, #18089). Pieces are not watched: one watch would get half a megabyte for each.
//! So there are two watches, for the keys before the pieces (`alive/`, `changed`) and for those after them. All that must
//! agree is after them, and changes of one transaction arrive together.
//!
//! A value that cannot be read is named, and all others are followed. If it is the configuration, the last one stays.

mod epochs;
mod links;
mod snapshot;
mod understood;

use std::{pin::pin, sync::Arc, time::Duration};

use etcd_client::{
    AlarmAction, AlarmType, Client, EventType, MaintenanceClient, WatchClient, WatchOptions,
    WatchResponse, WatchStream,
};
use tokio::{
    sync::watch,
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

pub use snapshot::{EpochBase, KnownLink, SharedConfiguration, Snapshot, Versioned};
pub use understood::Understood;

use crate::{
    DocumentError, EtcdError, Fleet,
    client::{Row, timed, watches},
    commit::Committed,
    pieces::{PieceCache, PiecesError},
    servers::Server,
};
use snapshot::Draft;

/// How often all is read again although the watch is silent.
pub const READ_AGAIN: Duration = Duration::from_secs(60);

/// How often the server of the watch is asked whether it is there: a silent watch does not tell.
const PROBE_SERVER: Duration = Duration::from_secs(1);

/// Before the first new attempt; doubled up to [`MAX_BACKOFF`].
const MIN_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// How often a cluster without space is asked whether it has got some. Each question is a step of its log.
const ASK_FOR_SPACE: Duration = Duration::from_secs(5);

/// The watch of the keys after the pieces: its answers set the revision of etcd.
const SHARED_WATCH: i64 = 1;
const PRESENCE_WATCH: i64 = 2;

/// Why what is known may be out of date.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LossCause {
    #[error(transparent)]
    Etcd(#[from] EtcdError),
    #[error("etcd ended the watch: {0}")]
    WatchEnded(String),
}

impl LossCause {
    /// The same with the servers that the settings name.
    #[must_use]
    pub fn with_servers(self, servers: &[String]) -> Self {
        match self {
            Self::Etcd(error) => Self::Etcd(error.with_servers(servers)),
            Self::WatchEnded(cause) => Self::WatchEnded(format!("{}: {cause}", servers.join(", "))),
        }
    }
}

/// Whether the snapshot is up to date.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Connection {
    /// Nothing was read yet.
    #[default]
    Connecting,
    Connected,
    /// As `Connected`, but etcd takes no changes.
    NoSpace,
    /// The snapshot may be out of date.
    Lost {
        since: Instant,
        cause: LossCause,
    },
}

impl Connection {
    /// The sentence for operators; `None` if there is nothing wrong.
    pub fn sentence(&self) -> Option<String> {
        match self {
            Self::Connecting | Self::Connected => None,
            Self::NoSpace => Some(EtcdError::NoSpace.to_string()),
            Self::Lost { cause, .. } => Some(cause.to_string()),
        }
    }
}

/// The latest of what is known.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// `None` until something was read.
    pub snapshot: Option<Arc<Snapshot>>,
    pub connection: Connection,
}

/// From which generation on the history is needed ([`LineageGuard::traced_from`]); `None`: it is not.
///
/// [`LineageGuard::traced_from`]: crate::lineage::LineageGuard::traced_from
pub type TracedFrom = Box<dyn Fn() -> Option<u64> + Send + Sync>;

/// Publishes what a fleet shares.
pub struct Reader {
    fleet: Fleet,
    traced_from: TracedFrom,
    view_tx: watch::Sender<View>,
    pieces: PieceCache,
    /// A generation that could not be put together since all was read, and why.
    damaged: Option<(Committed, DocumentError)>,
    backoff: Duration,
    read_again: Duration,
}

impl Reader {
    /// `read_again` is [`READ_AGAIN`], but for tests.
    pub fn new(
        fleet: Fleet,
        read_again: Duration,
        traced_from: TracedFrom,
    ) -> (Self, watch::Receiver<View>) {
        let (view_tx, view_rx) = watch::channel(View::default());
        let reader = Self {
            fleet,
            traced_from,
            view_tx,
            pieces: PieceCache::default(),
            damaged: None,
            backoff: MIN_BACKOFF,
            read_again,
        };
        (reader, view_rx)
    }

    /// Reads and watches until `shutdown`.
    pub async fn run(mut self, shutdown: CancellationToken) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = self.read_again_and_again() => {}
        }
    }

    async fn read_again_and_again(&mut self) {
        loop {
            if let Err(cause) = self.follow().await {
                self.lose(cause);
                // Jitter: all balancers lose etcd at the same moment.
                time::sleep(self.backoff.mul_f64(0.5 + fastrand::f64())).await;
                self.backoff = (self.backoff * 2).min(MAX_BACKOFF);
            }
        }
    }

    /// Returns when it is time to read all again.
    async fn follow(&mut self) -> Result<(), LossCause> {
        let mut draft = self.read().await?;
        self.damaged = None;
        let connection = self.connection().await;
        self.publish(&draft, connection).await?;
        let (server, mut watch) = self.open_watch(draft.snapshot.etcd_revision + 1).await?;
        let read_again = Instant::now() + self.read_again;
        let mut is_gone = pin!(server.is_gone(PROBE_SERVER));
        loop {
            let has_space = self.view_tx.borrow().connection != Connection::NoSpace;
            let message = tokio::select! {
                message = watch.message() => message,
                () = time::sleep_until(read_again) => return Ok(()),
                // Otherwise its watch would only be silent.
                () = &mut is_gone => return Ok(()),
                () = self.fleet.found_no_space.notified(), if has_space => {
                    self.look_for_space().await;
                    continue;
                }
                () = time::sleep(ASK_FOR_SPACE), if !has_space => {
                    self.look_for_space().await;
                    continue;
                }
            };
            let ended = || LossCause::WatchEnded("the connection was closed".into());
            let message = message.map_err(EtcdError::from)?.ok_or_else(ended)?;
            let is_new = self.apply(&mut draft, &message)?;
            // Not before: a watch that is refused would be asked for in a tight loop.
            self.backoff = MIN_BACKOFF;
            if is_new {
                let connection = self.view_tx.borrow().connection.clone();
                self.publish(&draft, connection).await?;
            }
        }
    }

    /// All keys but the pieces and the history, at one revision, and of the history what is needed.
    async fn read(&self) -> Result<Draft, LossCause> {
        let (fleet, keys) = (&self.fleet, self.fleet.keys());
        let mut all = fleet.range(&keys.after_chunks(), &keys.histories(), None, false).await?;
        let at = Some(all.revision);
        for (first, end) in
            [(keys.after_histories(), keys.end()), (keys.prefix().into(), keys.chunks())]
        {
            all.rows.extend(fleet.range(&first, &end, at, false).await?.rows);
        }
        let mut draft = Draft::read(keys, &all);
        self.read_links(&mut draft).await?;
        Ok(draft)
    }

    /// A cluster without space still answers reads, so it has to be asked. If it does not tell, a write will.
    async fn connection(&self) -> Connection {
        let ask = |mut client: MaintenanceClient| async move {
            client.alarm(AlarmAction::Get, AlarmType::None, None).await
        };
        match self.fleet.servers().ask(Client::maintenance_client, ask).await {
            Ok(answer) if answer.alarms().iter().any(|it| it.alarm() == AlarmType::Nospace) => {
                Connection::NoSpace
            }
            _ => Connection::Connected,
        }
    }

    async fn look_for_space(&self) {
        let connection = self.connection().await;
        self.view_tx.send_if_modified(|view| {
            let is_new = view.connection != connection;
            view.connection = connection;
            is_new
        });
    }

    async fn open_watch(&self, from: i64) -> Result<(Arc<Server>, WatchStream), EtcdError> {
        let keys = self.fleet.keys();
        let options = |end: String, id| {
            let options = WatchOptions::new().with_range(end).with_start_revision(from);
            Some(options.with_progress_notify().with_watch_id(id))
        };
        let shared = options(keys.end(), SHARED_WATCH);
        let open = |mut client: WatchClient| {
            let (first, shared) = (keys.after_chunks(), shared.clone());
            async move { client.watch(first, shared).await }
        };
        let (server, mut stream) = self.fleet.servers().ask_one(watches, open).await?;
        let presence = options(keys.chunks(), PRESENCE_WATCH);
        timed(stream.watch(keys.prefix(), presence)).await?;
        Ok((server, stream))
    }

    /// Returns whether there is something new.
    fn apply(&self, draft: &mut Draft, message: &WatchResponse) -> Result<bool, LossCause> {
        if message.compact_revision() > 0 {
            let cause = format!("revisions before {}", message.compact_revision());
            return Err(EtcdError::Compacted(cause).into());
        }
        if message.canceled() {
            let reason = message.cancel_reason();
            return Err(match reason.contains("no leader") {
                true => EtcdError::NoQuorum(reason.into()).into(),
                false => LossCause::WatchEnded(reason.into()),
            });
        }
        let keys = self.fleet.keys();
        for event in message.events() {
            let Some(row) = event.kv() else { continue };
            match event.event_type() {
                EventType::Put => draft.put(keys, &Row::from(row)),
                EventType::Delete => draft.delete(keys, row.key(), row.mod_revision()),
            }
        }
        draft.update_epoch();
        if let Some(header) = message.header()
            && message.watch_id() == SHARED_WATCH
            && !message.created()
        {
            draft.snapshot.etcd_revision = draft.snapshot.etcd_revision.max(header.revision());
        }
        Ok(!message.events().is_empty())
    }

    async fn publish(&mut self, draft: &Draft, connection: Connection) -> Result<(), LossCause> {
        let mut snapshot = draft.snapshot.clone();
        let published = self.view_tx.borrow().snapshot.clone();
        let last = published.and_then(|it| it.configuration.clone());
        let configuration = match draft.current.clone() {
            None => Ok(None),
            Some(Err(error)) => Err(error),
            Some(Ok(current)) => self.configuration(current, last.as_ref()).await?.map(Some),
        };
        match configuration {
            Ok(configuration) => snapshot.configuration = configuration,
            Err(error) => {
                let key = self.fleet.keys().current();
                snapshot.unreadable.insert(key, error.clone());
                snapshot.configuration_error = Some(error);
                snapshot.configuration = last;
            }
        }
        if matches!(self.view_tx.borrow().connection, Connection::Lost { .. }) {
            info!("etcd: connected again, at revision {}", snapshot.revision);
        }
        self.view_tx.send_replace(View { snapshot: Some(snapshot.into()), connection });
        Ok(())
    }

    /// The configuration of a generation: `last` if it is the same one. If it cannot be put together, that is tried again when
    /// all is read again.
    async fn configuration(
        &mut self,
        current: Committed,
        last: Option<&Arc<SharedConfiguration>>,
    ) -> Result<Result<Arc<SharedConfiguration>, DocumentError>, LossCause> {
        if let Some(last) = last.filter(|it| it.committed == current) {
            return Ok(Ok(Arc::clone(last)));
        }
        if let Some((damaged, error)) = &self.damaged
            && *damaged == current
        {
            return Ok(Err(error.clone()));
        }
        match self.pieces.join(&self.fleet, &current.document.body).await {
            Ok(bytes) => Ok(Ok(Arc::new(SharedConfiguration { committed: current, bytes }))),
            Err(PiecesError::Etcd(error)) => Err(error.into()),
            Err(PiecesError::Damaged(cause)) => {
                let error = DocumentError::Damaged { key: self.fleet.keys().current(), cause };
                self.damaged = Some((current, error.clone()));
                Ok(Err(error))
            }
        }
    }

    /// Keeps the snapshot, and since when it may be out of date.
    fn lose(&self, cause: LossCause) {
        self.view_tx.send_modify(|view| {
            let since = match &view.connection {
                Connection::Lost { since, .. } => *since,
                _ => {
                    warn!("what the fleet shares may be out of date: {cause}");
                    Instant::now()
                }
            };
            view.connection = Connection::Lost { since, cause };
        });
    }
}
