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

use super::places::Place;

/// Time for the head of a request, also of the next one on an open connection.
const HEAD: Duration = Duration::from_secs(5);
/// Longest head, bytes.
const HEAD_BYTES: usize = 16 * 1024;
/// Time that a connection may live; then it ends after the answer under way.
const LIFE: Duration = Duration::from_secs(60);
/// Time that this answer then still has.
const DEADLINE: Duration = Duration::from_secs(2);

/// One connection, from its first request to its end: at its time, with `stop`, or when it is idle and
/// has to give way.
pub(super) async fn converse(
    stream: TcpStream,
    routes: Router,
    place: Place,
    stop: impl Future<Output = ()>,
) {
    let place = Arc::new(place);
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES);
    let stream = Watched { stream, place: Arc::clone(&place) };
    let answers = Answers { routes, place: Arc::clone(&place) };
    let connection = server.serve_connection(TokioIo::new(stream), answers);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = place.given_up() => Ok(()),
        () = async { tokio::select! { () = sleep(LIFE) => {}, () = stop => {} } } => {
            connection.as_mut().graceful_shutdown();
            timeout(DEADLINE, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "http");
    }
}

/// The routes, which say when a request is being answered.
#[derive(Debug)]
struct Answers {
    routes: Router,
    place: Arc<Place>,
}

impl Service<Request<Incoming>> for Answers {
    type Response = Response;
    type Error = std::convert::Infallible;
    type Future = BoxFuture<'static, Result<Response, Self::Error>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (answering, routes) = (self.place.answering(), self.routes.clone());
        Box::pin(async move {
            let answer = routes.oneshot(request.map(Body::new)).await?;
            // Until the last of it is handed to the connection.
            Ok(answer.map(|body| {
                Body::new(body.map_frame(move |frame| {
                    let _ = &answering;
                    frame
                }))
            }))
        })
    }
}

/// A stream that says when some of an answer was sent.
#[derive(Debug)]
struct Watched {
    stream: TcpStream,
    place: Arc<Place>,
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
        self.note(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.note(&written);
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
    fn note(&self, written: &Poll<io::Result<usize>>) {
        if matches!(written, Poll::Ready(Ok(_))) {
            self.place.sent();
        }
    }
}
