//! Certificates of one authority, for servers and clients of a test.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa};
use rcgen::{Issuer, KeyPair, SanType};

/// An authority whose certificate is in a file.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    folder: PathBuf,
}

/// Files in PEM: who is trusted, and one that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Of the authority.
    pub authority: PathBuf,
    /// Of who has it.
    pub certificate: PathBuf,
    /// Of who has it.
    pub key: PathBuf,
}

impl Authority {
    /// A new one with a name; it keeps all its files in a folder.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn new(folder: &Path, name: &str) -> Result<Self> {
        let mut params = CertificateParams::new(vec![])?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate()?;
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let pem = params.self_signed(&key)?.pem();
        let authority = Self { issuer: Issuer::new(params, key), folder: folder.into() };
        write(&authority.file(), &pem)?;
        Ok(authority)
    }

    /// The file of its own certificate.
    pub fn file(&self) -> PathBuf {
        self.folder.join("authority.pem")
    }

    /// A certificate for a server or a client that has this name (both as its CN and as its DNS name) and these addresses.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn issue(&self, name: &str, addresses: &[IpAddr]) -> Result<Certificate> {
        self.issue_with(name, addresses, |_| {})
    }

    /// The same with a change, such as other dates. It takes the place of an earlier one of the same name.
    ///
    /// # Errors
    /// As [`Self::issue`].
    pub fn issue_with(
        &self,
        name: &str,
        addresses: &[IpAddr],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Result<Certificate> {
        let mut params = CertificateParams::new(vec![name.to_owned()])?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.subject_alt_names.extend(addresses.iter().map(|it| SanType::IpAddress(*it)));
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        let key = KeyPair::generate()?;
        let [certificate, key_file] =
            ["pem", "key"].map(|kind| self.folder.join(format!("{name}.{kind}")));
        write(&certificate, &params.signed_by(&key, &self.issuer)?.pem())?;
        write(&key_file, &key.serialize_pem())?;
        Ok(Certificate { authority: self.file(), certificate, key: key_file })
    }
}

/// Under another name first: who reads a certificate that is renewed finds the old one or the new one.
fn write(path: &Path, pem: &str) -> Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, pem).with_context(|| new.display().to_string())?;
    fs::rename(&new, path).with_context(|| path.display().to_string())
}
