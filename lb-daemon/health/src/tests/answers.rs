//! What a backend may do, and what is said of it.

use std::io::ErrorKind;

use tokio::net::TcpSocket;

use super::*;

/// Lets one backend behave as `behave` says, and gives the first change.
async fn first_change<F: Future<Output = ()>>(
    address: &str,
    adapt: impl Fn(&mut HealthCheck),
    behave: impl FnOnce(server::Held) -> F,
) -> (Health, String) {
    let mut server = Server::start(address).await;
    let mut check = http(server.address);
    check.interval = Duration::from_secs(3600);
    adapt(&mut check);
    let mut probing = Probing::start(vec![target("web", server.address, &[("web-http", &check)])]);
    let behaving = async { behave(server.next().await).await };
    let (change, ()) = tokio::join!(probing.next(), behaving);
    assert!(change.2, "it is the first");
    (change.1, change.3)
}

/// The first change when the answer is `text`, then nothing more, the connection staying open.
async fn after(text: &str) -> (Health, String) {
    let hold = |mut held: server::Held| async move {
        held.request().await;
        held.send(text).await;
        let _ = held.closed().await;
    };
    first_change("127.0.0.1:0", |check| check.timeout = Duration::from_millis(200), hold).await
}

fn passes() -> (Health, String) {
    (Passing, PASSES.to_owned())
}

fn fails(why: &str) -> (Health, String) {
    (Failing, format!("check web-http: {why}"))
}

#[tokio::test]
async fn the_status_decides() {
    assert_eq!(after("HTTP/1.1 200 OK\r\n\r\n").await, passes());
    assert_eq!(after("HTTP/1.1 299 Odd\r\n\r\n").await, passes());
    assert_eq!(after("HTTP/1.1 503 Busy\r\n\r\n").await, fails("status 503, expected 200 to 299"));
    assert_eq!(
        after("HTTP/1.1 300 Choices\r\n\r\n").await,
        fails("status 300, expected 200 to 299")
    );
}

#[tokio::test]
async fn other_statuses_may_be_wanted() {
    let only_404 = |check: &mut HealthCheck| {
        if let CheckKind::Http(probe) = &mut check.kind {
            (probe.status_min, probe.status_max) = (404, 404);
        }
    };
    let answer = |status| move |held: server::Held| held.answer(status);
    assert_eq!(first_change("127.0.0.1:0", only_404, answer(404)).await, passes());
    assert_eq!(
        first_change("127.0.0.1:0", only_404, answer(200)).await,
        fails("status 200, expected 404")
    );
}

#[tokio::test]
async fn the_request_is_for_the_backend() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let answer = |mut held: server::Held| async move {
            let request = held.request().await;
            assert!(request.starts_with("GET /health HTTP/1.1\r\nHost: "), "{request}");
            let host = request.split("Host: ").nth(1).unwrap().split("\r\n").next().unwrap();
            assert_eq!(host.parse::<SocketAddr>().unwrap(), held.local());
            held.send("HTTP/1.1 200 OK\r\n\r\n").await;
        };
        assert_eq!(first_change(address, |_| {}, answer).await, passes());
    }
}

#[tokio::test]
async fn answers_that_are_none() {
    assert_eq!(after("").await, fails("no answer within 200 ms"));
    assert_eq!(after("HTTP/1.1 200 OK\r\nA: b\r\n").await, fails("no answer within 200 ms"));
    assert_eq!(after("SSH-2.0-OpenSSH_9.2\r\n").await, fails("the answer is not HTTP/1"));
    assert_eq!(after("\0\u{1}\u{2}garbage").await, fails("the answer is not HTTP/1"));
}

#[tokio::test]
async fn a_connection_closed_early_is_a_failure() {
    let close = |mut held: server::Held| async move {
        held.request().await;
        held.send("HTTP/1.1 200 OK\r\n").await;
    };
    assert_eq!(
        first_change("127.0.0.1:0", |_| {}, close).await,
        fails("connection closed before the answer")
    );
    let reset = |mut held: server::Held| async move {
        held.request().await;
        held.reset();
    };
    assert_eq!(first_change("127.0.0.1:0", |_| {}, reset).await, fails("connection reset by peer"));
}

#[tokio::test]
async fn an_answer_byte_by_byte_is_waited_for_until_the_timeout() {
    let drip = |mut held: server::Held| async move {
        held.request().await;
        let error = held.drip("HTTP/1.1 200 OK\r\n\r\n", Duration::from_millis(20)).await;
        assert!(error.is_some(), "cut off before it was whole");
    };
    let shorter = |check: &mut HealthCheck| check.timeout = Duration::from_millis(100);
    assert_eq!(first_change("127.0.0.1:0", shorter, drip).await, fails("no answer within 100 ms"));
}

#[tokio::test]
async fn an_endless_head_is_cut_off() {
    let endless = |mut held: server::Held| async move {
        held.request().await;
        held.send("HTTP/1.1 200 OK\r\n").await;
        held.send_forever("X-More: and more\r\n").await;
    };
    assert_eq!(
        first_change("127.0.0.1:0", |_| {}, endless).await,
        fails("the answer's head is over 16384 bytes")
    );
}

#[tokio::test]
async fn an_endless_body_passes_and_is_cut_off() {
    let endless = |mut held: server::Held| async move {
        held.request().await;
        held.send("HTTP/1.1 200 OK\r\n\r\n").await;
        let end = held.send_forever("more and more and more and more").await;
        assert!(matches!(end.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{end}");
    };
    assert_eq!(first_change("127.0.0.1:0", |_| {}, endless).await, passes());
}

#[tokio::test]
async fn a_short_body_is_heard_out_after_the_verdict() {
    let mut server = Server::start("127.0.0.1:0").await;
    let check = HealthCheck { interval: Duration::from_secs(3600), ..http(server.address) };
    let mut probing = Probing::start(vec![target("web", server.address, &[("up", &check)])]);
    let mut held = server.next().await;
    held.request().await;
    held.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n").await;
    assert_eq!(probing.next().await, web(Passing, true, PASSES));
    held.send("ok\n").await;
    // On a connection that was broken off before this fails.
    held.shut().await;
}

#[tokio::test]
async fn nobody_listening_is_refused() {
    // Bound but not listening: no other test can listen there.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    for check in [http(address), tcp(address)] {
        let mut probing = Probing::start(vec![target("web", address, &[("web-http", &check)])]);
        let (_, health, first, reason) = probing.next().await;
        assert_eq!(((health, reason), first), (fails("connection refused"), true));
    }
}

#[tokio::test]
async fn a_tcp_check_passes_and_leaves_by_reset() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let to_tcp = |check: &mut HealthCheck| check.kind = CheckKind::Tcp;
        let closed = |mut held: server::Held| async move {
            let end = held.closed().await.expect_err("not by FIN, which would leave TIME_WAIT");
            assert_eq!(end.kind(), ErrorKind::ConnectionReset);
        };
        assert_eq!(first_change(address, to_tcp, closed).await, passes());
    }
}
