//! The way to a daemon on another host: TLS with certificates on both ends.

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
    exit::Exit,
    failure::{Failure, describe},
};

/// How long the daemon may take to say something.
const FIRST_WORD: Duration = Duration::from_secs(10);

/// Connects to `https://HOST:PORT`, whose certificate must be for that host.
///
/// # Errors
/// A file is missing or wrong, nobody answers there, or it is not who it should be.
pub(crate) async fn connect(url: &str, options: &Options) -> Result<(Heard, Alert), Failure> {
    let usage = |cause: &str| {
        Failure::new(Exit::Usage, format!("--server '{url}': {cause}")).hint(
            "write https://HOST:PORT, as in https://lb1.example:7443 or https://[2001:db8::1]:7443",
        )
    };
    let place =
        url.strip_prefix("https://").ok_or_else(|| usage("does not begin with https://"))?;
    let place = place.strip_suffix('/').unwrap_or(place);
    let (host, port) = place.rsplit_once(':').ok_or_else(|| usage("the port is missing"))?;
    let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    let port: u16 = port.parse().map_err(|_| usage("the port is missing"))?;
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| usage("the host is neither a name nor an address"))?;
    let connector = TlsConnector::from(Arc::new(config(options)?));
    let stream = in_time(TcpStream::connect((host, port))).await.map_err(|error| {
        Failure::new(Exit::Unavailable, format!("spillwayd at {url}: {}", describe(&error))).hint(
            "see whether the daemon runs there with --listen, and whether a firewall is between",
        )
    })?;
    let alert = Alert::default();
    let stream = in_time(connector.connect(name, stream)).await.map_err(|error| {
        alert.note(&error);
        let hint = match error.kind() {
            io::ErrorKind::TimedOut => "see whether it is spillwayd that listens there",
            _ => {
                "see whether --tls-ca holds the authority of the daemon's certificate, and whether \
                 that is for this host"
            }
        };
        alert.failure(url).unwrap_or_else(|| {
            let message = format!("spillwayd at {url}: {}", describe(&error));
            Failure::new(Exit::Unavailable, message).hint(hint)
        })
    })?;
    // In TLS 1.3 the daemon judges our certificate after we are done. It speaks first, so what it has
    // to say is there before we write into a connection that it may have closed.
    let _late = timeout(FIRST_WORD, stream.get_ref().0.peek(&mut [0])).await;
    Ok((Heard { stream, alert: alert.clone() }, alert))
}

/// What comes of something within the time that the daemon may take to say something.
async fn in_time<T>(coming: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(FIRST_WORD, coming).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// What the other end of a connection said when it refused our certificate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alert(Arc<Mutex<Option<AlertDescription>>>);

impl Alert {
    /// What to say of it; `None`: nothing was refused.
    pub(crate) fn failure(&self, place: &str) -> Option<Failure> {
        let alert = (*self.0.lock().unwrap_or_else(PoisonError::into_inner))?;
        let why = match alert {
            AlertDescription::CertificateRequired => "wants a certificate".to_owned(),
            AlertDescription::CertificateExpired => "says our certificate has expired".into(),
            AlertDescription::UnknownCA => "does not know our certificate's authority".into(),
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown
            | AlertDescription::AccessDenied
            | AlertDescription::DecryptError => {
                format!("does not take our certificate: {alert:?}")
            }
            // Of something else, such as the version of TLS.
            _ => return None,
        };
        let failure = Failure::new(Exit::Permission, format!("spillwayd at {place}: {why}"));
        Some(
            failure.hint(
                "give --tls-cert and --tls-key one from an authority of the daemon's --tls-ca",
            ),
        )
    }

    fn note(&self, error: &io::Error) {
        let error = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
        if let Some(rustls::Error::AlertReceived(alert)) = error {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(*alert);
        }
    }
}

/// A connection that notes an alert: in TLS 1.3 the daemon judges our certificate when we are done
/// already, and what carries the calls only says that the connection is gone.
pub(crate) struct Heard {
    stream: TlsStream<TcpStream>,
    alert: Alert,
}

impl AsyncRead for Heard {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Poll::Ready(Err(error)) = &read {
            self.alert.note(error);
        }
        read
    }
}

impl AsyncWrite for Heard {
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
        Failure::new(Exit::Failure, format!("{}: holds no {what} that can be used", file.display()))
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
                .hint("give --tls-key the key of the certificate of --tls-cert")
        })?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

fn certificates(pem: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem).filter_map(Result::ok).collect()
}

/// A file that an option names, and what is in it.
fn pem(file: &Option<PathBuf>, option: &str) -> Result<(PathBuf, Vec<u8>), Failure> {
    let file = file.clone().ok_or_else(|| {
        Failure::new(Exit::Usage, format!("--server: --{option} is missing")).hint(
            "over TCP there are certificates on both ends: give --tls-ca, --tls-cert and --tls-key",
        )
    })?;
    let bytes = fs::read(&file).map_err(|error| {
        Failure::path(&file, &error).hint(format!("give --{option} a readable file"))
    })?;
    Ok((file, bytes))
}
