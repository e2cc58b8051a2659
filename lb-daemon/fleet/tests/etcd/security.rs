//! TLS with certificates on both sides.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::Arc,
};

use lb_fleet::{
    Document, EtcdError, Fleet,
    commit::CommitError,
    documents::Liveness,
    homes::HomesChange,
    members::MemberError,
    presence::LeaseState,
    put_back::PutBackError,
    reader::{Connection, LossCause, Snapshot, View},
};
use lb_model::Name;
use lb_sharing::epoch::{Contribution, EpochStep, Forgotten};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use tempfile::tempdir;
use tokio::{sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    Following,
    cluster::{Certificates, Cluster, PATIENCE},
    commit, look,
    members::member,
    name,
};

struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// Writes a certificate for servers and clients into a folder. `file` is its common name too.
    fn issue(&self, folder: &Path, file: &str, address: &str, is_expired: bool) -> Certificates {
        let mut params = CertificateParams::new(vec![address.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, file);
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        if is_expired {
            params.not_before = rcgen::date_time_ymd(2020, 1, 1);
            params.not_after = rcgen::date_time_ymd(2020, 1, 2);
        }
        let key = KeyPair::generate().unwrap();
        let pem = params.signed_by(&key, &self.issuer).unwrap().pem();
        let write = |extension: &str, content: &str| {
            let path = folder.join(format!("{file}.{extension}"));
            fs::write(&path, content).unwrap();
            path
        };
        Certificates {
            authorities: write("ca", &self.pem),
            certificate: write("pem", &pem),
            key: write("key", &key.serialize_pem()),
        }
    }
}

#[tokio::test]
async fn both_sides_show_certificates() {
    let authority = Authority::new();
    let cluster = Cluster::start_with_tls(|folder, address| {
        authority.issue(folder, "server", address, false)
    })
    .await;
    let fleet = cluster.fleet("lb-1").await;
    commit(&fleet, None, b"one").await;
    Following::new(&fleet).until_generation(1).await;
    // The certificate of another authority.
    let folder = tempdir().unwrap();
    let stranger = Authority::new().issue(folder.path(), "stranger", "127.0.0.1", false);
    let mut settings = cluster.settings("lb-2");
    let tls = settings.tls.as_mut().unwrap();
    (tls.certificate, tls.key) = (stranger.certificate, stranger.key);
    let denied = Fleet::new(&settings).await.unwrap().current().await;
    assert!(matches!(denied, Err(CommitError::Etcd(EtcdError::Unreachable(_)))), "{denied:?}");
    let missing = folder.path().join("missing");
    settings.tls.as_mut().unwrap().key = missing.clone();
    let error = Fleet::new(&settings).await.err().unwrap().to_string();
    let sentence = format!("{}: cannot be read: No such file or directory", missing.display());
    assert_eq!(error, sentence);
    assert_eq!(settings.name, name("lb-2"));
}

#[tokio::test]
async fn an_expired_certificate_is_named_as_the_cause() {
    let authority = Authority::new();
    let cluster = Cluster::start_unanswered(|folder, address| {
        authority.issue(folder, "server", address, true)
    });
    let mut following = Following::new(&cluster.fleet("lb-1").await);
    let has_expired = |view: &View| {
        let Connection::Lost { cause: LossCause::Etcd(error), .. } = &view.connection else {
            return false;
        };
        matches!(error, EtcdError::CertificateExpired(_))
    };
    following.until("expired", has_expired).await;
}

/// The commands of docs/fleet.md that set up users and roles.
fn commands_of_the_documentation() -> &'static str {
    let page = include_str!("../../../../docs/fleet.md");
    let chapter = page.split("\n## Rights in etcd\n").nth(1).unwrap();
    let blocks = chapter.split("```sh\n").skip(1).map(|it| it.split("```").next().unwrap());
    blocks.into_iter().find(|block| block.contains("auth enable")).unwrap()
}

#[tokio::test]
async fn with_roles_each_balancer_writes_only_its_own_keys() {
    let authority = Authority::new();
    let cluster =
        Cluster::start_with_tls(|folder, address| authority.issue(folder, "root", address, false))
            .await;
    cluster.run(commands_of_the_documentation());
    let folder = tempdir().unwrap();
    // A balancer that says that it is `name`, with a certificate.
    let connect = async |name: &str, certificate: &str| {
        let files = authority.issue(folder.path(), certificate, "127.0.0.1", false);
        let mut settings = cluster.settings(name);
        let tls = settings.tls.as_mut().unwrap();
        (tls.certificate, tls.key) = (files.certificate, files.key);
        Fleet::new(&settings).await.unwrap()
    };
    let (one, two) = (connect("lb-1", "lb-1").await, connect("lb-2", "lb-2").await);
    let denied = |error: &EtcdError| matches!(error, EtcdError::Denied(_));

    // How full etcd is needs no right.
    assert!(one.space().await.is_ok());
    // It may not see what other fleets there are, and needs not.
    assert_eq!(one.other_fleets().await, Ok(vec![]));
    // All that a balancer does.
    for fleet in [&one, &two] {
        fleet.join(&member(0), &*look(fleet).await).await.unwrap();
        let (show, shown) = watch::channel(Arc::new(Document::from(Liveness::default())));
        let (state_tx, mut state) = watch::channel(LeaseState::Waiting);
        let end = CancellationToken::new();
        let alive = tokio::spawn(fleet.clone().stay_alive(shown, state_tx, end.clone()));
        let is_held = |it: &LeaseState| matches!(it, LeaseState::Held { .. });
        timeout(PATIENCE, state.wait_for(is_held)).await.unwrap().unwrap();
        drop(show);
        timeout(PATIENCE, alive).await.unwrap().unwrap();
    }
    let mut following = Following::new(&two);
    commit(&one, None, b"one").await;
    following.until_generation(1).await;
    let homes = HomesChange { pool: name("web"), expected: 0, value: None };
    two.write_homes(&name("eu"), &[homes]).await.unwrap();
    let gone = BTreeSet::from([name("lb-9")]);
    let open = EpochStep::Open { number: 1, forgotten: Forgotten { gone, ..Forgotten::default() } };
    assert_eq!(one.write_epoch_step(&open, &*look(&one).await).await, Ok(true));
    for fleet in [&one, &two] {
        let step = EpochStep::Contribute(Contribution::default());
        assert_eq!(fleet.write_epoch_step(&step, &*look(fleet).await).await, Ok(true));
    }
    assert_eq!(two.write_epoch_step(&EpochStep::Close, &*look(&two).await).await, Ok(true));

    // What it must not do: pass for another one.
    let impostor = connect("lb-1", "lb-2").await;
    let at = look(&impostor).await.members[&name("lb-1")].mod_revision;
    let error = impostor.write_member(&member(0), at).await.unwrap_err();
    assert!(matches!(&error, MemberError::Etcd(error) if denied(error)), "{error:?}");
    // One without a user.
    let stranger = connect("lb-1", "stranger").await.current().await;
    assert!(matches!(&stranger, Err(CommitError::Etcd(error)) if denied(error)), "{stranger:?}");

    // Removing others is for those who have the role.
    let expected = |name: &Name, seen: &Snapshot| seen.members[name].mod_revision;
    let seen = look(&two).await;
    let refused = two.remove_member(&name("lb-1"), expected(&name("lb-1"), &seen)).await;
    assert!(matches!(&refused, Err(MemberError::Etcd(error)) if denied(error)), "{refused:?}");
    one.remove_member(&name("lb-2"), expected(&name("lb-2"), &seen)).await.unwrap();
    let lost = BTreeMap::from([(name("lb-2"), member(0).body)]);
    let refused = two.put_back_members(&lost, &*look(&two).await).await;
    assert!(refused.is_ok(), "its own key: {refused:?}");
    let lost = BTreeMap::from([(name("lb-3"), member(0).body)]);
    let refused = two.put_back_members(&lost, &*look(&two).await).await;
    assert!(matches!(&refused, Err(PutBackError::Etcd(error)) if denied(error)), "{refused:?}");
    one.put_back_members(&lost, &*look(&one).await).await.unwrap();
    two.leave(&*look(&two).await).await.unwrap();
    assert!(!look(&one).await.members.contains_key(&name("lb-2")));

    // What it lacks is seen before it takes part.
    for fleet in [&one, &two] {
        assert_eq!(fleet.check_alive_right().await, Ok(()));
    }
    let shown = || {
        cluster.etcdctl(&[0], &["get", "/spillway/edge/alive/lb-2", "--print-value-only"]).unwrap()
    };
    let before = shown();
    let revoke = ["role", "revoke-permission", "spillway-edge-lb-2", "/spillway/edge/alive/lb-2"];
    cluster.etcdctl(&[0], &revoke).unwrap();
    let missing = two.check_alive_right().await.unwrap_err();
    assert!(denied(&missing), "{missing:?}");
    assert_eq!(one.check_alive_right().await, Ok(()));
    assert_eq!(shown(), before, "nothing is written");
}
