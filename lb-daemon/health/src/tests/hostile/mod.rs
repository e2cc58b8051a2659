//! Backends that mean no good: whatever they do, a check ends in its time and with a word of why, and
//! lets go of the connection. What they cost in memory is measured in `tests/hostile`.

mod datagrams;
mod http;
mod http2;
mod resets;
mod tls;

use std::time::Instant;

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::*;

/// What those who take all the time are given.
const SHORT: Duration = Duration::from_millis(300);

/// How much later than its time a verdict may come on a busy machine.
const SLACK: Duration = Duration::from_secs(60);

/// What the first check says of a backend that behaves so to the one connection that it gets. It comes
/// in the check's time, and the backend sees the end of its connection.
async fn verdict<F>(check: &HealthCheck, behave: impl FnOnce(TcpStream) -> F) -> (Health, String)
where
    F: Future<Output = ()>,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let often = Duration::from_secs(3600);
    let check = HealthCheck { port: server.port(), interval: often, ..check.clone() };
    let began = Instant::now();
    let mut probing = Probing::start(vec![target("web", server, &[("up", &check)])]);
    let behaving = async { behave(listener.accept().await.unwrap().0).await };
    let change = async {
        let change = probing.next().await;
        (change, began.elapsed())
    };
    let both = async { tokio::join!(change, behaving) };
    let (((_, health, _, reason), took), ()) =
        timeout(PATIENCE + SLACK, both).await.expect("the connection is not let go of");
    assert!(took < check.timeout + SLACK, "{reason}: after {took:?}");
    // It does not say that its time was up before it was.
    assert!(!reason.contains(" within ") || took >= check.timeout, "{reason}: after {took:?}");
    (health, reason.strip_prefix("check up: ").unwrap_or(&reason).to_owned())
}

/// A check whose time the test alone ends.
fn patient() -> HealthCheck {
    http(SocketAddr::from(([127, 0, 0, 1], 0)))
}

/// One that has little time.
fn hasty() -> HealthCheck {
    HealthCheck { timeout: SHORT, ..patient() }
}

fn passes() -> (Health, String) {
    (Passing, PASSES.to_owned())
}

fn fails(why: &str) -> (Health, String) {
    (Failing, why.to_owned())
}

/// Says nothing until the other end goes.
async fn silence(mut stream: impl AsyncRead + Unpin) {
    let mut buffer = [0; 4096];
    while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
}

/// Sends the same over and over until the other end goes.
async fn flood(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) {
    // Not byte by byte: the kernel's calls would be what is measured.
    let many = bytes.repeat(16 * 1024_usize.div_ceil(bytes.len()));
    while stream.write_all(&many).await.is_ok() && stream.flush().await.is_ok() {}
}

/// Sends a byte now and then, beginning anew at the end, until the other end goes.
async fn drip(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) {
    for byte in bytes.iter().cycle() {
        let sent = async {
            stream.write_all(&[*byte]).await?;
            stream.flush().await
        };
        if sent.await.is_err() {
            return;
        }
        tokio::time::sleep(SHORT / 30).await;
    }
}

/// Reads the request up to its blank line.
async fn request(stream: &mut (impl AsyncRead + Unpin)) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0, "{request:?}");
    }
}
