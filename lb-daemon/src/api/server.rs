//! The gRPC server: its services, message sizes and limits, and its end.

use std::{
    pin::pin,
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt, StreamExt, future::BoxFuture, ready, stream};
use spillway_proto::v1::{objects_server::ObjectsServer, spillway_server::SpillwayServer};
use tokio::{net::UnixListener, sync::mpsc, time::sleep};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{codegen::http, server::NamedService, service::Routes, transport::Server};
use tonic_health::{ServingStatus, server::HealthReporter};
use tower::Service;

use super::{
    access::{Guard, takes_admin},
    health,
    limits::Limits,
    objects::Objects,
    service::Api,
    socket,
};
use crate::{audit::Audit, metrics::Live, reload::Reloads, tls::Connection};
use lb_base::shutdown::Stop;
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
    stop: Stop,
) -> Result<(), ServeError> {
    let commands = handles.commands.clone();
    let (limits, audit) = (Limits::new(live), handles.audit.clone());
    let (routes, reporter) = routes(handles, stop.clone())?;
    health::set(&reporter, ServingStatus::NotServing).await;
    let reports = health::report(reporter, commands, stop.clone());
    let local = pin!(socket::connections(listener, limits.clone()));
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

/// Largest answer, and largest request of an admin's calls, bytes: a configuration with every backend
/// there is room for.
const LARGEST: usize = 64 << 20;

/// Largest request of all other calls, bytes: they ask, or change a few fields of a backend.
const QUESTION: usize = 64 << 10;

/// The descriptors of the API do not fit each other.
#[derive(Debug, thiserror::Error)]
#[error("descriptors of the API")]
pub struct DescriptorsError(#[from] tonic_reflection::server::Error);

/// The services of the API, what tells of them, and who is to say whether they are well.
pub(super) fn routes(
    handles: Handles,
    stop: Stop,
) -> Result<(Routes, HealthReporter), DescriptorsError> {
    let objects = ObjectsServer::new(Objects::new(handles.commands.clone(), handles.audit.clone()))
        .max_encoding_message_size(LARGEST);
    let spillway = SpillwayServer::new(Api::new(handles, stop)).max_encoding_message_size(LARGEST);
    let objects = BySize {
        large: objects.clone().max_decoding_message_size(LARGEST),
        small: objects.max_decoding_message_size(QUESTION),
    };
    let spillway = BySize {
        large: spillway.clone().max_decoding_message_size(LARGEST),
        small: spillway.max_decoding_message_size(QUESTION),
    };
    // Tools in use ask for the one or the other.
    let (v1, v1alpha) = (described().build_v1()?, described().build_v1alpha()?);
    let (reporter, health) = health::reporter();
    let routes = Routes::new(spillway)
        .add_service(objects)
        .add_service(health)
        .add_service(v1)
        .add_service(v1alpha);
    Ok((routes, reporter))
}

fn described() -> tonic_reflection::server::Builder<'static> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(spillway_proto::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}

/// A service twice: for calls that take a whole configuration, and for all others, so that only those who may change
/// everything can have the daemon read a large request.
#[derive(Clone, Debug)]
pub(super) struct BySize<S> {
    pub(super) large: S,
    pub(super) small: S,
}

impl<S: NamedService> NamedService for BySize<S> {
    const NAME: &'static str = S::NAME;
}

impl<S, B> Service<http::Request<B>> for BySize<S>
where
    S: Service<http::Request<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        ready!(self.large.poll_ready(context))?;
        self.small.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        match takes_admin(request.uri().path()) {
            true => self.large.call(request).boxed(),
            false => self.small.call(request).boxed(),
        }
    }
}
