//! Clients that know only the API: lists and statuses read a page at a time with the 4 MiB that clients accept by default,
//! backends changed in a batch, and many watchers of a large change.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use lb_tests::sandbox::Sandbox;
use spillway_proto::v1::{
    AdminState, Backend, BackendState, BatchUpdateBackendsRequest, ListBackendsRequest,
    StatusRequest, WatchRequest, objects_client::ObjectsClient, spillway_client::SpillwayClient,
    watch_response::Event,
};
use tokio::task::JoinSet;
use tonic::Streaming;
use tonic::transport::{Channel, Endpoint};

use super::Plan;
use super::configuration::{Edit, Fleet};
use super::daemon::{Daemon, PATIENCE, Room};
use super::figures::Row;

/// Backends of the large change, if the fleet has as many.
const CHANGED: usize = 5_000;

/// Measures all of it, with one daemon that has half of the plan's pools.
///
/// # Errors
/// A daemon that does not start, a call that is refused, or a watcher that does not see the end.
pub(crate) fn measure(sandbox: &Sandbox, plan: &Plan) -> Result<Vec<Row>> {
    let fleet = Fleet { pools: plan.pools.div_ceil(2), backends: plan.backends };
    let daemon = Daemon::started(sandbox, "clients", Room::for_fleet(fleet))?;
    daemon.client()?.apply(&fleet.configuration(Edit::Nothing), false)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let size = format!("clients, {} pools of {}", fleet.pools, fleet.backends);
        let mut rows = Vec::new();
        eprintln!("control: pages");
        let begin = Instant::now();
        let (backends, pages) = list(&mut ObjectsClient::new(connect(&daemon).await?)).await?;
        let row = Row::new(format!("{size}: all backends, by pages of the default size"));
        rows.push(row.ms("time", begin.elapsed()).count("pages", pages));
        ensure!(backends.len() == fleet.size() as usize, "{} backends", backends.len());
        let begin = Instant::now();
        let pages = statuses(&mut SpillwayClient::new(connect(&daemon).await?), &backends).await?;
        let row = Row::new(format!("{size}: the status of all, by pages of 1000"));
        rows.push(row.ms("time", begin.elapsed()).count("pages", pages));

        eprintln!("control: watchers of a large change");
        let quiet = daemon.memory("VmRSS")?;
        let mut watches = Vec::new();
        for _ in 0..plan.watchers {
            let mut client = SpillwayClient::new(connect(&daemon).await?);
            let mut watch = client.watch(WatchRequest::default()).await?.into_inner();
            read_snapshot(&mut watch).await?;
            watches.push((client, watch));
        }
        let changed: HashMap<_, _> = backends.into_iter().take(CHANGED).collect();
        let number = changed.len();
        let (begin, mut readers) = (Instant::now(), JoinSet::new());
        for (client, mut watch) in watches {
            let expected: HashSet<_> = changed.keys().cloned().collect();
            readers.spawn(async move {
                let _connected = client;
                read_until_draining(&mut watch, expected).await?;
                anyhow::Ok(begin.elapsed())
            });
        }
        let drained = changed.into_values().map(|backend| Backend {
            admin_state: AdminState::Drain.into(),
            etag: String::new(),
            ..backend
        });
        let request =
            BatchUpdateBackendsRequest { backends: drained.collect(), ..Default::default() };
        let mut objects =
            ObjectsClient::new(connect(&daemon).await?).max_decoding_message_size(64 << 20);
        objects.batch_update_backends(request).await?;
        let answered = begin.elapsed();
        let mut last = answered;
        while let Some(reader) = readers.join_next().await {
            last = last.max(reader??);
        }
        let row = format!("{size}: {} watchers, a batch of {number} backends", plan.watchers);
        let row = Row::new(row).ms("answer", answered).ms("last watcher has all", last);
        let row = row.memory("resident before", quiet);
        rows.push(row.memory("peak resident", daemon.memory("VmHWM")?));
        Ok(rows)
    })
}

/// A connection of its own, with the limits that clients have by default.
async fn connect(daemon: &Daemon) -> Result<Channel> {
    let endpoint = Endpoint::from_shared(format!("unix:{}", daemon.socket.display()))?;
    endpoint.connect().await.context("connect to the daemon")
}

type Key = (String, String);

async fn list(client: &mut ObjectsClient) -> Result<(HashMap<Key, Backend>, u64)> {
    let (mut all, mut pages, mut page_token) = (HashMap::new(), 0, String::new());
    loop {
        let request = ListBackendsRequest { page_token, ..Default::default() };
        let page = client.list_backends(request).await?.into_inner();
        pages += 1;
        all.extend(page.backends.into_iter().map(|it| ((it.pool.clone(), it.address.clone()), it)));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Ok((all, pages));
        }
    }
}

async fn statuses(client: &mut SpillwayClient, expected: &HashMap<Key, Backend>) -> Result<u64> {
    let (mut all, mut pages, mut page_token) = (0, 0, String::new());
    loop {
        let request = StatusRequest { page_size: 1_000, page_token, ..Default::default() };
        let page = client.status(request).await?.into_inner();
        pages += 1;
        all += page.backends.len();
        page_token = page.next_page_token;
        if page_token.is_empty() {
            ensure!(all == expected.len(), "{all} statuses");
            return Ok(pages);
        }
    }
}

async fn next(watch: &mut Streaming<spillway_proto::v1::WatchResponse>) -> Result<Event> {
    let message = tokio::time::timeout(PATIENCE, watch.message()).await.context("no message")??;
    message.and_then(|message| message.event).context("the watch ended")
}

async fn read_snapshot(watch: &mut Streaming<spillway_proto::v1::WatchResponse>) -> Result<()> {
    while !matches!(next(watch).await?, Event::SnapshotEnd(_)) {}
    Ok(())
}

/// Reads until all of these have been told as draining.
async fn read_until_draining(
    watch: &mut Streaming<spillway_proto::v1::WatchResponse>,
    mut expected: HashSet<Key>,
) -> Result<()> {
    while !expected.is_empty() {
        if let Event::Backends(change) = next(watch).await? {
            for backend in change.backends {
                if backend.state() == BackendState::Draining {
                    expected.remove(&(backend.pool, backend.address));
                }
            }
        }
    }
    Ok(())
}
