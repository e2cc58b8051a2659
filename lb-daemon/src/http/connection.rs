use std::{
    future::Future,
    io,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{Router, body::Body, extract::Request, response::Response};
use futures::future::BoxFuture;
use http_body_util::BodyExt;
use hyper::{body::Incoming, server::conn::http1, service::Service};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{sleep, timeout},
};
use tower::ServiceExt;

use super::connection_limit::ConnectionSlot;

/// Time for the head of a request, also of a further one on an open connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest head, bytes.
const HEAD_BYTES: usize = 16 * 1024;
/// Longest life of a connection; then it ends after the answer under way.
const MAX_LIFE: Duration = Duration::from_secs(60);
/// Time that is left for that answer.
const DEADLINE: Duration = Duration::from_secs(2);

/// Serves one connection until [`MAX_LIFE`], `stop`, or its eviction.
pub(super) async fn serve_connection(
    stream: TcpStream,
    routes: Router,
    slot: ConnectionSlot,
    stop: impl Future<Output = ()>,
) {
    let slot = Arc::new(slot);
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(HEAD_BYTES);
    let stream = Watched { stream, slot: Arc::clone(&slot) };
    let answers = Answers { routes, slot: Arc::clone(&slot) };
    let connection = server.serve_connection(TokioIo::new(stream), answers);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = slot.evicted() => Ok(()),
        () = async { tokio::select! { () = sleep(MAX_LIFE) => {}, () = stop => {} } } => {
            connection.as_mut().graceful_shutdown();
            timeout(DEADLINE, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "http");
    }
}

/// The routes, which mark the connection as busy while a request is answered.
#[derive(Debug)]
struct Answers {
    routes: Router,
    slot: Arc<ConnectionSlot>,
}

impl Service<Request<Incoming>> for Answers {
    type Response = Response;
    type Error = std::convert::Infallible;
    type Future = BoxFuture<'static, Result<Response, Self::Error>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (answering, routes) = (self.slot.answering(), self.routes.clone());
        Box::pin(async move {
            let answer = routes.oneshot(request.map(Body::new)).await?;
            // Busy until the last frame is handed to the connection.
            Ok(answer.map(|body| {
                Body::new(body.map_frame(move |frame| {
                    let _ = &answering;
                    frame
                }))
            }))
        })
    }
}

/// A stream that reports writes to the slot.
#[derive(Debug)]
struct Watched {
    stream: TcpStream,
    slot: Arc<ConnectionSlot>,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.report(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.report(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl Watched {
    fn report(&self, written: &Poll<io::Result<usize>>) {
        if matches!(written, Poll::Ready(Ok(_))) {
            self.slot.sent();
        }
    }
}
