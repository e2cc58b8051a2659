//! The files of a listener's certificate.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio_rustls::rustls::{
    self, ClientConfig, ConfigBuilder, RootCertStore, ServerConfig, WantsVerifier,
    client::Resumption,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{NoServerSessionStorage, WantsServerCert},
    version::TLS13,
};

use super::TlsError;

/// Paths of a listener's certificate and its key, PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate and intermediate certificates.
    pub certificate: PathBuf,
    /// Key of the certificate.
    pub key: PathBuf,
}

/// What is in the files.
#[derive(Clone, PartialEq, Eq)]
pub struct CertificateContents {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// A certificate with its intermediate certificates, and its key.
pub struct CertifiedChain {
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
}

impl CertificateFiles {
    pub fn read(&self) -> Result<CertificateContents, TlsError> {
        Ok(CertificateContents { certificate: read(&self.certificate)?, key: read(&self.key)? })
    }

    pub fn parse(&self, contents: &CertificateContents) -> Result<CertifiedChain, TlsError> {
        let chain = certificates(&self.certificate, &contents.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&contents.key)
            .map_err(|_| TlsError::Nothing { path: self.key.clone(), what: "private key" })?;
        Ok(CertifiedChain { chain, key })
    }

    /// Builds a server that speaks TLS 1.3 only and resumes no session, with this certificate and `alpn`.
    pub fn server(
        &self,
        CertifiedChain { chain, key }: CertifiedChain,
        alpn: &[u8],
        with_verifier: impl FnOnce(ServerBuilder) -> Result<VerifiedBuilder, TlsError>,
    ) -> Result<Arc<ServerConfig>, TlsError> {
        let unusable = |error| self.unusable(error);
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?;
        let mut config = with_verifier(builder)?.with_single_cert(chain, key).map_err(unusable)?;
        config.alpn_protocols = vec![alpn.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }
}

impl CertificateFiles {
    /// Names the file that is at fault.
    fn unusable(&self, source: rustls::Error) -> TlsError {
        let path = match source {
            // Of a key, rustls says nothing more about what is wrong with it alone.
            rustls::Error::InconsistentKeys(_) | rustls::Error::General(_) => &self.key,
            _ => &self.certificate,
        };
        TlsError::Unusable { path: path.clone(), source }
    }

    /// Builds a client as [`Self::server`] builds a server, which shows this certificate.
    pub(super) fn client(
        &self,
        CertifiedChain { chain, key }: CertifiedChain,
        roots: RootCertStore,
        alpn: &[u8],
    ) -> Result<Arc<ClientConfig>, TlsError> {
        let unusable = |error| self.unusable(error);
        let provider = Arc::new(ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .map_err(unusable)?;
        config.alpn_protocols = vec![alpn.to_vec()];
        config.resumption = Resumption::disabled();
        Ok(Arc::new(config))
    }
}

/// A server before it is said whether clients need certificates.
pub type ServerBuilder = ConfigBuilder<ServerConfig, WantsVerifier>;
/// And after.
pub(crate) type VerifiedBuilder = ConfigBuilder<ServerConfig, WantsServerCert>;

/// # Errors
/// [`TlsError::Unreadable`].
pub fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::Unreadable { path: path.into(), source })
}

pub(super) fn certificates(
    path: &Path,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        _ => Err(TlsError::Nothing { path: path.into(), what: "certificate" }),
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    /// The file that a server with these contents names as unusable; empty: it can be used.
    fn unusable_file(certificate: &str, key: &str) -> String {
        let files = CertificateFiles { certificate: "own.pem".into(), key: "own.key".into() };
        let (certificate, key) = (certificate.into(), key.into());
        let chain = files.parse(&CertificateContents { certificate, key }).unwrap();
        match files.server(chain, b"h2", |builder| Ok(builder.with_no_client_auth())) {
            Ok(_) => String::new(),
            Err(TlsError::Unusable { path, .. }) => path.display().to_string(),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn the_file_that_is_at_fault_is_named() {
        let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let params = CertificateParams::new(vec!["spillwayd.example".into()]).unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        let key = key.serialize_pem();
        assert_eq!(unusable_file(&certificate, &key), "");
        assert_eq!(unusable_file(&certificate, &other.serialize_pem()), "own.key");
        let broken = |kind: &str| format!("-----BEGIN {kind}-----\nAAAA\n-----END {kind}-----\n");
        assert_eq!(unusable_file(&certificate, &broken("PRIVATE KEY")), "own.key");
        assert_eq!(unusable_file(&broken("CERTIFICATE"), &key), "own.pem");
    }
}
