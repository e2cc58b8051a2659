//! Why TLS failed, in words. The library's own texts have the names of its types in them, and those are for developers.

use std::{fmt::Debug, time::SystemTime};

use prost_types::Timestamp;
use rustls::{
    AlertDescription as Alert, CertRevocationListError, CertificateError, ContentType, Error,
    HandshakeType, InvalidMessage, OtherError, PeerIncompatible, PeerMisbehaved,
    pki_types::{ServerName, UnixTime},
};

use super::certificate::algorithm;

#[cfg(test)]
mod tests;

/// What servers have no common ground in. An alert does not say which.
const NOTHING_IN_COMMON: &str =
    "no cipher suite, key exchange group or signature algorithm in common";

/// Of whatever names, at most so many characters are shown: the server has chosen them.
const MOST_CHARACTERS: usize = 80;

/// Why TLS failed.
pub(crate) fn tls_text(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(why) => certificate_text(why),
        Error::AlertReceived(alert) => alert_text(*alert),
        Error::PeerIncompatible(why) => incompatible_text(why),
        Error::PeerMisbehaved(why) => misbehaved_text(why),
        Error::InvalidMessage(why) => message_text(why),
        Error::InappropriateMessage { expect_types, got_type } => {
            unexpected_text(&content(*got_type), expect_types.iter().map(|it| content(*it)))
        }
        Error::InappropriateHandshakeMessage { expect_types, got_type } => {
            unexpected_text(&handshake(*got_type), expect_types.iter().map(|it| handshake(*it)))
        }
        Error::InvalidCertRevocationList(why) => revocation_text(why),
        Error::InvalidEncryptedClientHello(why) => {
            format!("the encrypted client hello failed: {}", words(why))
        }
        Error::InconsistentKeys(why) => format!("key and certificate do not fit: {}", words(why)),
        Error::Other(why) => other_text(why),
        Error::General(why) => format!("TLS failed: {}", shown(why)),
        _ => plain_text(error),
    }
}

/// Errors that have nothing more to say.
fn plain_text(error: &Error) -> String {
    let text = match error {
        Error::NoCertificatesPresented => "the server shows no certificate",
        Error::UnsupportedNameType => "the expected name is neither a DNS name nor an address",
        Error::DecryptError => "a message of the server cannot be decrypted",
        Error::EncryptError => "a message to the server is too large",
        Error::FailedToGetCurrentTime => "the time of this host cannot be read",
        Error::FailedToGetRandomBytes => "this host has no random numbers",
        Error::HandshakeNotComplete => "the handshake is not complete",
        Error::PeerSentOversizedRecord => "the server sent a record over the limit of TLS",
        Error::NoApplicationProtocol => "no application protocol in common",
        Error::BadMaxFragmentSize => "the size of fragments is out of range",
        _ => return format!("TLS failed: {}", words(error)),
    };
    text.to_owned()
}

/// Why a certificate is not taken, as far as the error says.
pub(super) fn certificate_text(error: &CertificateError) -> String {
    use CertificateError as E;
    let text = match error {
        E::ExpiredContext { not_after, .. } => {
            return format!("the certificate expired at {}", date(*not_after));
        }
        E::NotValidYetContext { not_before, .. } => {
            return format!("the certificate is not valid before {}", date(*not_before));
        }
        E::ExpiredRevocationListContext { next_update, .. } => {
            return format!("the revocation list expired at {}", date(*next_update));
        }
        E::NotValidForNameContext { expected, .. } => {
            return format!("the certificate does not name {}", server_name(expected));
        }
        E::UnsupportedSignatureAlgorithmContext { signature_algorithm_id, .. } => {
            return format!("signatures by {} are not taken", algorithm(signature_algorithm_id));
        }
        E::UnsupportedSignatureAlgorithmForPublicKeyContext {
            signature_algorithm_id: signature,
            public_key_algorithm_id: key,
        } => {
            let (signature, key) = (algorithm(signature), algorithm(key));
            return format!("signatures by {signature} with a key of kind {key} are not taken");
        }
        E::Other(why) => return other_text(why),
        E::BadEncoding => "the certificate cannot be read",
        E::Expired => "the certificate has expired",
        E::NotValidYet => "the certificate is not valid yet",
        E::Revoked => "the certificate is revoked",
        E::UnhandledCriticalExtension => UNKNOWN_EXTENSION,
        E::UnknownIssuer => "the certificate is not signed by a trusted authority",
        E::UnknownRevocationStatus => "whether the certificate is revoked is not known",
        E::ExpiredRevocationList => "the revocation list has expired",
        E::BadSignature => BAD_SIGNATURE,
        #[expect(deprecated, reason = "older verifiers still give it")]
        E::UnsupportedSignatureAlgorithm => "signatures by this algorithm are not taken",
        E::NotValidForName => "the certificate is for another name",
        E::InvalidPurpose | E::InvalidPurposeContext { .. } => WRONG_PURPOSE,
        E::InvalidOcspResponse => "the certificate's OCSP response is invalid",
        E::ApplicationVerificationFailure => "the certificate is valid, but is not taken",
        _ => return format!("the certificate is not taken: {}", words(error)),
    };
    text.to_owned()
}

const UNKNOWN_EXTENSION: &str = "the certificate has a critical extension that is not known here";
const BAD_SIGNATURE: &str = "a signature of the certificate or of the handshake is wrong, or by an RSA key that is not \
                             of 2048 to 8192 bits";
const WRONG_PURPOSE: &str = "the certificate is not for servers: its key usage does not allow that";

/// Why the verification of certificates failed, where the error of TLS only wraps that.
fn other_text(OtherError(error): &OtherError) -> String {
    match error.downcast_ref::<webpki::Error>() {
        Some(error) => webpki_text(error),
        None => format!("TLS failed: {}", shown(&error.to_string())),
    }
}

fn webpki_text(error: &webpki::Error) -> String {
    use webpki::Error as E;
    let text = match error {
        E::CaUsedAsEndEntity => {
            "the certificate is that of a CA (CA:TRUE), which a server may only show if it is itself among the trusted \
             ones, byte for byte"
        }
        E::EndEntityUsedAsCa => {
            "a certificate in the chain has signed another, but is not that of a CA"
        }
        E::UnsupportedCertVersion => {
            "a certificate is of X.509 version 1 or 2, and version 3 is needed"
        }
        E::UnsupportedCriticalExtension => UNKNOWN_EXTENSION,
        E::NameConstraintViolation => {
            "the certificate has names that its CA may not sign (name constraints)"
        }
        E::PathLenConstraintViolated => "the chain is longer than its CA allows (path length)",
        E::MaximumPathDepthExceeded
        | E::MaximumPathBuildCallsExceeded
        | E::MaximumSignatureChecksExceeded
        | E::MaximumNameConstraintComparisonsExceeded => {
            "the chain is too long or has too many branches"
        }
        E::EmptyEkuExtension => "the certificate's extended key usage is empty",
        E::InvalidCertValidity => "the certificate expires before it becomes valid",
        E::InvalidSerialNumber => "the certificate's serial number is invalid",
        E::SignatureAlgorithmMismatch => "the certificate names two different signature algorithms",
        E::CertDistrusted => "the certificate's key is known to be unsafe",
        E::ExtensionValueInvalid | E::MalformedExtensions => {
            "an extension of the certificate cannot be read"
        }
        E::MalformedDnsIdentifier => "a DNS name in the certificate is malformed",
        E::MalformedNameConstraint | E::InvalidNetworkMaskConstraint => {
            "a name constraint in the chain is malformed"
        }
        E::BadDer | E::BadDerTime | E::TrailingData(_) => "the certificate cannot be read",
        _ => return format!("the certificate is not taken: {}", words(error)),
    };
    text.to_owned()
}

fn alert_text(alert: Alert) -> String {
    let why = match alert {
        Alert::HandshakeFailure => {
            return format!(
                "the server refuses the handshake (alert handshake_failure): {NOTHING_IN_COMMON}, or it wants a client \
                 certificate"
            );
        }
        Alert::InsufficientSecurity => NOTHING_IN_COMMON,
        Alert::ProtocolVersion => "it takes neither TLS 1.2 nor TLS 1.3",
        Alert::UnrecognisedName => "it does not know the server name of the check",
        Alert::CertificateRequired | Alert::NoCertificate => {
            "it wants a client certificate, and checks have none"
        }
        Alert::NoApplicationProtocol => "it takes none of the application protocols of the check",
        Alert::InternalError => "it has failed itself",
        Alert::Unknown(number) => {
            return format!("the server ends the connection (alert {number})");
        }
        _ => return format!("the server ends the connection (alert {})", alert_name(alert)),
    };
    format!("the server refuses the handshake (alert {}): {why}", alert_name(alert))
}

/// The name in RFC 8446, 6.
fn alert_name(alert: Alert) -> String {
    match alert {
        Alert::UnrecognisedName => "unrecognized_name".to_owned(),
        Alert::UnknownPSKIdentity => "unknown_psk_identity".to_owned(),
        alert => words(&alert).to_lowercase().replace(' ', "_"),
    }
}

fn incompatible_text(error: &PeerIncompatible) -> String {
    use PeerIncompatible as E;
    let text = match error {
        E::NoCipherSuitesInCommon => "no cipher suite in common with the server",
        E::NoKxGroupsInCommon => "no key exchange group in common with the server",
        E::NoSignatureSchemesInCommon | E::NoCertificateRequestSignatureSchemesInCommon => {
            "no signature algorithm in common with the server"
        }
        E::ServerDoesNotSupportTls12Or13 | E::ServerTlsVersionIsDisabledByOurConfig => {
            "the server speaks another version of TLS than 1.2 and 1.3"
        }
        E::ExtendedMasterSecretExtensionRequired => {
            "the server does not have the extension extended_master_secret"
        }
        E::ServerRejectedEncryptedClientHello(_) => "the server refuses the encrypted client hello",
        _ => return format!("the server lacks something that checks need: {}", words(error)),
    };
    text.to_owned()
}

fn misbehaved_text(error: &PeerMisbehaved) -> String {
    use PeerMisbehaved as E;
    let text = match error {
        // Without `verify` checks offer signatures of more keys than their suites of TLS 1.2 are for.
        E::SignedKxWithWrongAlgorithm => {
            return "the server's key is of a kind that checks do not take with TLS 1.2, such as Ed448 or RSA-PSS"
                .to_owned();
        }
        E::SelectedUnofferedCipherSuite | E::SelectedUnusableCipherSuiteForVersion => {
            "it chose a cipher suite that it may not choose"
        }
        E::SelectedUnofferedKxGroup => "it chose a key exchange group that was not offered",
        E::SelectedUnofferedApplicationProtocol => {
            "it chose an application protocol that was not offered"
        }
        E::SignedHandshakeWithUnadvertisedSigScheme => {
            "it signed by an algorithm that was not offered"
        }
        E::TooManyWarningAlertsReceived => "it sent too many warnings",
        _ => return format!("the server breaks the rules of TLS: {}", words(error)),
    };
    format!("the server breaks the rules of TLS: {text}")
}

fn message_text(error: &InvalidMessage) -> String {
    use InvalidMessage as E;
    let text = match error {
        E::InvalidContentType | E::UnknownProtocolVersion => {
            return "the answer is not TLS: does the port serve it without?".to_owned();
        }
        E::CertificatePayloadTooLarge => {
            return "the server's certificates are over 64 KiB".to_owned();
        }
        E::HandshakePayloadTooLarge | E::MessageTooLarge => "it is too large".to_owned(),
        E::MessageTooShort => "it is too short".to_owned(),
        E::MissingData(of) => format!("{} is missing or cut off", words_of(of)),
        E::TrailingData(of) => format!("it goes on after {}", words_of(of)),
        E::UnexpectedMessage(of) | E::IllegalEmptyList(of) => {
            format!("{} {}", words(error), words_of(of))
        }
        E::UnsupportedKeyExchangeAlgorithm(_) => "unsupported key exchange algorithm".to_owned(),
        E::DuplicateExtension(number) => format!("extension {number} occurs twice"),
        _ => words(error),
    };
    format!("a message of the server cannot be read: {text}")
}

fn unexpected_text(got: &str, expected: impl Iterator<Item = String>) -> String {
    let expected: Vec<_> = expected.collect();
    let got = format!("the server sent {got} out of turn");
    if expected.is_empty() { got } else { format!("{got}: expected {}", expected.join(" or ")) }
}

fn content(kind: ContentType) -> String {
    match kind {
        ContentType::Unknown(number) => format!("a record of kind {number}"),
        kind => words(&kind),
    }
}

fn handshake(kind: HandshakeType) -> String {
    match kind {
        HandshakeType::Unknown(number) => format!("a handshake message of kind {number}"),
        kind => words(&kind),
    }
}

fn revocation_text(error: &CertRevocationListError) -> String {
    use CertRevocationListError as E;
    match error {
        E::Other(why) => format!("a revocation list cannot be used: {}", other_text(why)),
        _ => format!("a revocation list cannot be used: {}", words(error)),
    }
}

/// A DNS name or an address.
pub(super) fn server_name(name: &ServerName<'_>) -> String {
    shown(&name.to_str())
}

/// As certificates of the daemon's own are dated: `2020-01-01T00:00:00Z`.
pub(super) fn date(time: UnixTime) -> String {
    let since = std::time::Duration::from_secs(time.as_secs());
    let time = SystemTime::UNIX_EPOCH.checked_add(since);
    time.map_or_else(|| "an unknown time".to_owned(), |time| Timestamp::from(time).to_string())
}

/// A text that the server has chosen: on one line, with nothing hidden, and not longer than is worth reading.
pub(super) fn shown(text: &str) -> String {
    let plain = |c: char| if c.is_control() || is_hidden(c) { '?' } else { c };
    let mut shown: String = text.chars().take(MOST_CHARACTERS).map(plain).collect();
    if text.chars().nth(MOST_CHARACTERS).is_some() {
        shown.push('…');
    }
    shown
}

/// Whether a character separates lines or is of format: it turns the direction of text, or has no width (Unicode 17,
/// categories Zl, Zp and Cf).
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}'
        | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}')
}

/// `too many empty fragments` of `TooManyEmptyFragments`: what is said of errors that have no text here, such as those
/// of later versions of the library. What a name has in it is left out.
pub(super) fn words(name: &impl Debug) -> String {
    words_of(&format!("{name:?}"))
}

fn words_of(name: &str) -> String {
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    let mut words = String::new();
    let mut before = '_';
    for c in name[..end].chars() {
        let begins = c.is_uppercase() && (before.is_lowercase() || before.is_numeric());
        if begins && !words.is_empty() {
            words.push(' ');
        }
        words.push(if c == '_' { ' ' } else { c.to_ascii_lowercase() });
        before = c;
    }
    words.replace("tls12", "TLS 1.2").replace("tls13", "TLS 1.3")
}
