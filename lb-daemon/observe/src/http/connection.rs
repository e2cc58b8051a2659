use std::{
    future::Future,
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{Router, body::Body, extract::Request, response::Response};
use futures::future::BoxFuture;
use hyper::{body::Incoming, server::conn::http1, service::Service};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{sleep, timeout},
};
use tower::ServiceExt;

use super::{connection_limit::ConnectionSlot, credentials::HttpCredentials};

/// Time for the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for the head of a request, also of a further one on an open connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest head, bytes.
const HEAD_BYTES: usize = 16 * 1024;
/// Longest life of a connection; then it ends after the answer under way.
const MAX_LIFE: Duration = Duration::from_secs(60);
/// Time that is left for that answer.
const DEADLINE: Duration = Duration::from_secs(2);

/// The client of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientAddress(pub(super) SocketAddr);

/// Serves one connection until [`MAX_LIFE`], `stop`, or its eviction.
pub(super) async fn serve_connection(
    (stream, client): (TcpStream, SocketAddr),
    credentials: HttpCredentials,
    routes: Router,
    slot: ConnectionSlot,
    stop: impl Future<Output = ()>,
) {
    let slot = Arc::new(slot);
    let stream = Watched { stream, slot: Arc::clone(&slot) };
    let answers = Answers { routes, client, slot: Arc::clone(&slot) };
    let mut stop = pin!(stop);
    let Some(acceptor) = credentials.acceptor() else {
        return serve_stream(stream, answers, &slot, stop).await;
    };
    let accepted = tokio::select! {
        accepted = timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)) => accepted,
        () = slot.evicted() => return,
        () = &mut stop => return,
    };
    match accepted {
        Ok(Ok(stream)) => serve_stream(stream, answers, &slot, stop).await,
        Ok(Err(error)) => credentials.log_refusal(client, &format!("no TLS: {error}")),
        Err(_) => credentials.log_refusal(client, "the TLS handshake took too long"),
    }
}

async fn serve_stream(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    answers: Answers,
    slot: &ConnectionSlot,
    stop: impl Future<Output = ()>,
) {
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(HEAD_BYTES);
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
    client: SocketAddr,
    slot: Arc<ConnectionSlot>,
}

impl Service<Request<Incoming>> for Answers {
    type Response = Response;
    type Error = std::convert::Infallible;
    type Future = BoxFuture<'static, Result<Response, Self::Error>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(ClientAddress(self.client));
        let (slot, routes) = (Arc::clone(&self.slot), self.routes.clone());
        Box::pin(async move {
            // Not before this runs, and not until the answer is sent: both wait for a client that does not read.
            let _answering = slot.answering();
            routes.oneshot(request.map(Body::new)).await
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
