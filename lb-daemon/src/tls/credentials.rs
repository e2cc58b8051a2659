//! Certificates, key and clients of the TLS listener, which may change while the daemon runs.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::{sync::watch, time::sleep};
use tokio_rustls::rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{NoServerSessionStorage, WebPkiClientVerifier},
    version::TLS13,
};

use super::{CertificateExpiry, TlsError, expiry::Validities};
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
        match read {
            Ok(changed) => {
                if changed {
                    tracing::info!("TLS: certificates were read again");
                }
                self.conditions.end(&TLS);
                Ok(())
            }
            Err(error) => {
                let cause = error_chain::message(&error);
                self.conditions.begin(&TLS, &cause);
                Err(format!("{TLS}: {cause}"))
            }
        }
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
        loop {
            sleep(POLL_INTERVAL).await;
            let files = self.clone();
            // On a blocking thread, since the disk may be slow. An error is shown as a condition.
            let _ = tokio::task::spawn_blocking(move || files.refresh()).await;
        }
    }
}

/// Paths of the PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The daemon's certificate and intermediate certificates.
    pub certificate: PathBuf,
    /// Key of the certificate.
    pub key: PathBuf,
    /// Authorities of client certificates.
    pub authorities: PathBuf,
}

#[derive(Clone, PartialEq, Eq)]
struct FileContents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authorities: Vec<u8>,
}

impl TlsFiles {
    fn read(&self) -> Result<FileContents, TlsError> {
        let read = |path: &Path| {
            fs::read(path).map_err(|source| TlsError::Unreadable { path: path.into(), source })
        };
        Ok(FileContents {
            certificate: read(&self.certificate)?,
            key: read(&self.key)?,
            authorities: read(&self.authorities)?,
        })
    }

    /// TLS 1.3 only, client certificates required, and no session resumption: each connection shows its certificate
    /// again.
    fn server(&self, contents: &FileContents) -> Result<(Arc<ServerConfig>, Validities), TlsError> {
        let provider = Arc::new(ring::default_provider());
        let unusable = |path: &Path| {
            let path = path.to_owned();
            move |source| TlsError::Unusable { path, source }
        };
        let chain = certificates(&self.certificate, &contents.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&contents.key)
            .map_err(|_| TlsError::Nothing { path: self.key.clone(), what: "private key" })?;
        let authorities = certificates(&self.authorities, &contents.authorities)?;
        let validities = Validities::read(&chain, &authorities);
        let mut roots = RootCertStore::empty();
        for root in authorities {
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
        Ok((Arc::new(config), validities))
    }
}

fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        _ => Err(TlsError::Nothing { path: path.into(), what: "certificate" }),
    }
}
