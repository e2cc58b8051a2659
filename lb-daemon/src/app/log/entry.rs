use std::fmt::{Debug, Write};

use tracing::{
    Event,
    field::{Field, Visit},
};

/// Most bytes of a value: an entry has to fit a datagram.
const LONGEST: usize = 16 << 10;

/// An entry in the journal's own form (systemd, "Native Journal Protocol"): of each field its name, a
/// line's end, the length of its value in eight bytes, lowest first, its value and a line's end.
#[derive(Debug)]
pub(super) struct Entry(Vec<u8>);

impl Entry {
    /// An entry with this text and the fields of an event.
    pub(super) fn of(event: &Event<'_>, priority: u8, text: &str) -> Self {
        let mut entry = Self(Vec::new());
        entry.put("PRIORITY", &priority.to_string());
        entry.put("SYSLOG_IDENTIFIER", "spillwayd");
        entry.put("MESSAGE", text);
        event.record(&mut entry);
        entry
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn put(&mut self, name: &str, value: &str) {
        // Whole characters: what is no text the journal shows as a number of bytes.
        let value = &value.as_bytes()[..value.floor_char_boundary(LONGEST)];
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(b'\n');
        self.0.extend_from_slice(&(value.len() as u64).to_le_bytes());
        self.0.extend_from_slice(value);
        self.0.push(b'\n');
    }
}

impl Visit for Entry {
    fn record_str(&mut self, field: &Field, value: &str) {
        // The text begins with it.
        if field.name() != "message" {
            let name = field.name().to_ascii_uppercase().replace(['.', '#'], "_");
            self.put(&format!("SPILLWAY_{name}"), value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        let _never_fails = write!(text, "{value:?}");
        self.record_str(field, &text);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::{Layer, layer::Context, prelude::*};

    use super::*;

    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl<S: tracing::Subscriber> Layer<S> for Kept {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            *self.0.lock().unwrap() = Entry::of(event, 6, "as people read it").0;
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
        entry.put("A", &"x".repeat(LONGEST + 1));
        assert_eq!(entry.bytes().len(), 2 + 8 + LONGEST + 1);
        let mut entry = Entry(Vec::new());
        entry.put("A", &format!("x{}", "ä".repeat(LONGEST / 2)));
        assert_eq!(entry.bytes().len(), 2 + 8 + LONGEST - 1 + 1);
    }
}
