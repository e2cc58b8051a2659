//! Who is silent: hosts behind connections that do not come about. Those that need a network of their
//! own are in `tests/e2e/scenarios/unhealthy`.

use std::net::TcpListener;

use tokio::{net::TcpStream, time::Instant};

use super::*;

const TIMEOUT: Duration = Duration::from_millis(1000);

/// A listener whose queue is full, with what fills it: the kernel drops every further SYN.
async fn full_queue(address: &str) -> (TcpListener, Vec<TcpStream>) {
    let socket = socket2::Socket::new(
        socket2::Domain::for_address(address.parse().unwrap()),
        socket2::Type::STREAM,
        None,
    );
    let socket = socket.unwrap();
    socket.bind(&address.parse::<SocketAddr>().unwrap().into()).unwrap();
    socket.listen(1).unwrap();
    let listener = TcpListener::from(socket);
    let server = listener.local_addr().unwrap();
    let mut queued = Vec::new();
    while let Ok(stream) = timeout(TIMEOUT, TcpStream::connect(server)).await {
        queued.push(stream.unwrap());
        assert!(queued.len() < 10, "the queue has no end");
    }
    (listener, queued)
}

#[tokio::test]
async fn a_full_accept_queue_is_the_application_and_not_the_host() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let (listener, _queued) = full_queue(address).await;
        let server = listener.local_addr().unwrap();
        let check = HealthCheck { timeout: TIMEOUT, fall: 1, ..tcp(server) };
        let mut probing = Probing::start(vec![target("web", server, &[("up", &check)])]);
        let began = Instant::now();
        let (_, health, _, reason) = probing.next().await;
        // By which way depends on what this machine allows.
        let (what, sign) = reason.split_once(", but the host answers ").expect(&reason);
        assert_eq!((health, what), (Failing, "check up: no connection within 1000 ms"));
        assert!(["on another port", "echo requests"].contains(&sign), "{sign}");
        assert!(began.elapsed() >= TIMEOUT, "the connection had less than its time");
    }
}

/// No socket of any kind leads to the broadcast address.
#[tokio::test]
async fn a_host_that_no_way_leads_to_is_silent_at_once_and_dead_after_a_row() {
    let server: SocketAddr = "255.255.255.255:80".parse().unwrap();
    let check = HealthCheck { interval: Duration::from_millis(50), ..tcp(server) };
    let mut probing = Probing::start(vec![target("web", server, &[("up", &check)])]);
    let began = Instant::now();
    let why = "check up: network is unreachable, and the host is silent";
    assert_eq!(probing.next().await, web(Failing, true, why));
    assert_eq!(probing.next().await, web(Failing, false, why), "2 of 3");
    assert_eq!(probing.next().await, web(Health::Silent, false, why));
    assert!(began.elapsed() < check.timeout, "the timeout was waited for");
}
