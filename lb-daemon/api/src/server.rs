//! The gRPC server: its services, message sizes and limits, and its end.

use std::{
    pin::pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

use futures::{FutureExt, StreamExt, future::BoxFuture, ready, stream};
use spillway_proto::v1::{
    fleet_server::FleetServer, objects_server::ObjectsServer, overrides_server::OverridesServer,
    spillway_server::SpillwayServer,
};
use tokio::{net::UnixListener, sync::mpsc, time::sleep};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{codegen::http, server::NamedService, service::Routes, transport::Server};
use tonic_health::{ServingStatus, server::HealthReporter};
use tower::Service;

use super::{
    access::{Guard, RequestSize, request_size},
    all_backends::{Calls, WithAllBackends},
    fleet::FleetApi,
    health,
    limits::Limits,
    objects::Objects,
    overrides::OverridesApi,
    service::Api,
    socket,
};
use crate::{audit::Audit, reload::Reloads};
use lb_member::Changes;
use lb_secure::{
    access::{Peer, Role},
    refusals::ApiRefusals,
    tls::Connection,
};

use lb_health::Tunnels;
use lb_inspect::stats;
use lb_publish::publisher::FollowedHost;

/// Time that calls under way have left when the daemon stops.
const DEADLINE: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("gRPC server")]
    Transport(#[from] tonic::transport::Error),
    #[error(transparent)]
    Descriptors(#[from] DescriptorsError),
}

/// Interval and timeout of HTTP/2 keepalive pings.
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));

/// Concurrent streams of a connection; a client that follows HTTP/2 waits with more.
const MAX_STREAMS: u32 = 100;

/// Flow-control windows of a stream and of a connection, bytes.
const WINDOWS: (u32, u32) = (256 << 10, 1 << 20);

/// The parts of the daemon that answer calls.
#[derive(Clone, Debug)]
pub struct Handles {
    pub changes: Changes,
    pub audit: Audit,
    /// Counters of the packet path.
    pub counters: stats::Source,
    /// Tunnels for VIP probes.
    pub tunnels: Tunnels,
    pub reloads: Reloads,
    /// What this host is to VIPs.
    pub host: FollowedHost,
}

/// Serves until `stop`; then calls under way have [`DEADLINE`]. Of the two unix sockets the second one is only for reading.
/// `remote` are connections over TLS. Counts refusals because of a limit in `refusals`.
pub async fn serve(
    (listener, read_only): (UnixListener, Option<UnixListener>),
    remote: Option<mpsc::Receiver<Connection>>,
    handles: Handles,
    refusals: ApiRefusals,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let changes = handles.changes.clone();
    let (limits, audit) = (Limits::new(refusals), handles.audit.clone());
    let (routes, reporter) = routes(handles, stop.clone())?;
    health::set(&reporter, ServingStatus::NotServing).await;
    let reports = health::report(reporter, changes, stop.clone());
    let local = pin!(socket::connections(listener, Role::Admin, limits.clone()));
    let read_only = pin!(match read_only {
        Some(listener) => socket::connections(listener, Role::Viewer, limits.clone()).left_stream(),
        None => stream::pending().right_stream(),
    });
    let local = stream::select(local, read_only);
    let remote = match remote {
        Some(remote) => ReceiverStream::new(remote).map(Ok).left_stream(),
        None => stream::pending().right_stream(),
    };
    let calls = Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE.0))
        .http2_keepalive_timeout(Some(KEEPALIVE.1))
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(WINDOWS.0)
        .initial_connection_window_size(WINDOWS.1)
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
            tracing::warn!("API: calls still under way were aborted");
            Ok(())
        }
    }
}

/// Largest response, and largest request of calls that may have a configuration or a pool, bytes: a configuration with as
/// many backends as possible.
pub(super) const MAX_MESSAGE: usize = 64 << 20;

/// Largest request of a caller that may only plan, bytes: what a repository of configurations has.
pub(super) const MAX_PLAN: usize = 16 << 20;

/// Largest request of all other calls, bytes: queries, or changes of a few fields of a backend.
pub(super) const MAX_SMALL_REQUEST: usize = 64 << 10;

/// Largest request about overrides, bytes: more than all targets of one need.
pub(super) const MAX_OVERRIDES_REQUEST: usize = 1 << 20;

/// Largest batch of backends, bytes: 10,000 take about 1 MiB.
const MAX_BATCH_REQUEST: usize = 4 << 20;

/// The descriptors of the API are inconsistent.
#[derive(Debug, thiserror::Error)]
#[error("descriptors of the API")]
pub struct DescriptorsError(#[from] tonic_reflection::server::Error);

/// The services of the API, with reflection and health, and the reporter of the health service.
pub(super) fn routes(
    handles: Handles,
    stop: CancellationToken,
) -> Result<(Routes, HealthReporter), DescriptorsError> {
    let objects = ObjectsServer::new(Objects::new(handles.changes.clone(), handles.audit.clone()))
        .max_encoding_message_size(MAX_MESSAGE);
    let overrides = OverridesApi::new(handles.changes.clone(), handles.audit.clone());
    let overrides = OverridesServer::new(overrides)
        .max_decoding_message_size(MAX_OVERRIDES_REQUEST)
        .max_encoding_message_size(MAX_MESSAGE);
    let calls = Calls { commands: handles.changes.commands().clone(), stop: stop.clone() };
    let fleet =
        FleetApi::new(handles.changes.clone(), handles.counters.clone(), handles.audit.clone());
    let fleet = FleetServer::new(fleet)
        .max_decoding_message_size(MAX_OVERRIDES_REQUEST)
        .max_encoding_message_size(MAX_MESSAGE);
    let spillway =
        SpillwayServer::new(Api::new(handles, stop)).max_encoding_message_size(MAX_MESSAGE);
    let objects = SizeLimited {
        large: objects.clone().max_decoding_message_size(MAX_MESSAGE),
        planned: objects.clone().max_decoding_message_size(MAX_PLAN),
        batch: objects.clone().max_decoding_message_size(MAX_BATCH_REQUEST),
        small: objects.max_decoding_message_size(MAX_SMALL_REQUEST),
    };
    let inner = SizeLimited {
        large: spillway.clone().max_decoding_message_size(MAX_MESSAGE),
        planned: spillway.clone().max_decoding_message_size(MAX_PLAN),
        batch: spillway.clone().max_decoding_message_size(MAX_BATCH_REQUEST),
        small: spillway.max_decoding_message_size(MAX_SMALL_REQUEST),
    };
    let spillway = WithAllBackends { inner, calls };
    // Tools in use need the one or the other version.
    let (v1, v1alpha) = (described().build_v1()?, described().build_v1alpha()?);
    let (reporter, health) = health::reporter();
    let routes = Routes::new(spillway)
        .add_service(objects)
        .add_service(overrides)
        .add_service(fleet)
        .add_service(health)
        .add_service(v1)
        .add_service(v1alpha);
    Ok((routes, reporter))
}

fn described() -> tonic_reflection::server::Builder<'static> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(spillway_proto::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        // What details of errors are made of.
        .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)
}

/// A service with four request limits: only callers that may plan or make any change can make the daemon read a large
/// request.
#[derive(Clone, Debug)]
pub(super) struct SizeLimited<S> {
    pub(super) large: S,
    pub(super) planned: S,
    pub(super) batch: S,
    pub(super) small: S,
}

impl<S: NamedService> NamedService for SizeLimited<S> {
    const NAME: &'static str = S::NAME;
}

impl<S, B> Service<http::Request<B>> for SizeLimited<S>
where
    S: Service<http::Request<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        ready!(self.large.poll_ready(context))?;
        ready!(self.planned.poll_ready(context))?;
        ready!(self.batch.poll_ready(context))?;
        self.small.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        match request_size(request.uri().path()) {
            RequestSize::Large => {
                let peer = request.extensions().get::<Peer>();
                match peer.is_some_and(|peer| peer.role == Some(Role::Plan)) {
                    true => self.planned.call(request).boxed(),
                    false => self.large.call(request).boxed(),
                }
            }
            RequestSize::Batch => self.batch.call(request).boxed(),
            RequestSize::Small => self.small.call(request).boxed(),
        }
    }
}
