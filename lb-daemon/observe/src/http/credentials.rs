//! The certificate of the HTTP listener, and the tokens that it asks for. The files may change while the daemon runs.

use std::{
    fmt, future,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use axum::http::HeaderMap;
use tokio_rustls::TlsAcceptor;

use super::tokens::Tokens;
use crate::metrics::Counter;
use lb_base::{
    conditions::{ConditionReason, Conditions, Subject},
    rate_limited_log::RateLimit,
};
use lb_secure::tls::{self, CertificateContents, CertificateExpiry, CertificateFiles, TlsError};

/// Subject of the condition that the files cannot be used.
const HTTP: Subject = Subject::new(ConditionReason::HttpFiles, "HTTP");

/// Log lines a second about connections and requests that are refused.
const LINES: u32 = 5;

/// Files of the HTTP listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpFiles {
    /// `None`: no TLS.
    pub certificate: Option<CertificateFiles>,
    /// `None`: everyone may read.
    pub tokens: Option<PathBuf>,
}

/// Why the files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HttpFilesError {
    #[error(transparent)]
    File(#[from] TlsError),
    #[error("{}: {cause}", .path.display())]
    Tokens { path: PathBuf, cause: String },
}

impl HttpFilesError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        "/usr/share/doc/spillway/docs/security.md describes --http-tls-cert, --http-tls-key and --http-token-file"
    }
}

/// What connections and requests are accepted with. Clones share it.
#[derive(Clone)]
pub struct HttpCredentials(Arc<Shared>);

struct Shared {
    files: HttpFiles,
    in_force: RwLock<InForce>,
    /// Held while the files are read: what was read first is in force first.
    refreshing: Mutex<()>,
    expiry: CertificateExpiry,
    conditions: Conditions,
    refused: Counter,
    rate_limit: RateLimit,
}

struct InForce {
    contents: Contents,
    acceptor: Option<TlsAcceptor>,
    tokens: Option<Arc<Tokens>>,
}

#[derive(PartialEq, Eq)]
struct Contents {
    certificate: Option<CertificateContents>,
    tokens: Option<Vec<u8>>,
}

impl fmt::Debug for HttpCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never show keys and tokens.
        f.debug_struct("HttpCredentials").field("files", &self.0.files).finish_non_exhaustive()
    }
}

impl HttpFiles {
    fn read(&self) -> Result<Contents, HttpFilesError> {
        let certificate = self.certificate.as_ref().map(CertificateFiles::read).transpose()?;
        let tokens = self.tokens.as_deref().map(tls::read).transpose()?;
        Ok(Contents { certificate, tokens })
    }

    /// Notes when the certificate expires, if all files can be used.
    fn parse(
        &self,
        contents: Contents,
        expiry: &CertificateExpiry,
    ) -> Result<InForce, HttpFilesError> {
        let tokens = match (&self.tokens, &contents.tokens) {
            (Some(path), Some(text)) => {
                let wrong = |cause| HttpFilesError::Tokens { path: path.clone(), cause };
                Some(Arc::new(Tokens::parse(text).map_err(wrong)?))
            }
            _ => None,
        };
        let acceptor = match (&self.certificate, &contents.certificate) {
            (Some(files), Some(read)) => {
                let own = files.parse(read)?;
                let chain = own.chain.clone();
                let anyone = |builder: tls::ServerBuilder| Ok(builder.with_no_client_auth());
                let config = files.server(own, b"http/1.1", anyone)?;
                expiry.set_http(&chain);
                Some(config.into())
            }
            _ => None,
        };
        Ok(InForce { contents, acceptor, tokens })
    }
}

impl HttpCredentials {
    /// Reads the files. Counts requests without a token in `refused`.
    ///
    /// # Errors
    /// [`HttpFilesError`].
    pub fn open(
        files: HttpFiles,
        expiry: CertificateExpiry,
        conditions: Conditions,
        refused: Counter,
    ) -> Result<Self, HttpFilesError> {
        let in_force = RwLock::new(files.parse(files.read()?, &expiry)?);
        let rate_limit = RateLimit::default();
        let refreshing = Mutex::new(());
        let shared =
            Shared { files, in_force, refreshing, expiry, conditions, refused, rate_limit };
        let this = Self(Arc::new(shared));
        this.report_expiry();
        Ok(this)
    }

    /// Reads the files again. If they cannot be used, nothing changes, and that is a condition.
    ///
    /// # Errors
    /// `HTTP: cause`.
    pub fn refresh(&self) -> Result<(), String> {
        let read = self.read_again();
        self.report_expiry();
        tls::conclude_refresh(&HTTP, &self.0.conditions, read)
    }

    fn read_again(&self) -> Result<bool, HttpFilesError> {
        let Shared { files, in_force, refreshing, expiry, .. } = &*self.0;
        let _refreshing = refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        let contents = files.read()?;
        if contents == in_force.read().unwrap_or_else(PoisonError::into_inner).contents {
            return Ok(false);
        }
        let new = files.parse(contents, expiry)?;
        *in_force.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(true)
    }

    fn report_expiry(&self) {
        if let Some(files) = &self.0.files.certificate {
            self.0.expiry.report_http(&files.certificate, &self.0.conditions);
        }
    }

    /// Reads the files every two seconds, for ever, if there are any.
    pub async fn follow(&self) {
        if self.0.files == HttpFiles::default() {
            return future::pending().await;
        }
        tls::poll(self, Self::refresh).await;
    }

    /// What new connections are accepted with; `None`: without TLS.
    pub(super) fn acceptor(&self) -> Option<TlsAcceptor> {
        self.0.in_force.read().unwrap_or_else(PoisonError::into_inner).acceptor.clone()
    }

    /// Whether a request may be answered. If not, it is counted and logged.
    pub(super) fn is_authorized(&self, client: SocketAddr, headers: &HeaderMap) -> bool {
        let in_force = self.0.in_force.read().unwrap_or_else(PoisonError::into_inner);
        let tokens = in_force.tokens.clone();
        drop(in_force);
        if tokens.is_none_or(|tokens| tokens.accept(headers)) {
            return true;
        }
        self.0.refused.inc();
        self.log_refusal(client, "a request has no valid token");
        false
    }

    /// Logs why a client gets nothing, up to a rate.
    pub(super) fn log_refusal(&self, client: SocketAddr, cause: &str) {
        if let Some(left_out) = self.0.rate_limit.now(LINES) {
            tracing::warn!(%client, left_out, "HTTP: {client}: {cause}");
        }
    }

    /// What a client on the network could do that its operator may not intend.
    pub(super) fn exposure(&self) -> Option<&'static str> {
        match &self.0.files {
            HttpFiles { tokens: None, .. } => {
                Some("every client that reaches this address can read names and counters")
            }
            HttpFiles { certificate: None, .. } => {
                Some("tokens are sent unencrypted: set http-tls-cert and http-tls-key")
            }
            _ => None,
        }
    }
}
