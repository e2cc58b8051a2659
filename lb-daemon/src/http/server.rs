use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::stop::Stop;

/// Connections at once; more wait in the kernel's queue.
const CONNECTIONS: usize = 32;
/// Time for the head of a request, also of the next one on an open connection.
const HEAD: Duration = Duration::from_secs(5);
/// Longest head, bytes.
const HEAD_BYTES: usize = 16 * 1024;
/// Time that a connection may live; then it ends after the answer under way.
const LIFE: Duration = Duration::from_secs(60);
/// Time that this answer then still has.
const DEADLINE: Duration = Duration::from_secs(2);
/// Rest after the kernel refused a connection, for want of descriptors for example.
const REST: Duration = Duration::from_millis(200);

/// Answers until it is told to stop; then answers under way have a deadline to end.
pub async fn serve(listener: TcpListener, routes: Router, stop: Stop) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    let mut stopping = pin!(stop.clone().wait());
    loop {
        let next = async {
            let permit = room.clone().acquire_owned().await;
            (listener.accept().await, permit)
        };
        let (accepted, permit) = tokio::select! {
            biased;
            () = &mut stopping => break,
            next = next => next,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, _)) => {
                let (routes, stop) = (routes.clone(), stop.clone());
                connections.spawn(async move {
                    converse(stream, routes, stop.wait()).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "http: accept");
                sleep(REST).await;
            }
        }
    }
    while connections.join_next().await.is_some() {}
}

/// One connection, from its first request to its end, which comes at its time or with `stop`.
async fn converse(stream: TcpStream, routes: Router, stop: impl Future<Output = ()>) {
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES);
    let connection =
        server.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = async { tokio::select! { () = sleep(LIFE) => {}, () = stop => {} } } => {
            connection.as_mut().graceful_shutdown();
            timeout(DEADLINE, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "http");
    }
}
