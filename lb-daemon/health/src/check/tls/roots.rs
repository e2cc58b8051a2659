//! Who is trusted to have signed a backend's certificate.

use std::{
    fs::File,
    io::{self, Read},
};

use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

use lb_base::error_chain;
use lb_model::Trust;

/// Largest file that is read, bytes; the bundles of distributions have a few hundred thousand.
const MOST: u64 = 4 * 1024 * 1024;

/// The certificates of those who are trusted, or why there are none.
pub(super) fn read(trust: &Trust) -> Result<RootCertStore, String> {
    let certificates = match trust {
        Trust::Anybody => return Ok(RootCertStore::empty()),
        Trust::Host => rustls_native_certs::load_native_certs().certs,
        Trust::File(path) => from_file(path)?,
    };
    let mut roots = RootCertStore::empty();
    // A bundle may have some of a kind that nobody signs with any more.
    let (taken, _) = roots.add_parsable_certificates(certificates);
    if taken == 0 { Err("no certificate is in it".to_owned()) } else { Ok(roots) }
}

fn from_file(path: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = bytes(path).map_err(|error| error_chain::message(&error))?;
    let certificates: Result<_, _> = CertificateDer::pem_slice_iter(&text).collect();
    certificates.map_err(|error| error_chain::message(&error))
}

fn bytes(path: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST + 1).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= MOST => Ok(bytes),
        _ => Err(io::Error::other(format!("is over {MOST} bytes"))),
    }
}
