//! TLS of checks, 1.2 and 1.3, with ring.

mod config;

use std::{net::IpAddr, sync::Arc};

use rustls::pki_types::{DnsName, ServerName};
use tokio_rustls::{TlsConnector, client::TlsStream};

pub(crate) use config::TlsConfigs;

use self::config::TlsConfig;
use super::{Failure, stream::Bounded};
use lb_model::{HealthCheck, Probe, Trust};

/// The protocol on a connection, for ALPN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Protocol {
    /// None after the handshake.
    None,
    Http1,
    Http2,
}

/// The TLS settings of a check.
#[derive(Debug)]
pub(crate) struct Tls {
    name: Option<DnsName<'static>>,
    with: Arc<TlsConfig>,
}

impl Tls {
    /// For a check; `None`: it does not use TLS.
    pub(crate) fn of(check: &HealthCheck, shared: &TlsConfigs) -> Option<Self> {
        let tls = check.tls.as_ref()?;
        let (protocol, host) = match &check.probe {
            Probe::Tcp | Probe::Udp(_) | Probe::Agent(_) => (Protocol::None, None),
            Probe::Http(http) => (Protocol::Http1, http.host.as_deref()),
            Probe::Grpc(grpc) => (Protocol::Http2, grpc.authority.as_deref()),
        };
        let name = tls.server_name.as_deref().or(host.map(without_port));
        let name = name.and_then(|name| DnsName::try_from(name.to_owned()).ok());
        Some(Self { name, with: shared.get(&tls.trust, protocol) })
    }

    /// Makes the handshake.
    pub(super) async fn handshake(
        &self,
        stream: Bounded,
        server: IpAddr,
    ) -> Result<TlsStream<Bounded>, Failure> {
        let config = self.with.config().map_err(Failure::Roots)?;
        // No server name is sent for an address.
        let name = self.name.clone().map_or(ServerName::from(server), ServerName::DnsName);
        TlsConnector::from(config).connect(name, stream).await.map_err(Failure::of_handshake)
    }
}

/// The host of `host:port`.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

impl Protocol {
    fn alpn(self) -> Vec<Vec<u8>> {
        match self {
            Self::None => Vec::new(),
            Self::Http1 => vec![b"http/1.1".to_vec()],
            Self::Http2 => vec![b"h2".to_vec()],
        }
    }
}

impl TlsConfig {
    /// The name of the source of trusted certificates.
    fn place(trust: &Trust) -> String {
        match trust {
            Trust::Anybody => String::new(),
            Trust::Host => "this host's trusted certificates".to_owned(),
            Trust::File(path) => format!("ca_file {path}"),
        }
    }
}
