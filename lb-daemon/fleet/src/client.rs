//! The connection to etcd.

use std::{path::Path, sync::Arc, time::Duration};

use etcd_client::{
    Certificate, Client, ConnectOptions, GetOptions, Identity, KvClient, TlsOptions, WatchClient,
};
use lb_base::error_chain;
use lb_model::Name;
use tokio::sync::Notify;

use crate::{
    EtcdError, Keys,
    error::REQUEST_TIME,
    keys::{AFTER_ROOT, ROOT, fleet_of},
    servers::Servers,
    settings::FleetSettings,
};

/// Pings of HTTP/2, so that a silent peer is noticed. etcd closes connections with more than one in 5 s.
const PING: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(5));

/// Largest answer, bytes: a page of keys, or the changes since a watch fell behind.
pub(crate) const MAX_ANSWER: usize = 64 << 20;

/// Keys in one answer; fewer where their values have more than [`MAX_ANSWER`].
const PAGE: i64 = 200;

/// Most keys that are read to find other fleets.
const MOST_LOOKS: usize = 20;

/// A fleet's part of etcd. Clones share the connections.
#[derive(Clone)]
pub struct Fleet {
    servers: Servers,
    keys: Keys,
    name: Name,
    /// A write found no space. Reads do not tell, so the reader is woken to ask.
    pub(crate) found_no_space: Arc<Notify>,
}

/// A value, and when it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    pub(crate) mod_revision: i64,
}

impl From<&etcd_client::KeyValue> for Row {
    fn from(row: &etcd_client::KeyValue) -> Self {
        Self {
            key: row.key().to_vec(),
            value: row.value().to_vec(),
            mod_revision: row.mod_revision(),
        }
    }
}

/// All rows of a range at one revision.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    pub(crate) rows: Vec<Row>,
    pub(crate) revision: i64,
    pub(crate) cluster: u64,
}

impl Fleet {
    /// Prepares a connection. Whether etcd can be reached is seen with the first request.
    ///
    /// # Errors
    /// A file of `settings` cannot be read or used.
    pub async fn new(settings: &FleetSettings) -> Result<Self, EtcdError> {
        let mut options = ConnectOptions::new()
            .with_require_leader(true)
            .with_connect_timeout(Duration::from_secs(2))
            .with_keep_alive(PING.0, PING.1);
        if let Some(tls) = &settings.tls {
            let authorities = Certificate::from_pem(read(&tls.authorities).await?);
            let identity = Identity::from_pem(read(&tls.certificate).await?, read(&tls.key).await?);
            let tls = TlsOptions::new().ca_certificate(authorities).identity(identity);
            options = options.with_tls(tls);
        }
        let (keys, name) = (Keys::new(&settings.fleet), settings.name.clone());
        let servers = Servers::connect(&settings.endpoints, &options, &keys.changed()).await?;
        Ok(Self { servers, keys, name, found_no_space: Arc::default() })
    }

    pub const fn keys(&self) -> &Keys {
        &self.keys
    }

    /// This balancer's.
    pub const fn name(&self) -> &Name {
        &self.name
    }

    pub(crate) const fn servers(&self) -> &Servers {
        &self.servers
    }

    /// The row of a key, read linearizably.
    pub(crate) async fn get(&self, key: &str) -> Result<Option<Row>, EtcdError> {
        let get = |mut kv: KvClient| async move { kv.get(key, None).await };
        Ok(self.servers.ask(Client::kv_client, get).await?.kvs().first().map(Row::from))
    }

    /// Rows from `first` to before `end`, in pages of one revision: the given one, or that of the first page, which is
    /// read linearizably.
    pub(crate) async fn range(
        &self,
        first: &str,
        end: &str,
        at: Option<i64>,
        are_keys_only: bool,
    ) -> Result<Rows, EtcdError> {
        let kv = |client: &Client| client.kv_client().max_decoding_message_size(MAX_ANSWER);
        let mut all = Rows { rows: Vec::new(), revision: at.unwrap_or(0), cluster: 0 };
        let (mut next, mut page) = (first.as_bytes().to_vec(), PAGE);
        loop {
            let mut options =
                GetOptions::new().with_range(end).with_limit(page).with_revision(all.revision);
            if are_keys_only {
                options = options.with_keys_only();
            }
            let get = |mut kv: KvClient| {
                let (next, options) = (&*next, options.clone());
                async move { kv.get(next, Some(options)).await }
            };
            let answer = match self.servers.ask(kv, get).await {
                Err(error) if error.is_too_large() && page > 1 => {
                    page /= 2;
                    continue;
                }
                answer => answer?,
            };
            if let Some(header) = answer.header() {
                all.cluster = header.cluster_id();
                if all.revision == 0 {
                    all.revision = header.revision();
                }
            }
            all.rows.extend(answer.kvs().iter().map(Row::from));
            match all.rows.last() {
                Some(last) if answer.more() => next = [&last.key[..], &[0]].concat(),
                _ => return Ok(all),
            }
        }
    }

    /// Names of other fleets that etcd has keys of, in order; of many fleets only the first ones. Empty too if this balancer
    /// has no right to see their keys.
    ///
    /// # Errors
    /// etcd does not answer.
    pub async fn other_fleets(&self) -> Result<Vec<Name>, EtcdError> {
        let mut fleets = Vec::new();
        let mut next = ROOT.as_bytes().to_vec();
        for _ in 0..MOST_LOOKS {
            let options = GetOptions::new().with_range(AFTER_ROOT).with_limit(1).with_keys_only();
            let get = |mut kv: KvClient| {
                let (next, options) = (&*next, options.clone());
                async move { kv.get(next, Some(options)).await }
            };
            let answer = match self.servers.ask(Client::kv_client, get).await {
                Err(EtcdError::Denied(_)) => return Ok(Vec::new()),
                answer => answer?,
            };
            let Some(row) = answer.kvs().first() else { break };
            let fleet = fleet_of(row.key());
            next = match &fleet {
                Some(fleet) => Keys::new(fleet).end().into_bytes(),
                None => [row.key(), &[0]].concat(),
            };
            fleets.extend(fleet);
        }
        fleets.retain(|fleet| Keys::new(fleet) != self.keys);
        Ok(fleets)
    }

    /// Puts a value that nothing else writes under this key, so it may be put twice.
    pub(crate) async fn put(&self, key: String, value: Vec<u8>) -> Result<(), EtcdError> {
        let put = |mut kv: KvClient| {
            let (key, value) = (key.clone(), value.clone());
            async move { kv.put(key, value, None).await }
        };
        self.written(self.servers.ask(Client::kv_client, put).await).map(drop)
    }

    /// Takes note of what a write says of etcd's space.
    pub(crate) fn written<T>(&self, result: Result<T, EtcdError>) -> Result<T, EtcdError> {
        if matches!(result, Err(EtcdError::NoSpace)) {
            self.found_no_space.notify_one();
        }
        result
    }
}

/// A client for watches whose answers may be large.
pub(crate) fn watches(client: &Client) -> WatchClient {
    client.watch_client().max_decoding_message_size(MAX_ANSWER)
}

/// Waits for an answer.
///
/// # Errors
/// The answer, or [`EtcdError::NoAnswer`].
pub(crate) async fn timed<T, E>(answer: impl Future<Output = Result<T, E>>) -> Result<T, EtcdError>
where
    EtcdError: From<E>,
{
    let answer = tokio::time::timeout(REQUEST_TIME, answer).await;
    Ok(answer.map_err(|_| EtcdError::NoAnswer)??)
}

async fn read(path: &Path) -> Result<Vec<u8>, EtcdError> {
    tokio::fs::read(path).await.map_err(|error| EtcdError::File {
        path: path.display().to_string(),
        cause: error_chain::message(&error),
    })
}
