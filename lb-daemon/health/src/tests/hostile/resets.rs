//! Connections that are broken off, at each stage.

use tokio_rustls::TlsAcceptor;

use super::{
    super::authority::Authority,
    http2::{HEAD, SETTINGS, grpc},
    tls::over_tls,
    *,
};

/// Goes without a word of close.
fn reset(stream: TcpStream) {
    stream.set_zero_linger().unwrap();
}

/// Hears something, answers so, and goes.
async fn after(mut stream: TcpStream, answer: &[u8]) {
    let mut buffer = [0; 4096];
    assert_ne!(stream.read(&mut buffer).await.unwrap(), 0);
    stream.write_all(answer).await.unwrap();
    // A reset takes with it what was not read yet, so that what comes of it is known.
    reset(stream);
}

#[tokio::test]
async fn at_each_stage_of_http() {
    let Probe::Http(probe) = patient().probe else { unreachable!("it is http") };
    let probe = HttpCheck { body_contains: Some("well".to_owned()), ..probe };
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
        let change = verdict(&check, |stream| after(stream, answer.as_bytes())).await;
        assert_eq!(change, expected, "{answer:?}");
    }
}

#[tokio::test]
async fn at_each_stage_of_tls() {
    let expected = fails("connection reset by peer");
    let authority = Authority::new();
    for check in [patient(), grpc(patient())].map(over_tls) {
        for answer in [&b""[..], b"\x16\x03", b"\x16\x03\x03\x40\x00\x02"] {
            let change = verdict(&check, |stream| after(stream, answer)).await;
            assert_eq!(change, expected, "{answer:?}");
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
    for answer in [
        Vec::new(),
        b"\0\0".to_vec(),
        SETTINGS.to_vec(),
        [SETTINGS, &HEAD[..12]].concat(),
        [SETTINGS, HEAD].concat(),
        [SETTINGS, HEAD, b"\0\0\x07\0\0\0\0\0\x01\0\0\0\0"].concat(),
    ] {
        let change = verdict(&grpc(patient()), |stream| after(stream, &answer)).await;
        assert_eq!(change, fails("connection reset by peer"), "{answer:?}");
    }
}
