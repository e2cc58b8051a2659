use std::{pin::pin, time::Duration};

use axum::Router;
use tokio::{net::TcpListener, task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{connection::converse, places::Places};

/// Connections at once. A new one takes the place of the one that is idle longest; where none is idle
/// it waits.
const CONNECTIONS: usize = 32;
/// Rest after the kernel refused a connection, for want of descriptors for example.
const REST: Duration = Duration::from_millis(200);

/// Answers until it is told to stop; then answers under way have a deadline to end.
pub async fn serve(listener: TcpListener, routes: Router, stop: CancellationToken) {
    let places = Places::new(CONNECTIONS);
    let mut connections = JoinSet::new();
    let mut stopping = pin!(stop.clone().cancelled_owned());
    loop {
        let next = async {
            match listener.accept().await {
                // Only who has come takes a place from somebody else.
                Ok((stream, _)) => Ok((stream, places.take().await)),
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
            Ok((stream, place)) => {
                connections.spawn(converse(
                    stream,
                    routes.clone(),
                    place,
                    stop.clone().cancelled_owned(),
                ));
            }
            Err(error) => {
                tracing::debug!(%error, "http: accept");
                sleep(REST).await;
            }
        }
    }
    while connections.join_next().await.is_some() {}
}
