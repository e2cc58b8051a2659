//! TLS of checks, 1.2 and 1.3, with ring.

mod config;

use std::{net::IpAddr, sync::Arc};

use rustls::pki_types::{DnsName, ServerName};
use tokio_rustls::{TlsConnector, client::TlsStream};

pub(crate) use config::Shared;

use self::config::Entry;
use super::{Failure, stream::Bounded};
use lb_model::{HealthCheck, Probe, Trust};

/// What is spoken on a connection, as ALPN names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Protocol {
    /// Nothing after the handshake.
    None,
    Http1,
    Http2,
}

/// What the TLS of a check is spoken with.
#[derive(Debug)]
pub(crate) struct Tls {
    name: Option<DnsName<'static>>,
    with: Arc<Entry>,
}

impl Tls {
    /// For a check; `None` if that is none of TLS.
    pub(crate) fn of(check: &HealthCheck, shared: &Shared) -> Option<Self> {
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

    /// Makes the connection one of TLS.
    pub(super) async fn handshake(
        &self,
        stream: Bounded,
        server: IpAddr,
    ) -> Result<TlsStream<Bounded>, Failure> {
        let config = self.with.config().map_err(Failure::Roots)?;
        // Of an address no name is asked for.
        let name = self.name.clone().map_or(ServerName::from(server), ServerName::DnsName);
        TlsConnector::from(config).connect(name, stream).await.map_err(Failure::of_handshake)
    }
}

/// The host of `host:port`, where that is no bare IPv6 address.
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

/// As text, for what is told of a file.
impl Entry {
    /// The name of the place that who is trusted is read from.
    fn place(trust: &Trust) -> String {
        match trust {
            Trust::Anybody => String::new(),
            Trust::Host => "this host's trusted certificates".to_owned(),
            Trust::File(path) => format!("ca_file {path}"),
        }
    }
}
