//! What is wrong with a certificate, by what is in it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rustls::{
    CertificateError, Error,
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use x509_parser::{
    asn1_rs::{Any, FromDer, Oid, Tag},
    certificate::X509Certificate,
    extensions::GeneralName,
    objects::{oid_registry, oid2sn},
    parse_x509_certificate,
    public_key::PublicKey,
    x509::{X509Name, X509Version},
};

use super::{
    anchors::{Anchors, is_ca, seconds},
    reason::{date, server_name, shown, tls_text},
};

/// Most names of a certificate that are shown.
const MOST_NAMES: usize = 5;

/// Most certificates of a chain that are looked at.
const MOST_CERTIFICATES: usize = 10;

/// Lengths of RSA keys whose signatures can be verified, bits.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

const BROKEN_CHAIN: &str = "a signature in the chain is wrong: a trusted CA of the same name has another key, or a \
                            certificate is broken";

/// Why a verifier does not take the signature of a handshake.
pub(super) fn explain_handshake(error: &Error, end_entity: &CertificateDer<'_>) -> String {
    let is_wrong = *error == Error::InvalidCertificate(CertificateError::BadSignature);
    match parse_x509_certificate(end_entity) {
        Ok((_, certificate)) if is_wrong => explain_key([&certificate]).unwrap_or_else(|| {
            "the signature of the handshake is wrong: the server does not have the certificate's key"
                .to_owned()
        }),
        _ => tls_text(error),
    }
}

/// Why a verifier that trusts these does not take a server's certificate at this time. The error alone does not say what
/// the certificate is.
pub(super) fn explain(
    error: &Error,
    end_entity: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    (anchors, now): (&Anchors, UnixTime),
) -> String {
    let ders = intermediates.iter().take(MOST_CERTIFICATES);
    let above = ders.filter_map(|der| Some(parse_x509_certificate(der).ok()?.1));
    let known = match (error, parse_x509_certificate(end_entity)) {
        (Error::InvalidCertificate(why), Ok((_, first))) => {
            let chain: Vec<_> = std::iter::once(first).chain(above).collect();
            explain_certificate(why, &chain, (anchors, now))
        }
        _ => None,
    };
    known.unwrap_or_else(|| tls_text(error))
}

/// `chain` begins with the server's own certificate.
fn explain_certificate(
    error: &CertificateError,
    chain: &[X509Certificate<'_>],
    (anchors, now): (&Anchors, UnixTime),
) -> Option<String> {
    use CertificateError as E;
    let first = chain.first()?;
    match error {
        E::Expired => Some(format!("the certificate expired at {}", end(first))),
        E::NotValidYet => Some(format!("the certificate is not valid before {}", begin(first))),
        E::ExpiredContext { not_after, .. } => {
            let ends = date(*not_after);
            Some(format!("{} expired at {ends}", which(chain, |it| end(it) == ends)))
        }
        E::NotValidYetContext { not_before, .. } => {
            let begins = date(*not_before);
            let which = which(chain, |it| begin(it) == begins);
            Some(format!("{which} is not valid before {begins}"))
        }
        E::NotValidForNameContext { expected, .. } => Some(explain_name(first, expected)),
        E::UnknownIssuer => Some(explain_issuer(first, chain, (anchors, now))),
        E::InvalidPurpose | E::InvalidPurposeContext { .. } => Some(explain_purpose(chain)),
        E::BadSignature => {
            let trusted: Vec<_> = chain.iter().flat_map(|it| anchors.named(it.issuer())).collect();
            let key = explain_key(chain.iter().chain(&trusted));
            Some(key.unwrap_or_else(|| BROKEN_CHAIN.to_owned()))
        }
        E::BadEncoding => explain_time(chain),
        E::Other(why) => match why.0.downcast_ref()? {
            webpki::Error::CaUsedAsEndEntity => explain_self_signed(first),
            webpki::Error::UnsupportedCertVersion => explain_version(chain),
            _ => None,
        },
        _ => None,
    }
}

fn begin(certificate: &X509Certificate<'_>) -> String {
    date_of(certificate.validity().not_before.timestamp())
}

fn end(certificate: &X509Certificate<'_>) -> String {
    date_of(certificate.validity().not_after.timestamp())
}

fn date_of(seconds: i64) -> String {
    let seconds = u64::try_from(seconds).unwrap_or(0);
    date(UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds)))
}

/// The certificate that an error is about: the server's own, unless only one above it is meant.
fn which(chain: &[X509Certificate<'_>], is_meant: impl Fn(&X509Certificate<'_>) -> bool) -> String {
    match chain.iter().position(is_meant) {
        None | Some(0) => "the certificate".to_owned(),
        Some(above) => {
            format!("the certificate of {}, in the chain,", distinguished(chain[above].subject()))
        }
    }
}

/// A name that a certificate has of somebody.
fn distinguished(name: &X509Name<'_>) -> String {
    match name.to_string_with_registry(oid_registry()) {
        Ok(text) if text.is_empty() => "one without a name".to_owned(),
        Ok(text) => shown(&text),
        Err(_) => "one whose name cannot be read".to_owned(),
    }
}

fn explain_name(certificate: &X509Certificate<'_>, expected: &ServerName<'_>) -> String {
    let expected_address = match expected {
        ServerName::IpAddress(address) => Some(IpAddr::from(*address)),
        _ => None,
    };
    let expected = server_name(expected);
    if expected_address.is_some_and(|address| names_as_text(certificate, address)) {
        return format!(
            "the certificate has {expected} as a DNS name: an address counts only as an IP address entry of the subject \
             alternative name"
        );
    }
    let names = names(certificate);
    if names.is_empty() {
        return format!(
            "the certificate has no name for {expected}: it needs a subject alternative name (a common name does not \
             count)"
        );
    }
    let more = match names.len().saturating_sub(MOST_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let shown = names.iter().take(MOST_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    format!("the certificate is for another name: it names {shown}{more}, not {expected}")
}

/// The names and addresses that a certificate is for.
fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(names)) = certificate.subject_alternative_name() else { return Vec::new() };
    let text = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some(shown(name)),
        GeneralName::IPAddress(bytes) => address(bytes).map(|address| address.to_string()),
        _ => None,
    };
    names.value.general_names.iter().filter_map(text).collect()
}

/// Whether an address stands among the DNS names, where it does not count.
fn names_as_text(certificate: &X509Certificate<'_>, address: IpAddr) -> bool {
    let Ok(Some(names)) = certificate.subject_alternative_name() else { return false };
    let mut names = names.value.general_names.iter();
    names.any(|name| matches!(name, GeneralName::DNSName(name) if name.parse() == Ok(address)))
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(|bytes| Ipv4Addr::from(bytes).into()),
        _ => <[u8; 16]>::try_from(bytes).ok().map(|bytes| Ipv6Addr::from(bytes).into()),
    }
}

/// One that is trusted itself would have been taken.
fn explain_self_signed(certificate: &X509Certificate<'_>) -> Option<String> {
    let is_own = certificate.issuer() == certificate.subject();
    is_own.then(|| {
        "the certificate is self-signed, and not itself a trusted one, byte for byte".to_owned()
    })
}

/// Names the issuer that was looked for among the trusted ones: the last of the chain, as far as the server shows it.
fn explain_issuer(
    first: &X509Certificate<'_>,
    chain: &[X509Certificate<'_>],
    (anchors, now): (&Anchors, UnixTime),
) -> String {
    if let Some(why) = explain_self_signed(first) {
        return why;
    }
    let mut last = first;
    // Not more steps than certificates: issuers may form a circle.
    for _ in chain {
        let above = chain.iter().find(|it| it.subject() == last.issuer());
        match above.filter(|above| above.issuer() != above.subject()) {
            Some(above) => last = above,
            None => break,
        }
    }
    let issuer = distinguished(last.issuer());
    let trusted = anchors.named(last.issuer());
    if let Some(why) = trusted.iter().find_map(|it| explain_anchor(it, now)) {
        return format!("the chain ends at {issuer}, whose trusted certificate {why}");
    }
    format!("the certificate is not signed by a trusted authority: none has signed for {issuer}")
}

/// Why a trusted certificate may not sign others at this time.
fn explain_anchor(certificate: &X509Certificate<'_>, now: UnixTime) -> Option<String> {
    let (now, validity) = (seconds(now), certificate.validity());
    match () {
        () if !is_ca(certificate) => Some("is not that of a CA".to_owned()),
        () if now > validity.not_after.timestamp() => {
            Some(format!("expired at {}", end(certificate)))
        }
        () if now < validity.not_before.timestamp() => {
            Some(format!("is not valid before {}", begin(certificate)))
        }
        () => None,
    }
}

/// The library reads no times before 1970.
fn explain_time(chain: &[X509Certificate<'_>]) -> Option<String> {
    let is_old = |it: &X509Certificate<'_>| it.validity().not_before.timestamp() < 0;
    chain.iter().any(is_old).then(|| {
        let which = which(chain, is_old);
        format!("{which} is valid from a time before 1970, and such times are not read")
    })
}

fn explain_purpose(chain: &[X509Certificate<'_>]) -> String {
    let is_for_others = |it: &X509Certificate<'_>| {
        let extended = it.extended_key_usage().ok().flatten();
        extended.is_some_and(|extended| !extended.value.server_auth)
    };
    if !chain.iter().any(is_for_others) {
        return "the certificate is not for servers: its key usage has neither digitalSignature nor keyEncipherment nor \
                keyAgreement"
            .to_owned();
    }
    let which = which(chain, is_for_others);
    format!("{which} is not for servers: its extended key usage has no serverAuth")
}

/// A signature by a key of a length that is not taken counts as wrong.
fn explain_key<'a>(chain: impl IntoIterator<Item = &'a X509Certificate<'a>>) -> Option<String> {
    let bits = |certificate: &X509Certificate<'_>| match certificate.public_key().parsed() {
        Ok(PublicKey::RSA(key)) => Some(key.key_size()),
        _ => None,
    };
    let bits = chain.into_iter().filter_map(bits).find(|bits| !RSA_BITS.contains(bits))?;
    let (least, most) = (RSA_BITS.start(), RSA_BITS.end());
    Some(format!(
        "an RSA key has {bits} bits, and only signatures of keys of {least} to {most} bits are taken"
    ))
}

fn explain_version(chain: &[X509Certificate<'_>]) -> Option<String> {
    let is_old = |it: &X509Certificate<'_>| it.version() != X509Version::V3;
    let number = chain.iter().find(|it| is_old(it))?.version().0.saturating_add(1);
    let which = which(chain, is_old);
    Some(format!("{which} is of X.509 version {number}, and version 3 is needed"))
}

/// The name of an algorithm, of the inside of an `AlgorithmIdentifier` (RFC 5280, 4.1.1.2), with its curve if it has one.
pub(super) fn algorithm(identifier: &[u8]) -> String {
    let Some((name, rest)) = first_oid(identifier) else { return "an unknown kind".to_owned() };
    match first_oid(rest) {
        Some((curve, _)) => format!("{name} {curve}"),
        None => name,
    }
}

/// The name of an object identifier, and what follows it.
fn first_oid(der: &[u8]) -> Option<(String, &[u8])> {
    let (rest, value) = Any::from_der(der).ok()?;
    let oid = (value.tag() == Tag::Oid).then(|| value.oid().ok()).flatten()?;
    Some((oid_name(&oid), rest))
}

fn oid_name(oid: &Oid<'_>) -> String {
    if let Ok(name) = oid2sn(oid, oid_registry()) {
        return name.to_owned();
    }
    let id = oid.to_id_string();
    MORE_NAMES.iter().find(|(of, _)| *of == id).map_or(id, |(_, name)| (*name).to_owned())
}

/// Names of signature algorithms that the registry lacks: RFC 3279, 2.2.3; NIST's Computer Security Objects Register;
/// RFC 9881, 2.
const MORE_NAMES: [(&str, &str); 8] = [
    ("1.2.840.10045.4.1", "ecdsa-with-SHA1"),
    ("2.16.840.1.101.3.4.3.1", "dsa-with-SHA224"),
    ("2.16.840.1.101.3.4.3.2", "dsa-with-SHA256"),
    ("2.16.840.1.101.3.4.3.3", "dsa-with-SHA384"),
    ("2.16.840.1.101.3.4.3.4", "dsa-with-SHA512"),
    ("2.16.840.1.101.3.4.3.17", "ML-DSA-44"),
    ("2.16.840.1.101.3.4.3.18", "ML-DSA-65"),
    ("2.16.840.1.101.3.4.3.19", "ML-DSA-87"),
];
