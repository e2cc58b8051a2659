//! Connections to a daemon on another host: TLS with certificates on both ends.

use std::{
    fs, io,
    path::PathBuf,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        self, AlertDescription, ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
        version::TLS13,
    },
};

use crate::{
    arguments::Options,
    failure::{Exit, Failure, describe},
};

/// How a server's address begins.
pub(super) const SCHEME: &str = "https://";

/// Longest wait for each step of connecting.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);

/// Connects to `https://HOST:PORT`, whose certificate must be for that host.
///
/// # Errors
/// A file is missing or invalid, nothing answers, or the certificate is for another host.
pub(crate) async fn connect(
    url: &str,
    options: &Options,
) -> Result<(TlsConnection, Alert), Failure> {
    let usage = |cause: &str| {
        Failure::new(Exit::Usage, format!("--server '{url}': {cause}")).hint(
            "write https://HOST:PORT, as in https://lb1.example:7443 or https://[2001:db8::1]:7443",
        )
    };
    let place = url.strip_prefix(SCHEME).ok_or_else(|| usage("does not begin with https://"))?;
    let place = place.strip_suffix('/').unwrap_or(place);
    let (host, port) = place.rsplit_once(':').ok_or_else(|| usage("the port is missing"))?;
    let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    let port: u16 = port.parse().map_err(|_| usage("the port is missing"))?;
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| usage("the host is neither a name nor an address"))?;
    let connector = TlsConnector::from(Arc::new(config(options)?));
    let connected = async {
        let stream = TcpStream::connect((host, port)).await?;
        // A call is written in pieces, and the last would wait for the ACK of the one before, 40 ms (RFC 1122, 4.2.3.2).
        stream.set_nodelay(true)?;
        Ok(stream)
    };
    let stream = with_timeout(connected).await.map_err(|error| {
        Failure::new(Exit::Unavailable, format!("spillwayd at {url}: {}", describe(&error))).hint(
            "check that the daemon runs there with --listen, and that no firewall blocks the connection",
        )
    })?;
    let alert = Alert::default();
    let stream = with_timeout(connector.connect(name, stream)).await.map_err(|error| {
        alert.record(&error);
        let hint = match error.kind() {
            io::ErrorKind::TimedOut => "check that spillwayd listens there",
            _ => {
                "check that --tls-ca holds the CA of the daemon's certificate, and that the certificate is for \
                 this host"
            }
        };
        alert.failure(url).unwrap_or_else(|| {
            let message = format!("spillwayd at {url}: {}", describe(&error));
            Failure::new(Exit::Unavailable, message).hint(hint)
        })
    })?;
    // In TLS 1.3 the daemon verifies our certificate after our side of the handshake is done. It sends
    // first, so its alert is here before we write into a connection that it may have closed.
    let _timed_out = timeout(STEP_TIMEOUT, stream.get_ref().0.peek(&mut [0])).await;
    Ok((TlsConnection { stream, alert: alert.clone() }, alert))
}

async fn with_timeout<T>(future: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(STEP_TIMEOUT, future).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// The alert with which the other end refused our certificate, if it did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alert(Arc<Mutex<Option<AlertDescription>>>);

impl Alert {
    /// `None`: our certificate was not refused.
    pub(crate) fn failure(&self, place: &str) -> Option<Failure> {
        let alert = (*self.0.lock().unwrap_or_else(PoisonError::into_inner))?;
        let why = match alert {
            AlertDescription::CertificateRequired => "requires a client certificate".to_owned(),
            AlertDescription::CertificateExpired => "says that our certificate has expired".into(),
            AlertDescription::UnknownCA => "does not know the CA of our certificate".into(),
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown
            | AlertDescription::AccessDenied
            | AlertDescription::DecryptError => {
                format!("rejects our certificate: {alert:?}")
            }
            // An alert about something else, such as the TLS version.
            _ => return None,
        };
        let failure = Failure::new(Exit::Permission, format!("spillwayd at {place}: {why}"));
        Some(failure.hint("use a --tls-cert and --tls-key from a CA in the daemon's --tls-ca"))
    }

    fn record(&self, error: &io::Error) {
        let error = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
        if let Some(rustls::Error::AlertReceived(alert)) = error {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(*alert);
        }
    }
}

/// A connection that records an alert. In TLS 1.3 the alert arrives with the first read, and hyper would
/// only report that the connection is gone.
pub(crate) struct TlsConnection {
    stream: TlsStream<TcpStream>,
    alert: Alert,
}

impl AsyncRead for TlsConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Poll::Ready(Err(error)) = &read {
            self.alert.record(error);
        }
        read
    }
}

impl AsyncWrite for TlsConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

fn config(options: &Options) -> Result<ClientConfig, Failure> {
    let wrong = |file: &PathBuf, what: &str| {
        Failure::new(Exit::Failure, format!("{}: holds no usable {what}", file.display()))
            .hint("certificates and keys are PEM files")
    };
    let (file, authorities) = pem(&options.tls_ca, "tls-ca")?;
    let mut roots = RootCertStore::empty();
    for root in certificates(&authorities) {
        roots.add(root).map_err(|_| wrong(&file, "certificate"))?;
    }
    if roots.is_empty() {
        return Err(wrong(&file, "certificate"));
    }
    let (file, own) = pem(&options.tls_cert, "tls-cert")?;
    let own = certificates(&own);
    if own.is_empty() {
        return Err(wrong(&file, "certificate"));
    }
    let (key_file, key) = pem(&options.tls_key, "tls-key")?;
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(|_| wrong(&key_file, "private key"))?;
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| Failure::new(Exit::Failure, format!("TLS: {error}")))?
        .with_root_certificates(roots)
        .with_client_auth_cert(own, key)
        .map_err(|error| {
            let (file, key) = (file.display(), key_file.display());
            Failure::new(Exit::Failure, format!("{file}: cannot be used with {key}: {error}"))
                .hint("--tls-key must hold the key of the certificate in --tls-cert")
        })?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

fn certificates(pem: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem).filter_map(Result::ok).collect()
}

/// The file that an option names, with its content.
fn pem(file: &Option<PathBuf>, option: &str) -> Result<(PathBuf, Vec<u8>), Failure> {
    let file = file.clone().ok_or_else(|| {
        Failure::new(Exit::Usage, format!("--server: --{option} is missing"))
            .hint("both ends need certificates over TCP: give --tls-ca, --tls-cert and --tls-key")
    })?;
    let bytes = fs::read(&file).map_err(|error| {
        Failure::path(&file, &error).hint(format!("name a readable file with --{option}"))
    })?;
    Ok((file, bytes))
}
