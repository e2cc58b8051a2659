//! Servers and certificates of the openssl command: what other people's servers do, and what others take.

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
};

use tempfile::TempDir;

use super::https::{by, fails, over_tls, passes, verdict};
use lb_model::Trust;

/// A directory in which commands of openssl are run.
pub(super) struct Openssl(TempDir);

/// A server; it ends with its value.
struct SslServer {
    address: SocketAddr,
    process: Child,
}

impl Drop for SslServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Openssl {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new("openssl");
        command.current_dir(self.0.path()).args(arguments.split_whitespace()).stdin(Stdio::null());
        command
    }

    /// What a command says, and whether it succeeds.
    pub(super) fn ask(&self, arguments: &str) -> (bool, String) {
        let output =
            self.command(arguments).output().expect("openssl is missing: `cargo xtask setup`");
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    fn run(&self, arguments: &str) {
        let (succeeds, text) = self.ask(arguments);
        assert!(succeeds, "openssl {arguments}: {text}");
    }

    /// `NAME.key`.
    fn key(&self, name: &str, options: &str) {
        self.run(&format!("genpkey {options} -out {name}.key"));
    }

    /// `NAME.key` and `NAME.pem`, self-signed.
    fn own(&self, name: &str, key: &str, options: &str) {
        self.key(name, key);
        self.run(&format!(
            "req -x509 -new -key {name}.key -subj /CN={name} -days 300 -out {name}.pem {options}"
        ));
    }

    /// `NAME.key` and `NAME.pem`, signed by `ca`; without extensions it is of version 1.
    fn signed(&self, name: &str, key: &str, ca: &str, extensions: Option<&str>) {
        self.key(name, key);
        self.run(&format!("req -new -key {name}.key -subj /CN=shop.example -out {name}.csr"));
        let extensions = extensions.map(|text| {
            std::fs::write(self.path("extensions"), text).unwrap();
            "-extfile extensions"
        });
        let extensions = extensions.unwrap_or_default();
        self.run(&format!(
            "x509 -req -in {name}.csr -CA {ca}.pem -CAkey {ca}.key -CAcreateserial -days 200 -out {name}.pem {extensions}"
        ));
    }

    /// A server that answers requests with its state.
    fn serve(&self, name: &str, options: &str) -> SslServer {
        let files = format!("-cert {name}.pem -key {name}.key");
        let mut command =
            self.command(&format!("s_server -accept 127.0.0.1:0 -www {files} {options}"));
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("openssl is missing: `cargo xtask setup`");
        let mut lines =
            BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let address = lines.find_map(|line| Some(line.strip_prefix("ACCEPT ")?.parse().unwrap()));
        // What it prints of each connection must go somewhere.
        thread::spawn(move || lines.for_each(drop));
        SslServer { address: address.expect("a server that listens"), process }
    }
}

const RSA: &str = "-algorithm RSA -pkeyopt rsa_keygen_bits:2048";
const P256: &str = "-algorithm EC -pkeyopt ec_paramgen_curve:P-256";
const P521: &str = "-algorithm EC -pkeyopt ec_paramgen_curve:P-521";
const SHOP: &str = "subjectAltName=DNS:shop.example\n";

const REFUSED: &str = "TLS: the server refuses the handshake (alert handshake_failure): no cipher suite, key exchange \
                       group or signature algorithm in common, or it wants a client certificate";

#[tokio::test]
async fn servers_with_nothing_in_common_are_told_apart_from_those_that_are_down() {
    let openssl = Openssl::new();
    openssl.own("own", RSA, "");
    let version = "TLS: the server refuses the handshake (alert protocol_version): it takes neither TLS 1.2 nor TLS 1.3";
    for (options, expected) in [
        // Without forward secrecy, with CBC, with a key exchange in a finite field.
        ("-tls1_2 -cipher AES128-GCM-SHA256", REFUSED),
        ("-tls1_2 -cipher ECDHE-RSA-AES128-SHA", REFUSED),
        ("-tls1_2 -cipher DHE-RSA-AES128-GCM-SHA256", REFUSED),
        ("-groups P-521", REFUSED),
        ("-tls1_2 -sigalgs RSA+SHA224", REFUSED),
        ("-tls1_1 -cipher ALL@SECLEVEL=0", version),
    ] {
        let server = openssl.serve("own", options);
        let check = over_tls(server.address, None, Trust::Anybody);
        assert_eq!(verdict(server.address, &check).await, fails(expected), "{options}");
    }
    let server = openssl.serve("own", "-Verify 1 -verify_return_error -tls1_2");
    let check = over_tls(server.address, None, Trust::Anybody);
    assert_eq!(verdict(server.address, &check).await, fails(REFUSED));
    let server = openssl.serve("own", "-Verify 1 -verify_return_error -tls1_3");
    let check = over_tls(server.address, None, Trust::Anybody);
    let why = "TLS: the server refuses the handshake (alert certificate_required): it wants a client certificate, and \
               checks have none";
    assert_eq!(verdict(server.address, &check).await, fails(why));
}

#[tokio::test]
async fn any_certificate_is_taken_where_none_is_verified() {
    let openssl = Openssl::new();
    openssl.own("ca", RSA, "");
    openssl.signed("old", RSA, "ca", None);
    openssl.own("p521", P521, "");
    openssl.own("ed448", "-algorithm ED448", "");
    openssl.own("brainpool", "-algorithm EC -pkeyopt ec_paramgen_curve:brainpoolP256r1", "");
    openssl.own("pss", "-algorithm RSA-PSS -pkeyopt rsa_keygen_bits:2048", "");
    openssl.own("short", "-algorithm RSA -pkeyopt rsa_keygen_bits:1024", "");
    openssl.own("sha1", RSA, "-sha1");
    let weak = "-cipher DEFAULT@SECLEVEL=0";
    for (name, options) in [
        ("ca", ""),
        ("old", ""),
        ("old", "-tls1_2"),
        ("p521", "-tls1_3"),
        ("ed448", "-tls1_3"),
        ("pss", "-tls1_3"),
        ("short", weak),
        ("sha1", weak),
    ] {
        let server = openssl.serve(name, options);
        let check = over_tls(server.address, None, Trust::Anybody);
        assert_eq!(verdict(server.address, &check).await, passes(), "{name} {options}");
    }
    // Of these keys no cipher suite of TLS 1.2 that checks have can make use, and of DSA none of any version.
    openssl.run("dsaparam -out dsa.params 1024");
    openssl.run("gendsa -out dsa.key dsa.params");
    openssl.run("req -x509 -new -key dsa.key -subj /CN=dsa -days 300 -out dsa.pem");
    let kind = "TLS: the server's key is of a kind that checks do not take with TLS 1.2, such as Ed448 or RSA-PSS";
    for name in ["ed448", "pss"] {
        let server = openssl.serve(name, "-tls1_2");
        let check = over_tls(server.address, None, Trust::Anybody);
        assert_eq!(verdict(server.address, &check).await, fails(kind), "{name}");
    }
    for (name, options) in [("p521", "-tls1_2"), ("brainpool", "-tls1_2"), ("dsa", weak)] {
        let server = openssl.serve(name, options);
        let check = over_tls(server.address, None, Trust::Anybody);
        assert_eq!(verdict(server.address, &check).await, fails(REFUSED), "{name} {options}");
    }
}

#[tokio::test]
async fn certificates_of_small_authorities_are_refused_in_words() {
    let openssl = Openssl::new();
    openssl.own("ca", RSA, "");
    openssl.signed("name", RSA, "ca", Some("basicConstraints=CA:FALSE\n"));
    openssl.signed("old", RSA, "ca", None);
    openssl.signed("good", P256, "ca", Some(SHOP));
    openssl.signed("authority", RSA, "ca", Some(&format!("{SHOP}basicConstraints=CA:TRUE\n")));
    openssl.signed("critical", RSA, "ca", Some(&format!("{SHOP}1.2.3.4=critical,DER:05:00\n")));
    openssl.signed("short", "-algorithm RSA -pkeyopt rsa_keygen_bits:1024", "ca", Some(SHOP));
    openssl.own("twin", RSA, "-subj /CN=ca");
    openssl.signed("twins", RSA, "twin", Some(SHOP));
    let trust = by(&openssl.path("ca.pem"));
    let nameless = "TLS: the certificate has no name for shop.example: it needs a subject alternative name (a common name \
                    does not count)";
    let authority = "TLS: the certificate is that of a CA (CA:TRUE), which a server may only show if it is itself among \
                     the trusted ones, byte for byte";
    for (name, expected) in [
        ("good", passes()),
        ("name", fails(nameless)),
        (
            "twins",
            fails(
                "TLS: a signature in the chain is wrong: a trusted CA of the same name has another key, or a certificate is \
                 broken",
            ),
        ),
        ("old", fails("TLS: the certificate is of X.509 version 1, and version 3 is needed")),
        ("authority", fails(authority)),
        ("critical", fails("TLS: the certificate has a critical extension that is not known here")),
        (
            "short",
            fails(
                "TLS: an RSA key has 1024 bits, and only signatures of keys of 2048 to 8192 bits are taken",
            ),
        ),
    ] {
        let server = openssl.serve(name, "-cipher DEFAULT@SECLEVEL=0");
        let check = over_tls(server.address, Some("shop.example"), trust.clone());
        assert_eq!(verdict(server.address, &check).await, expected, "{name}");
    }
}

#[tokio::test]
async fn signatures_that_cannot_be_verified_are_named() {
    let openssl = Openssl::new();
    openssl.own("wide", P521, "");
    openssl.signed("leaf", P256, "wide", Some(SHOP));
    openssl.own("ca", RSA, "");
    openssl.own("small", P256, "");
    openssl.signed("wider", P256, "small", Some(SHOP));
    openssl.run("x509 -req -sha512 -in wider.csr -CA small.pem -CAkey small.key -CAcreateserial -days 9 -extfile extensions -out wider.pem");
    openssl.own("weak", "-algorithm RSA -pkeyopt rsa_keygen_bits:1024", "");
    openssl.signed("by_weak", RSA, "weak", Some(SHOP));
    openssl.signed("salted", RSA, "ca", Some(SHOP));
    openssl.run("x509 -req -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:20 -in salted.csr -CA ca.pem -CAkey ca.key -days 9 -extfile extensions -out salted.pem");
    openssl.signed("digest", RSA, "ca", Some(SHOP));
    openssl.run("x509 -req -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest -in digest.csr -CA ca.pem -CAkey ca.key -days 9 -extfile extensions -out digest.pem");
    openssl.key("sha1", P256);
    openssl.run("req -new -key sha1.key -subj /CN=shop.example -out sha1.csr");
    std::fs::write(openssl.path("extensions"), SHOP).unwrap();
    openssl.run("x509 -req -sha1 -in sha1.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 9 -extfile extensions -out sha1.pem");
    for (name, ca, expected) in [
        (
            "leaf",
            "wide",
            "TLS: signatures by ecdsa-with-SHA256 with a key of kind id-ecPublicKey secp521r1 are not taken",
        ),
        ("sha1", "ca", "TLS: signatures by sha1WithRSAEncryption are not taken"),
        (
            "by_weak",
            "weak",
            "TLS: an RSA key has 1024 bits, and only signatures of keys of 2048 to 8192 bits are taken",
        ),
        // As docs/health.md says.
        ("wider", "small", "TLS: signatures by ecdsa-with-SHA512 are not taken"),
        ("salted", "ca", "TLS: signatures by rsassa-pss are not taken"),
        // The check does not say that it takes signatures of such a key, so the server has none to make.
        ("wide", "wide", REFUSED),
    ] {
        let server = openssl.serve(name, "-cipher DEFAULT@SECLEVEL=0");
        let trust = by(&openssl.path(&format!("{ca}.pem")));
        let check = over_tls(server.address, Some("shop.example"), trust);
        assert_eq!(verdict(server.address, &check).await, fails(expected), "{name}");
    }
    let server = openssl.serve("digest", "");
    let check = over_tls(server.address, Some("shop.example"), by(&openssl.path("ca.pem")));
    assert_eq!(verdict(server.address, &check).await, passes());
}

/// `openssl req -x509` makes a certificate of a CA, which a server shows, and which is trusted itself.
#[tokio::test]
async fn what_openssl_makes_by_itself_is_taken_if_it_is_trusted() {
    let openssl = Openssl::new();
    openssl.own("self", RSA, "-addext subjectAltName=DNS:shop.example");
    let (_, text) = openssl.ask("x509 -in self.pem -noout -text");
    assert!(text.contains("CA:TRUE"), "{text}");
    openssl.own("other", RSA, "-addext subjectAltName=DNS:shop.example -subj /CN=self");
    let self_signed =
        "TLS: the certificate is self-signed, and not itself a trusted one, byte for byte";
    openssl.own(
        "extended",
        RSA,
        "-addext subjectAltName=DNS:shop.example -addext 1.2.3.4=critical,DER:05:00",
    );
    for (trusted, name, expected) in [
        ("self", "shop.example", passes()),
        (
            "self",
            "shop.test",
            fails("TLS: the certificate is for another name: it names shop.example, not shop.test"),
        ),
        ("other", "shop.example", fails(self_signed)),
    ] {
        let server = openssl.serve("self", "");
        let check =
            over_tls(server.address, Some(name), by(&openssl.path(&format!("{trusted}.pem"))));
        assert_eq!(verdict(server.address, &check).await, expected, "{trusted} {name}");
    }
}
