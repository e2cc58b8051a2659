//! Kinds of backends.

use std::time::Duration;

use lb_config::document::Document;
use lb_model::HealthCheck;

/// What a backend speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Speaks {
    Http,
    /// The handshake alone: bytes by hand can be no more.
    Tls,
    Grpc,
}

/// What a backend does when all of them have been asked.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) speaks: Speaks,
    /// What it sends at once.
    pub(crate) begin: Vec<u8>,
    /// What it sends over and over then, as fast as it is read; empty: nothing, and it holds the
    /// connection.
    pub(crate) part: Vec<u8>,
    /// What all of them are said to have done.
    pub(crate) reason: &'static str,
}

const PASSES: &str = "all checks pass";
const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
const HEAD: &[u8] = b"\0\0\x14\x01\x04\0\0\0\x01\x88\x0f\x10\x10application/grpc";
const SERVING: &[u8] = b"\0\0\x07\0\x01\0\0\0\x01\0\0\0\0\x02\x08\x01";

/// How long those are waited for who hold the connection.
const HELD: Duration = Duration::from_secs(10);

/// For all others the test's own patience is the end.
const LONG: Duration = Duration::from_secs(300);

pub(crate) fn all() -> Vec<Kind> {
    use Speaks::{Grpc, Http, Tls};
    let kind = |name, speaks, begin: &[u8], part: &[u8], reason| Kind {
        name,
        speaks,
        begin: begin.to_vec(),
        part: part.to_vec(),
        reason,
    };
    let ok = b"HTTP/1.1 200 OK\r\n";
    let late = "check up: no answer within 10000 ms";
    let long_head = [ok.as_slice(), b"X: ", "x".repeat(16_000).as_bytes()].concat();
    let long_body = [ok.as_slice(), b"\r\n", "all is wel".repeat(6500).as_bytes()].concat();
    // A record's worth of a handshake message that is to be as long as rustls takes.
    let hello = [b"\x16\x03\x03\x40\x00\x02\x00\xff\xff".as_slice(), &[0; 16_380]].concat();
    let more = [b"\x16\x03\x03\x40\x00".as_slice(), &[0; 16_384]].concat();
    let long_hello = [hello, more.repeat(2)].concat();
    // Headers in pieces, of which the end does not come.
    let block = [b"\0\0\x01\x01\0\0\0\0\x01\x88".as_slice(), &continuation(15_000)].concat();
    let long_headers = [SETTINGS, &block].concat();
    vec![
        kind("heads nearly at the bound", Http, &long_head, b"", late),
        kind(
            "heads without end",
            Http,
            ok,
            b"X-More: and more\r\n",
            "check up: the answer's head is over 16384 bytes",
        ),
        kind("bodies nearly at the bound", Http, &long_body, b"", late),
        kind(
            "bodies without end",
            Http,
            &[ok.as_slice(), b"\r\n"].concat(),
            b"all is wel",
            "check up: the body's first 65536 bytes have no \"all is well\"",
        ),
        kind(
            "handshakes nearly at the bound",
            Tls,
            &long_hello,
            b"",
            "check up: TLS: no handshake within 10000 ms",
        ),
        kind(
            "garbage instead of TLS",
            Tls,
            b"",
            b"\xff",
            "check up: TLS: the answer is not TLS: does the port serve it without?",
        ),
        kind("headers nearly at the bound", Grpc, &long_headers, b"", late),
        kind(
            "settings without end",
            Grpc,
            SETTINGS,
            &many_settings(),
            "check up: over 262144 bytes came, and no answer",
        ),
        kind("header bombs", Grpc, SETTINGS, &bomb(), "check up: the answer is not HTTP/2"),
    ]
}

/// A literal header of one byte's name and so many bytes' value, as HPACK has it, in a continuation that
/// is not the last.
fn continuation(bytes: usize) -> Vec<u8> {
    // Seven bits are 127; what is over follows, seven bits a byte, the least ones first (RFC 7541, 5.1).
    let over = bytes - 127;
    let [low, high] = [over & 0x7f | 0x80, over >> 7].map(|byte| u8::try_from(byte).unwrap());
    let value = [b"\0\x01x\x7f".as_slice(), &[low, high], &vec![b'x'; bytes]].concat();
    let length = u32::try_from(value.len()).unwrap().to_be_bytes();
    [&length[1..], b"\x09\0\0\0\0\x01", &value].concat()
}

/// A frame of two hundred settings that nobody knows; each frame wants an answer.
fn many_settings() -> Vec<u8> {
    let settings = b"\xbe\xef\0\0\0\x01".repeat(200);
    let length = u32::try_from(settings.len()).unwrap().to_be_bytes();
    [&length[1..], b"\x04\0\0\0\0\0", &settings].concat()
}

/// A header of 4,000 bytes that goes into HPACK's table and is named 12,000 times, a byte each.
fn bomb() -> Vec<u8> {
    let long = [b"\x40\x01x\x7f\xa1\x1e".as_slice(), &[b'x'; 4000]].concat();
    let block = [b"\x88".as_slice(), &long, &[0xbe; 12_000]].concat();
    let length = u32::try_from(block.len()).unwrap().to_be_bytes();
    [&length[1..], b"\x01\x04\0\0\0\x01", &block].concat()
}

impl Kind {
    pub(crate) fn named(name: &str) -> Self {
        let both = all().into_iter().flat_map(|kind| [kind.decent(), kind]);
        both.into_iter().find(|kind| kind.name == name).expect("a kind of this name")
    }

    /// One of the same protocol that does what is expected of it; of TLS it refuses.
    pub(crate) fn decent(&self) -> Self {
        let (name, begin, reason): (_, &[u8], _) = match self.speaks {
            Speaks::Http => ("decent http", b"HTTP/1.1 200 OK\r\n\r\nall is well", PASSES),
            Speaks::Tls => (
                "decent tls",
                b"\x15\x03\x03\x00\x02\x02\x28",
                "check up: TLS: the server refuses the handshake (alert handshake_failure): no cipher suite, key \
                 exchange group or signature algorithm in common, or it wants a client certificate",
            ),
            Speaks::Grpc => ("decent grpc", &[SETTINGS, HEAD, SERVING].concat(), PASSES),
        };
        Self { name, begin: begin.to_vec(), part: Vec::new(), reason, speaks: self.speaks }
    }

    /// What each may cost beyond a decent one, bytes: what docs/health.md says may be held, twice where
    /// a buffer grows by doubling, and what reading takes.
    pub(crate) fn most(&self) -> u64 {
        match self.speaks {
            Speaks::Http => 48 << 10,
            Speaks::Tls => 160 << 10,
            Speaks::Grpc => 64 << 10,
        }
    }

    /// The check of a file that says so.
    pub(crate) fn check(&self, port: u16) -> HealthCheck {
        let asks = match self.speaks {
            Speaks::Http => "http = { body_contains = \"all is well\" }",
            Speaks::Tls => "tcp = {}\ntls = {}",
            Speaks::Grpc => "grpc = {}",
        };
        let timeout = if self.reason.contains(" within ") { HELD } else { LONG };
        let text = format!(
            "[[health_check]]\nname = \"up\"\nport = {port}\ninterval = \"1h\"\n\
             timeout = \"{}s\"\nrise = 1\nfall = 1\njitter_percent = 0\n{asks}\n",
            timeout.as_secs()
        );
        let message = Document::parse(&text).unwrap().into();
        let mut checks = lb_config::validate_first(&message).unwrap().health_checks;
        checks.pop_first().unwrap().1
    }
}
