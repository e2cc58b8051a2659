use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio_rustls::rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{NoServerSessionStorage, WebPkiClientVerifier},
    version::TLS13,
};

use super::TlsError;

/// Where certificates are, PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The daemon's certificate, and those between it and its authority.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Authorities that clients' certificates are from.
    pub authorities: PathBuf,
}

/// What the files hold.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    pub(super) authorities: Vec<u8>,
}

impl TlsFiles {
    pub(super) fn read(&self) -> Result<Contents, TlsError> {
        let read = |path: &Path| {
            fs::read(path).map_err(|source| TlsError::Unreadable { path: path.into(), source })
        };
        Ok(Contents {
            certificate: read(&self.certificate)?,
            key: read(&self.key)?,
            authorities: read(&self.authorities)?,
        })
    }

    /// What the server goes by. TLS 1.3 only; a client without a certificate of the authorities gets
    /// no connection; no session is taken up again, so each connection shows its certificate anew.
    pub(super) fn server(&self, contents: &Contents) -> Result<Arc<ServerConfig>, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let unusable = |path: &Path| {
            let path = path.to_owned();
            move |source| TlsError::Unusable { path, source }
        };
        let chain = certificates(&self.certificate, &contents.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&contents.key)
            .map_err(|_| TlsError::Nothing { path: self.key.clone(), what: "private key" })?;
        let mut roots = RootCertStore::empty();
        for root in certificates(&self.authorities, &contents.authorities)? {
            roots.add(root).map_err(unusable(&self.authorities))?;
        }
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                .build()
                .map_err(|error| TlsError::Authority {
                    path: self.authorities.clone(),
                    cause: error.to_string(),
                })?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable(&self.certificate))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .map_err(unusable(&self.certificate))?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }
}

fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        _ => Err(TlsError::Nothing { path: path.into(), what: "certificate" }),
    }
}
