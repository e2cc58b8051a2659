//! Which certificates checks take, and why not: what openssl says of the same ones is the measure.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose,
    GeneralSubtree, IsCa, KeyPair, KeyUsagePurpose, NameConstraints, SanType, date_time_ymd,
};
use rustls::pki_types::CertificateDer;

use super::{
    authority::{Authority, acceptor, https},
    https::{OK, by, fails, over_tls, passes, verdict},
    openssl::Openssl,
    *,
};

const SHOP: &str = "shop.example";

fn shop() -> CertificateParams {
    named(&[SHOP])
}

fn named(names: &[&str]) -> CertificateParams {
    let names: Vec<_> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = date_time_ymd(4000, 1, 1);
    params
}

fn ca(mut params: CertificateParams) -> CertificateParams {
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

/// What a check of a server with this chain says.
async fn check(
    chain: Vec<CertificateDer<'static>>,
    key: &KeyPair,
    trusted: &std::path::Path,
) -> (Health, String) {
    let (server, _seen) = https(acceptor(chain, key, &[]), OK).await;
    verdict(server, &over_tls(server, Some(SHOP), by(trusted))).await
}

/// Whether openssl takes a certificate as that of a server, as curl asks it (`CURLOPT_SSL_OPTIONS`: partial chains).
fn openssl_takes(openssl: &Openssl, trusted: &str, name: &str) -> bool {
    let verify = "verify -purpose sslserver -partial_chain -no-CApath -no-CAstore -verify_hostname";
    openssl.ask(&format!("{verify} {name} -CAfile {trusted} server.pem")).0
}

/// Each is trusted itself; openssl decides which are taken.
#[tokio::test]
async fn a_certificate_that_is_trusted_itself_is_taken_as_openssl_takes_it() {
    let openssl = Openssl::new();
    let with = |change: &dyn Fn(&mut CertificateParams)| {
        let mut params = ca(shop());
        change(&mut params);
        params
    };
    let named_else =
        "TLS: the certificate is for another name: it names other.example, not shop.example";
    let purpose = "TLS: the certificate is not for servers: its";
    for (what, params, expected) in [
        ("of a CA", ca(shop()), ""),
        ("of no CA", shop(), ""),
        ("explicitly of no CA", with(&|it| it.is_ca = IsCa::ExplicitNoCa), ""),
        (
            "of a CA with a path",
            with(&|it| it.is_ca = IsCa::Ca(BasicConstraints::Constrained(0))),
            "",
        ),
        ("of another name", ca(named(&["other.example"])), named_else),
        (
            "expired",
            with(&|it| it.not_after = date_time_ymd(2020, 1, 1)),
            "TLS: the certificate expired at 2020-01-01T00:00:00Z",
        ),
        (
            "not valid yet",
            with(&|it| it.not_before = date_time_ymd(3000, 1, 1)),
            "TLS: the certificate is not valid before 3000-01-01T00:00:00Z",
        ),
        (
            "for clients",
            with(&|it| it.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]),
            &format!("{purpose} extended key usage has no serverAuth"),
        ),
        (
            "for clients and servers",
            with(&|it| {
                use ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
                it.extended_key_usages = vec![ClientAuth, ServerAuth];
            }),
            "",
        ),
        (
            "for signing others alone",
            with(&|it| {
                it.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign]
            }),
            &format!(
                "{purpose} key usage has neither digitalSignature nor keyEncipherment nor keyAgreement"
            ),
        ),
        (
            "for signing others and handshakes",
            with(&|it| {
                it.key_usages =
                    vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature]
            }),
            "",
        ),
    ] {
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(openssl.path("server.pem"), certificate.pem()).unwrap();
        let takes = openssl_takes(&openssl, "server.pem", SHOP);
        assert_eq!(takes, expected.is_empty(), "openssl: {what}");
        let said = check(vec![certificate.der().clone()], &key, &openssl.path("server.pem")).await;
        let expected = if expected.is_empty() { passes() } else { fails(expected) };
        assert_eq!(said, expected, "{what}");
    }
}

/// Only the very certificate is trusted, and not one that looks like it.
#[tokio::test]
async fn a_certificate_like_a_trusted_one_is_not_taken() {
    let openssl = Openssl::new();
    let [key, other] = [KeyPair::generate().unwrap(), KeyPair::generate().unwrap()];
    let trusted = ca(shop()).self_signed(&key).unwrap();
    std::fs::write(openssl.path("trusted.pem"), trusted.pem()).unwrap();
    let mut renewed = ca(shop());
    renewed.serial_number = Some(77.into());
    let self_signed =
        "TLS: the certificate is self-signed, and not itself a trusted one, byte for byte";
    for (what, params, key) in
        [("another key", ca(shop()), &other), ("another certificate of this key", renewed, &key)]
    {
        let certificate = params.self_signed(key).unwrap();
        std::fs::write(openssl.path("server.pem"), certificate.pem()).unwrap();
        assert!(!openssl_takes(&openssl, "trusted.pem", SHOP), "{what}");
        let said = check(vec![certificate.der().clone()], key, &openssl.path("trusted.pem")).await;
        assert_eq!(said, fails(self_signed), "{what}");
    }
}

/// A server's certificate that some authority has signed can be trusted by itself too, as curl does.
#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_taken_if_it_is_trusted_itself() {
    let (openssl, authority) = (Openssl::new(), Authority::new());
    let key = KeyPair::generate().unwrap();
    let der = authority.sign(&shop(), &key);
    std::fs::write(openssl.path("server.der"), &der).unwrap();
    assert!(openssl.ask("x509 -inform der -in server.der -out server.pem").0);
    assert!(openssl_takes(&openssl, "server.pem", SHOP));
    assert_eq!(check(vec![der], &key, &openssl.path("server.pem")).await, passes());
}

#[tokio::test]
async fn each_reason_says_what_is_wrong_with_the_certificate() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let with = |names: &[&str], change: &dyn Fn(&mut CertificateParams)| {
        let mut params = named(names);
        change(&mut params);
        params
    };
    let common_name = with(&[], &|it| it.distinguished_name.push(DnType::CommonName, SHOP));
    let seven: Vec<_> = (1..=7).map(|number| format!("n{number}.example")).collect();
    let seven: Vec<_> = seven.iter().map(String::as_str).collect();
    for (params, expected) in [
        (
            common_name,
            "the certificate has no name for shop.example: it needs a subject alternative name (a common name does not \
             count)"
                .to_owned(),
        ),
        (
            named(&["10.0.0.1", "2001:db8::1"]),
            "the certificate is for another name: it names 10.0.0.1, 2001:db8::1, not shop.example".to_owned(),
        ),
        (
            named(&seven),
            "the certificate is for another name: it names n1.example, n2.example, n3.example, n4.example, n5.example and 2 \
             more, not shop.example"
                .to_owned(),
        ),
        (
            with(&[SHOP], &|it| it.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]),
            "the certificate is not for servers: its extended key usage has no serverAuth".to_owned(),
        ),
        (
            with(&[SHOP], &|it| it.not_before = date_time_ymd(3000, 1, 1)),
            "the certificate is not valid before 3000-01-01T00:00:00Z".to_owned(),
        ),
        (
            with(&[SHOP], &|it| it.not_after = date_time_ymd(1999, 1, 1)),
            "the certificate expired at 1999-01-01T00:00:00Z".to_owned(),
        ),
        (
            with(&[SHOP], &|it| it.not_before = date_time_ymd(1950, 1, 1)),
            "the certificate is valid from a time before 1970, and such times are not read".to_owned(),
        ),
        (
            with(&[SHOP], &|it| it.key_usages = vec![KeyUsagePurpose::KeyCertSign]),
            "the certificate is not for servers: its key usage has neither digitalSignature nor keyEncipherment nor \
             keyAgreement"
                .to_owned(),
        ),
    ] {
        let key = KeyPair::generate().unwrap();
        let said = check(vec![authority.sign(&params, &key)], &key, &authority.file()).await;
        assert_eq!(said, fails(&format!("TLS: {expected}")));
    }
    // By an intermediate authority that was valid until 2020, of a stranger, or whose names are limited.
    let unsigned = format!(
        "the certificate is not signed by a trusted authority: none has signed for {}",
        stranger.name()
    );
    let expired = with(&[], &|it| it.not_after = date_time_ymd(2020, 1, 1));
    let limited = with(&[], &|it| {
        let permitted_subtrees = vec![GeneralSubtree::DnsName("other.example".to_owned())];
        it.name_constraints =
            Some(NameConstraints { permitted_subtrees, excluded_subtrees: Vec::new() });
    });
    let clients =
        with(&[], &|it| it.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]);
    for (signer, params, expected) in [
        (
            &authority,
            clients,
            "the certificate of CN=between, in the chain, is not for servers: its extended key usage has no serverAuth"
                .to_owned(),
        ),
        (
            &authority,
            expired,
            "the certificate of CN=between, in the chain, expired at 2020-01-01T00:00:00Z"
                .to_owned(),
        ),
        (&stranger, named(&[]), unsigned),
        (
            &authority,
            limited,
            "the certificate has names that its CA may not sign (name constraints)".to_owned(),
        ),
    ] {
        let mut params = ca(params);
        params.distinguished_name.push(DnType::CommonName, "between");
        let between = KeyPair::generate().unwrap();
        let between_der = signer.sign(&params, &between);
        let between = CertifiedIssuer::self_signed(params, between).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = shop().signed_by(&key, &between).unwrap().der().clone();
        let said = check(vec![leaf, between_der], &key, &authority.file()).await;
        assert_eq!(said, fails(&format!("TLS: {expected}")));
    }
}

/// An address counts only as such: RFC 6125, 1.7.2 and B.
#[tokio::test]
async fn an_address_that_is_given_as_a_name_is_told_apart() {
    let authority = Authority::new();
    let mut params = named(&[SHOP]);
    params.subject_alt_names.push(SanType::DnsName("127.0.0.1".try_into().unwrap()));
    let key = KeyPair::generate().unwrap();
    let chain = vec![authority.sign(&params, &key)];
    let (server, _seen) = https(acceptor(chain, &key, &[]), OK).await;
    let why = "TLS: the certificate has 127.0.0.1 as a DNS name: an address counts only as an IP address entry of the \
               subject alternative name";
    let check = over_tls(server, None, by(&authority.file()));
    assert_eq!(verdict(server, &check).await, fails(why));
}

/// Of those that are trusted, only valid certificates of CAs sign others; openssl decides which.
#[tokio::test]
async fn a_trusted_certificate_signs_others_as_openssl_lets_it() {
    let openssl = Openssl::new();
    let with = |change: &dyn Fn(&mut CertificateParams)| {
        let mut params = ca(named(&[]));
        params.distinguished_name.push(DnType::CommonName, "root");
        change(&mut params);
        params
    };
    let no_ca = "TLS: the chain ends at CN=root, whose trusted certificate is not that of a CA";
    for (what, params, expected) in [
        ("of a CA", with(&|_| ()), ""),
        (
            "expired",
            with(&|it| it.not_after = date_time_ymd(2020, 1, 1)),
            "TLS: the chain ends at CN=root, whose trusted certificate expired at 2020-01-01T00:00:00Z",
        ),
        (
            "not valid yet",
            with(&|it| it.not_before = date_time_ymd(3000, 1, 1)),
            "TLS: the chain ends at CN=root, whose trusted certificate is not valid before 3000-01-01T00:00:00Z",
        ),
        ("explicitly of no CA", with(&|it| it.is_ca = IsCa::ExplicitNoCa), no_ca),
        ("of no CA", with(&|it| it.is_ca = IsCa::NoCa), no_ca),
        (
            "for handshakes alone",
            with(&|it| it.key_usages = vec![KeyUsagePurpose::DigitalSignature]),
            no_ca,
        ),
        ("for signing others", with(&|it| it.key_usages = vec![KeyUsagePurpose::KeyCertSign]), ""),
        (
            "of no CA, for signing others",
            with(&|it| {
                it.is_ca = IsCa::NoCa;
                it.key_usages = vec![KeyUsagePurpose::KeyCertSign];
            }),
            "",
        ),
    ] {
        let root = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = shop().signed_by(&key, &root).unwrap();
        std::fs::write(openssl.path("root.pem"), root.pem()).unwrap();
        std::fs::write(openssl.path("server.pem"), leaf.pem()).unwrap();
        assert_eq!(openssl_takes(&openssl, "root.pem", SHOP), expected.is_empty(), "{what}");
        let said = check(vec![leaf.der().clone()], &key, &openssl.path("root.pem")).await;
        let expected = if expected.is_empty() { passes() } else { fails(expected) };
        assert_eq!(said, expected, "{what}");
    }
}

/// A CA that was renewed with its key is in the file twice.
#[tokio::test]
async fn an_expired_authority_does_not_stand_in_the_way_of_its_renewed_one() {
    let openssl = Openssl::new();
    let ca_key = KeyPair::generate().unwrap();
    let root = |until| {
        let mut params = ca(named(&[]));
        params.distinguished_name.push(DnType::CommonName, "root");
        params.not_after = date_time_ymd(until, 1, 1);
        params
    };
    let old = root(2020).self_signed(&ca_key).unwrap().pem();
    let root = CertifiedIssuer::self_signed(root(4000), ca_key).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = shop().signed_by(&key, &root).unwrap().der().clone();
    for text in [format!("{old}{}", root.pem()), format!("{}{old}", root.pem())] {
        std::fs::write(openssl.path("roots.pem"), text).unwrap();
        assert_eq!(check(vec![leaf.clone()], &key, &openssl.path("roots.pem")).await, passes());
    }
}
