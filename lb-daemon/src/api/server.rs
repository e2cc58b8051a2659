use std::time::Duration;

use spillway_proto::v1::{objects_server::ObjectsServer, spillway_server::SpillwayServer};
use tokio::{net::UnixListener, time::sleep};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;

use super::{objects::Objects, service::Api};
use crate::{command::Commands, stats, stop::Stop};

/// Largest request and answer, bytes: a configuration with every backend there is room for.
const LARGEST: usize = 64 << 20;

/// How long calls under way may take once the daemon is told to stop.
const DEADLINE: Duration = Duration::from_secs(5);

/// The server failed.
#[derive(Debug, thiserror::Error)]
#[error("gRPC server")]
pub struct ServeError(#[from] tonic::transport::Error);

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
    let objects = ObjectsServer::new(Objects::new(commands.clone()))
        .max_decoding_message_size(LARGEST)
        .max_encoding_message_size(LARGEST);
    let service = SpillwayServer::new(Api::new(commands, counters, stop.clone()))
        .max_decoding_message_size(LARGEST)
        .max_encoding_message_size(LARGEST);
    let calls = Server::builder()
        .add_service(service)
        .add_service(objects)
        .serve_with_incoming_shutdown(UnixListenerStream::new(listener), stop.clone().wait());
    let deadline = async {
        stop.wait().await;
        sleep(DEADLINE).await;
    };
    tokio::select! {
        served = calls => Ok(served?),
        () = deadline => {
            tracing::warn!("calls still under way are cut off");
            Ok(())
        }
    }
}
