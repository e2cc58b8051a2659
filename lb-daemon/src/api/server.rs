use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use tokio::{net::UnixListener, sync::mpsc, time::sleep};
use tokio_stream::wrappers::{ReceiverStream, UnixListenerStream};
use tonic::transport::Server;
use tonic_health::ServingStatus;

use super::{
    access::Guard,
    routes::{DescriptorsError, routes},
    serving,
};
use crate::{audit::Audit, command::Commands, health::Tunnels, stats, stop::Stop, tls::Connection};

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

/// Answers calls until it is told to stop; then calls under way have a deadline to end. `remote` are
/// connections from elsewhere; what anybody may not call is noted in `audit`. Ways to backends are tried
/// through `tunnels`.
///
/// # Errors
/// The listener fails.
pub async fn serve(
    listener: UnixListener,
    remote: Option<mpsc::Receiver<Connection>>,
    audit: Audit,
    commands: Commands,
    counters: stats::Source,
    tunnels: Tunnels,
    stop: Stop,
) -> Result<(), ServeError> {
    let (routes, reporter) =
        routes(commands.clone(), counters, tunnels, audit.clone(), stop.clone())?;
    serving::set(&reporter, ServingStatus::NotServing).await;
    let reports = serving::report(reporter, commands, stop.clone());
    let local = UnixListenerStream::new(listener).map_ok(Connection::local);
    let remote = match remote {
        Some(remote) => ReceiverStream::new(remote).map(Ok).left_stream(),
        None => stream::pending().right_stream(),
    };
    let calls = Server::builder()
        .http2_keepalive_interval(Some(ALIVE.0))
        .http2_keepalive_timeout(Some(ALIVE.1))
        .layer(Guard(audit))
        .add_routes(routes)
        .serve_with_incoming_shutdown(stream::select(local, remote), stop.clone().wait());
    let deadline = async {
        stop.wait().await;
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
