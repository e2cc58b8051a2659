//! The certificates that a check trusts: those of the host, or those in a file of PEM blocks.

use std::{
    collections::HashSet,
    env,
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    path::Path,
};

use rustls::pki_types::{
    CertificateDer,
    pem::{self, PemObject},
};
use rustls_native_certs::{CertificateResult, ErrorKind, load_certs_from_paths, load_native_certs};
use tracing::warn;
use x509_parser::parse_x509_certificate;

use super::anchors::Anchors;
use lb_base::error_chain;

/// Names the variable with the host's file, instead of that of the system.
const FILE_VARIABLE: &str = "SSL_CERT_FILE";

/// Names the variable with the host's directories, separated by colons.
const DIRECTORIES_VARIABLE: &str = "SSL_CERT_DIR";

/// Largest file that is read, bytes; bundles of distributions have a few hundred thousand.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// What begins a block (RFC 7468, 2).
const BEGIN: &str = "-----BEGIN ";

/// The one kind of block that is read.
const CERTIFICATE: &str = "CERTIFICATE";

/// Trusted certificates.
#[derive(Debug)]
pub(super) struct Roots {
    /// As those that sign others.
    pub(super) anchors: Anchors,
    /// As those that servers may show themselves.
    pub(super) certificates: HashSet<CertificateDer<'static>>,
}

impl Roots {
    /// Those that the host trusts, or why there are none.
    pub(super) fn of_host() -> Result<Self, String> {
        let [file, directories] = [FILE_VARIABLE, DIRECTORIES_VARIABLE].map(env::var_os);
        Self::of_places(file.as_deref(), directories.as_deref())
    }

    /// Those that the host trusts, with what the environment says of where they are.
    fn of_places(file: Option<&OsStr>, directories: Option<&OsStr>) -> Result<Self, String> {
        let (mut read, mut flaws) = (Vec::new(), Vec::new());
        if let Some(file) = file {
            match certificates_of(Path::new(file)) {
                Ok(certificates) => read.extend(certificates),
                Err(why) => flaws.push(format!("{FILE_VARIABLE} {}: {why}", file.display())),
            }
        }
        for directory in env::split_paths(directories.unwrap_or_default()) {
            if !directory.as_os_str().is_empty() {
                let found = load_certs_from_paths(None, Some(&directory));
                let place = format!("a file in {}", directory.display());
                let flaws_here = flaws_of(&found, &place).into_iter();
                flaws.extend(flaws_here.map(|why| format!("{DIRECTORIES_VARIABLE}: {why}")));
                read.extend(found.certs);
            }
        }
        if file.is_none() && directories.is_none_or(OsStr::is_empty) {
            let found = load_native_certs();
            flaws.extend(flaws_of(&found, "a file"));
            read.extend(found.certs);
        }
        let more = match flaws.len() {
            0 | 1 => String::new(),
            number => format!(" (and {} more)", number - 1),
        };
        let flaw = flaws.first().map(|flaw| format!("{flaw}{more}"));
        match (Self::from_certificates(read), flaw) {
            (Ok(roots), Some(flaw)) => {
                warn!("health: of this host's trusted certificates only some are used: {flaw}");
                Ok(roots)
            }
            (Err(_), Some(flaw)) => Err(flaw),
            (read, None) => read,
        }
    }

    /// Those in a file, or why there are none.
    pub(super) fn from_file(path: &str) -> Result<Self, String> {
        Self::from_certificates(certificates_of(Path::new(path))?)
    }

    fn from_certificates(certificates: Vec<CertificateDer<'static>>) -> Result<Self, String> {
        let anchors = Anchors::new(&certificates);
        let certificates = certificates.into_iter().collect();
        if anchors.is_empty() {
            Err("no usable certificate".to_owned())
        } else {
            Ok(Self { anchors, certificates })
        }
    }
}

/// Those in a file.
fn certificates_of(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let bytes = read_file(path).map_err(|error| error_chain::message(&error))?;
    certificates(&bytes)
}

/// What could not be read, each with its path, or with `place` where the library does not say that.
fn flaws_of(found: &CertificateResult, place: &str) -> Vec<String> {
    let flaws = found.errors.iter().map(|error| match &error.kind {
        ErrorKind::Io { inner, path } => {
            format!("{}: {}", path.display(), error_chain::message(inner))
        }
        ErrorKind::Pem(error) => format!("{place}: {}", pem_text(error)),
        _ => error_chain::message(error),
    });
    flaws.collect()
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= MOST_BYTES => Ok(bytes),
        _ => Err(io::Error::other(format!("is over {MOST_BYTES} bytes"))),
    }
}

/// The certificates in PEM blocks. Text between blocks counts for nothing, and neither do other blocks, such as keys.
fn certificates(bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err("is UTF-16: save it as UTF-8 or ASCII".to_owned());
    }
    if parse_x509_certificate(bytes).is_ok() {
        return Err("is DER, not PEM: `openssl x509 -inform der` converts it".to_owned());
    }
    let text = plain_lines(&String::from_utf8_lossy(bytes));
    if let Some(label) = other_certificates(&text) {
        return Err(format!(
            "has a {label} block, which is not read: `openssl x509` makes a {CERTIFICATE} block of it"
        ));
    }
    let read: Result<_, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    read.map_err(|error| pem_text(&error))
}

/// Without byte order marks, which files have in their middle where several were joined, and with blocks on lines of
/// their own, which they do not have where the first of these files did not end in a line feed.
fn plain_lines(text: &str) -> String {
    text.replace('\u{feff}', "").replace("----------BEGIN ", "-----\n-----BEGIN ")
}

/// The first kind of block that has certificates in another form, such as `TRUSTED CERTIFICATE` of openssl with settings
/// beside the certificate, which say what it may be trusted for.
fn other_certificates(text: &str) -> Option<&str> {
    let labels = text.lines().filter_map(|line| line.strip_prefix(BEGIN)?.split("-----").next());
    labels.into_iter().find(|label| label.ends_with(CERTIFICATE) && *label != CERTIFICATE)
}

fn pem_text(error: &pem::Error) -> String {
    match error {
        pem::Error::MissingSectionEnd { .. } => "a block has no END line".to_owned(),
        pem::Error::IllegalSectionStart { .. } => "a BEGIN line is not whole".to_owned(),
        pem::Error::Base64Decode(_) => "a block is not base64".to_owned(),
        _ => "a block cannot be read".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pem() -> String {
        rcgen::generate_simple_self_signed(["ca.example".to_owned()]).unwrap().cert.pem()
    }

    fn read(text: impl AsRef<[u8]>) -> Result<usize, String> {
        certificates(text.as_ref()).map(|certificates| certificates.len())
    }

    #[test]
    fn certificates_are_read_as_editors_and_tools_write_them() {
        let [one, two] = [pem(), pem()];
        let unended = one.trim_end();
        let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
        for (text, number) in [
            (one.clone(), 1),
            (format!("{one}{two}"), 2),
            (format!("\u{feff}{one}"), 1),
            (format!("\u{feff}{one}\u{feff}{two}"), 2),
            (format!("\u{feff}{one}{two}").replace('\n', "\r\n"), 2),
            (one.replace('\n', "\r"), 1),
            (format!("# Größe\n\nsubject=CN = a\n{one}\nissuer: b\n-----\n{two}text"), 2),
            (unended.to_owned(), 1),
            (format!("{unended}{two}"), 2),
            (format!("{key}{one}"), 1),
            (one.replace("-----\n", "----- \n"), 1),
            ("nothing".to_owned(), 0),
        ] {
            assert_eq!(read(&text), Ok(number), "{text:?}");
        }
        assert_eq!(read([b"caf\xe9\n".as_slice(), one.as_bytes()].concat()), Ok(1), "Latin 1");
    }

    #[test]
    fn what_is_not_read_is_said() {
        let pem = pem();
        let trusted = pem.replace(" CERTIFICATE", " TRUSTED CERTIFICATE");
        let why = "has a TRUSTED CERTIFICATE block, which is not read: `openssl x509` makes a CERTIFICATE block of it";
        for text in [
            trusted.clone(),
            format!("\u{feff}{trusted}").replace('\n', "\r\n"),
            pem.clone() + &trusted,
        ] {
            assert_eq!(read(text), Err(why.to_owned()));
        }
        let old = pem.replace(" CERTIFICATE", " X509 CERTIFICATE");
        assert!(
            read(old).unwrap_err().starts_with("has a X509 CERTIFICATE block, which is not read")
        );
        let utf16: Vec<u8> = pem.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let utf16 = [b"\xff\xfe".as_slice(), &utf16].concat();
        assert_eq!(read(utf16), Err("is UTF-16: save it as UTF-8 or ASCII".to_owned()));
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let why = "is DER, not PEM: `openssl x509 -inform der` converts it";
        assert_eq!(read(&der), Err(why.to_owned()));
        let begin = pem.split_at(200).0;
        assert_eq!(read(begin), Err("a block has no END line".to_owned()));
        let broken = "-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----\n";
        assert_eq!(read(broken), Err("a block is not base64".to_owned()));
        assert_eq!(read("-----BEGIN CERTIFICATE--\n"), Err("a BEGIN line is not whole".to_owned()));
    }

    /// As those of `ca_file`.
    #[test]
    fn the_file_that_the_environment_names_is_read_as_others_are() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("host.pem");
        let none = directory.path().join("none");
        let of = |text: &str| {
            std::fs::write(&file, text).unwrap();
            Roots::of_places(Some(file.as_os_str()), Some(none.as_os_str()))
        };
        let number = |roots: Result<Roots, String>| roots.map(|roots| roots.certificates.len());
        let pem = pem();
        for text in [pem.clone(), format!("\u{feff}{pem}"), pem.replace('\n', "\r\n")] {
            assert_eq!(number(of(&text)), Ok(1), "{text:?}");
        }
        let at = |why: &str| format!("SSL_CERT_FILE {}: {why} (and 1 more)", file.display());
        let trusted = pem.replace(" CERTIFICATE", " TRUSTED CERTIFICATE");
        let why = "has a TRUSTED CERTIFICATE block, which is not read: `openssl x509` makes a CERTIFICATE block of it";
        assert_eq!(of(&trusted).unwrap_err(), at(why));
        std::fs::remove_file(&file).unwrap();
        let missing = Roots::of_places(Some(file.as_os_str()), None).unwrap_err();
        let begin = format!("SSL_CERT_FILE {}: No such file", file.display());
        assert!(missing.starts_with(&begin), "{missing}");
        let missing = Roots::of_places(None, Some(none.as_os_str())).unwrap_err();
        let begin = format!("SSL_CERT_DIR: {}: No such file", none.display());
        assert!(missing.starts_with(&begin), "{missing}");
        let empty = Roots::of_places(Some("/dev/null".as_ref()), None).unwrap_err();
        assert_eq!(empty, "no usable certificate");
    }

    #[test]
    fn directories_are_read_beside_the_file() {
        let [one, two] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let file = one.path().join("a.pem");
        std::fs::write(&file, pem()).unwrap();
        std::fs::write(two.path().join("b.pem"), pem()).unwrap();
        let both = env::join_paths([one.path(), two.path()]).unwrap();
        let number = |file: Option<&Path>, directories: Option<&OsStr>| {
            Roots::of_places(file.map(Path::as_os_str), directories).unwrap().certificates.len()
        };
        assert_eq!(number(None, Some(&both)), 2);
        assert_eq!(number(Some(&file), Some(two.path().as_os_str())), 2);
        assert_eq!(number(Some(&file), None), 1);
        std::fs::write(two.path().join("b.pem"), pem().split_at(200).0).unwrap();
        assert_eq!(number(None, Some(&both)), 1, "what can be read is used");
        let broken = Roots::of_places(None, Some(two.path().as_os_str())).unwrap_err();
        let place = two.path().display();
        assert_eq!(broken, format!("SSL_CERT_DIR: a file in {place}: a block has no END line"));
    }
}
