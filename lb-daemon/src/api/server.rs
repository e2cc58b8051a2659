use std::{pin::pin, time::Duration};

use futures::{StreamExt, stream};
use tokio::{net::UnixListener, sync::mpsc, time::sleep};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic_health::ServingStatus;

use super::{
    access::Guard,
    limits::Limits,
    local,
    routes::{DescriptorsError, routes},
    serving,
};
use crate::{audit::Audit, metrics::Live, reload::Reloads, tls::Connection};

use lb_control::command::Commands;
use lb_health::Tunnels;
use lb_inspect::stats;

/// How long calls under way may take once the daemon is told to stop.
const DEADLINE: Duration = Duration::from_secs(5);

/// The server failed.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It cannot listen or accept.
    #[error("gRPC server")]
    Transport(#[from] tonic::transport::Error),
    /// It cannot say what it serves.
    #[error(transparent)]
    Descriptors(#[from] DescriptorsError),
}

/// Time between two questions whether a client is still there, and for its answer.
const ALIVE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));

/// Streams of one connection at a time; a client that keeps to HTTP waits with more.
const STREAMS: u32 = 100;

/// Bytes that a client may send ahead of what is read: of one stream, and of a connection.
const AHEAD: (u32, u32) = (256 << 10, 1 << 20);

/// What calls are answered by.
#[derive(Clone, Debug)]
pub struct Handles {
    /// The state.
    pub commands: Commands,
    /// The log of changes.
    pub audit: Audit,
    /// What the packet path counted.
    pub counters: stats::Source,
    /// The tunnels through which ways to backends are tried.
    pub tunnels: Tunnels,
    /// What reads the settings again.
    pub reloads: Reloads,
}

/// Answers calls until it is told to stop; then calls under way have a deadline to end. `remote` are
/// connections from elsewhere; what is refused because of a limit is counted in `live`.
///
/// # Errors
/// The listener fails.
pub async fn serve(
    listener: UnixListener,
    remote: Option<mpsc::Receiver<Connection>>,
    handles: Handles,
    live: Live,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let commands = handles.commands.clone();
    let (limits, audit) = (Limits::new(live), handles.audit.clone());
    let (routes, reporter) = routes(handles, stop.clone())?;
    serving::set(&reporter, ServingStatus::NotServing).await;
    let reports = serving::report(reporter, commands, stop.clone());
    let local = pin!(local::connections(listener, limits.clone()));
    let remote = match remote {
        Some(remote) => ReceiverStream::new(remote).map(Ok).left_stream(),
        None => stream::pending().right_stream(),
    };
    let calls = Server::builder()
        .http2_keepalive_interval(Some(ALIVE.0))
        .http2_keepalive_timeout(Some(ALIVE.1))
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(AHEAD.0)
        .initial_connection_window_size(AHEAD.1)
        .layer(Guard { audit, limits })
        .add_routes(routes)
        .serve_with_incoming_shutdown(
            stream::select(local, remote),
            stop.clone().cancelled_owned(),
        );
    let deadline = async {
        stop.cancelled().await;
        sleep(DEADLINE).await;
    };
    let calls = async { tokio::join!(calls, reports).0 };
    tokio::select! {
        served = calls => Ok(served?),
        () = deadline => {
            tracing::warn!("calls still under way are cut off");
            Ok(())
        }
    }
}
