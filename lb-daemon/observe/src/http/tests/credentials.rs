//! Certificates and tokens, over real connections.

use std::{fs, path::PathBuf};

use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, ServerName},
        version::{TLS12, TLS13},
    },
};

use axum::routing;

use super::*;
use lb_secure::tls::CertificateFiles;

const TOKEN: &str = "first-token-of-the-test";
const OTHER: &str = "other-token-of-the-test";

/// A listener whose files the test changes.
struct Guarded {
    listening: Listening,
    directory: TempDir,
    credentials: HttpCredentials,
    expiry: CertificateExpiry,
    conditions: Conditions,
    refused: Counter,
}

impl Guarded {
    async fn start(is_tls: bool, has_tokens: bool) -> (Self, CertificateDer<'static>) {
        let directory = TempDir::new().unwrap();
        let path = |name: &str| directory.path().join(name);
        let certificate = write_certificate(&directory, 400);
        fs::write(path("tokens"), TOKEN).unwrap();
        let files = HttpFiles {
            certificate: is_tls
                .then(|| CertificateFiles { certificate: path("cert"), key: path("key") }),
            tokens: has_tokens.then(|| path("tokens")),
        };
        let (expiry, conditions, refused) =
            (CertificateExpiry::default(), Conditions::default(), Counter::default());
        let credentials =
            HttpCredentials::open(files, expiry.clone(), conditions.clone(), refused.clone())
                .unwrap();
        let routes = Router::new().route("/metrics", routing::get(async || "numbers"));
        let listening = Listening::with(with_not_found(routes), credentials.clone()).await;
        (Self { listening, directory, credentials, expiry, conditions, refused }, certificate)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn conditions(&self) -> Vec<String> {
        let now = self.conditions.now().into_iter();
        now.map(|it| format!("{}: {}", it.subject, it.cause)).collect()
    }
}

/// Writes a certificate of 127.0.0.1 that is valid for these days, and its key.
fn write_certificate(directory: &TempDir, days: u32) -> CertificateDer<'static> {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["127.0.0.1".into()]).unwrap();
    let day = Duration::from_secs(86_400);
    // What the wall clock shows, which decides about certificates.
    let now = fs::metadata(directory.path()).unwrap().modified().unwrap();
    params.not_before = (now - day * 30).into();
    params.not_after = (now + day * days).into();
    let certificate = params.self_signed(&key).unwrap();
    fs::write(directory.path().join("cert"), certificate.pem()).unwrap();
    fs::write(directory.path().join("key"), key.serialize_pem()).unwrap();
    certificate.der().clone()
}

/// A request with a value of `Authorization`, if it is given.
fn request(authorization: &str) -> String {
    let header = match authorization {
        "" => String::new(),
        value => format!("Authorization: {value}\r\n"),
    };
    format!("GET /metrics HTTP/1.1\r\nHost: x\r\n{header}Connection: close\r\n\r\n")
}

/// The answer over TLS, of a client that trusts this certificate; `Err`: there is none.
async fn over_tls(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
    is_old: bool,
    request: &str,
) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let version = if is_old { &TLS12 } else { &TLS13 };
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap()?;
    Ok(answer)
}

#[tokio::test]
async fn without_a_valid_token_nothing_is_answered() {
    let (guarded, _) = Guarded::start(false, true).await;
    let listening = &guarded.listening;
    let answer = listening.answer(&request(&format!("Bearer {TOKEN}"))).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("numbers"), "{answer}");
    for wrong in ["", "Bearer first-token-of-the-tes", "Basic !", "Bearer \u{7f}"] {
        let answer = listening.answer(&request(wrong)).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        // A control character is no header at all.
        let status = if wrong.contains('\u{7f}') { "400" } else { "401" };
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{wrong}: {head}");
        assert!(!body.contains("numbers"), "{answer}");
        if status == "401" {
            assert!(head.contains("www-authenticate: Bearer realm=\"spillway\"\r\n"), "{head}");
            assert!(head.contains("www-authenticate: Basic realm=\"spillway\""), "{head}");
            assert!(head.contains("cache-control: no-store"), "{head}");
            assert_eq!(body, "a token is needed: as a bearer, or as the password of any user\n");
        }
    }
    // Not even which paths there are.
    let answer = listening.answer(&get("/nothing")).await;
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    assert_eq!(guarded.refused.get(), 4);
}

#[tokio::test]
async fn tokens_change_while_a_connection_is_open() {
    let (guarded, _) = Guarded::start(false, true).await;
    let mut stream = guarded.listening.connect().await;
    let mut ask = async |token: &str| {
        let head = format!("Host: x\r\nAuthorization: Bearer {token}\r\n");
        let request = format!("GET /metrics HTTP/1.1\r\n{head}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"numbers") && !answer.ends_with(b"any user\n") {
            let mut part = [0; 1024];
            let read = timeout(PATIENCE, stream.read(&mut part)).await.unwrap().unwrap();
            assert!(read > 0, "the connection ended");
            answer.extend_from_slice(&part[..read]);
        }
        String::from_utf8(answer[9..12].into()).unwrap()
    };
    assert_eq!(ask(TOKEN).await, "200");
    assert_eq!(ask(OTHER).await, "401");
    fs::write(guarded.path("tokens"), format!("{TOKEN}\n{OTHER}\n")).unwrap();
    guarded.credentials.refresh().unwrap();
    assert_eq!((ask(TOKEN).await, ask(OTHER).await), ("200".into(), "200".into()));
    fs::write(guarded.path("tokens"), OTHER).unwrap();
    guarded.credentials.refresh().unwrap();
    assert_eq!((ask(TOKEN).await, ask(OTHER).await), ("401".into(), "200".into()));

    // A file that cannot be used changes nothing, and opens nothing.
    for (text, cause) in [
        ("", "contains no token"),
        ("short", "line 1: a token is 16 to 256 letters, digits or -._~+/, then any number of ="),
    ] {
        fs::write(guarded.path("tokens"), text).unwrap();
        let expected = format!("HTTP: {}: {cause}", guarded.path("tokens").display());
        assert_eq!(guarded.credentials.refresh(), Err(expected.clone()));
        assert_eq!(guarded.conditions(), [expected]);
        assert_eq!((ask(TOKEN).await, ask(OTHER).await), ("401".into(), "200".into()));
    }
    fs::remove_file(guarded.path("tokens")).unwrap();
    let gone = guarded.credentials.refresh().unwrap_err();
    assert!(gone.ends_with("/tokens: No such file or directory"), "{gone}");
    assert_eq!((ask(TOKEN).await, ask(OTHER).await), ("401".into(), "200".into()));
    fs::write(guarded.path("tokens"), TOKEN).unwrap();
    guarded.credentials.refresh().unwrap();
    assert_eq!((ask(TOKEN).await, ask(OTHER).await), ("200".into(), "401".into()));
    assert_eq!(guarded.conditions(), [""; 0]);
}

#[tokio::test]
async fn with_a_certificate_only_tls_is_answered() {
    let (guarded, certificate) = Guarded::start(true, true).await;
    let address = guarded.listening.address;
    let bearer = request(&format!("Bearer {TOKEN}"));
    let answer = over_tls(address, &certificate, false, &bearer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("numbers"), "{answer}");
    let answer = over_tls(address, &certificate, false, &request("")).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    // An older TLS, and none.
    over_tls(address, &certificate, true, &bearer).await.unwrap_err();
    let mut plain = guarded.listening.connect().await;
    plain.write_all(bearer.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = timeout(PATIENCE, plain.read_to_end(&mut answer)).await.unwrap();
    // An alert of TLS at most (RFC 8446, 5.1).
    assert!(answer.is_empty() || answer[0] == 21, "{answer:?}");

    // Renewed: new connections get the new one.
    let soon = write_certificate(&guarded.directory, 5);
    guarded.credentials.refresh().unwrap();
    over_tls(address, &certificate, false, &bearer).await.unwrap_err();
    let answer = over_tls(address, &soon, false, &bearer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let conditions = guarded.conditions();
    let path = guarded.path("cert").display().to_string();
    assert_eq!(conditions.len(), 1, "{conditions:?}");
    assert!(
        conditions[0].starts_with(&format!("HTTP certificate: {path}: expires at ")),
        "{conditions:?}"
    );
    let known = guarded.expiry.now();
    assert!(known.http.is_some() && known.server.is_none() && known.authority.is_none());
    let long = write_certificate(&guarded.directory, 400);
    guarded.credentials.refresh().unwrap();
    assert_eq!(guarded.conditions(), [""; 0]);

    // A key of another certificate.
    let key = fs::read(guarded.path("key")).unwrap();
    write_certificate(&guarded.directory, 400);
    fs::write(guarded.path("key"), &key).unwrap();
    let refused = guarded.credentials.refresh().unwrap_err();
    let path = guarded.path("key").display().to_string();
    assert!(refused.starts_with(&format!("HTTP: {path}: cannot be used: ")), "{refused}");
    let answer = over_tls(address, &long, false, &bearer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[tokio::test]
async fn a_slow_handshake_holds_no_slot() {
    let mut soonest = [Duration::MAX; 2];
    for _ in 0..3 {
        let (guarded, certificate) = Guarded::start(true, false).await;
        let mut silent = Vec::new();
        // As many as are served at a time: each new connection ends the longest idle one.
        for _ in 0..40 {
            silent.push(guarded.listening.connect().await);
        }
        let asked = Instant::now();
        let answer = over_tls(guarded.listening.address, &certificate, false, &request("")).await;
        assert!(answer.unwrap().starts_with("HTTP/1.1 200 "));
        soonest[0] = soonest[0].min(asked.elapsed());
        // Nor do those keep the listener from stopping that are still there.
        let stopped = Instant::now();
        guarded.listening.stop.cancel();
        timeout(PATIENCE, guarded.listening.served).await.unwrap().unwrap();
        soonest[1] = soonest[1].min(stopped.elapsed());
    }
    assert!(soonest.iter().all(|time| *time < PROMPT), "{soonest:?}");
}

#[tokio::test]
async fn a_client_that_never_shakes_hands_is_closed() {
    let (guarded, _) = Guarded::start(true, false).await;
    let (mut silent, began) = (guarded.listening.connect().await, Instant::now());
    let mut answer = Vec::new();
    let _ = timeout(PATIENCE, silent.read_to_end(&mut answer)).await.unwrap();
    assert!(
        answer.is_empty() && began.elapsed() >= Duration::from_secs(4),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn what_others_could_read_is_named() {
    let directory = TempDir::new().unwrap();
    write_certificate(&directory, 400);
    let path = |name: &str| directory.path().join(name);
    fs::write(path("tokens"), TOKEN).unwrap();
    let exposure = |is_tls: bool, has_tokens: bool| {
        let files = HttpFiles {
            certificate: is_tls
                .then(|| CertificateFiles { certificate: path("cert"), key: path("key") }),
            tokens: has_tokens.then(|| path("tokens")),
        };
        let (expiry, conditions) = (CertificateExpiry::default(), Conditions::default());
        let opened = HttpCredentials::open(files, expiry, conditions, Counter::default());
        opened.unwrap().exposure()
    };
    let anyone = Some("every client that reaches this address can read names and counters");
    assert_eq!([exposure(false, false), exposure(true, false)], [anyone; 2]);
    let unencrypted = Some("tokens are sent unencrypted: set http-tls-cert and http-tls-key");
    assert_eq!([exposure(false, true), exposure(true, true)], [unencrypted, None]);
}
