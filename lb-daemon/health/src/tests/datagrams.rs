//! UDP: a question and its answer.

use std::net::IpAddr;

use tokio::net::UdpSocket;

use super::*;
use lb_model::UdpCheck;

fn udp(server: SocketAddr, request: &[u8], prefix: &[u8], contains: &[u8]) -> HealthCheck {
    let (request, answer_prefix, answer_contains) =
        (request.to_vec(), prefix.to_vec(), contains.to_vec());
    let kind = CheckKind::Udp(UdpCheck { request, answer_prefix, answer_contains });
    HealthCheck { kind, interval: Duration::from_secs(3600), ..http(server) }
}

/// Answers the first datagram with each of `answers`; what it was.
async fn answer(socket: &UdpSocket, answers: &[&[u8]]) -> Vec<u8> {
    let mut request = vec![0; 2048];
    let (length, from) = timeout(PATIENCE, socket.recv_from(&mut request)).await.unwrap().unwrap();
    for answer in answers {
        // The first may have ended the check, and its socket.
        let _ = socket.send_to(answer, from).await;
    }
    request.truncate(length);
    request
}

async fn verdict(
    address: &str,
    check: impl Fn(SocketAddr) -> HealthCheck,
    answers: &[&[u8]],
) -> (Health, String, Vec<u8>) {
    let socket = UdpSocket::bind(address).await.unwrap();
    let server = socket.local_addr().unwrap();
    let mut probing = Probing::start(vec![target("dns", server, &[("up", &check(server))])]);
    let ((_, health, _, reason), request) = tokio::join!(probing.next(), answer(&socket, answers));
    (health, reason.strip_prefix("check up: ").unwrap_or(&reason).to_owned(), request)
}

#[tokio::test]
async fn the_first_answer_decides() {
    let begins = "the answer does not begin with \"pong\"";
    let lacks = "the answer's first 4096 bytes have no \"hex:00ff\"";
    let far = [&vec![b'x'; 4095][..], b"\x00\xff"].concat();
    let near = [&vec![b'x'; 4094][..], b"\x00\xff"].concat();
    for (prefix, contains, answers, expected) in [
        (&b""[..], &b""[..], &[&b""[..]][..], PASSES),
        (b"", b"", &[b"anything"], PASSES),
        (b"pong", b"", &[b"pong 1"], PASSES),
        (b"pong", b"", &[b"ping", b"pong"], begins),
        (b"pong", b"", &[b"pon"], begins),
        (b"", b"\x00\xff", &[b"a\x00\xff"], PASSES),
        (b"", b"\x00\xff", &[b"a\x00b\xff"], lacks),
        (b"", b"\x00\xff", &[&near], PASSES),
        (b"", b"\x00\xff", &[&far], lacks),
        (b"pong", b"\x00\xff", &[b"pong"], lacks),
    ] {
        let check = |server| udp(server, b"\x00ping", prefix, contains);
        let (_, reason, request) = verdict("127.0.0.1:0", check, answers).await;
        assert_eq!((&*reason, &*request), (expected, &b"\x00ping"[..]), "{answers:?}");
    }
    let (health, ..) = verdict("[::1]:0", |server| udp(server, b"", b"", b""), &[b"x"]).await;
    assert_eq!(health, Passing);
}

/// The kernel answers for a port that nobody serves, so the host is there.
#[tokio::test]
async fn a_port_that_is_unreachable_is_a_refusal() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        // Taken and given back: nobody else is given it for a while.
        let server = UdpSocket::bind(address).await.unwrap().local_addr().unwrap();
        let check = HealthCheck { fall: 1, ..udp(server, b"x", b"", b"") };
        let mut probing = Probing::start(vec![target("web", server, &[("up", &check)])]);
        assert_eq!(probing.next().await, web(Failing, true, "check up: connection refused"));
    }
}

#[tokio::test]
async fn who_does_not_answer_is_asked_whether_the_host_is_there() {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let server = socket.local_addr().unwrap();
    let check = udp(server, b"x", b"", b"");
    let check = HealthCheck { fall: 1, timeout: Duration::from_millis(400), ..check };
    let mut probing = Probing::start(vec![target("web", server, &[("up", &check)])]);
    let (_, health, _, reason) = probing.next().await;
    let (what, sign) = reason.split_once(", but the host answers ").expect(&reason);
    assert_eq!((health, what), (Failing, "check up: no answer within 400 ms"));
    assert!(["on another port", "echo requests"].contains(&sign), "{sign}");
}

/// No socket of any kind leads to the broadcast address.
#[tokio::test]
async fn a_host_that_no_way_leads_to_is_silent() {
    let server = SocketAddr::new(IpAddr::from([255, 255, 255, 255]), 53);
    let check = HealthCheck { fall: 1, ..udp(server, b"x", b"", b"") };
    let mut probing = Probing::start(vec![target("web", server, &[("up", &check)])]);
    let (_, health, _, reason) = probing.next().await;
    assert_eq!(health, Health::Silent, "{reason}");
}
