//! The log: text on stderr, or entries with fields if stderr is the journal.

use std::{
    env,
    fmt::{Debug, Write as _},
    io::{self, IsTerminal, Write as _},
    os::unix::net::UnixDatagram,
};

use nix::sys::stat::fstat;
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    EnvFilter, Layer,
    filter::LevelFilter,
    fmt::{
        self, FormatFields,
        format::{DefaultFields, Writer},
    },
    layer::{Context, SubscriberExt},
    util::SubscriberInitExt,
};

/// The default filter. netlink-proto warns about each answer to an abandoned request, for example of a VIP probe whose
/// caller disconnected.
const DEFAULT_FILTER: &str = "info,netlink_proto=error";

/// Starts logging, always to stderr: stdout is for data.
pub(super) fn start() {
    let directives = env::var(EnvFilter::DEFAULT_ENV).unwrap_or_else(|_| DEFAULT_FILTER.into());
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into());
    let text = || {
        fmt::layer()
            .with_writer(io::stderr)
            .with_ansi(io::stderr().is_terminal())
            .with_target(false)
    };
    let log = match Journal::behind_stderr() {
        Some(journal) => journal.boxed(),
        None => text().boxed(),
    };
    tracing_subscriber::registry().with(filter.parse_lossy(directives)).with(log).init();
}

/// The journal's socket for entries.
const SOCKET: &str = "/run/systemd/journal/socket";
/// Device and inode of the stream that the journal reads, systemd.exec(5).
const STREAM: &str = "JOURNAL_STREAM";

/// Writes each event as an entry of the journal. The entry's text contains the fields too, since `journalctl` shows only
/// the text by default.
#[derive(Debug)]
struct Journal(UnixDatagram);

impl Journal {
    /// The journal, if it reads stderr and accepts entries.
    fn behind_stderr() -> Option<Self> {
        let stderr = fstat(io::stderr()).ok()?;
        if !is_stream(&env::var(STREAM).ok()?, stderr.st_dev, stderr.st_ino) {
            return None;
        }
        let socket = UnixDatagram::unbound().ok()?;
        // The journal ignores empty datagrams.
        socket.send_to(&[], SOCKET).ok()?;
        Some(Self(socket))
    }
}

impl<S: Subscriber> Layer<S> for Journal {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = String::new();
        let _ = DefaultFields::new().format_fields(Writer::new(&mut text), event);
        let entry = Entry::new(event, priority(*event.metadata().level()), &text);
        if self.0.send_to(entry.bytes(), SOCKET).is_err() {
            // For example while the journal restarts; stderr may still be read.
            let _ = writeln!(io::stderr(), "{text}");
        }
    }
}

/// Whether `named` (`device:inode`) is this file.
fn is_stream(named: &str, device: u64, inode: u64) -> bool {
    named.split_once(':').is_some_and(|(d, i)| d.parse() == Ok(device) && i.parse() == Ok(inode))
}

/// The priority of a level in syslog(3).
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG | Level::TRACE => 7,
    }
}

/// Most bytes of a value: an entry must fit a datagram.
const MAX_VALUE: usize = 16 << 10;

/// An entry in systemd's "Native Journal Protocol": for each field its name, a newline, the length of its value as eight
/// little-endian bytes, the value and a newline.
#[derive(Debug)]
struct Entry(Vec<u8>);

impl Entry {
    /// An entry with this text and the fields of an event.
    fn new(event: &Event<'_>, priority: u8, text: &str) -> Self {
        let mut entry = Self(Vec::new());
        entry.put("PRIORITY", &priority.to_string());
        entry.put("SYSLOG_IDENTIFIER", "spillwayd");
        entry.put("MESSAGE", text);
        event.record(&mut entry);
        entry
    }

    fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn put(&mut self, name: &str, value: &str) {
        // Cut between characters: the journal shows a value that is not UTF-8 as a number of bytes.
        let value = &value.as_bytes()[..value.floor_char_boundary(MAX_VALUE)];
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(b'\n');
        self.0.extend_from_slice(&(value.len() as u64).to_le_bytes());
        self.0.extend_from_slice(value);
        self.0.push(b'\n');
    }
}

impl Visit for Entry {
    fn record_str(&mut self, field: &Field, value: &str) {
        // Already in MESSAGE.
        if field.name() != "message" {
            let name = field.name().to_ascii_uppercase().replace(['.', '#'], "_");
            self.put(&format!("SPILLWAY_{name}"), value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        let _ = write!(text, "{value:?}");
        self.record_str(field, &text);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::{Layer, layer::Context, prelude::*};

    use super::*;

    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl<S: Subscriber> Layer<S> for Kept {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            *self.0.lock().unwrap() = Entry::new(event, 6, "as people read it").0;
        }
    }

    #[test]
    fn an_entry_has_the_fields_of_the_event() {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let subscriber = tracing_subscriber::registry().with(Kept(Arc::clone(&kept)));
        tracing::subscriber::with_default(subscriber, || {
            let (pool, none) = ("we\nb", None::<&str>);
            tracing::info!(pool, backend = %"10.0.0.1", generation = 7_u64, region = none, "backend");
        });
        let expected = b"PRIORITY\n\x01\0\0\0\0\0\0\x006\n\
            SYSLOG_IDENTIFIER\n\x09\0\0\0\0\0\0\0spillwayd\n\
            MESSAGE\n\x11\0\0\0\0\0\0\0as people read it\n\
            SPILLWAY_POOL\n\x04\0\0\0\0\0\0\0we\nb\n\
            SPILLWAY_BACKEND\n\x08\0\0\0\0\0\0\x0010.0.0.1\n\
            SPILLWAY_GENERATION\n\x01\0\0\0\0\0\0\x007\n";
        assert_eq!(
            kept.lock().unwrap().escape_ascii().to_string(),
            expected.escape_ascii().to_string()
        );
    }

    #[test]
    fn no_value_is_too_long_for_a_datagram() {
        let mut entry = Entry(Vec::new());
        entry.put("A", &"x".repeat(MAX_VALUE + 1));
        assert_eq!(entry.bytes().len(), 2 + 8 + MAX_VALUE + 1);
        let mut entry = Entry(Vec::new());
        entry.put("A", &format!("x{}", "ä".repeat(MAX_VALUE / 2)));
        assert_eq!(entry.bytes().len(), 2 + 8 + MAX_VALUE - 1 + 1);
    }

    #[test]
    fn stderr_is_the_journals_if_device_and_inode_are() {
        assert!(is_stream("9:1234", 9, 1234));
        for other in ["9:1235", "8:1234", "9", "", "9:1234:", "a:b"] {
            assert!(!is_stream(other, 9, 1234), "{other}");
        }
    }
}
