//! The listener: binds an address, and serves connections within a limit.

use std::{io, net::SocketAddr, pin::pin, time::Duration};

use axum::Router;
use tokio::{net::TcpListener, task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{
    connection::serve_connection, connection_limit::ConnectionLimit, credentials::HttpCredentials,
    with_auth,
};
use lb_secure::access::source_of;

/// Connections at a time. A new one replaces the longest idle one of the source that has most, or waits if none is idle.
const MAX_CONNECTIONS: usize = 32;
/// Pause after a failed accept, for example without free descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Serves until `stop`; then answers under way have a deadline.
pub async fn serve(
    listener: TcpListener,
    credentials: HttpCredentials,
    routes: Router,
    stop: CancellationToken,
) {
    let routes = with_auth(routes, credentials.clone());
    let limit = ConnectionLimit::new(MAX_CONNECTIONS);
    let mut connections = JoinSet::new();
    let mut stopping = pin!(stop.clone().cancelled_owned());
    loop {
        let next = async {
            match listener.accept().await {
                // Only an accepted connection evicts another.
                Ok((stream, client)) => {
                    Ok(((stream, client), limit.take(source_of(client.ip())).await))
                }
                Err(error) => Err(error),
            }
        };
        let accepted = tokio::select! {
            biased;
            () = &mut stopping => break,
            next = next => next,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((accepted, slot)) => {
                connections.spawn(serve_connection(
                    accepted,
                    credentials.clone(),
                    routes.clone(),
                    slot,
                    stop.clone().cancelled_owned(),
                ));
            }
            Err(error) => {
                tracing::debug!(%error, "http: accept");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    while connections.join_next().await.is_some() {}
}

#[derive(Debug, thiserror::Error)]
#[error("http {address}")]
pub struct BindError {
    address: SocketAddr,
    source: io::Error,
}

impl BindError {
    pub fn hint(&self) -> &'static str {
        match self.source.kind() {
            io::ErrorKind::AddrInUse => "another process listens there: give --http another port",
            io::ErrorKind::AddrNotAvailable => "give --http an address of this host",
            io::ErrorKind::PermissionDenied => "give --http a port above 1023",
            _ => "give --http an address and a port, such as 127.0.0.1:9750",
        }
    }
}

/// Binds the address of a listener that will be served with these credentials.
///
/// # Errors
/// [`BindError`].
pub async fn bind(
    address: SocketAddr,
    credentials: &HttpCredentials,
) -> Result<TcpListener, BindError> {
    let failed = |source| BindError { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let there = listener.local_addr().map_err(failed)?;
    match credentials.exposure().filter(|_| !address.ip().is_loopback()) {
        None => tracing::info!(address = %there, "http: listening on {there}"),
        Some(exposure) => {
            tracing::warn!(address = %there, "http: listening on {there}: {exposure}");
        }
    }
    Ok(listener)
}
