//! TLS of checks, 1.2 and 1.3, with ring.

mod anchors;
mod certificate;
mod config;
mod reason;
mod roots;
mod verify;

use std::{net::IpAddr, sync::Arc};

use rustls::{
    crypto::{CryptoProvider, ring},
    pki_types::{DnsName, ServerName},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

pub(crate) use config::TlsConfigs;
pub(super) use reason::tls_text;

use self::{config::TlsConfig, verify::Refusal};
use super::{Failure, stream::Bounded};
use lb_model::{CheckKind, HealthCheck, Trust};

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
        let (protocol, host) = match &check.kind {
            CheckKind::Tcp | CheckKind::Udp(_) | CheckKind::Agent(_) => (Protocol::None, None),
            CheckKind::Http(http) => (Protocol::Http1, http.host.as_deref()),
            CheckKind::Grpc(grpc) => (Protocol::Http2, grpc.authority.as_deref()),
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
        let refusal = Refusal::default();
        let config = self.with.config().map_err(Failure::Roots)?.for_handshake(&refusal);
        // No server name is sent for an address.
        let name = self.name.clone().map_or(ServerName::from(server), ServerName::DnsName);
        let handshake = TlsConnector::from(config).connect(name, stream).await;
        handshake.map_err(|error| match refusal.take() {
            Some(why) => Failure::Certificate(why),
            None => Failure::of_handshake(error),
        })
    }
}

/// The cipher suites, key exchange groups and signatures of checks; docs/health.md lists them.
fn provider() -> CryptoProvider {
    ring::default_provider()
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

#[cfg(test)]
mod tests {
    use rustls::{CipherSuite, NamedGroup, SignatureScheme, SupportedCipherSuite};

    use super::*;

    const PAGE: &str = include_str!("../../../../../docs/health.md");

    /// The names in the row of a table that begins with `head`.
    fn row(head: &str) -> Vec<&'static str> {
        let (_, line) = PAGE
            .split_once(&format!("\n| {head} | "))
            .unwrap_or_else(|| panic!("no row for {head}"));
        let line = line.lines().next().unwrap();
        line.split('`').skip(1).step_by(2).collect()
    }

    fn suites(of_tls13: bool) -> Vec<String> {
        let suites = provider().cipher_suites;
        let here = suites
            .iter()
            .filter(|suite| matches!(suite, SupportedCipherSuite::Tls13(_)) == of_tls13);
        // Those of 1.3 have the library's prefix.
        here.map(|suite| suite_name(suite.suite())).collect()
    }

    /// The name in IANA's registry.
    fn suite_name(suite: CipherSuite) -> String {
        format!("{suite:?}").replace("TLS13_", "TLS_")
    }

    /// The name in IANA's registry.
    fn group_name(group: NamedGroup) -> String {
        format!("{group:?}").to_lowercase()
    }

    /// The name in IANA's registry.
    fn scheme_name(scheme: SignatureScheme) -> &'static str {
        use SignatureScheme as S;
        match scheme {
            S::RSA_PKCS1_SHA256 => "rsa_pkcs1_sha256",
            S::RSA_PKCS1_SHA384 => "rsa_pkcs1_sha384",
            S::RSA_PKCS1_SHA512 => "rsa_pkcs1_sha512",
            S::RSA_PSS_SHA256 => "rsa_pss_rsae_sha256",
            S::RSA_PSS_SHA384 => "rsa_pss_rsae_sha384",
            S::RSA_PSS_SHA512 => "rsa_pss_rsae_sha512",
            S::ECDSA_NISTP256_SHA256 => "ecdsa_secp256r1_sha256",
            S::ECDSA_NISTP384_SHA384 => "ecdsa_secp384r1_sha384",
            S::ED25519 => "ed25519",
            other => panic!("{other:?}: name it here and in docs/health.md"),
        }
    }

    #[test]
    fn the_page_lists_what_checks_take() {
        assert_eq!(row("cipher suites of TLS 1.3"), suites(true));
        assert_eq!(row("cipher suites of TLS 1.2"), suites(false));
        let groups: Vec<_> = provider().kx_groups.iter().map(|it| group_name(it.name())).collect();
        assert_eq!(row("key exchange groups"), groups);
        let algorithms = provider().signature_verification_algorithms;
        let schemes: Vec<_> = algorithms.supported_schemes().into_iter().map(scheme_name).collect();
        assert_eq!(row("signatures, with `verify` or `ca_file`"), schemes);
    }

    #[test]
    fn the_page_lists_the_versions() {
        let versions =
            rustls::DEFAULT_VERSIONS.iter().map(|version| format!("{:?}", version.version));
        let versions: Vec<_> = versions.map(|name| name.replace("TLSv1_", "1.")).collect();
        assert_eq!(row("versions of TLS"), versions);
    }
}
