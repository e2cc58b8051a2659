use std::time::Duration;

use tokio::{net::UnixListener, time::sleep};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic_health::ServingStatus;

use super::{
    routes::{DescriptorsError, routes},
    serving,
};
use crate::{command::Commands, stats, stop::Stop};

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

/// Answers calls until it is told to stop; then calls under way have a deadline to end.
///
/// # Errors
/// The listener fails.
pub async fn serve(
    listener: UnixListener,
    commands: Commands,
    counters: stats::Source,
    stop: Stop,
) -> Result<(), ServeError> {
    let (routes, reporter) = routes(commands.clone(), counters, stop.clone())?;
    serving::set(&reporter, ServingStatus::NotServing).await;
    let reports = serving::report(reporter, commands, stop.clone());
    let calls = Server::builder()
        .add_routes(routes)
        .serve_with_incoming_shutdown(UnixListenerStream::new(listener), stop.clone().wait());
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
