//! The listener over real connections.

mod credentials;

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use lb_common::abi::{counter::VerdictCounter, verdict::Verdict};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{get as get_route, *};
use crate::metrics::{Counter, ReceiverFacts};
use lb_base::conditions::Conditions;
use lb_inspect::stats::ReceiverStats;
use lb_secure::tls::{CertificateExpiry, Validities};

const PATIENCE: Duration = Duration::from_secs(60);

struct Listening {
    address: SocketAddr,
    stop: CancellationToken,
    served: JoinHandle<()>,
}

impl Listening {
    async fn start() -> Self {
        let counter = VerdictCounter { packets: 7, bytes: 700 };
        let facts = ReceiverFacts {
            stats: ReceiverStats {
                verdicts: vec![(Verdict::Decapsulated, counter).into()],
                sources: Vec::new(),
                vips: Vec::new(),
                endpoints: Vec::new(),
                gue_port: None,
            },
            interfaces: Vec::new(),
            conditions: 0,
            waiting_settings: 0,
            log_dropped: 0,
            certificates: Validities::default(),
            http_refused: 0,
            packet_program: None,
            started: SystemTime::UNIX_EPOCH + Duration::from_millis(1_500),
        };
        Self::over(receiver(Arc::new(move || Ok(facts.clone())))).await
    }

    async fn over(routes: HttpRoutes) -> Self {
        Self::with(routes, anyone()).await
    }

    async fn with(routes: HttpRoutes, credentials: HttpCredentials) -> Self {
        let listener = bind(([127, 0, 0, 1], 0).into(), &credentials).await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let served = tokio::spawn(serve(listener, credentials, routes, stop.clone()));
        Self { address, served, stop }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// What comes back until the end of a connection on which this was sent.
    async fn answer(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
        String::from_utf8(answer).unwrap()
    }

    /// A connection that has had an answer and is still open.
    async fn guest(&self) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let mut answer = [0; 8];
        timeout(PATIENCE, stream.read_exact(&mut answer)).await.unwrap().unwrap();
        assert_eq!(&answer, b"HTTP/1.1");
        stream
    }
}

/// Credentials that let everyone read, without TLS.
fn anyone() -> HttpCredentials {
    HttpCredentials::open(
        HttpFiles::default(),
        CertificateExpiry::default(),
        Conditions::default(),
        Counter::default(),
    )
    .unwrap()
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
}

#[tokio::test]
async fn metrics_are_open_metrics_text() {
    let listening = Listening::start().await;
    let answer = listening.answer(&get("/metrics")).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    for line in [
        "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8",
        "cache-control: no-store",
        "x-content-type-options: nosniff",
        "content-security-policy: default-src 'none'; frame-ancestors 'none'",
    ] {
        assert!(head.contains(line), "{head}");
    }
    let packets = "spillway_verdict_packets_total\
                   {component=\"receiver\",verdict=\"decapsulated\",action=\"pass\"} 7\n";
    assert!(body.contains(packets), "{body}");
    assert!(
        body.contains("spillway_start_timestamp_seconds{component=\"receiver\"} 1.5\n"),
        "{body}"
    );
    assert!(body.ends_with("# EOF\n"), "{body}");
}

#[tokio::test]
async fn nothing_but_looking_is_answered() {
    let listening = Listening::start().await;
    let post =
        "POST /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    assert!(listening.answer(post).await.starts_with("HTTP/1.1 405 "));
    for path in ["/", "/data.json", "/metrics/", "/../etc/passwd", "/%2e%2e/"] {
        assert!(listening.answer(&get(path)).await.starts_with("HTTP/1.1 404 "), "{path}");
    }
    assert!(listening.answer("nonsense\r\n\r\n").await.starts_with("HTTP/1.1 400 "));
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(20_000));
    let answer = listening.answer(&long).await;
    assert!(answer.starts_with("HTTP/1.1 414 ") || answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[tokio::test]
async fn who_does_not_ask_in_time_is_cut_off() {
    let listening = Listening::start().await;
    let began = Instant::now();
    assert_eq!(listening.answer("GET /metrics HTTP/1.1\r\nHost").await, "");
    assert!(began.elapsed() >= Duration::from_secs(4), "{:?}", began.elapsed());
}

/// An answer that comes at once even where every slot is taken: far less than the 5 s after which idle
/// connections end by themselves. Of some one must: the others may have to wait for a CPU.
const PROMPT: Duration = Duration::from_secs(3);

/// Sockets that never finish a request come back as often as they are closed.
#[tokio::test]
async fn idle_connections_give_way_to_a_scrape() {
    let listening = Listening::start().await;
    let (mut idle, mut soonest) = (Vec::new(), Duration::MAX);
    for round in 0..20 {
        // Some say nothing, some begin a request, some have had an answer.
        for kind in 0..32 {
            idle.push(match kind % 3 {
                0 => listening.connect().await,
                1 => {
                    let mut half = listening.connect().await;
                    half.write_all(b"GET /metrics HTTP/1.1\r\nHo").await.unwrap();
                    half
                }
                _ => listening.guest().await,
            });
        }
        let asked = Instant::now();
        let answer = timeout(PATIENCE, listening.answer(&get("/metrics"))).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "round {round}: {answer}");
        soonest = soonest.min(asked.elapsed());
        idle.drain(..idle.len().saturating_sub(32));
    }
    assert!(soonest < PROMPT, "{soonest:?}");
}

#[tokio::test]
async fn the_connection_that_is_idle_longest_goes_first() {
    let listening = Listening::start().await;
    let mut guests = Vec::new();
    for _ in 0..32 {
        guests.push(listening.guest().await);
    }
    // The first asks again: now the second is idle longest.
    guests[0].write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut rest = [0; 8];
    timeout(PATIENCE, guests[0].read_exact(&mut rest)).await.unwrap().unwrap();
    let _next = timeout(PATIENCE, listening.guest()).await.unwrap();
    let mut all = Vec::new();
    let closed = timeout(PATIENCE, guests[1].read_to_end(&mut all)).await;
    closed.expect("the second is closed").unwrap();
    for number in [0, 2, 31] {
        let mut all = Vec::new();
        let ended = timeout(Duration::from_millis(50), guests[number].read_to_end(&mut all)).await;
        assert!(ended.is_err(), "guest {number} is still connected");
    }
}

/// Clients that do not read their answer are idle, however much of it there is still to send.
#[tokio::test]
async fn clients_that_do_not_read_give_way() {
    let large = async || {
        let parts = std::iter::repeat_n(vec![b'x'; 1 << 16], 1_000).map(Ok::<_, std::io::Error>);
        axum::body::Body::from_stream(futures::stream::iter(parts))
    };
    let routes = Router::new().route("/large", get_route(large));
    let listening = Listening::over(with_not_found(routes)).await;
    let mut deaf = Vec::new();
    for _ in 0..32 {
        let mut stream = listening.connect().await;
        stream.write_all(get("/large").as_bytes()).await.unwrap();
        let mut answer = [0; 8];
        timeout(PATIENCE, stream.read_exact(&mut answer)).await.unwrap().unwrap();
        deaf.push(stream);
    }
    let mut soonest = Duration::MAX;
    for _ in 0..3 {
        let asked = Instant::now();
        let answer = timeout(PATIENCE, listening.answer(&get("/small"))).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
        soonest = soonest.min(asked.elapsed());
    }
    assert!(soonest < PROMPT, "{soonest:?}");
}

/// Whoever connects without end takes only their own places.
#[tokio::test]
async fn one_source_takes_no_place_of_another() {
    let listening = Listening::start().await;
    let from = async |source: [u8; 4]| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((source, 0).into()).unwrap();
        socket.connect(listening.address).await.unwrap()
    };
    let mut other = from([127, 0, 0, 2]).await;
    let mut flood = Vec::new();
    for _ in 0..100 {
        flood.push(from([127, 0, 0, 1]).await);
    }
    // The last of the flood has a place, so all others had one.
    let last = flood.last_mut().unwrap();
    for stream in [last, &mut other] {
        stream.write_all(get("/metrics").as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(PROMPT, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
}

#[tokio::test]
async fn answers_under_way_keep_their_places() {
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = Arc::new(std::sync::Mutex::new(released));
    let routes = receiver(Arc::new(move || {
        // Each answer waits for a word of the test, or for its end.
        let _ended = released.lock().map(|released| released.recv());
        Err("asked".to_owned())
    }));
    let listening = Listening::over(routes).await;
    let mut asked = Vec::new();
    for _ in 0..32 {
        let mut stream = listening.connect().await;
        stream.write_all(get("/metrics").as_bytes()).await.unwrap();
        asked.push(stream);
    }
    let mut next = Box::pin(listening.answer("nonsense\r\n\r\n"));
    assert!(timeout(Duration::from_millis(300), &mut next).await.is_err(), "33 at once");
    release.send(()).unwrap();
    let answer = timeout(PATIENCE, next).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    drop(release);
    for mut stream in asked {
        let mut answer = String::new();
        timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.ends_with("asked\n"), "{answer}");
    }
}

#[tokio::test]
async fn told_to_stop_it_stops_with_connections_open() {
    let listening = Listening::start().await;
    let mut guest = listening.guest().await;
    listening.stop.cancel();
    timeout(PATIENCE, listening.served).await.unwrap().unwrap();
    let mut rest = Vec::new();
    timeout(PATIENCE, guest.read_to_end(&mut rest)).await.unwrap().unwrap();
    assert!(TcpStream::connect(listening.address).await.is_err());
}

#[tokio::test]
async fn an_address_that_is_taken_is_said_to_be() {
    let listening = Listening::start().await;
    let error = bind(listening.address, &anyone()).await.unwrap_err();
    assert_eq!(error.to_string(), format!("http {}", listening.address));
    assert!(error.hint().contains("another port"), "{}", error.hint());
}

/// Reasons are what backends provoke: they are shown as text, and nothing is made of them.
#[test]
fn the_page_makes_no_markup_of_what_it_is_told() {
    let script = include_str!("../page/script.js");
    for word in [
        "innerHTML",
        "outerHTML",
        "AdjacentHTML",
        "document.write",
        "eval(",
        "Function(",
        "setAttribute(\"on",
        ".src",
        ".href",
    ] {
        assert!(!script.contains(word), "{word}");
    }
}
