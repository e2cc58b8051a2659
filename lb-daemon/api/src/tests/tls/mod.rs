//! The door over TLS: real certificates, real connections.

mod crowd;
mod hostile;
mod roles;

use std::{
    fs,
    net::SocketAddr,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType,
};
use serde_json::Value;
use spillway_proto::v1::objects_client::ObjectsClient;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
        sign::{CertifiedKey, SingleCertAndKey},
        version::TLS13,
    },
};
use tonic::Code;

use super::*;
use lb_base::conditions::Conditions;
use lb_secure::{
    access::Clients,
    refusals::ApiRefusals,
    tls::{CertificateExpiry, CertificateFiles, Credentials, TlsFiles, listen},
};

const LIMIT: Duration = Duration::from_secs(120);

/// An authority.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key, PEM.
struct Certificate {
    pem: String,
    key: String,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    fn issue(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Certificate {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let pem = params.signed_by(&key, &self.issuer).unwrap().pem();
        Certificate { pem, key: key.serialize_pem() }
    }

    fn client(&self, name: &str) -> Certificate {
        self.issue(name, |_| {})
    }
}

/// A daemon that answers over TLS.
struct Remote {
    daemon: Daemon,
    directory: TempDir,
    ours: Authority,
    address: SocketAddr,
    credentials: Credentials,
    expiry: CertificateExpiry,
    conditions: Conditions,
    audit: Audit,
}

fn clients(list: &[&str]) -> Clients {
    list.iter().map(|text| text.parse().unwrap()).collect()
}

const CLIENTS: [&str; 7] = [
    "eye.example=viewer",
    "ci.example=plan",
    "hand.example=operator",
    "spiffe://x/boss=admin",
    "web.example=operator:web*",
    "other.example=operator:api-*",
    "team.example=admin:web,api-*",
];

impl Remote {
    async fn start() -> Self {
        let (directory, ours) = (tempfile::tempdir().unwrap(), Authority::new("ours"));
        write(directory.path(), &ours.client("spillwayd.example"), &ours);
        let conditions = Conditions::default();
        let expiry = CertificateExpiry::default();
        let credentials = Credentials::open(
            files(directory.path()),
            clients(&CLIENTS),
            expiry.clone(),
            conditions.clone(),
        )
        .unwrap();
        let any = "127.0.0.1:0".parse().unwrap();
        let (address, remote) =
            listen(any, credentials.clone(), ApiRefusals::default()).await.unwrap();
        let audit = Audit::open(Some(&directory.path().join("audit")), conditions.clone()).unwrap();
        let daemon = Daemon::with_remote(remote, audit.clone());
        daemon.client().await.apply(apply(configuration())).await.unwrap();
        Self { daemon, directory, ours, address, credentials, expiry, conditions, audit }
    }

    /// A channel of somebody; `Err`: no connection came about.
    async fn channel(&self, own: Option<&Certificate>) -> Result<Channel, tonic::transport::Error> {
        let (connector, address) = (connector(&self.ours, own), self.address);
        let connect = tower::service_fn(move |_| {
            let connector = connector.clone();
            async move {
                let name = ServerName::try_from("spillwayd.example").unwrap();
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                std::io::Result::Ok(TokioIo::new(connector.connect(name, stream).await?))
            }
        });
        Endpoint::from_static("http://spillwayd").connect_with_connector(connect).await
    }

    /// What a call for the status ends with.
    async fn status(&self, own: Option<&Certificate>) -> Result<u64, String> {
        let ask = async {
            let channel = self.channel(own).await.map_err(|error| format!("{error:?}"))?;
            let answer = SpillwayClient::new(channel).status(v1::StatusRequest::default()).await;
            let answer = answer.map_err(|status| format!("{:?}: {status:?}", status.code()))?;
            Ok(answer.into_inner().generation)
        };
        timeout(LIMIT, ask).await.expect("an end")
    }

    async fn audit(&self) -> Vec<Value> {
        self.audit.flush().await;
        let text = fs::read_to_string(self.directory.path().join("audit")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn files(directory: &Path) -> TlsFiles {
    let [certificate, key, authorities] = ["cert", "key", "ca"].map(|name| directory.join(name));
    TlsFiles { own: CertificateFiles { certificate, key }, authorities }
}

fn write(directory: &Path, own: &Certificate, authority: &Authority) {
    for (name, text) in [("cert", &own.pem), ("key", &own.key), ("ca", &authority.pem)] {
        fs::write(directory.join(name), text).unwrap();
    }
}

fn connector(trusted: &Authority, own: Option<&Certificate>) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.pem.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match own {
        None => config.with_no_client_auth(),
        Some(own) => {
            let chain = vec![CertificateDer::from_pem_slice(own.pem.as_bytes()).unwrap()];
            let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
            let key = ring::sign::any_supported_type(&key).unwrap();
            // Unjudged: what is wrong with it is for the daemon to find.
            let own = SingleCertAndKey::from(CertifiedKey::new(chain, key));
            config.with_client_cert_resolver(Arc::new(own))
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    TlsConnector::from(Arc::new(config))
}

fn uri(params: &mut CertificateParams) {
    params.subject_alt_names = vec![SanType::URI("spiffe://x/boss".try_into().unwrap())];
}

#[tokio::test]
async fn who_has_no_good_certificate_gets_no_answer() {
    let remote = Remote::start().await;
    let eye = remote.ours.client("eye.example");
    assert_eq!(remote.status(Some(&eye)).await, Ok(1));

    let other = Authority::new("other").client("eye.example");
    let past = remote.ours.issue("eye.example", |params| {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2020, 1, 2);
    });
    let future = remote.ours.issue("eye.example", |params| {
        params.not_before = rcgen::date_time_ymd(2090, 1, 1);
        params.not_after = rcgen::date_time_ymd(2091, 1, 1);
    });
    let server = remote.ours.issue("eye.example", |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    for (what, own, alert) in [
        ("no certificate", None, "CertificateRequired"),
        ("another authority", Some(&other), "UnknownCA"),
        ("an expired one", Some(&past), "CertificateExpired"),
        // "Has expired or is not currently valid", RFC 8446, 6.2.
        ("one of later", Some(&future), "CertificateExpired"),
        ("one for servers", Some(&server), ""),
    ] {
        let error = remote.status(own).await.expect_err(what);
        assert!(!error.contains("PermissionDenied"), "{what}: {error}");
        assert!(error.contains(alert), "{what}: {error}");
    }
    // A name only in the common name is no name.
    let common = remote.ours.issue("stranger.example", |params| {
        params.distinguished_name.push(rcgen::DnType::CommonName, "eye.example");
    });
    let error = remote.status(Some(&common)).await.unwrap_err();
    let said =
        "certificate stranger.example: has no role here; `tls-client` of the settings gives roles";
    assert!(error.starts_with("PermissionDenied") && error.contains(said), "{error}");
    assert_eq!(remote.status(Some(&eye)).await, Ok(1));
}

#[tokio::test]
async fn plain_text_and_slow_handshakes_cost_little_and_hinder_nobody() {
    let remote = Remote::start().await;
    let mut plain = TcpStream::connect(remote.address).await.unwrap();
    plain.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _reset = timeout(LIMIT, plain.read_to_end(&mut answer)).await.expect("it is closed");
    // At most an alert: type 21, no HTTP.
    assert!(answer.is_empty() || answer[0] == 21, "{answer:?}");

    // More than one source may have: those that are beyond are closed at once, those within after 5 s.
    let begun = Instant::now();
    let mut slow = Vec::new();
    for _ in 0..40 {
        slow.push(TcpStream::connect(remote.address).await.unwrap());
    }
    let closed = |mut stream: TcpStream| async move {
        let mut byte = [0];
        // A handshake that has begun and does not go on.
        let _ = stream.write_all(&[22, 3, 1]).await;
        let ended = timeout(LIMIT, stream.read(&mut byte)).await.expect("it is closed");
        assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
        begun.elapsed()
    };
    let mut times = futures::future::join_all(slow.into_iter().map(closed)).await;
    times.sort();
    // However late a busy machine is with the first, the others are about as late.
    assert!(times[8] - times[7] > Duration::from_secs(2), "eight are beyond: {:?}", &times[..9]);
    assert!(times[8] >= Duration::from_secs(4), "32 are within: {:?}", &times[..9]);
    let eye = remote.ours.client("eye.example");
    assert_eq!(remote.status(Some(&eye)).await, Ok(1), "the places are free again");
}

#[tokio::test]
async fn each_role_does_what_it_may_and_the_log_says_who_did() {
    let remote = Remote::start().await;
    let (eye, hand) = (remote.ours.client("eye.example"), remote.ours.client("hand.example"));
    let boss = remote.ours.issue("ignored.example", uri);
    let drain = |address: &str| v1::UpdateBackendRequest {
        backend: Some(v1::Backend {
            pool: "web".into(),
            address: address.into(),
            admin_state: v1::AdminState::Drain.into(),
            ..Default::default()
        }),
        ..Default::default()
    };
    let mut weight = configuration();
    weight.pools[0].backends[0].weight = Some(9);

    let channel = remote.channel(Some(&eye)).await.unwrap();
    let (mut spillway, mut objects) =
        (SpillwayClient::new(channel.clone()), ObjectsClient::new(channel));
    let refused = spillway.apply(apply(weight.clone())).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert_eq!(
        refused.message(),
        "certificate eye.example: is viewer, but /spillway.v1.Spillway/Apply needs admin"
    );
    let refused = objects.update_backend(drain("10.0.0.1")).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    objects.list_pools(v1::ListPoolsRequest::default()).await.unwrap();

    let channel = remote.channel(Some(&hand)).await.unwrap();
    let (mut spillway, mut objects) =
        (SpillwayClient::new(channel.clone()), ObjectsClient::new(channel));
    objects.update_backend(drain("10.0.0.1")).await.unwrap();
    let refused = spillway.apply(apply(weight.clone())).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    // By the same call, what is more than an operator may: another field, and a new backend.
    let mut more = drain("10.0.0.1");
    more.backend.as_mut().unwrap().mtu = 1400;
    let mut new = drain("10.0.0.9");
    (new.allow_missing, new.backend.as_mut().unwrap().region) = (true, "eu".into());
    for request in [more, new] {
        let refused = objects.update_backend(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
        assert_eq!(
            refused.message(),
            "certificate hand.example: may change only weight, admin_state and max_connection_rate of backends; all \
             else needs admin"
        );
    }

    let channel = remote.channel(Some(&boss)).await.unwrap();
    SpillwayClient::new(channel).apply(apply(weight)).await.unwrap();

    let lines = remote.audit().await;
    let whats: Vec<_> = lines.iter().map(|line| line["what"].as_str().unwrap()).collect();
    assert_eq!(
        whats,
        [
            "intent", "apply", "denied", "denied", "intent", "apply", "denied", "denied", "denied",
            "intent", "apply"
        ]
    );
    assert_eq!(lines[4]["request"], "update of pool \"web\": backend 10.0.0.1");
    let lines: Vec<_> = lines.into_iter().filter(|line| line["what"] != "intent").collect();
    let uid = nix::unistd::Uid::effective().as_raw();
    assert_eq!(lines[0]["who"]["uid"], uid);
    assert_eq!((&lines[0]["before"], &lines[0]["after"]), (&0.into(), &1.into()));
    assert_eq!(lines[1]["call"], "/spillway.v1.Spillway/Apply");
    assert_eq!(lines[1]["who"]["certificate"], "eye.example");
    assert_eq!(lines[3]["who"]["certificate"], "hand.example");
    assert_eq!(lines[3]["changes"][0]["object"], "pool web: backend 10.0.0.1");
    // By its name or by what it wanted: who was denied a call is noted.
    assert_eq!(lines[4]["call"], "/spillway.v1.Spillway/Apply");
    for line in &lines[5..7] {
        assert_eq!(line["call"], "/spillway.v1.Objects/UpdateBackend");
        assert_eq!(line["who"]["certificate"], "hand.example");
    }
    assert_eq!(lines[7]["who"]["certificate"], "spiffe://x/boss");
    assert_eq!((&lines[7]["before"], &lines[7]["after"]), (&2.into(), &3.into()));
}

#[tokio::test]
async fn certificates_and_roles_change_without_a_restart() {
    let remote = Remote::start().await;
    let eye = remote.ours.client("eye.example");
    let mut held = SpillwayClient::new(remote.channel(Some(&eye)).await.unwrap());
    let mut watch = held.watch(v1::WatchRequest::default()).await.unwrap().into_inner();
    watch.message().await.unwrap().unwrap();

    // A broken file: what is in force stays, and the condition is named.
    let cert = remote.directory.path().join("cert");
    let good = fs::read(&cert).unwrap();
    fs::write(&cert, "nothing").unwrap();
    remote.credentials.refresh().unwrap_err();
    let condition = &remote.conditions.now()[0];
    let cause = format!("{}: contains no certificate in PEM form", cert.display());
    assert_eq!((&*condition.subject, &condition.cause), ("TLS", &cause));
    assert_eq!(remote.status(Some(&eye)).await, Ok(1));
    // A certificate without its key.
    fs::write(&cert, remote.ours.client("spillwayd.example").pem).unwrap();
    remote.credentials.refresh().unwrap_err();
    assert!(remote.conditions.now()[0].cause.contains("cannot be used"));
    fs::write(&cert, good).unwrap();
    remote.credentials.refresh().unwrap();
    assert_eq!(remote.conditions.now(), []);
    // A renewed certificate ends no connection.
    write(remote.directory.path(), &remote.ours.client("spillwayd.example"), &remote.ours);
    remote.credentials.refresh().unwrap();
    held.status(v1::StatusRequest::default()).await.unwrap();

    // Who is no longer listed is out, with what they had open.
    remote.credentials.set_clients(clients(&CLIENTS[1..]));
    let ended = timeout(LIMIT, async { while let Ok(Some(_)) = watch.message().await {} });
    ended.await.expect("the watch of who was let in before ends");
    let error = remote.status(Some(&eye)).await.unwrap_err();
    assert!(error.starts_with("PermissionDenied"), "{error}");
    remote.credentials.set_clients(clients(&CLIENTS));
    assert_eq!(remote.status(Some(&eye)).await, Ok(1));

    // Another authority, found by looking at the files: who is from the previous one is out.
    let theirs = Authority::new("theirs");
    let follow = remote.credentials.clone();
    let follow = tokio::spawn(async move { follow.follow().await });
    fs::write(remote.directory.path().join("ca"), &theirs.pem).unwrap();
    let new = theirs.client("eye.example");
    let found = timeout(LIMIT, async {
        while remote.status(Some(&new)).await != Ok(1) {
            tokio::task::yield_now().await;
        }
    });
    found.await.expect("the new authority is found");
    let error = remote.status(Some(&eye)).await.unwrap_err();
    assert!(error.contains("UnknownCA"), "{error}");
    follow.abort();
    drop(remote.daemon);
}

#[tokio::test]
async fn a_certificate_that_expires_soon_is_a_condition_until_it_is_renewed() {
    let remote = Remote::start().await;
    assert_eq!(remote.conditions.now(), [], "it is valid for centuries");
    let day = Duration::from_secs(24 * 60 * 60);
    // What the wall clock shows, which decides about certificates.
    let now = fs::metadata(remote.directory.path().join("cert")).unwrap().modified().unwrap();
    let (from, ten_days) = (now - 300 * day, now + 10 * day);
    let expiring = remote.ours.issue("spillwayd.example", |params| {
        (params.not_before, params.not_after) = (from.into(), ten_days.into());
    });
    write(remote.directory.path(), &expiring, &remote.ours);
    remote.credentials.refresh().unwrap();
    let [condition] = &remote.conditions.now()[..] else { panic!("no condition") };
    assert_eq!(condition.subject, "TLS certificate");
    assert!(condition.cause.contains(": expires at 20"), "{}", condition.cause);
    let known = remote.expiry.now().server.unwrap();
    // Certificates have no fractions of seconds.
    let rounded = |time: SystemTime| time.duration_since(known.not_after).unwrap_or_default();
    assert!(known.not_after <= ten_days && rounded(ten_days) < Duration::from_secs(1));

    // What cannot be used leaves the certificate in force, and so its end.
    fs::write(remote.directory.path().join("cert"), "nonsense").unwrap();
    remote.credentials.refresh().unwrap_err();
    let conditions = remote.conditions.now();
    let subjects: Vec<_> = conditions.iter().map(|it| it.subject.as_str()).collect();
    assert_eq!(subjects, ["TLS", "TLS certificate"]);
    write(remote.directory.path(), &remote.ours.client("spillwayd.example"), &remote.ours);
    remote.credentials.refresh().unwrap();
    assert_eq!(remote.conditions.now(), []);
}

/// A daemon that stops lets go of its credentials before calls under way have ended.
#[tokio::test]
async fn who_is_let_in_stays_when_nobody_is_left_to_take_rights_away() {
    let (directory, ours) = (tempfile::tempdir().unwrap(), Authority::new("ours"));
    write(directory.path(), &ours.client("spillwayd.example"), &ours);
    let credentials = Credentials::open(
        files(directory.path()),
        clients(&CLIENTS),
        CertificateExpiry::default(),
        Conditions::default(),
    )
    .unwrap();
    let any = "127.0.0.1:0".parse().unwrap();
    let (address, mut connections) =
        listen(any, credentials, ApiRefusals::default()).await.unwrap();
    let eye = ours.client("eye.example");
    let name = ServerName::try_from("spillwayd.example").unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let mut client = connector(&ours, Some(&eye)).connect(name, stream).await.unwrap();
    let mut connection = connections.recv().await.unwrap();

    // Nobody takes connections any more: the listener goes, and the last credentials with it.
    drop(connections);
    let gone = async {
        tokio::task::yield_now().await;
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, gone).await.expect("the listener goes");
    client.write_all(b"still here").await.unwrap();
    client.flush().await.unwrap();
    let mut said = [0; 10];
    timeout(LIMIT, connection.read_exact(&mut said)).await.expect("an end").unwrap();
    assert_eq!(&said, b"still here");
}
