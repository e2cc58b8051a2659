//! Connections that are broken off, at each stage.

use tokio_rustls::TlsAcceptor;

use super::{super::authority::Authority, *};
use crate::model::{GrpcProbe, TlsProbe, Trust};

/// Goes without a word of farewell.
fn reset(stream: TcpStream) {
    stream.set_zero_linger().unwrap();
}

/// Hears something, answers so, and goes.
async fn after(mut stream: TcpStream, answer: &[u8]) {
    let mut heard = [0; 4096];
    assert_ne!(stream.read(&mut heard).await.unwrap(), 0);
    stream.write_all(answer).await.unwrap();
    // A reset takes with it what was not read yet, so that what comes of it is known.
    reset(stream);
}

#[tokio::test]
async fn at_each_stage_of_http() {
    let Probe::Http(probe) = patient().probe else { unreachable!("it is http") };
    let probe = HttpProbe { body_contains: Some("well".to_owned()), ..probe };
    let check = HealthCheck { probe: Probe::Http(probe), ..patient() };
    let expected = fails("connection reset by peer");
    for answer in [
        "",
        "HTT",
        "HTTP/1.1 200 OK\r\nX: y",
        "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nall is",
        "HTTP/1.1 200 OK\r\n\r\nall is",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na",
    ] {
        let told = verdict(&check, |stream| after(stream, answer.as_bytes())).await;
        assert_eq!(told, expected, "{answer:?}");
    }
}

#[tokio::test]
async fn at_each_stage_of_tls() {
    let tls = TlsProbe { server_name: Some("shop.example".to_owned()), trust: Trust::Anybody };
    let expected = fails("connection reset by peer");
    let authority = Authority::new();
    let grpc = Probe::Grpc(GrpcProbe { service: String::new(), authority: None });
    for probe in [patient().probe, grpc] {
        let check = HealthCheck { tls: Some(tls.clone()), probe, ..patient() };
        for answer in [&b""[..], b"\x16\x03", b"\x16\x03\x03\x40\x00\x02"] {
            let told = verdict(&check, |stream| after(stream, answer)).await;
            assert_eq!(told, expected, "{answer:?}");
        }
        // After the handshake, when the request has come.
        let acceptor: TlsAcceptor =
            authority.acceptor(&["shop.example"], 4000, &["http/1.1", "h2"]);
        let shaken = |stream| async move {
            let mut stream = acceptor.accept(stream).await.unwrap();
            assert_ne!(stream.read(&mut [0; 4096]).await.unwrap(), 0);
            reset(stream.into_inner().0);
        };
        assert_eq!(verdict(&check, shaken).await, expected, "{:?}", check.probe);
    }
}

#[tokio::test]
async fn at_each_stage_of_grpc() {
    let grpc = Probe::Grpc(GrpcProbe { service: String::new(), authority: None });
    let check = HealthCheck { probe: grpc, ..patient() };
    let settings: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
    let head: &[u8] = b"\0\0\x14\x01\x04\0\0\0\x01\x88\x0f\x10\x10application/grpc";
    for answer in [
        Vec::new(),
        b"\0\0".to_vec(),
        settings.to_vec(),
        [settings, &head[..12]].concat(),
        [settings, head].concat(),
        [settings, head, b"\0\0\x07\0\0\0\0\0\x01\0\0\0\0"].concat(),
    ] {
        let told = verdict(&check, |stream| after(stream, &answer)).await;
        assert_eq!(told, fails("connection reset by peer"), "{answer:?}");
    }
}
