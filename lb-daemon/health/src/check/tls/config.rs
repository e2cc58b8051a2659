//! TLS configurations of checks, shared by all probes with the same trust and protocol.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::MetadataExt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use rustls::{
    ClientConfig,
    client::{Resumption, danger::ServerCertVerifier},
    crypto::CryptoProvider,
};
use tracing::{info, warn};

use super::{
    Protocol, provider,
    reason::tls_text,
    roots::Roots,
    verify::{AcceptAnyCertificate, Recorder, Refusal, Verifier},
};
use lb_model::Trust;

/// Time between two looks at a file.
const AGAIN: Duration = Duration::from_secs(1);

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
    config: Result<Arc<Client>, String>,
    looked: Instant,
    seen: Option<Seen>,
}

/// What handshakes are made with.
#[derive(Debug)]
pub(super) struct Client {
    config: Arc<ClientConfig>,
    /// `None`: every certificate is taken.
    verifier: Option<Arc<Verifier>>,
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
    pub(super) fn config(&self) -> Result<Arc<Client>, String> {
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

fn config(trust: &Trust, protocol: Protocol) -> Result<Arc<Client>, String> {
    let provider = Arc::new(provider());
    let verifier = verifier(trust, &provider)?.map(Arc::new);
    let first: Arc<dyn ServerCertVerifier> = match &verifier {
        Some(verifier) => Arc::new(Recorder::new(Arc::clone(verifier), &Refusal::default())),
        None => Arc::new(AcceptAnyCertificate::new(&provider)),
    };
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| tls_text(&error))?.dangerous();
    let mut config = builder.with_custom_certificate_verifier(first).with_no_client_auth();
    config.alpn_protocols = protocol.alpn();
    // Each check makes a full handshake: a resumed session would not show the certificate.
    config.resumption = Resumption::disabled();
    Ok(Arc::new(Client { config: Arc::new(config), verifier }))
}

fn verifier(trust: &Trust, provider: &CryptoProvider) -> Result<Option<Verifier>, String> {
    let roots = match trust {
        Trust::Anybody => return Ok(None),
        Trust::Host => Roots::of_host(),
        Trust::File(path) => Roots::from_file(path),
    };
    let roots = roots.map_err(|why| format!("{}: {why}", TlsConfig::place(trust)))?;
    Ok(Some(Verifier::new(roots, provider)))
}

impl Client {
    /// The configuration of one handshake, which leaves in `refusal` why it does not take a certificate.
    pub(super) fn for_handshake(&self, refusal: &Refusal) -> Arc<ClientConfig> {
        let Some(verifier) = &self.verifier else { return Arc::clone(&self.config) };
        let mut config = ClientConfig::clone(&self.config);
        let recorder = Recorder::new(Arc::clone(verifier), refusal);
        config.dangerous().set_certificate_verifier(Arc::new(recorder));
        Arc::new(config)
    }
}

/// Recovers from poisoning: no code panics while it holds the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const NONE: &str = "no usable certificate";

    fn again(entry: &TlsConfig) -> Result<Arc<Client>, String> {
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
