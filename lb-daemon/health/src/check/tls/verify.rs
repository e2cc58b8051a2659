//! Which certificates of servers a check takes.

use std::{
    collections::HashSet,
    sync::{Arc, OnceLock},
};

use rustls::{
    CertificateError, DigitallySignedStruct, Error, SignatureScheme,
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor, verify_server_name,
    },
    crypto::{
        CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
    },
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};
use x509_parser::{certificate::X509Certificate, parse_x509_certificate};

use super::{
    anchors::{Anchors, seconds},
    certificate,
    roots::Roots,
};

/// Why a certificate was not taken, once it was not.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusal(Arc<OnceLock<String>>);

impl Refusal {
    pub(super) fn take(self) -> Option<String> {
        self.0.get().cloned()
    }
}

/// Verifies in one handshake, and keeps in words why a certificate is not taken: the library's errors leave out what the
/// certificate is.
#[derive(Debug)]
pub(super) struct Recorder {
    verifier: Arc<Verifier>,
    refusal: Refusal,
}

impl Recorder {
    pub(super) fn new(verifier: Arc<Verifier>, refusal: &Refusal) -> Self {
        Self { verifier, refusal: refusal.clone() }
    }

    fn record<T>(
        &self,
        result: Result<T, Error>,
        explain: impl FnOnce(&Error) -> String,
    ) -> Result<T, Error> {
        result.inspect_err(|error| {
            self.refusal.0.get_or_init(|| explain(error));
        })
    }
}

impl ServerCertVerifier for Recorder {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.verifier.verify(end_entity, intermediates, name, now);
        let trusted = (&self.verifier.anchors, now);
        self.record(verified, |error| {
            certificate::explain(error, end_entity, intermediates, trusted)
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let verified =
            verify_tls12_signature(message, certificate, signature, &self.verifier.algorithms);
        self.record(verified, |error| certificate::explain_handshake(error, certificate))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let verified =
            verify_tls13_signature(message, certificate, signature, &self.verifier.algorithms);
        self.record(verified, |error| certificate::explain_handshake(error, certificate))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.algorithms.supported_schemes()
    }
}

/// Takes certificates that a trusted one has signed, and those that are trusted themselves, as curl and openssl do. The
/// library alone takes no certificate of a CA from a server, also if it is the very one that is trusted; but this is
/// what `openssl req -x509` makes.
#[derive(Debug)]
pub(super) struct Verifier {
    anchors: Anchors,
    trusted: HashSet<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    pub(super) fn new(roots: Roots, provider: &CryptoProvider) -> Self {
        let Roots { anchors, certificates: trusted } = roots;
        Self { anchors, trusted, algorithms: provider.signature_verification_algorithms }
    }

    fn verify(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.verify_signed(end_entity, intermediates, name, now) {
            // Byte for byte: another one with the same name and key is not what the operator has seen.
            Err(_) if self.trusted.contains(end_entity) => verify_trusted(end_entity, name, now),
            verified => verified,
        }
    }

    /// Verifies a certificate that a trusted one has signed. The library does not look at its key usage.
    fn verify_signed(
        &self,
        der: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let parsed = ParsedCertificate::try_from(der)?;
        let roots = self.anchors.at(now);
        let algorithms = self.algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, &roots, intermediates, now, algorithms)?;
        let (_, certificate) =
            parse_x509_certificate(der).map_err(|_| CertificateError::BadEncoding)?;
        verify_purpose(&certificate)?;
        verify_server_name(&parsed, name)?;
        Ok(ServerCertVerified::assertion())
    }
}

/// Verifies a certificate that is trusted itself: all but who signed it. That the server has its key, the signature of
/// the handshake shows.
fn verify_trusted(
    der: &CertificateDer<'_>,
    name: &ServerName<'_>,
    now: UnixTime,
) -> Result<ServerCertVerified, Error> {
    let parsed = ParsedCertificate::try_from(der)?;
    let (_, certificate) =
        parse_x509_certificate(der).map_err(|_| CertificateError::BadEncoding)?;
    verify_validity(&certificate, now)?;
    verify_purpose(&certificate)?;
    verify_server_name(&parsed, name)?;
    Ok(ServerCertVerified::assertion())
}

fn verify_validity(
    certificate: &X509Certificate<'_>,
    now: UnixTime,
) -> Result<(), CertificateError> {
    let (now, validity) = (seconds(now), certificate.validity());
    if now > validity.not_after.timestamp() {
        return Err(CertificateError::Expired);
    }
    if now < validity.not_before.timestamp() {
        return Err(CertificateError::NotValidYet);
    }
    Ok(())
}

/// As openssl's purpose `sslserver`: each of the two extensions allows what servers do, or is not there.
fn verify_purpose(certificate: &X509Certificate<'_>) -> Result<(), CertificateError> {
    let extended = certificate.extended_key_usage().map_err(|_| CertificateError::BadEncoding)?;
    let usage = certificate.key_usage().map_err(|_| CertificateError::BadEncoding)?;
    let serves = extended.is_none_or(|extended| extended.value.server_auth);
    let signs = usage.is_none_or(|usage| {
        let usage = usage.value;
        usage.digital_signature() || usage.key_encipherment() || usage.key_agreement()
    });
    if serves && signs { Ok(()) } else { Err(CertificateError::InvalidPurpose) }
}

/// Accepts every certificate, also an expired or malformed one: the check asks only whether the backend serves, and
/// sends nothing secret. The signature of the handshake proves nothing then, so it is not verified, and may be of kinds
/// that nothing here could verify.
#[derive(Debug)]
pub(super) struct AcceptAnyCertificate(Vec<SignatureScheme>);

/// Kinds of signatures that cannot be verified here: of further keys, and with SHA-1 (RFC 8446, 4.2.3; RFC 8734, 2).
const NOT_VERIFIABLE: [SignatureScheme; 13] = [
    SignatureScheme::ECDSA_NISTP521_SHA512,
    SignatureScheme::ED448,
    SignatureScheme::ML_DSA_44,
    SignatureScheme::ML_DSA_65,
    SignatureScheme::ML_DSA_87,
    // rsa_pss_pss_sha256, sha384 and sha512, of keys that are for RSA-PSS alone.
    SignatureScheme::Unknown(0x0809),
    SignatureScheme::Unknown(0x080a),
    SignatureScheme::Unknown(0x080b),
    // Brainpool curves of 256, 384 and 512 bits.
    SignatureScheme::Unknown(0x081a),
    SignatureScheme::Unknown(0x081b),
    SignatureScheme::Unknown(0x081c),
    SignatureScheme::ECDSA_SHA1_Legacy,
    SignatureScheme::RSA_PKCS1_SHA1,
];

impl AcceptAnyCertificate {
    pub(super) fn new(provider: &CryptoProvider) -> Self {
        let mut schemes = provider.signature_verification_algorithms.supported_schemes();
        schemes.extend(NOT_VERIFIABLE);
        Self(schemes)
    }
}

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
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::KeyPair;
    use rustls::{
        ClientConfig, ClientConnection, ServerConfig, ServerConnection,
        pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
        server::ResolvesServerCert,
        sign::CertifiedKey,
    };

    use super::*;
    use crate::check::tls::provider;

    /// Shows one certificate, and has the key of another.
    #[derive(Debug)]
    struct Thief(Arc<CertifiedKey>);

    impl ResolvesServerCert for Thief {
        fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
            Some(Arc::clone(&self.0))
        }
    }

    /// What a client with this verifier ends with, and what it keeps of that.
    fn handshake(verifier: Verifier, server: Thief) -> (Error, Option<String>) {
        let provider = Arc::new(provider());
        let refusal = Refusal::default();
        let client = ClientConfig::builder_with_provider(Arc::clone(&provider));
        let client = client.with_safe_default_protocol_versions().unwrap().dangerous();
        let recorder = Recorder::new(Arc::new(verifier), &refusal);
        let client =
            client.with_custom_certificate_verifier(Arc::new(recorder)).with_no_client_auth();
        let server_config = ServerConfig::builder_with_provider(provider);
        let server_config = server_config.with_safe_default_protocol_versions().unwrap();
        let server_config =
            server_config.with_no_client_auth().with_cert_resolver(Arc::new(server));
        let name = ServerName::try_from("shop.example").unwrap();
        let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
        let mut server = ServerConnection::new(Arc::new(server_config)).unwrap();
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        server.read_tls(&mut &wire[..]).unwrap();
        server.process_new_packets().unwrap();
        wire.clear();
        while server.wants_write() {
            server.write_tls(&mut wire).unwrap();
        }
        client.read_tls(&mut &wire[..]).unwrap();
        (client.process_new_packets().unwrap_err(), refusal.take())
    }

    /// That a certificate is trusted itself does not help a server that has only copied it.
    #[test]
    fn the_server_must_have_the_key_of_a_certificate_that_is_trusted_itself() {
        let mut params = rcgen::CertificateParams::new(vec!["shop.example".to_owned()]).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ca.pem");
        std::fs::write(&file, certificate.pem()).unwrap();
        let roots = Roots::from_file(file.to_str().unwrap()).unwrap();
        let verifier = Verifier::new(roots, &provider());
        let key = PrivatePkcs8KeyDer::from(KeyPair::generate().unwrap().serialize_der());
        let key = provider().key_provider.load_private_key(PrivateKeyDer::Pkcs8(key)).unwrap();
        let thief = Thief(Arc::new(CertifiedKey::new(vec![certificate.der().clone()], key)));
        let (error, why) = handshake(verifier, thief);
        assert_eq!(error, Error::InvalidCertificate(CertificateError::BadSignature));
        let expected = "the signature of the handshake is wrong: the server does not have the certificate's key";
        assert_eq!(why.as_deref(), Some(expected));
    }
}
