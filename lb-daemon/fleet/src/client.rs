//! The connection to etcd, and what its errors mean.

use std::{error::Error as _, path::Path, sync::Arc, time::Duration};

use etcd_client::{Certificate, Client, ConnectOptions, GetOptions, Identity, TlsOptions};
use lb_base::error_chain;
use lb_model::Name;
use tokio::{sync::Notify, time::sleep};

use crate::{
    Keys,
    keys::{AFTER_ROOT, ROOT, fleet_of},
    settings::FleetSettings,
};

/// Longest time for one request. etcd itself gives up after 7 s; a balancer should know earlier that it has no etcd.
const REQUEST_TIME: Duration = Duration::from_secs(5);

/// Pings of HTTP/2, so that a silent peer is noticed. etcd closes connections with more than one in 5 s.
const PING: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(5));

/// Largest answer, bytes: a page of keys, or the changes since a watch fell behind.
const MAX_ANSWER: usize = 64 << 20;

/// Keys in one answer.
const PAGE: i64 = 200;

/// How often a request is made that no server gets. Of three servers of which one refuses connections about every second
/// request meets that one, since it never has anything to do.
const TRIES: usize = 12;

/// Between two of them.
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// Most keys that are read to find other fleets.
const MOST_LOOKS: usize = 20;

/// Why etcd did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtcdError {
    #[error("etcd cannot be reached: {0}")]
    Unreachable(String),
    #[error("etcd did not answer within {} s", REQUEST_TIME.as_secs())]
    NoAnswer,
    #[error("etcd has no quorum: {0}")]
    NoQuorum(String),
    #[error(
        "etcd is out of space and takes no changes: compact and defragment it, then disarm its alarm"
    )]
    NoSpace,
    #[error("etcd compacted what was asked for: {0}")]
    Compacted(String),
    #[error("a certificate of the connection to etcd has expired: {0}")]
    CertificateExpired(String),
    #[error("etcd denies access: {0}; docs/fleet.md lists the rights that a balancer needs")]
    Denied(String),
    #[error("{path}: cannot be read: {cause}")]
    File { path: String, cause: String },
    #[error("etcd refuses the request: {0}")]
    Refused(String),
}

impl EtcdError {
    /// Whether the request may have been carried out, now or later, although it failed. A write that finds no space may
    /// have been: etcd applies the one that reaches its quota, and answers with this error.
    pub fn is_indefinite(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::NoAnswer | Self::NoQuorum(_) | Self::NoSpace)
    }

    /// Whether etcd says that the lease of the request does not exist.
    pub(crate) fn is_lease_gone(&self) -> bool {
        matches!(self, Self::Refused(text) if text.contains("lease not found"))
    }
}

impl From<etcd_client::Error> for EtcdError {
    fn from(error: etcd_client::Error) -> Self {
        use etcd_client::Error;
        let (code, text) = match &error {
            Error::GRpcStatus(status) => {
                let causes = status.source().map(error_chain::message);
                let text = match causes {
                    Some(causes) => format!("{}: {causes}", status.message()),
                    None => status.message().to_owned(),
                };
                (status.code() as i32, text)
            }
            Error::TransportError(error) => (14, error_chain::message(error)),
            Error::IoError(error) => (14, error_chain::message(error)),
            other => (3, other.to_string()),
        };
        let text = without_repetitions(&text);
        let has = |part: &str| text.contains(part);
        if has("certificate") && (has("expired") || has("Expired")) || has("CertificateExpired") {
            return Self::CertificateExpired(text);
        }
        match code {
            _ if has("no leader") || has("request timed out") || has("leader changed") => {
                Self::NoQuorum(text)
            }
            _ if has("database space exceeded") => Self::NoSpace,
            _ if has("compacted") => Self::Compacted(text),
            // Permission denied, unauthenticated.
            7 | 16 => Self::Denied(text),
            // Invalid argument, not found, exists, exhausted, precondition, range, unimplemented.
            3 | 5 | 6 | 8 | 9 | 11 | 12 => Self::Refused(text),
            _ => Self::Unreachable(explained(text)),
        }
    }
}

/// A chain of causes without those that only say the same again: each layer of the connection repeats the one below.
fn without_repetitions(text: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split(": ").filter(|part| *part != "transport error") {
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts.join(": ")
}

/// What TLS libraries say of certificates, in words that name the file.
fn explained(text: String) -> String {
    let is_refusal = |text: &str| text.contains("Certificate") || text.contains("UnknownCA");
    let cause = if text.contains("received fatal alert") && is_refusal(&text) {
        "it refuses this balancer's certificate, that of tls-cert"
    } else if text.contains("UnknownIssuer") {
        "its certificate is of no authority in tls-ca"
    } else if text.contains("not valid for name") || text.contains("NotValidForName") {
        "its certificate does not have the host of its URL"
    } else {
        return text;
    };
    format!("{cause} ({text})")
}

/// A fleet's part of etcd. Clones share the connection.
#[derive(Clone)]
pub struct Fleet {
    client: Client,
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
        let client = Client::connect(&settings.endpoints, Some(options)).await?;
        let (keys, name) = (Keys::new(&settings.fleet), settings.name.clone());
        Ok(Self { client, keys, name, found_no_space: Arc::default() })
    }

    pub const fn keys(&self) -> &Keys {
        &self.keys
    }

    /// This balancer's.
    pub const fn name(&self) -> &Name {
        &self.name
    }

    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// A client for watches whose answers may be large.
    pub(crate) fn watches(&self) -> etcd_client::WatchClient {
        self.client.watch_client().max_decoding_message_size(MAX_ANSWER)
    }

    /// The row of a key, read linearizably.
    pub(crate) async fn get(&self, key: &str) -> Result<Option<Row>, EtcdError> {
        let answer = timed(|| {
            let (mut client, key) = (self.client.kv_client(), key.to_owned());
            async move { client.get(key, None).await }
        })
        .await?;
        Ok(answer.kvs().first().map(Row::from))
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
        let client = self.client.kv_client().max_decoding_message_size(MAX_ANSWER);
        let mut all = Rows { rows: Vec::new(), revision: at.unwrap_or(0), cluster: 0 };
        let mut next = first.as_bytes().to_vec();
        loop {
            let mut options =
                GetOptions::new().with_range(end).with_limit(PAGE).with_revision(all.revision);
            if are_keys_only {
                options = options.with_keys_only();
            }
            let page = || {
                let (mut client, next, options) = (client.clone(), next.clone(), options.clone());
                async move { client.get(next, Some(options)).await }
            };
            let answer = timed(page).await?;
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
            let look = || {
                let (mut client, next) = (self.client.kv_client(), next.clone());
                let options = options.clone();
                async move { client.get(next, Some(options)).await }
            };
            let answer = match timed(look).await {
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

    pub(crate) async fn put(&self, key: String, value: Vec<u8>) -> Result<(), EtcdError> {
        let put = || {
            let (mut client, key, value) = (self.client.kv_client(), key.clone(), value.clone());
            async move { client.put(key, value, None).await }
        };
        self.written(timed(put).await).map(drop)
    }

    /// Takes note of what a write says of etcd's space.
    pub(crate) fn written<T>(&self, result: Result<T, EtcdError>) -> Result<T, EtcdError> {
        if matches!(result, Err(EtcdError::NoSpace)) {
            self.found_no_space.notify_one();
        }
        result
    }
}

/// Makes a request, and makes it again if no server got it: the client chooses one at random, also one that refuses
/// connections as while it is restarted.
///
/// # Errors
/// That of the request, or [`EtcdError::NoAnswer`].
pub(crate) async fn timed<T, F: Future<Output = Result<T, etcd_client::Error>>>(
    mut request: impl FnMut() -> F,
) -> Result<T, EtcdError> {
    let tried = async {
        for _ in 1..TRIES {
            match request().await {
                Err(error) if is_not_connected(&error) => sleep(BETWEEN_TRIES).await,
                done => return done,
            }
        }
        request().await
    };
    timed_once(tried).await
}

/// Makes a request on a connection that there is already.
///
/// # Errors
/// That of the request, or [`EtcdError::NoAnswer`].
pub(crate) async fn timed_once<T>(
    request: impl Future<Output = Result<T, etcd_client::Error>>,
) -> Result<T, EtcdError> {
    let answer = tokio::time::timeout(REQUEST_TIME, request).await;
    Ok(answer.map_err(|_| EtcdError::NoAnswer)??)
}

/// Whether there was no connection, so that the request cannot have been carried out.
fn is_not_connected(error: &etcd_client::Error) -> bool {
    let causes = match error {
        etcd_client::Error::GRpcStatus(status) => status.source().map(error_chain::message),
        etcd_client::Error::TransportError(error) => Some(error_chain::message(error)),
        _ => None,
    };
    causes.is_some_and(|causes| causes.contains("tcp connect error"))
}

async fn read(path: &Path) -> Result<Vec<u8>, EtcdError> {
    tokio::fs::read(path).await.map_err(|error| EtcdError::File {
        path: path.display().to_string(),
        cause: error_chain::message(&error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_said_once_and_in_words() {
        let said = |text: &str| explained(without_repetitions(text));
        let refused = "tcp connect error: transport error: tcp connect error: Connection refused";
        assert_eq!(said(refused), "tcp connect error: Connection refused");
        let alert = "transport error: connection error: received fatal alert: BadCertificate";
        let words = "it refuses this balancer's certificate, that of tls-cert";
        let expected = format!("{words} (connection error: received fatal alert: BadCertificate)");
        assert_eq!(said(alert), expected);
        let other = "connection error: received fatal alert: ProtocolVersion";
        assert_eq!(said(other), other);
        let unknown = "transport error: invalid peer certificate: UnknownIssuer";
        assert!(said(unknown).starts_with("its certificate is of no authority in tls-ca ("));
        let host = "invalid peer certificate: certificate not valid for name \"etcd-1\"";
        assert!(said(host).starts_with("its certificate does not have the host of its URL ("));
    }
}
