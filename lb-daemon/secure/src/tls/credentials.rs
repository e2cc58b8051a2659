//! Certificates, key and clients of the TLS listener, which may change while the daemon runs.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use tokio::{sync::watch, time::sleep};
use tokio_rustls::rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, UnixTime},
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
};

use super::{
    CertificateContents, CertificateExpiry, CertificateFiles, TlsError,
    certificate_files::{ServerBuilder, certificates, read},
    expiry::Validities,
};
use crate::access::Clients;
use lb_base::{
    conditions::{ConditionReason, Conditions, Subject},
    error_chain,
};

/// Interval at which the files are read again.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Subject of the condition that the files cannot be used.
const TLS: Subject = Subject::new(ConditionReason::TlsFiles, "TLS");

/// What new connections are accepted with.
#[derive(Clone)]
pub struct CredentialsInForce {
    pub(super) config: Arc<ServerConfig>,
    pub(super) clients: Arc<Clients>,
    /// Incremented when a client may have lost rights: connections of earlier epochs end.
    pub(super) epoch: u64,
    contents: FileContents,
}

/// Certificates and clients. Clones share them.
#[derive(Clone, Debug)]
pub struct Credentials {
    files: TlsFiles,
    in_force: watch::Sender<CredentialsInForce>,
    expiry: CertificateExpiry,
    conditions: Conditions,
}

impl fmt::Debug for CredentialsInForce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never show keys.
        f.debug_struct("CredentialsInForce").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

impl Credentials {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn open(
        files: TlsFiles,
        clients: Clients,
        expiry: CertificateExpiry,
        conditions: Conditions,
    ) -> Result<Self, TlsError> {
        let contents = files.read()?;
        let (config, validities) = files.server(&contents)?;
        expiry.set(validities);
        expiry.report(&files, &conditions);
        let in_force =
            CredentialsInForce { config, clients: Arc::new(clients), epoch: 0, contents };
        Ok(Self { files, in_force: watch::Sender::new(in_force), expiry, conditions })
    }

    pub(super) fn watch(&self) -> watch::Receiver<CredentialsInForce> {
        self.in_force.subscribe()
    }

    /// Reads the files again. If they cannot be used, nothing changes, and that is a condition. That what is in force then
    /// expires is another.
    ///
    /// # Errors
    /// `TLS: cause`.
    pub fn refresh(&self) -> Result<(), String> {
        let read = self.read_again();
        self.expiry.report(&self.files, &self.conditions);
        conclude_refresh(&TLS, &self.conditions, read)
    }

    fn read_again(&self) -> Result<bool, TlsError> {
        let contents = self.files.read()?;
        if contents == self.in_force.borrow().contents {
            return Ok(false);
        }
        let (config, validities) = self.files.server(&contents)?;
        self.expiry.set(validities);
        self.in_force.send_modify(|now| {
            now.epoch += u64::from(now.contents.authorities != contents.authorities);
            (now.config, now.contents) = (config, contents);
        });
        Ok(true)
    }

    /// Replaces the clients; existing connections end if anything changed.
    pub fn set_clients(&self, clients: Clients) {
        self.in_force.send_if_modified(|now| {
            let differ = *now.clients != clients;
            if differ {
                (now.clients, now.epoch) = (Arc::new(clients), now.epoch + 1);
            }
            differ
        });
    }

    /// Reads the files every two seconds, for ever.
    pub async fn follow(&self) {
        poll(self, Self::refresh).await;
    }
}

/// Begins or ends the condition that files cannot be used, after they were read again: whether they changed, or why they
/// cannot.
///
/// # Errors
/// `SUBJECT: cause`.
pub fn conclude_refresh(
    subject: &Subject,
    conditions: &Conditions,
    read: Result<bool, impl std::error::Error>,
) -> Result<(), String> {
    match read {
        Ok(changed) => {
            if changed {
                tracing::info!("{subject}: the files changed and are in use");
            }
            conditions.end(subject);
            Ok(())
        }
        Err(error) => {
            let cause = error_chain::message(&error);
            conditions.begin(subject, &cause);
            Err(format!("{subject}: {cause}"))
        }
    }
}

/// Has files read every two seconds, for ever.
pub async fn poll<F: Clone + Send + 'static>(files: &F, refresh: fn(&F) -> Result<(), String>) {
    loop {
        sleep(POLL_INTERVAL).await;
        let files = files.clone();
        // On a blocking thread, since the disk may be slow. An error is shown as a condition.
        let _ = tokio::task::spawn_blocking(move || refresh(&files)).await;
    }
}

/// Paths of the PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The daemon's own.
    pub own: CertificateFiles,
    /// Authorities of client certificates.
    pub authorities: PathBuf,
}

#[derive(Clone, PartialEq, Eq)]
pub struct FileContents {
    own: CertificateContents,
    authorities: Vec<u8>,
}

impl TlsFiles {
    pub fn read(&self) -> Result<FileContents, TlsError> {
        Ok(FileContents { own: self.own.read()?, authorities: read(&self.authorities)? })
    }

    /// Client certificates are required, and as no session is resumed, each connection shows its certificate again.
    pub fn server(
        &self,
        contents: &FileContents,
    ) -> Result<(Arc<ServerConfig>, Validities), TlsError> {
        let own = self.own.parse(&contents.own)?;
        let authorities = certificates(&self.authorities, &contents.authorities)?;
        let validities = Validities::read(&own.chain, &authorities);
        let clients_need_certificates = |builder: ServerBuilder| {
            let verifier = self.verifier(authorities, Arc::clone(builder.crypto_provider()))?;
            Ok(builder.with_client_cert_verifier(verifier))
        };
        Ok((self.own.server(own, b"h2", clients_need_certificates)?, validities))
    }

    /// A client of servers whose certificates are of the same authorities, which shows its own certificate to them.
    pub fn client(&self, contents: &FileContents) -> Result<Arc<ClientConfig>, TlsError> {
        let own = self.own.parse(&contents.own)?;
        let roots = self.roots(certificates(&self.authorities, &contents.authorities)?)?;
        self.own.client(own, roots, b"h2")
    }

    /// The own certificate with its intermediate certificates, if others that trust the same authorities will take it from a
    /// client.
    ///
    /// # Errors
    /// Why not.
    pub fn verify_own(
        &self,
        contents: &FileContents,
    ) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let chain = self.own.parse(&contents.own)?.chain;
        let authorities = certificates(&self.authorities, &contents.authorities)?;
        let verifier = self.verifier(authorities, Arc::new(ring::default_provider()))?;
        if let Some((own, rest)) = chain.split_first() {
            let verified = verifier.verify_client_cert(own, rest, UnixTime::now());
            let path = self.own.certificate.clone();
            verified.map_err(|source| TlsError::Unusable { path, source })?;
        }
        Ok(chain)
    }

    /// What accepts certificates of clients.
    fn verifier(
        &self,
        authorities: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
        let roots = Arc::new(self.roots(authorities)?);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
        verifier.map_err(|error| TlsError::Authority {
            path: self.authorities.clone(),
            cause: error.to_string(),
        })
    }

    fn roots(&self, authorities: Vec<CertificateDer<'static>>) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        for root in authorities {
            let path = &self.authorities;
            roots.add(root).map_err(|source| TlsError::Unusable { path: path.clone(), source })?;
        }
        Ok(roots)
    }
}
