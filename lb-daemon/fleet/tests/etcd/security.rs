//! TLS with certificates on both sides.

use std::{fs, path::Path};

use lb_fleet::{
    EtcdError,
    commit::CommitError,
    reader::{Connection, LossCause, View},
};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use tempfile::tempdir;

use crate::{
    Following,
    cluster::{Certificates, Cluster},
    commit, name,
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

    /// Writes a certificate for servers and clients into a folder.
    fn issue(&self, folder: &Path, file: &str, address: &str, is_expired: bool) -> Certificates {
        let mut params = CertificateParams::new(vec![address.to_owned()]).unwrap();
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
    let denied = lb_fleet::Fleet::new(&settings).await.unwrap().current().await;
    assert!(matches!(denied, Err(CommitError::Etcd(EtcdError::Unreachable(_)))), "{denied:?}");
    let missing = folder.path().join("missing");
    settings.tls.as_mut().unwrap().key = missing.clone();
    let error = lb_fleet::Fleet::new(&settings).await.err().unwrap().to_string();
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
