//! How long etcd itself takes from a write to those who watch: what a fleet's times are measured against.

use std::fs;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use etcd_client::{Client, ConnectOptions, TlsOptions};

use super::EtcdCluster;
use crate::certificates::Certificate;
use lb_tests::process::PATIENCE;
use lb_tests::statistics::Times;
use lb_tests::topology::Node;

/// Writes before those that are measured, over which connections are made.
const WARM_UP: usize = 10;

/// The key that is written; no fleet has such a key.
const KEY: &str = "/harness/put-to-watch";

/// Writes so often from one node, one after the other, and watches on another. Answers the times from the beginning of a
/// write until the other client had it.
///
/// # Errors
/// When a write does not reach the watch within a minute.
pub fn put_to_watch(
    cluster: &EtcdCluster,
    (writer, its): (&Node, Option<&Certificate>),
    (watcher, theirs): (&Node, Option<&Certificate>),
    writes: usize,
) -> Result<Times> {
    ensure!(writes > 0, "no writes");
    let all = WARM_UP + writes;
    let (seen_tx, seen_rx) = mpsc::channel();
    let times = thread::scope(|scope| {
        let watching = scope
            .spawn(move || watcher.enter(|| block_on(watch(cluster, theirs, all, &seen_tx)))?);
        // Nothing is written before the watch has begun.
        let begun = seen_rx.recv_timeout(PATIENCE).context("no watch");
        let times = begun
            .and_then(|_| writer.enter(move || block_on(write(cluster, its, all, &seen_rx)))?);
        let watched = watching.join().map_err(|_| anyhow!("the watch panicked"))?;
        // What failed first: without a watch nothing is seen.
        watched.and(times)
    });
    Ok(Times::new(times?.split_off(WARM_UP)))
}

async fn write(
    cluster: &EtcdCluster,
    certificate: Option<&Certificate>,
    writes: usize,
    seen_rx: &mpsc::Receiver<Instant>,
) -> Result<Vec<Duration>> {
    let mut client = connect(cluster, certificate).await?;
    let mut times = Vec::with_capacity(writes);
    for number in 0..writes {
        let begin = Instant::now();
        client.put(KEY, number.to_string(), None).await.context("put")?;
        // Only this thread waits: there is nothing else on its runtime.
        let seen = seen_rx.recv_timeout(PATIENCE).with_context(|| format!("write {number}"))?;
        times.push(seen.saturating_duration_since(begin));
    }
    Ok(times)
}

/// Says once that it has begun, and then the moment of each change.
async fn watch(
    cluster: &EtcdCluster,
    certificate: Option<&Certificate>,
    writes: usize,
    seen_tx: &mpsc::Sender<Instant>,
) -> Result<()> {
    let mut client = connect(cluster, certificate).await?;
    let mut stream = client.watch(KEY, None).await.context("watch")?;
    let mut seen = 0;
    while seen < writes {
        let message = tokio::time::timeout(PATIENCE, stream.message()).await;
        let message = message.context("nothing is seen")?.context("watch")?;
        let message = message.context("etcd ended the watch")?;
        ensure!(!message.canceled(), "etcd cancelled the watch: {}", message.cancel_reason());
        let events = message.events().len();
        seen += events;
        for _ in 0..events + usize::from(message.created()) {
            // A writer that failed says so itself.
            let _ = seen_tx.send(Instant::now());
        }
    }
    Ok(())
}

async fn connect(cluster: &EtcdCluster, certificate: Option<&Certificate>) -> Result<Client> {
    let mut options = ConnectOptions::new().with_connect_timeout(PATIENCE);
    if let Some(Certificate { authority, certificate, key }) = certificate {
        let read = |path| fs::read(path).context("read a certificate");
        let authority = etcd_client::Certificate::from_pem(read(authority)?);
        let identity = etcd_client::Identity::from_pem(read(certificate)?, read(key)?);
        options = options.with_tls(TlsOptions::new().ca_certificate(authority).identity(identity));
    }
    Client::connect(cluster.endpoints(), Some(options)).await.context("connect to etcd")
}

fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future)
}
