//! No reason is the library's debug text: each error that the libraries have is put into words.

use std::{io, sync::Arc, time::Duration};

use rustls::{
    EncryptedClientHelloError, ExtendedKeyPurpose, InconsistentKeys,
    pki_types::{DnsName, UnixTime},
};

use super::*;

/// Values of the variants of an enum that have nothing in them.
macro_rules! all {
    ($type:ident: $($variant:ident),* $(,)?) => { vec![$($type::$variant),*] };
}

/// Words with capitals in their midst that are names, and not of the library's types: those of RFC 5280, and of
/// signature algorithms.
const NAMES: [&str; 5] =
    ["serverAuth", "digitalSignature", "keyEncipherment", "keyAgreement", "ecPublicKey"];

/// What is wrong with a text as a sentence for operators, if anything.
fn flaw(text: &str) -> Option<&'static str> {
    let pairs: Vec<_> = text.chars().zip(text.chars().skip(1)).collect();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !NAMES.contains(word));
    let has_humps = |word: &str| {
        let pairs = word.chars().zip(word.chars().skip(1));
        pairs.into_iter().any(|(a, b)| a.is_lowercase() && b.is_uppercase() && word != "KiB")
    };
    match () {
        () if text.contains(['{', '}', '[', ']', '"', '\\']) => Some("punctuation of debug text"),
        () if text.contains("::") => Some("a path"),
        () if pairs.iter().any(|(a, b)| a.is_alphanumeric() && *b == '(') => Some("a tuple"),
        () if words.into_iter().any(has_humps) => Some("a name of a type"),
        () if text.split(' ').count() < 3 => Some("no sentence"),
        () if text.ends_with(['.', ' ', ':']) || text.contains("  ") => Some("a loose end"),
        () => None,
    }
}

fn other(error: impl std::error::Error + Send + Sync + 'static) -> OtherError {
    OtherError(Arc::new(error))
}

fn time() -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(1_577_836_800))
}

/// DER of the inside of an `AlgorithmIdentifier`: ecdsa-with-SHA512, as `openssl asn1parse` shows it in certificates.
const ECDSA_SHA512: [u8; 10] = [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x04];

/// The same of a key on the curve secp521r1.
const KEY_P521: [u8; 16] = [
    0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x23,
];

fn name() -> ServerName<'static> {
    ServerName::DnsName(DnsName::try_from("shop.example").unwrap())
}

fn messages() -> Vec<InvalidMessage> {
    use InvalidMessage as E;
    let mut all = all!(InvalidMessage: CertificatePayloadTooLarge, HandshakePayloadTooLarge, InvalidCcs, InvalidContentType, InvalidCertificateStatusType, InvalidCertRequest, InvalidDhParams, InvalidEmptyPayload, InvalidKeyUpdate, InvalidServerName, MessageTooLarge, MessageTooShort, MissingKeyExchange, NoSignatureSchemes, UnknownProtocolVersion, UnsupportedCompression, UnsupportedCurveType, EmptyTicketValue, IllegalEmptyValue, PreSharedKeyIsNotFinalExtension, UnknownHelloRetryRequestExtension, UnknownCertificateExtension);
    all.extend([
        E::MissingData("ServerHello"),
        E::TrailingData("Option<Vec<u8>>"),
        E::UnexpectedMessage("certificate verify"),
        E::IllegalEmptyList("SignatureSchemes"),
        E::DuplicateExtension(5),
    ]);
    all
}

fn misbehaviours() -> Vec<PeerMisbehaved> {
    all!(PeerMisbehaved: AttemptedDowngradeToTls12WhenTls13IsSupported, BadCertChainExtensions, CipherSuiteDifferedOnRetry, DisallowedEncryptedExtension, DuplicateClientHelloExtensions, DuplicateEncryptedExtensions, DuplicateHelloRetryRequestExtensions, DuplicateNewSessionTicketExtensions, DuplicateServerHelloExtensions, DuplicateServerNameTypes, EarlyDataAttemptedInSecondClientHello, EarlyDataExtensionWithoutResumption, EarlyDataOfferedWithVariedCipherSuite, EchAcceptanceVariedAfterRetry, HandshakeHashVariedAfterRetry, IllegalHelloRetryRequestWithEmptyCookie, IllegalHelloRetryRequestWithNoChanges, IllegalHelloRetryRequestWithOfferedGroup, IllegalHelloRetryRequestWithUnofferedCipherSuite, IllegalHelloRetryRequestWithUnofferedNamedGroup, IllegalHelloRetryRequestWithUnsupportedVersion, IllegalHelloRetryRequestWithWrongSessionId, IllegalHelloRetryRequestWithInvalidEch, IllegalMiddleboxChangeCipherSpec, IllegalTlsInnerPlaintext, IncorrectBinder, InvalidCertCompression, InvalidMaxEarlyDataSize, InvalidKeyShare, KeyEpochWithPendingFragment, KeyUpdateReceivedInQuicConnection, MessageInterleavedWithHandshakeMessage, MissingBinderInPskExtension, MissingKeyShare, MissingPskExtensionInSecondClientHello, MissingPskModesExtension, MissingQuicTransportParameters, OfferedDuplicateCertificateCompressions, OfferedDuplicateKeyShares, OfferedEarlyDataWithOldProtocolVersion, OfferedEmptyApplicationProtocol, OfferedIncorrectCompressions, PskExtensionMustBeLast, PskExtensionWithMismatchedIdsAndBinders, RefusedToFollowHelloRetryRequest, RejectedEarlyDataInterleavedWithHandshakeMessage, ResumptionAttemptedWithVariedEms, ResumptionOfferedWithVariedCipherSuite, ResumptionOfferedWithVariedEms, ResumptionOfferedWithIncompatibleCipherSuite, SelectedDifferentCipherSuiteAfterRetry, SelectedInvalidPsk, SelectedTls12UsingTls13VersionExtension, SelectedUnofferedApplicationProtocol, SelectedUnofferedCertCompression, SelectedUnofferedCipherSuite, SelectedUnofferedCompression, SelectedUnofferedKxGroup, SelectedUnofferedPsk, SelectedUnusableCipherSuiteForVersion, ServerEchoedCompatibilitySessionId, ServerHelloMustOfferUncompressedEcPoints, ServerNameDifferedOnRetry, ServerNameMustContainOneHostName, SignedKxWithWrongAlgorithm, SignedHandshakeWithUnadvertisedSigScheme, TooManyEmptyFragments, TooManyKeyUpdateRequests, TooManyRenegotiationRequests, TooManyWarningAlertsReceived, TooMuchEarlyDataReceived, UnexpectedCleartextExtension, UnsolicitedCertExtension, UnsolicitedEncryptedExtension, UnsolicitedSctList, UnsolicitedServerHelloExtension, WrongGroupForKeyShare, UnsolicitedEchExtension)
}

fn incompatibilities() -> Vec<PeerIncompatible> {
    let mut all = all!(PeerIncompatible: EcPointsExtensionRequired, ExtendedMasterSecretExtensionRequired, IncorrectCertificateTypeExtension, KeyShareExtensionRequired, NamedGroupsExtensionRequired, NoCertificateRequestSignatureSchemesInCommon, NoCipherSuitesInCommon, NoEcPointFormatsInCommon, NoKxGroupsInCommon, NoSignatureSchemesInCommon, NullCompressionRequired, ServerDoesNotSupportTls12Or13, ServerSentHelloRetryRequestWithUnknownExtension, ServerTlsVersionIsDisabledByOurConfig, SignatureAlgorithmsExtensionRequired, SupportedVersionsExtensionRequired, Tls12NotOffered, Tls12NotOfferedOrEnabled, Tls13RequiredForQuic, UncompressedEcPointsRequired, UnsolicitedCertificateTypeExtension);
    all.push(PeerIncompatible::ServerRejectedEncryptedClientHello(None));
    all
}

fn certificates() -> Vec<CertificateError> {
    use CertificateError as E;
    let mut all = all!(E: BadEncoding, Expired, NotValidYet, Revoked, UnhandledCriticalExtension, UnknownIssuer, UnknownRevocationStatus, ExpiredRevocationList, BadSignature, NotValidForName, InvalidPurpose, InvalidOcspResponse, ApplicationVerificationFailure);
    #[expect(deprecated, reason = "older verifiers still give it")]
    all.push(E::UnsupportedSignatureAlgorithm);
    all.extend([
        E::ExpiredContext { time: time(), not_after: time() },
        E::NotValidYetContext { time: time(), not_before: time() },
        E::ExpiredRevocationListContext { time: time(), next_update: time() },
        E::UnsupportedSignatureAlgorithmContext {
            signature_algorithm_id: ECDSA_SHA512.to_vec(),
            supported_algorithms: Vec::new(),
        },
        E::UnsupportedSignatureAlgorithmForPublicKeyContext {
            signature_algorithm_id: ECDSA_SHA512.to_vec(),
            public_key_algorithm_id: KEY_P521.to_vec(),
        },
        E::NotValidForNameContext { expected: name(), presented: vec!["DnsName(b)".to_owned()] },
        E::InvalidPurposeContext {
            required: ExtendedKeyPurpose::ServerAuth,
            presented: vec![ExtendedKeyPurpose::ClientAuth],
        },
        E::Other(other(io::Error::other("an error of another library"))),
    ]);
    all.extend(verifications().into_iter().map(|error| E::Other(other(error))));
    all
}

/// Those of webpki.
fn verifications() -> Vec<webpki::Error> {
    use webpki::Error as E;
    let mut all = all!(E: BadDer, BadDerTime, CaUsedAsEndEntity, CertDistrusted, CertRevoked, EmptyEkuExtension, EndEntityUsedAsCa, ExtensionValueInvalid, InvalidCertValidity, InvalidCrlNumber, InvalidNetworkMaskConstraint, InvalidSerialNumber, InvalidCrlSignatureForPublicKey, InvalidSignatureForPublicKey, IssuerNotCrlSigner, MalformedDnsIdentifier, MalformedExtensions, MalformedNameConstraint, MaximumNameConstraintComparisonsExceeded, MaximumPathBuildCallsExceeded, MaximumPathDepthExceeded, MaximumSignatureChecksExceeded, NameConstraintViolation, PathLenConstraintViolated, SignatureAlgorithmMismatch, UnknownIssuer, UnknownRevocationStatus, UnsupportedCertVersion, UnsupportedCriticalExtension, UnsupportedCrlIssuingDistributionPoint, UnsupportedCrlVersion, UnsupportedDeltaCrl, UnsupportedIndirectCrl, UnsupportedNameType, UnsupportedRevocationReason, UnsupportedRevocationReasonsPartitioning);
    all.extend([
        E::CertExpired { time: time(), not_after: time() },
        E::CertNotValidYet { time: time(), not_before: time() },
        E::CrlExpired { time: time(), next_update: time() },
        E::TrailingData(webpki::DerTypeId::SignedData),
    ]);
    all
}

fn revocations() -> Vec<CertRevocationListError> {
    use CertRevocationListError as E;
    let mut all = all!(E: BadSignature, InvalidCrlNumber, InvalidRevokedCertSerialNumber, IssuerInvalidForCrl, ParseError, UnsupportedCrlVersion, UnsupportedCriticalExtension, UnsupportedDeltaCrl, UnsupportedIndirectCrl, UnsupportedRevocationReason);
    all.extend([
        E::UnsupportedSignatureAlgorithmContext {
            signature_algorithm_id: ECDSA_SHA512.to_vec(),
            supported_algorithms: Vec::new(),
        },
        E::UnsupportedSignatureAlgorithmForPublicKeyContext {
            signature_algorithm_id: ECDSA_SHA512.to_vec(),
            public_key_algorithm_id: KEY_P521.to_vec(),
        },
        E::Other(other(webpki::Error::BadDer)),
    ]);
    all
}

/// Each error of the library, with each that it can have in it.
fn errors() -> Vec<Error> {
    let mut all = all!(Error: NoCertificatesPresented, UnsupportedNameType, DecryptError, EncryptError, FailedToGetCurrentTime, FailedToGetRandomBytes, HandshakeNotComplete, PeerSentOversizedRecord, NoApplicationProtocol, BadMaxFragmentSize);
    all.extend([
        Error::General("something that the library says".to_owned()),
        Error::Other(other(io::Error::other("an error of another library"))),
        Error::Other(other(webpki::Error::BadDer)),
    ]);
    all.extend(messages().into_iter().map(Error::from));
    all.extend(misbehaviours().into_iter().map(Error::from));
    all.extend(incompatibilities().into_iter().map(Error::from));
    all.extend(certificates().into_iter().map(Error::from));
    all.extend(revocations().into_iter().map(Error::from));
    all.extend(
        all!(EncryptedClientHelloError: InvalidConfigList, NoCompatibleConfig, SniRequired)
            .into_iter()
            .map(Error::from),
    );
    all.extend(all!(InconsistentKeys: KeyMismatch, Unknown).into_iter().map(Error::from));
    // Also those that no standard names.
    all.extend((0..=u8::MAX).map(|number| Error::AlertReceived(number.into())));
    all.extend((0..=u8::MAX).map(|number| Error::InappropriateMessage {
        expect_types: vec![ContentType::Handshake, number.into()],
        got_type: number.into(),
    }));
    all.extend((0..=u8::MAX).map(|number| Error::InappropriateHandshakeMessage {
        expect_types: vec![HandshakeType::ServerHello, number.into()],
        got_type: number.into(),
    }));
    all
}

#[test]
fn each_error_of_the_libraries_is_a_sentence() {
    let errors = errors();
    assert!(errors.len() > 900, "{}", errors.len());
    for error in errors {
        let text = tls_text(&error);
        assert_eq!(flaw(&text), None, "{error:?}: {text}");
    }
}

/// The library's own texts would not pass, so the rule above is one.
#[test]
fn debug_text_is_found() {
    let debugs = errors().into_iter().filter(|error| flaw(&error.to_string()).is_some()).count();
    assert!(debugs > 150, "{debugs}");
    assert_eq!(
        flaw("invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))"),
        Some("a tuple")
    );
    assert_eq!(flaw("received fatal alert: HandshakeFailure"), Some("a name of a type"));
}

#[test]
fn algorithms_and_dates_have_their_names() {
    let for_key = CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext {
        signature_algorithm_id: ECDSA_SHA512.to_vec(),
        public_key_algorithm_id: KEY_P521.to_vec(),
    };
    assert_eq!(
        certificate_text(&for_key),
        "signatures by ecdsa-with-SHA512 with a key of kind id-ecPublicKey secp521r1 are not taken"
    );
    // `openssl x509` names this number of dilithium of another draft not at all either.
    assert_eq!(algorithm(&[0x06, 0x03, 0x2b, 0x65, 0x7f]), "1.3.101.127");
    assert_eq!(algorithm(b"nonsense"), "an unknown kind");
    // As `openssl asn1parse` shows their numbers in certificates.
    for (oid, name) in [
        (&[0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01][..], "ecdsa-with-SHA1"),
        (&[0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x03, 0x01], "dsa-with-SHA224"),
        (&[0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x03, 0x02], "dsa-with-SHA256"),
        (&[0x06, 0x03, 0x2b, 0x65, 0x71], "ed448"),
        (&[0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x03, 0x12], "ML-DSA-65"),
    ] {
        assert_eq!(algorithm(oid), name);
    }
    // 1577836800, by `date --date=2020-01-01T00:00Z +%s`.
    assert_eq!(date(time()), "2020-01-01T00:00:00Z");
    assert_eq!(date(UnixTime::since_unix_epoch(Duration::from_secs(u64::MAX))), "an unknown time");
}

#[test]
fn what_a_server_has_chosen_stays_on_a_line() {
    assert_eq!(shown("a\nb\u{1b}[31m"), "a?b?[31m");
    assert_eq!(shown(&"é".repeat(81)), "é".repeat(80) + "…");
    // Line and paragraph separators, what turns the direction of text, and what has no width.
    for hidden in "\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}\u{200b}\u{200d}\u{200e}\u{feff}\u{ad}\u{61c}\u{e0041}"
        .chars()
    {
        assert_eq!(shown(&format!("a{hidden}b")), "a?b", "{hidden:?}");
    }
    assert_eq!(shown("Größe 大小 a\u{301}"), "Größe 大小 a\u{301}");
}

#[test]
fn alerts_have_their_names_of_rfc_8446() {
    for (alert, name) in [
        (Alert::UnknownPSKIdentity, "unknown_psk_identity"),
        (Alert::UnrecognisedName, "unrecognized_name"),
        (Alert::UnknownCA, "unknown_ca"),
        (Alert::BadCertificateStatusResponse, "bad_certificate_status_response"),
        (Alert::UnsupportedExtension, "unsupported_extension"),
    ] {
        assert_eq!(alert_name(alert), name);
    }
}

#[test]
fn names_of_errors_are_taken_apart() {
    let words = |name| words_of(name);
    assert_eq!(
        words("AttemptedDowngradeToTls12WhenTls13IsSupported"),
        "attempted downgrade to TLS 1.2 when TLS 1.3 is supported"
    );
    assert_eq!(words("Foo(Bar)"), "foo");
    assert_eq!(words("CertificateURL"), "certificate url");
}
