//! UDP.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::net::UdpSocket;

use super::*;
use lb_model::UdpCheck;

fn udp(server: SocketAddr) -> HealthCheck {
    let (request, answer_prefix) = (b"ping".to_vec(), b"pong".to_vec());
    let kind = CheckKind::Udp(UdpCheck { request, answer_prefix, answer_contains: Vec::new() });
    HealthCheck { kind, interval: Duration::from_secs(3600), ..http(server) }
}

/// The client's question to a server, and who asked it.
async fn question(server: &UdpSocket) -> SocketAddr {
    let mut request = [0; 64];
    let (length, from) = timeout(PATIENCE, server.recv_from(&mut request)).await.unwrap().unwrap();
    assert_eq!(&request[..length], b"ping");
    from
}

/// How many datagrams a flood sends before a pause, in which the reader's queue empties: a full one also drops what others
/// send.
const BURST: usize = 64;

/// Sends until it is stopped, whatever becomes of it; how much was sent at least.
async fn flood(from: &UdpSocket, to: SocketAddr, bytes: &[u8], stop: &AtomicBool) -> usize {
    let mut sent = 0;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..BURST {
            sent += usize::from(from.send_to(bytes, to).await.is_ok());
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    sent
}

#[tokio::test]
async fn of_a_flood_of_answers_the_first_alone_counts() {
    for (first, expected) in [
        (&b"pong"[..], PASSES),
        (b"ping", "check up: the answer does not begin with \"pong\""),
        (&[b'x'; 65_507], "check up: the answer does not begin with \"pong\""),
    ] {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap();
        let mut probing = Probing::start(vec![target("dns", address, &[("up", &udp(address))])]);
        let stop = AtomicBool::new(false);
        let flooding = async {
            let from = question(&server).await;
            server.send_to(first, from).await.unwrap();
            flood(&server, from, b"pang", &stop).await
        };
        let change = async {
            let change = probing.next().await;
            stop.store(true, Ordering::Relaxed);
            change
        };
        let ((_, _, _, reason), _) = tokio::join!(change, flooding);
        assert_eq!(reason, expected);
    }
}

#[tokio::test]
async fn what_others_send_is_no_answer() {
    // Whether the server says something in the end.
    for answers in [false, true] {
        // A server of its own: that of the round before may still have a question that nobody waits for.
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap();
        let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let abroad = UdpSocket::bind(("127.0.0.2", address.port())).await.unwrap();
        let timeout = if answers { PATIENCE } else { SHORT };
        let check = HealthCheck { timeout, ..udp(address) };
        let began = Instant::now();
        let mut probing = Probing::start(vec![target("dns", address, &[("up", &check)])]);
        let stop = AtomicBool::new(false);
        let flooding = async {
            let from = question(&server).await;
            let strangers = flood(&stranger, from, b"pong", &stop);
            let abroad = flood(&abroad, from, b"pong", &stop);
            let server = async {
                tokio::time::sleep(SHORT / 3).await;
                // More than once: beside a flood the kernel's backlog may drop a datagram.
                while answers && !stop.load(Ordering::Relaxed) {
                    server.send_to(b"pong: it is me", from).await.unwrap();
                    tokio::time::sleep(SHORT / 10).await;
                }
            };
            let (strangers, abroad, ()) = tokio::join!(strangers, abroad, server);
            assert!(strangers > 0 && abroad > 0, "{strangers} and {abroad} datagrams were sent");
        };
        let change = async {
            let change = probing.next().await;
            stop.store(true, Ordering::Relaxed);
            change
        };
        let ((_, _, _, reason), ()) = tokio::join!(change, flooding);
        assert!(began.elapsed() >= SHORT / 3, "before the server said a word: {reason}");
        match answers {
            true => assert_eq!(reason, PASSES),
            false => {
                let late = "check up: no answer within 300 ms, but the host answers ";
                assert!(reason.starts_with(late), "{reason}");
                assert!(began.elapsed() < SHORT + SLACK);
            }
        }
    }
}
