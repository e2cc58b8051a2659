//! The journal: its socket, and entries with fields.

use std::{
    env,
    fmt::{Debug, Write as _},
    io,
    ops::Range,
    os::unix::net::UnixDatagram,
    sync::Arc,
};

use nix::sys::stat::fstat;
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    Layer,
    fmt::{
        FormatFields,
        format::{DefaultFields, Writer},
    },
    layer::Context,
};

use super::queue::{Entry, Queue};

/// The journal's socket for entries.
const SOCKET: &str = "/run/systemd/journal/socket";
/// Device and inode of the stream that the journal reads, systemd.exec(5).
const STREAM: &str = "JOURNAL_STREAM";

/// The journal's socket. Sending blocks while the journal does not read.
#[derive(Debug)]
pub(super) struct Journal(UnixDatagram);

impl Journal {
    /// The journal, if it reads stderr and accepts entries.
    pub(super) fn behind_stderr() -> Option<Self> {
        let stderr = fstat(io::stderr()).ok()?;
        if !is_stream(&env::var(STREAM).ok()?, stderr.st_dev, stderr.st_ino) {
            return None;
        }
        // Unlike sending, connecting never waits for the journal. The socket that sends stays unconnected: so it finds
        // a journal that was started again.
        UnixDatagram::unbound().ok()?.connect(SOCKET).ok()?;
        UnixDatagram::unbound().ok().map(Self)
    }

    pub(super) fn send(&self, entry: &JournalEntry) -> io::Result<()> {
        self.0.send_to(entry.bytes(), SOCKET).map(drop)
    }
}

/// Makes each event an entry of the journal. The entry's text contains the fields too, since `journalctl` shows only
/// the text by default.
#[derive(Debug)]
pub(super) struct JournalLayer(pub(super) Arc<Queue>);

impl<S: Subscriber> Layer<S> for JournalLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = String::new();
        let _ = DefaultFields::new().format_fields(Writer::new(&mut text), event);
        let entry = JournalEntry::new(event, priority(*event.metadata().level()), &text);
        self.0.push(Entry::Journal(entry));
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
#[derive(Debug, Default)]
pub(super) struct JournalEntry {
    bytes: Vec<u8>,
    /// Where the text is.
    text: Range<usize>,
}

impl JournalEntry {
    /// An entry with this text and the fields of an event.
    fn new(event: &Event<'_>, priority: u8, text: &str) -> Self {
        let mut entry = Self::default();
        entry.put("PRIORITY", &priority.to_string());
        entry.put("SYSLOG_IDENTIFIER", "spillwayd");
        entry.text = entry.put("MESSAGE", text);
        event.record(&mut entry);
        entry
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The text, with a newline.
    pub(super) fn line(&self) -> &[u8] {
        &self.bytes[self.text.start..=self.text.end]
    }

    /// Adds a field, and returns where its value is.
    fn put(&mut self, name: &str, value: &str) -> Range<usize> {
        // Cut between characters: the journal shows a value that is not UTF-8 as a number of bytes.
        let value = &value.as_bytes()[..value.floor_char_boundary(MAX_VALUE)];
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(b'\n');
        self.bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.bytes.push(b'\n');
        start..start + value.len()
    }
}

impl Visit for JournalEntry {
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
            let entry = JournalEntry::new(event, 6, "as people read it");
            assert_eq!(entry.line(), b"as people read it\n");
            *self.0.lock().unwrap() = entry.bytes;
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
        let mut entry = JournalEntry::default();
        entry.put("A", &"x".repeat(MAX_VALUE + 1));
        assert_eq!(entry.bytes().len(), 2 + 8 + MAX_VALUE + 1);
        let mut entry = JournalEntry::default();
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
