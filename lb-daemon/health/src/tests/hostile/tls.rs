//! TLS.

use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{
    super::authority::{Authority, https},
    *,
};
use lb_model::{CheckTls, Trust};

pub(super) fn over_tls(check: HealthCheck) -> HealthCheck {
    let tls = CheckTls { server_name: Some("shop.example".to_owned()), trust: Trust::Anybody };
    HealthCheck { tls: Some(tls), ..check }
}

/// A record of the handshake that is to be as long as one may be.
const LONG_RECORD: &[u8] = b"\x16\x03\x03\x40\x00";

/// One that says it is a server hello of 16 MB.
const LONG_HELLO: &[u8] = b"\x16\x03\x03\x40\x00\x02\xff\xff\xff";

#[tokio::test]
async fn garbage_instead_of_a_handshake_is_told() {
    let corrupt = "TLS: the answer is not TLS: does the port serve it without?";
    let refused = "TLS: the server refuses the handshake (alert handshake_failure): no cipher suite, key exchange group or \
                   signature algorithm in common, or it wants a client certificate";
    for (bytes, expected) in [
        (&b"SSH-2.0-OpenSSH_9.2\r\n"[..], corrupt),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", corrupt),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff", corrupt),
        // A fatal alert: handshake failure.
        (b"\x15\x03\x03\x00\x02\x02\x28", refused),
        // A server hello that has nothing in it.
        (
            b"\x16\x03\x03\x00\x04\x02\x00\x00\x00",
            "TLS: a message of the server cannot be read: protocol version is missing or cut off",
        ),
    ] {
        let garbage = |mut stream: TcpStream| async move {
            let _ = stream.write_all(bytes).await;
            silence(stream).await;
        };
        assert_eq!(verdict(&over_tls(patient()), garbage).await, fails(expected), "{bytes:?}");
    }
}

#[tokio::test]
async fn a_handshake_without_end_is_cut_off() {
    for (begin, part, expected) in [
        (
            b"".as_slice(),
            b"\xff".as_slice(),
            "TLS: the answer is not TLS: does the port serve it without?",
        ),
        (LONG_HELLO, b"\0", "TLS: a message of the server cannot be read: it is too large"),
        // Warnings: they end nothing.
        (
            b"",
            b"\x15\x03\x03\x00\x02\x01\x5a",
            "TLS: the server breaks the rules of TLS: it sent too many warnings",
        ),
    ] {
        let endless = |mut stream: TcpStream| async move {
            if stream.write_all(begin).await.is_ok() {
                flood(&mut stream, part).await;
            }
        };
        assert_eq!(
            verdict(&over_tls(patient()), endless).await,
            fails(expected),
            "{begin:?} {part:?}"
        );
    }
}

#[tokio::test]
async fn a_handshake_byte_by_byte_has_no_more_than_the_time() {
    let slow = |mut stream: TcpStream| async move {
        stream.write_all(LONG_RECORD).await.unwrap();
        drip(&mut stream, b"\x02").await;
    };
    let late = fails("TLS: no handshake within 300 ms");
    assert_eq!(verdict(&over_tls(hasty()), slow).await, late);
    assert_eq!(verdict(&over_tls(hasty()), silence).await, late);
}

/// What is said of a backend that shakes hands as it should and behaves so afterwards.
async fn shaken<F: Future<Output = ()>>(
    check: HealthCheck,
    behave: impl FnOnce(TlsStream<TcpStream>) -> F,
) -> (Health, String) {
    let authority = Authority::new();
    let acceptor: TlsAcceptor = authority.acceptor(&["shop.example"], 4000, &["http/1.1"]);
    let behave = |stream| async move { behave(acceptor.accept(stream).await.unwrap()).await };
    verdict(&over_tls(check), behave).await
}

#[tokio::test]
async fn within_tls_the_bounds_are_those_without() {
    let slow = |mut stream: TlsStream<TcpStream>| async move {
        request(&mut stream).await;
        drip(&mut stream, b"HTTP/1.1 200 OK\r\nX-More: and more of it\r\nX: ").await;
    };
    // Time enough for the handshake on a busy machine.
    let check = HealthCheck { timeout: Duration::from_secs(2), ..patient() };
    let late = fails("no answer within 2000 ms");
    assert_eq!(shaken(check.clone(), slow).await, late);
    assert_eq!(shaken(check, silence).await, late);
    let endless = |mut stream: TlsStream<TcpStream>| async move {
        request(&mut stream).await;
        flood(&mut stream, b"HTTP/1.1 100 Continue\r\n\r\n").await;
    };
    assert_eq!(shaken(patient(), endless).await, fails("the answer's head is over 16384 bytes"));
}

#[tokio::test]
async fn garbage_within_tls_is_told() {
    let raw = |bytes: &'static [u8]| {
        move |stream: TlsStream<TcpStream>| async move {
            // Past the session: nobody has encrypted it.
            let (mut stream, _) = stream.into_inner();
            flood(&mut stream, bytes).await;
        }
    };
    let record = b"\x17\x03\x03\x00\x20garbage garbage garbage garbage!";
    let expected = fails("TLS: a message of the server cannot be decrypted");
    assert_eq!(shaken(patient(), raw(record)).await, expected);
    let corrupt = fails("TLS: after the handshake the server sent something that is not TLS");
    assert_eq!(shaken(patient(), raw(b"\xff\xff\xff\xff")).await, corrupt);
    let inside = |mut stream: TlsStream<TcpStream>| async move {
        let _ = stream.write_all(b"\0\x01\x02 garbage").await;
        silence(stream).await;
    };
    assert_eq!(shaken(patient(), inside).await, fails("the answer is not HTTP/1"));
}

#[tokio::test]
async fn pools_share_one_handshake() {
    let authority = Authority::new();
    let acceptor = authority.acceptor(&["shop.example"], 4000, &[]);
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n";
    let (server, mut seen) = https(acceptor, answer).await;
    let trust = Trust::File(authority.file().to_str().unwrap().to_owned());
    let tls = CheckTls { server_name: Some("shop.example".to_owned()), trust };
    let interval = Duration::from_secs(3600);
    let check = HealthCheck { tls: Some(tls), interval, ..http(server) };
    // One field differs: that one is asked apart.
    let other = CheckTls { server_name: None, trust: Trust::Anybody };
    let other = HealthCheck { tls: Some(other), ..check.clone() };
    let pools: Vec<_> = (0..100).map(|n| format!("pool-{n}")).collect();
    let mut targets: Vec<_> =
        pools.iter().map(|pool| target(pool, server, &[("up", &check)])).collect();
    targets.push(target("other", server, &[("up", &other)]));
    let mut probing = Probing::start(targets);
    let mut change = Vec::new();
    for _ in 0..=pools.len() {
        let (pool, health, first, reason) = probing.next().await;
        assert_eq!((health, first, &*reason), (Passing, true, PASSES), "{pool}");
        change.push(pool);
    }
    change.sort();
    let mut expected = pools;
    expected.push("other".to_owned());
    expected.sort();
    assert_eq!(change, expected);
    let names = [seen.recv().await.unwrap(), seen.recv().await.unwrap()].map(|s| s.server_name);
    assert!(names.contains(&None) && names.contains(&Some("shop.example".to_owned())), "{names:?}");
    assert!(seen.is_empty(), "a handshake too many");
}
