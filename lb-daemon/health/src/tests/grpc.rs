//! The gRPC health service, that of tonic, in the clear and over TLS.

use std::{collections::BTreeMap, io};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
};
use tokio_stream::wrappers::{TcpListenerStream, UnboundedReceiverStream};
use tonic::transport::{Server as Tonic, server::Connected};
use tonic_health::{ServingStatus, server::HealthReporter};

use super::{authority::Authority, *};
use lb_model::{CheckTls, GrpcCheck, Trust};

fn grpc(server: SocketAddr, service: &str) -> HealthCheck {
    let probe = Probe::Grpc(GrpcCheck { service: service.to_owned(), authority: None });
    HealthCheck { probe, ..http(server) }
}

/// A server with the health service, which starts as serving as a whole.
async fn serving() -> (SocketAddr, HealthReporter) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (reporter, service) = tonic_health::server::health_reporter();
    let server = Tonic::builder().add_service(service);
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    (address, reporter)
}

/// What is said of a server that answers bytes, whatever it is asked, and holds the connection.
async fn after(bytes: &[u8]) -> (Health, String) {
    let mut server = Server::start("127.0.0.1:0").await;
    let check = HealthCheck {
        timeout: Duration::from_millis(2000),
        interval: Duration::from_secs(3600),
        ..grpc(server.address, "")
    };
    let mut probing = Probing::start(vec![target("web", server.address, &[("up", &check)])]);
    let answering = async {
        let mut held = server.next().await;
        held.send_bytes(bytes).await;
        held
    };
    let ((_, health, _, reason), _held) = tokio::join!(probing.next(), answering);
    (health, reason.strip_prefix("check up: ").unwrap_or(&reason).to_owned())
}

fn fails(why: &str) -> (Health, String) {
    (Failing, why.to_owned())
}

#[tokio::test]
async fn the_service_says_whether_it_serves() {
    let (server, reporter) = serving().await;
    reporter.set_service_status("shop.Cart", ServingStatus::NotServing).await;
    let checks = ["", "shop.Cart", "shop.Nobody"].map(|service| HealthCheck {
        interval: Duration::from_millis(10),
        rise: 1,
        fall: 1,
        ..grpc(server, service)
    });
    let targets = checks.iter().enumerate();
    let targets = targets.map(|(n, check)| target(&format!("p{n}"), server, &[("up", check)]));
    let mut probing = Probing::start(targets.collect());
    let mut reported = BTreeMap::new();
    while reported.len() < 3 {
        let (pool, health, _, reason) = probing.next().await;
        reported.insert(pool, (health, reason));
    }
    let said: Vec<_> = reported.into_values().collect();
    let expected = [
        (Passing, PASSES.to_owned()),
        fails("check up: the server says NOT_SERVING"),
        fails("check up: the call failed: NOT_FOUND"),
    ];
    assert_eq!(said, expected);
    // It is asked again each time.
    reporter.set_service_status("shop.Cart", ServingStatus::Serving).await;
    assert_eq!(probing.next().await, ("p1".to_owned(), Passing, false, PASSES.to_owned()));
    reporter.set_service_status("shop.Cart", ServingStatus::Unknown).await;
    let unknown = "check up: the server says UNKNOWN".to_owned();
    assert_eq!(probing.next().await, ("p1".to_owned(), Failing, false, unknown));
}

#[tokio::test]
async fn a_server_of_other_services_alone_is_told_apart() {
    // One without the service: tonic's own answer to a path that nobody has.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let (_, service) = tonic_health::server::health_reporter();
    let other = tonic::service::Routes::new(Renamed(service));
    let tonic = Tonic::builder().add_routes(other);
    tokio::spawn(tonic.serve_with_incoming(TcpListenerStream::new(listener)));
    let check = grpc(server, "");
    let mut probing = Probing::start(vec![target("web", server, &[("up", &check)])]);
    let expected = "check up: the call failed: UNIMPLEMENTED";
    assert_eq!(probing.next().await, web(Failing, true, expected));
}

/// The health service under another name.
#[derive(Clone)]
struct Renamed<S>(S);

impl<S> tonic::server::NamedService for Renamed<S> {
    const NAME: &'static str = "shop.Other";
}

impl<S: tower::Service<R>, R> tower::Service<R> for Renamed<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(
        &mut self,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: R) -> Self::Future {
        self.0.call(request)
    }
}

#[tokio::test]
async fn over_tls_it_is_the_same() {
    let authority = Authority::new();
    let acceptor = authority.acceptor(&["cart.example"], 4000, &["h2"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let (accepted, connections) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let (_, session) = stream.get_ref();
            assert_eq!(session.server_name(), Some("cart.example"));
            assert_eq!(session.alpn_protocol(), Some(&b"h2"[..]));
            let _ = accepted.send(Ok::<_, io::Error>(Accepted(stream)));
        }
    });
    let (_reporter, service) = tonic_health::server::health_reporter();
    let tonic = Tonic::builder().add_service(service);
    tokio::spawn(tonic.serve_with_incoming(UnboundedReceiverStream::new(connections)));
    let trust = Trust::File(authority.file().to_str().unwrap().to_owned());
    let tls = CheckTls { server_name: Some("cart.example".to_owned()), trust };
    let check = HealthCheck { tls: Some(tls), ..grpc(server, "") };
    let mut probing = Probing::start(vec![target("web", server, &[("up", &check)])]);
    assert_eq!(probing.next().await, web(Passing, true, PASSES));
}

/// A connection that tonic takes.
struct Accepted<S>(S);

impl<S> Connected for Accepted<S> {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl<S: AsyncRead + Unpin> AsyncRead for Accepted<S> {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::pin::Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Accepted<S> {
    fn poll_write(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<io::Result<usize>> {
        std::pin::Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::pin::Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::pin::Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// Frames by hand, RFC 9113: length, type, flags, stream.
#[tokio::test]
async fn answers_that_are_none() {
    let settings: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
    let goaway: &[u8] = b"\0\0\x0c\x07\0\0\0\0\0\0\0\0\0\0\0\0\x0bHEHE";
    let reset: &[u8] = b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x07";
    // Status 200, and "application/grpc" as content type: static table 8, and literal with name 31.
    let head: &[u8] = b"\0\0\x14\x01\x04\0\0\0\x01\x88\x0f\x10\x10application/grpc";
    let no_grpc: &[u8] = b"\0\0\x01\x01\x05\0\0\0\x01\x8d";
    let data = |message: &[u8], end: u8| {
        let length = u8::try_from(message.len()).unwrap();
        [&[0, 0, length, 0, end, 0, 0, 0, 1][..], message].concat()
    };
    let no_health = "the answer is not of the gRPC health service";
    for (bytes, expected) in [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "the answer is not HTTP/2"),
        (b"\xff\xff\xffgarbage and more of it".to_vec(), "the answer is not HTTP/2"),
        (settings.to_vec(), "no answer within 2000 ms"),
        (Vec::new(), "no answer within 2000 ms"),
        (
            [settings, goaway].concat(),
            "HTTP/2: ended by the server: detected excessive load generating behavior",
        ),
        (
            [settings, reset].concat(),
            "HTTP/2: ended by the server: refused stream before processing any application logic",
        ),
        ([settings, no_grpc].concat(), "status 404, and the answer is not gRPC"),
        ([settings, head].concat(), "no answer within 2000 ms"),
        ([settings, head, &data(b"\0\0\0\0\x02\x08\x01", 0)].concat(), PASSES),
        ([settings, head, &data(b"\0\0\0\0\0", 1)].concat(), "the server says UNKNOWN"),
        ([settings, head, &data(b"\0\0\0\0\x02\x08\x07", 1)].concat(), "the server says status 7"),
        ([settings, head, &data(b"\x01\0\0\0\x02\x08\x01", 1)].concat(), no_health),
        ([settings, head, &data(b"\0\0\0\x04\x01\x08\x01", 1)].concat(), no_health),
        ([settings, head, &data(b"\0\0\0\0\x02\xff\xff", 1)].concat(), no_health),
        ([settings, head, &data(b"\0\0\0", 1)].concat(), no_health),
        ([settings, head, &data(b"", 1)].concat(), no_health),
    ] {
        assert_eq!(after(&bytes).await.1, expected, "{bytes:?}");
    }
}
