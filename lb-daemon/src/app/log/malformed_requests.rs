//! Requests of the API that are malformed. h2 resets the stream, which tells the client no reason, and gives the reason
//! only to developers, at the level of debugging.

use std::fmt::{self, Debug, Write as _};

use lb_base::rate_limited_log::RateLimit;
use tokio::runtime::Handle;
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, Targets},
    layer::Context,
};

/// The module of h2 that reads requests. What it says elsewhere may be about servers that the daemon asks.
const MODULE: &str = "h2::server";

/// How such events begin; the reason follows.
const PREFIX: &str = "malformed headers: ";

/// Most bytes of a reason, which quotes the client.
const MAX_REASON: usize = 256;

/// Lines a second.
const LINES: u32 = 1;

/// Logs why a request is refused as malformed.
#[derive(Debug, Default)]
pub(super) struct MalformedRequests(RateLimit);

impl MalformedRequests {
    /// The layer that gets these events only.
    pub(super) fn layer<S>() -> impl Layer<S>
    where
        S: Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
    {
        Self::default().with_filter(Targets::new().with_target(MODULE, LevelFilter::DEBUG))
    }
}

impl<S: Subscriber> Layer<S> for MalformedRequests {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut message = Message::default();
        event.record(&mut message);
        let Some(reason) = message.0.strip_prefix(PREFIX) else { return };
        let (Some(left_out), Ok(runtime)) = (self.0.now(LINES), Handle::try_current()) else {
            return;
        };
        let reason = reason.to_owned();
        // Later: an event within an event would confuse the filters of the other layers.
        runtime.spawn(async move {
            tracing::warn!(left_out, "API: request refused as malformed: {reason}");
        });
    }
}

/// The first bytes of an event's text.
#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            // Fails when the text is full.
            let _ = write!(self, "{value:?}");
        }
    }
}

impl fmt::Write for Message {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = PREFIX.len() + MAX_REASON - self.0.len();
        self.0.push_str(&text[..text.floor_char_boundary(room)]);
        if text.len() > room { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::{fmt::MakeWriter, prelude::*};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(line)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Lines {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    /// The lines of the log after some events.
    async fn logged(events: impl FnOnce()) -> String {
        let lines = Lines::default();
        let text = tracing_subscriber::fmt::layer().without_time().with_ansi(false);
        let text = text.with_target(false).with_writer(lines.clone());
        let text = text.with_filter(Targets::new().with_default(LevelFilter::INFO));
        let subscriber = tracing_subscriber::registry().with(text).with(MalformedRequests::layer());
        let _guard = tracing::subscriber::set_default(subscriber);
        events();
        tokio::task::yield_now().await;
        String::from_utf8(lines.0.lock().unwrap().clone()).unwrap()
    }

    #[tokio::test]
    async fn reasons_are_logged_once_a_second_and_nothing_else_of_h2() {
        let lines = logged(|| {
            tracing::debug!(target: "h2::server", "read_preface: invalid preface");
            tracing::debug!(target: "h2::client", "malformed headers: missing method");
            tracing::debug!(target: "h2::server", "malformed headers: missing {}", "scheme");
            tracing::debug!(target: "h2::server", "malformed headers: missing method");
            tracing::info!("something else");
        });
        let expected = " INFO something else\n WARN API: request refused as malformed: missing scheme left_out=0\n";
        assert_eq!(lines.await, expected);
    }

    #[tokio::test]
    async fn a_long_reason_is_cut_between_characters() {
        let reason = format!("a{}", "ä".repeat(MAX_REASON));
        let lines = logged(|| tracing::debug!(target: "h2::server", "malformed headers: {reason}"));
        let expected =
            format!(" WARN API: request refused as malformed: a{} left_out=0\n", "ä".repeat(127));
        assert_eq!(lines.await, expected);
    }
}
