//! The certificate of this balancer among its peers, and whose certificates it trusts. The files may change while the
//! daemon runs.

use std::{collections::BTreeSet, fmt, sync::Arc};

use lb_base::conditions::{ConditionReason, Conditions, FLEET_CERTIFICATE, Subject};
use lb_model::Name;
use tokio::sync::watch;
use tokio_rustls::rustls::{ClientConfig, ServerConfig, pki_types::CertificateDer};
use x509_parser::parse_x509_certificate;

use lb_secure::tls::{self, FileContents, TlsError, TlsFiles, Validity};

/// Subject of the condition that the files cannot be used.
const PEER_TLS: Subject = Subject::new(ConditionReason::TlsFiles, "TLS of peers");

/// Whether balancers show certificates to each other.
#[derive(Clone, Debug)]
pub(crate) enum PeerSecurity {
    Tls(PeerCredentials),
    /// Whoever reaches the address may send as any balancer: for a network of trusted hosts only.
    Plain,
}

/// What connections between balancers are made with. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct PeerCredentials {
    files: TlsFiles,
    in_force: watch::Sender<PeerTls>,
    conditions: Conditions,
}

#[derive(Clone)]
pub(super) struct PeerTls {
    pub(super) server: Arc<ServerConfig>,
    pub(super) client: Arc<ClientConfig>,
    /// Rises with each change of the files. Connections that were made before end.
    pub(super) version: u64,
    contents: FileContents,
    validity: Option<Validity>,
}

impl fmt::Debug for PeerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never show keys.
        f.debug_struct("PeerTls").field("version", &self.version).finish_non_exhaustive()
    }
}

impl PeerCredentials {
    /// Reads the files: authorities of the peers' certificates, and this balancer's own certificate with its key. The
    /// certificate needs the balancer's name as a DNS name, and has to be good for servers and for clients.
    ///
    /// # Errors
    /// [`TlsError`].
    pub(crate) fn open(files: TlsFiles, conditions: Conditions) -> Result<Self, TlsError> {
        let in_force = watch::Sender::new(parse(&files, files.read()?, 0)?);
        let credentials = Self { files, in_force, conditions };
        credentials.report();
        Ok(credentials)
    }

    pub(super) fn watch(&self) -> watch::Receiver<PeerTls> {
        self.in_force.subscribe()
    }

    pub(super) fn client(&self) -> (Arc<ClientConfig>, u64) {
        let now = self.in_force.borrow();
        (Arc::clone(&now.client), now.version)
    }

    /// Reads the files again. If they cannot be used, nothing changes, and that is a condition.
    ///
    /// # Errors
    /// `TLS of peers: cause`.
    pub(crate) fn refresh(&self) -> Result<(), String> {
        let read = self.read_again();
        self.report();
        tls::conclude_refresh(&PEER_TLS, &self.conditions, read)
    }

    /// Says in time that the certificate expires.
    fn report(&self) {
        let validity = self.in_force.borrow().validity;
        let path = &self.files.own.certificate;
        tls::report_fleet(&FLEET_CERTIFICATE, path, validity, &self.conditions);
    }

    /// This balancer has no peers any more.
    pub(crate) fn end_conditions(&self) {
        self.conditions.end(&PEER_TLS);
        self.conditions.end(&FLEET_CERTIFICATE);
    }

    fn read_again(&self) -> Result<bool, TlsError> {
        let contents = self.files.read()?;
        let version = {
            let now = self.in_force.borrow();
            if contents == now.contents {
                return Ok(false);
            }
            now.version + 1
        };
        self.in_force.send_replace(parse(&self.files, contents, version)?);
        Ok(true)
    }

    /// Reads the files every two seconds, for ever.
    pub(super) async fn follow(&self) {
        tls::poll(self, Self::refresh).await;
    }
}

fn parse(files: &TlsFiles, contents: FileContents, version: u64) -> Result<PeerTls, TlsError> {
    let (server, validities) = files.server(&contents)?;
    let client = files.client(&contents)?;
    Ok(PeerTls { server, client, version, contents, validity: validities.server })
}

/// The balancers that a certificate may speak for: its DNS names that are names of balancers. The common name counts only
/// if there are no alternative names (RFC 9525, 2), because certificates for etcd have it.
pub(crate) fn balancers(chain: Option<&[CertificateDer<'_>]>) -> BTreeSet<Name> {
    let mut names = tls::names(chain);
    if names.is_empty() {
        names.extend(chain.and_then(<[_]>::first).and_then(common_name));
    }
    names.iter().filter_map(|text| Name::new(text).ok()).collect()
}

/// `of lb-1`: whose certificate it is, by [`balancers`].
pub(crate) fn owner(balancers: &BTreeSet<Name>) -> String {
    let names: Vec<_> = balancers.iter().map(Name::as_str).collect();
    match names.join(" or ") {
        names if names.is_empty() => "of no balancer".to_owned(),
        names => format!("of {names}"),
    }
}

/// The common name of a certificate's subject (RFC 5280, 4.1.2.4), if it has exactly one.
fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, certificate) = parse_x509_certificate(certificate).ok()?;
    let mut names = certificate.subject().iter_common_name();
    let name = names.next().filter(|_| names.next().is_none())?;
    name.as_str().ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    fn of(names: &[&str], common: &[&str]) -> Vec<String> {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "o".repeat(200));
        for common in common {
            params.distinguished_name.push(DnType::CommonName, *common);
        }
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let chain = [certificate.der().clone()];
        balancers(Some(&chain)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_certificate_speaks_for_its_dns_names_or_its_common_name() {
        assert_eq!(of(&["lb-1", "lb-1.example", "*.example"], &["lb-2"]), ["lb-1"]);
        assert_eq!(of(&["lb-1.example"], &["lb-2"]), [""; 0], "it has names");
        assert_eq!(of(&[], &["lb-2"]), ["lb-2"]);
        assert_eq!(of(&[], &["LB 2"]), [""; 0], "not one of a balancer");
        assert_eq!(of(&[], &[]), [""; 0]);
        assert_eq!(balancers(None).len(), 0);
    }

    proptest! {
        #[test]
        fn any_certificate_is_read_without_harm(
            at in any::<prop::sample::Index>(), byte: u8, bytes in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let mut der = CertificateParams::new(Vec::new()).unwrap();
            der.distinguished_name.push(DnType::CommonName, "lb-1");
            let mut der = der.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec();
            let at = at.index(der.len());
            der[at] = byte;
            balancers(Some(&[CertificateDer::from(der)]));
            balancers(Some(&[CertificateDer::from(bytes)]));
        }
    }
}
