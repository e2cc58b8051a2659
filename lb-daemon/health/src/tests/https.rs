//! TLS: what is asked for, whom it trusts, and what is said where it does not come about.

use std::path::Path;

use super::{
    authority::{Authority, https},
    *,
};
use lb_model::{CheckTls, Trust};

pub(super) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n";
const FAR: i32 = 4000;

pub(super) fn over_tls(server: SocketAddr, name: Option<&str>, trust: Trust) -> HealthCheck {
    let tls = CheckTls { server_name: name.map(str::to_owned), trust };
    HealthCheck { tls: Some(tls), interval: Duration::from_secs(3600), ..http(server) }
}

pub(super) fn by(file: &Path) -> Trust {
    Trust::File(file.to_str().unwrap().to_owned())
}

/// What the first check of `server` says.
pub(super) async fn verdict(server: SocketAddr, check: &HealthCheck) -> (Health, String) {
    let mut probing = Probing::start(vec![target("web", server, &[("shop", check)])]);
    let (_, health, _, reason) = probing.next().await;
    (health, reason.strip_prefix("check shop: ").unwrap_or(&reason).to_owned())
}

pub(super) fn passes() -> (Health, String) {
    (Passing, PASSES.to_owned())
}

pub(super) fn fails(why: &str) -> (Health, String) {
    (Failing, why.to_owned())
}

#[tokio::test]
async fn the_server_sees_the_name_the_protocol_and_the_host() {
    let authority = Authority::new();
    let acceptor = authority.acceptor(&["shop.example"], FAR, &["h2", "http/1.1"]);
    let (server, mut seen) = https(acceptor, OK).await;
    let trust = || by(&authority.file());
    let named = over_tls(server, Some("shop.example"), trust());
    let mut by_host = over_tls(server, None, trust());
    let CheckKind::Http(request) = &mut by_host.kind else { unreachable!("it is http") };
    request.host = Some("shop.example:8443".to_owned());
    for (check, host) in [(named, "shop.example"), (by_host, "shop.example:8443")] {
        assert_eq!(verdict(server, &check).await, passes());
        let seen = seen.recv().await.unwrap();
        assert_eq!(seen.server_name.as_deref(), Some("shop.example"));
        assert_eq!(seen.alpn.as_deref(), Some("http/1.1"));
        let head = format!("GET /health HTTP/1.1\r\nHost: {host}\r\n");
        assert!(seen.request.starts_with(&head), "{}", seen.request);
    }
}

#[tokio::test]
async fn without_a_name_the_certificate_is_for_the_address() {
    let authority = Authority::new();
    let (ours, mut seen) = https(authority.acceptor(&["127.0.0.1"], FAR, &[]), OK).await;
    let (others, _seen) = https(authority.acceptor(&["127.0.0.2"], FAR, &[]), OK).await;
    let trust = || by(&authority.file());
    assert_eq!(verdict(ours, &over_tls(ours, None, trust())).await, passes());
    let seen = seen.recv().await.unwrap();
    assert_eq!(seen.server_name, None);
    assert!(seen.request.contains(&format!("\r\nHost: {ours}\r\n")), "{}", seen.request);
    let check = over_tls(others, None, trust());
    let why = "TLS: the certificate is for another name: it names 127.0.0.2, not 127.0.0.1";
    assert_eq!(verdict(others, &check).await, fails(why));
}

#[tokio::test]
async fn certificates_are_verified_where_that_is_wanted_and_only_there() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let good = authority.acceptor(&["shop.example"], FAR, &[]);
    let expired = authority.acceptor(&["shop.example"], 2020, &[]);
    let foreign = stranger.acceptor(&["shop.example"], FAR, &[]);
    let name = Some("shop.example");
    let unsigned = format!(
        "TLS: the certificate is not signed by a trusted authority: none has signed for {}",
        stranger.name()
    );
    for (acceptor, verified) in [
        (good, passes()),
        (expired, fails("TLS: the certificate expired at 2020-01-01T00:00:00Z")),
        (foreign, fails(&unsigned)),
    ] {
        let (server, _seen) = https(acceptor, OK).await;
        let check = over_tls(server, name, by(&authority.file()));
        assert_eq!(verdict(server, &check).await, verified);
        // Whom this machine trusts has signed none of them.
        let check = over_tls(server, name, Trust::Host);
        let (health, _) = verdict(server, &check).await;
        assert_eq!(health, Failing);
        let check = over_tls(server, name, Trust::Anybody);
        assert_eq!(verdict(server, &check).await, passes());
    }
}

#[tokio::test]
async fn the_answer_decides_as_it_does_without_tls() {
    let authority = Authority::new();
    let acceptor = authority.acceptor(&["shop.example"], FAR, &[]);
    let (server, _seen) = https(acceptor, "HTTP/1.1 503 Busy\r\n\r\n").await;
    let check = over_tls(server, None, Trust::Anybody);
    assert_eq!(verdict(server, &check).await, fails("status 503, expected 200 to 299"));
    // Of tcp the handshake is all.
    let check = HealthCheck { kind: CheckKind::Tcp, ..check };
    assert_eq!(verdict(server, &check).await, passes());
}

#[tokio::test]
async fn who_speaks_no_tls_is_told_so() {
    let mut server = Server::start("127.0.0.1:0").await;
    let check = over_tls(server.address, None, Trust::Anybody);
    let address = server.address;
    let plain = async {
        let mut held = server.next().await;
        held.send("HTTP/1.1 400 Bad Request\r\n\r\nThe plain HTTP request was sent\n").await;
        let _ = held.closed().await;
    };
    let ((health, reason), ()) = tokio::join!(verdict(address, &check), plain);
    let why = "TLS: the answer is not TLS: does the port serve it without?";
    assert_eq!((health, &*reason), (Failing, why));

    let check = HealthCheck { timeout: Duration::from_millis(200), ..check };
    let silent = async {
        let mut held = server.next().await;
        let _ = held.closed().await;
    };
    let (said, ()) = tokio::join!(verdict(address, &check), silent);
    assert_eq!(said, fails("TLS: no handshake within 200 ms"));
}

#[tokio::test]
async fn a_file_of_trust_is_needed_once_and_read_again_when_it_changes() {
    let (authority, other) = (Authority::new(), Authority::new());
    let (server, _seen) = https(authority.acceptor(&["127.0.0.1"], FAR, &[]), OK).await;
    let file = authority.file();
    std::fs::remove_file(&file).unwrap();
    let often = Duration::from_millis(20);
    let check = over_tls(server, None, by(&file));
    let check = HealthCheck { interval: often, fast_interval: often, rise: 1, fall: 1, ..check };
    let mut probing = Probing::start(vec![target("web", server, &[("shop", &check)])]);
    let missing = format!("check shop: ca_file {}: No such file", file.display());
    let (_, health, _, reason) = probing.next().await;
    assert_eq!((health, reason.starts_with(&missing)), (Failing, true), "{reason}");
    authority.publish();
    assert_eq!(probing.next().await, web(Passing, false, PASSES));
    // Another's, whole: it counts.
    std::fs::copy(other.file(), &file).unwrap();
    let unsigned = format!(
        "check shop: TLS: the certificate is not signed by a trusted authority: none has signed for {}",
        authority.name()
    );
    assert_eq!(probing.next().await, web(Failing, false, &unsigned));
    authority.publish();
    assert_eq!(probing.next().await, web(Passing, false, PASSES));
}
