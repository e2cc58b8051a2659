//! Somebody who signs certificates, and servers that show them.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls::{
    ServerConfig,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// Signs certificates.
pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: TempDir,
}

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // By its name clients look for it among those they trust.
        let directory = tempfile::tempdir().unwrap();
        let name = directory.path().file_name().unwrap().to_str().unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let authority = Self { issuer, directory };
        authority.publish();
        authority
    }

    /// The file with its own certificate.
    pub(super) fn file(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// Writes its certificate where [`Authority::file`] says.
    pub(super) fn publish(&self) {
        std::fs::write(self.file(), self.issuer.pem()).unwrap();
    }

    /// Acceptor of servers that prove to be `names`, by a certificate that lasts until `year`.
    pub(super) fn acceptor(&self, names: &[&str], until: i32, alpn: &[&str]) -> TlsAcceptor {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().unwrap();
        acceptor(vec![self.sign(&params, &key)], &key, alpn)
    }

    /// A certificate of its own.
    pub(super) fn sign(
        &self,
        params: &CertificateParams,
        key: &KeyPair,
    ) -> CertificateDer<'static> {
        params.signed_by(key, &self.issuer).unwrap().der().clone()
    }

    /// The name of this authority, as a certificate has it.
    pub(super) fn name(&self) -> String {
        let name = self.directory.path().file_name().unwrap().to_str().unwrap();
        format!("CN={name}")
    }
}

/// Acceptor of servers that show this chain.
pub(super) fn acceptor(
    chain: Vec<CertificateDer<'static>>,
    key: &KeyPair,
    alpn: &[&str],
) -> TlsAcceptor {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

/// What a client showed in a handshake, and its request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) server_name: Option<String>,
    pub(super) alpn: Option<String>,
    pub(super) request: String,
}

/// An HTTPS server that answers `answer` to every request, and tells what it saw.
pub(super) async fn https(
    acceptor: TlsAcceptor,
    answer: &'static str,
) -> (SocketAddr, mpsc::UnboundedReceiver<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, seen) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, tell) = (acceptor.clone(), tell.clone());
            tokio::spawn(async move {
                // A client that does not like the certificate breaks it off.
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let _ = tell.send(serve(stream, answer).await);
            });
        }
    });
    (address, seen)
}

async fn serve(mut stream: TlsStream<TcpStream>, answer: &str) -> Seen {
    let (_, session) = stream.get_ref();
    let server_name = session.server_name().map(str::to_owned);
    let alpn = session.alpn_protocol().map(|name| String::from_utf8(name.to_vec()).unwrap());
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
            break;
        }
    }
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
    Seen { server_name, alpn, request: String::from_utf8(request).unwrap() }
}
