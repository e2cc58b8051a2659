//! TLS configurations of checks, shared by all probes with the same trust and protocol.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        Resumption,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{WebPkiSupportedAlgorithms, ring::default_provider},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use tracing::{info, warn};

use super::Protocol;
use lb_base::error_chain;
use lb_model::Trust;

/// Time between two looks at a file.
const AGAIN: Duration = Duration::from_secs(1);

/// Largest file that is read, bytes; bundles of distributions have a few hundred thousand.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// The configurations in use.
#[derive(Debug, Default)]
pub(crate) struct TlsConfigs(Mutex<HashMap<(Trust, Protocol), Weak<TlsConfig>>>);

/// The configuration for one trust and protocol.
#[derive(Debug)]
pub(super) struct TlsConfig {
    trust: Trust,
    protocol: Protocol,
    read: Mutex<ReadState>,
}

#[derive(Debug)]
struct ReadState {
    /// The last one that could be built, or why none could.
    config: Result<Arc<ClientConfig>, String>,
    looked: Instant,
    seen: Option<Seen>,
}

/// Identifies a version of a file: device, inode, length, and time of modification.
type Seen = (u64, u64, u64, i64, i64);

impl TlsConfigs {
    /// The configuration for a trust and protocol, built for the first probe and dropped with the last.
    pub(super) fn get(&self, trust: &Trust, protocol: Protocol) -> Arc<TlsConfig> {
        let mut entries = lock(&self.0);
        let key = (trust.clone(), protocol);
        if let Some(entry) = entries.get(&key).and_then(Weak::upgrade) {
            return entry;
        }
        entries.retain(|_, entry| entry.strong_count() > 0);
        let entry = Arc::new(TlsConfig::read(trust, protocol));
        entries.insert(key, Arc::downgrade(&entry));
        entry
    }
}

impl TlsConfig {
    fn read(trust: &Trust, protocol: Protocol) -> Self {
        let seen = look(trust);
        let config = config(trust, protocol);
        if let Err(why) = &config {
            warn!("health: {why}");
        }
        let read = Mutex::new(ReadState { config, looked: Instant::now(), seen });
        Self { trust: trust.clone(), protocol, read }
    }

    /// The current configuration. A changed file is read again. If that fails, the previous certificates stay in
    /// use: one bad copy must not fail all backends.
    pub(super) fn config(&self) -> Result<Arc<ClientConfig>, String> {
        let mut read = lock(&self.read);
        if read.looked.elapsed() >= AGAIN {
            read.looked = Instant::now();
            let seen = look(&self.trust);
            if seen != read.seen {
                read.seen = seen;
                self.read_again(&mut read);
            }
        }
        read.config.clone()
    }

    fn read_again(&self, read: &mut ReadState) {
        match (config(&self.trust, self.protocol), &read.config) {
            (Ok(config), _) => {
                info!("health: {} reloaded", Self::place(&self.trust));
                read.config = Ok(config);
            }
            (Err(why), Ok(_)) => warn!("health: {why}; the previous certificates stay in use"),
            (Err(why), Err(_)) => read.config = Err(why),
        }
    }
}

fn look(trust: &Trust) -> Option<Seen> {
    let Trust::File(path) = trust else { return None };
    let file = fs::metadata(path).ok()?;
    Some((file.dev(), file.ino(), file.size(), file.mtime(), file.mtime_nsec()))
}

fn config(trust: &Trust, protocol: Protocol) -> Result<Arc<ClientConfig>, String> {
    let roots = read_roots(trust).map_err(|why| format!("{}: {why}", TlsConfig::place(trust)))?;
    let mut config = client(trust, roots).map_err(|error| error.to_string())?;
    config.alpn_protocols = protocol.alpn();
    // Each check makes a full handshake: a resumed session would not show the certificate.
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

fn client(trust: &Trust, roots: RootCertStore) -> Result<ClientConfig, Error> {
    let provider = Arc::new(default_provider());
    let schemes = provider.signature_verification_algorithms;
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(match trust {
        Trust::Anybody => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AcceptAnyCertificate(schemes)))
            .with_no_client_auth(),
        Trust::Host | Trust::File(_) => builder.with_root_certificates(roots).with_no_client_auth(),
    })
}

/// Recovers from poisoning: no code panics while it holds the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The trusted certificates, or why there are none.
fn read_roots(trust: &Trust) -> Result<RootCertStore, String> {
    let certificates = match trust {
        Trust::Anybody => return Ok(RootCertStore::empty()),
        Trust::Host => rustls_native_certs::load_native_certs().certs,
        Trust::File(path) => from_file(path)?,
    };
    let mut roots = RootCertStore::empty();
    // A bundle may contain certificates with unsupported algorithms.
    let (taken, _) = roots.add_parsable_certificates(certificates);
    if taken == 0 { Err("no usable certificate".to_owned()) } else { Ok(roots) }
}

fn from_file(path: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = read_file(path).map_err(|error| error_chain::message(&error))?;
    let certificates: Result<_, _> = CertificateDer::pem_slice_iter(&text).collect();
    certificates.map_err(|error| error_chain::message(&error))
}

fn read_file(path: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= MOST_BYTES => Ok(bytes),
        _ => Err(io::Error::other(format!("is over {MOST_BYTES} bytes"))),
    }
}

/// Accepts every certificate, also an expired or malformed one: the check asks only whether the backend serves, and
/// sends nothing secret.
#[derive(Debug)]
struct AcceptAnyCertificate(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const NONE: &str = "no usable certificate";

    fn again(entry: &TlsConfig) -> Result<Arc<ClientConfig>, String> {
        lock(&entry.read).looked -= AGAIN;
        entry.config()
    }

    fn authority() -> String {
        rcgen::generate_simple_self_signed(["ca.example".to_owned()]).unwrap().cert.pem()
    }

    fn entry(shared: &TlsConfigs, file: &Path) -> Arc<TlsConfig> {
        shared.get(&Trust::File(file.to_str().unwrap().to_owned()), Protocol::None)
    }

    #[test]
    fn a_file_that_breaks_leaves_what_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ca.pem");
        let shared = TlsConfigs::default();
        let entry = entry(&shared, &file);
        let missing = format!("ca_file {}: No such file", file.display());
        assert!(entry.config().unwrap_err().starts_with(&missing));
        fs::write(&file, "nothing\n").unwrap();
        assert_eq!(again(&entry).unwrap_err(), format!("ca_file {}: {NONE}", file.display()));
        fs::write(&file, authority()).unwrap();
        let first = again(&entry).unwrap();
        assert!(Arc::ptr_eq(&first, &again(&entry).unwrap()), "read though it did not change");
        for broken in ["nothing\n", "-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----\n"] {
            fs::write(&file, broken).unwrap();
            assert!(Arc::ptr_eq(&first, &again(&entry).unwrap()), "{broken}");
        }
        fs::remove_file(&file).unwrap();
        assert!(Arc::ptr_eq(&first, &again(&entry).unwrap()));
        fs::write(&file, authority()).unwrap();
        assert!(!Arc::ptr_eq(&first, &again(&entry).unwrap()), "another's is read");
    }

    #[test]
    fn probes_share_what_they_trust_and_it_goes_with_the_last() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ca.pem");
        let shared = TlsConfigs::default();
        let (one, two) = (entry(&shared, &file), entry(&shared, &file));
        assert!(Arc::ptr_eq(&one, &two));
        drop((one, two));
        let _other = shared.get(&Trust::Anybody, Protocol::Http2);
        assert_eq!(lock(&shared.0).len(), 1);
    }

    #[test]
    fn a_file_is_read_up_to_a_bound() {
        let entry = entry(&TlsConfigs::default(), Path::new("/dev/zero"));
        assert_eq!(entry.config().unwrap_err(), "ca_file /dev/zero: is over 4194304 bytes");
    }
}
