//! Certificates of balancers.

use std::{fs, path::Path};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};

use lb_secure::tls::{CertificateFiles, TlsFiles};

/// An authority.
pub(super) struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key, PEM.
pub(super) struct Certificate {
    pem: String,
    key: String,
}

impl Authority {
    pub(super) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// A certificate with one DNS name.
    pub(super) fn issue(&self, name: &str) -> Certificate {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let pem = params.signed_by(&key, &self.issuer).unwrap().pem();
        Certificate { pem, key: key.serialize_pem() }
    }
}

impl Certificate {
    /// Writes the files of a balancer that trusts an authority.
    pub(super) fn write(&self, directory: &Path, trusted: &Authority) {
        let files = files(directory);
        fs::write(files.own.certificate, &self.pem).unwrap();
        fs::write(files.own.key, &self.key).unwrap();
        fs::write(files.authorities, &trusted.pem).unwrap();
    }
}

pub(super) fn files(directory: &Path) -> TlsFiles {
    let own = CertificateFiles {
        certificate: directory.join("peer.crt"),
        key: directory.join("peer.key"),
    };
    TlsFiles { own, authorities: directory.join("peers.crt") }
}
