//! The log: text on stderr, or entries with fields if stderr is the journal.
//!
//! A thread that logs only formats its entry and adds it to a [`Queue`]. A thread of its own writes, and is the only one
//! that a journal or a pipe that is not read can block: health checks and failover must not wait for a reader.

mod journal;
mod malformed_requests;
mod queue;

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    env,
    io::{self, IsTerminal, Write},
    panic::{self, PanicHookInfo},
    sync::Arc,
    thread,
    time::Duration,
};

use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, Targets},
    fmt::{self, MakeWriter},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use super::Failure;
use journal::{Journal, JournalLayer};
use lb_base::conditions::{ConditionReason, Conditions, Subject};
use lb_observe::metrics::Counter;
use malformed_requests::MalformedRequests;
use queue::{Entry, Next, Queue};

/// Names the variable that sets the level.
const LEVEL_VARIABLE: &str = "RUST_LOG";

/// What is logged unless the variable is set. netlink-proto warns about each answer to an abandoned request, for example of
/// a VIP probe whose caller disconnected. rustls warns as often as a server wants of a check's handshake, and names none;
/// what it fails with is an error of its caller, which has words of its own for it.
const DEFAULT_LEVELS: &str = "info,netlink_proto=error,rustls=off";

/// Longest time that the end of the daemon waits for the log.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Subject of the condition that entries are dropped.
const SUBJECT: Subject = Subject::new(ConditionReason::Log, "log");

/// The running log. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Log {
    queue: Arc<Queue>,
    /// Where entries go.
    destination: &'static str,
}

/// Starts logging, always to stderr: stdout is for data. From then on panics are printed through the log too.
pub(super) fn start() -> Result<Log, Failure> {
    let levels = env::var(LEVEL_VARIABLE).unwrap_or_else(|_| DEFAULT_LEVELS.into());
    let (filter, not_understood) = filter(&levels);
    let (queue, journal) = (Arc::<Queue>::default(), Journal::behind_stderr());
    let destination = if journal.is_some() { "the journal" } else { "standard error" };
    let log = Log { queue, destination };
    let layer = match journal {
        Some(_) => JournalLayer(Arc::clone(&log.queue)).boxed(),
        None => fmt::layer()
            .with_writer(Lines(Arc::clone(&log.queue)))
            .with_ansi(io::stderr().is_terminal())
            .with_target(false)
            .boxed(),
    };
    let write = log.clone();
    thread::Builder::new()
        .name("log".into())
        .spawn(move || write.write(journal.as_ref()))
        .map_err(|error| Failure::about("log thread", &error))?;
    tracing_subscriber::registry()
        .with(layer.with_filter(filter))
        .with(MalformedRequests::layer())
        .init();
    log.print_panics();
    for ignored in not_understood {
        tracing::warn!(
            "log: {LEVEL_VARIABLE}: {ignored:?} is ignored: neither a level (off, error, warn, info, debug, trace) nor MODULE=LEVEL"
        );
    }
    Ok(log)
}

/// The filter of levels that commas separate, each for all modules or for one (`MODULE=LEVEL`), and those of them that are
/// not understood. Without one for all modules it is info.
fn filter(levels: &str) -> (Targets, Vec<&str>) {
    let mut filter = Targets::new().with_default(LevelFilter::INFO);
    let mut not_understood = Vec::new();
    for each in levels.split(',').map(str::trim).filter(|each| !each.is_empty()) {
        let (module, level) =
            each.rsplit_once('=').map_or((None, each), |(module, level)| (Some(module), level));
        // An empty level would be read as errors only.
        let level = Some(level)
            .filter(|level| !level.is_empty())
            .and_then(|level| level.parse::<LevelFilter>().ok());
        filter = match (level, module) {
            (Some(level), None) => filter.with_default(level),
            (Some(level), Some(module)) => filter.with_target(module, level),
            (None, _) => {
                not_understood.push(each);
                filter
            }
        };
    }
    (filter, not_understood)
}

impl Log {
    /// Counts the entries that were dropped.
    pub(super) fn dropped(&self) -> Counter {
        self.queue.dropped().clone()
    }

    /// Keeps up the condition that entries are dropped, until it is stopped.
    pub(super) async fn keep_condition(self, conditions: Conditions) {
        let cause = format!("entries are dropped: {} does not accept them", self.destination);
        loop {
            match self.queue.is_dropping() {
                true => conditions.begin(&SUBJECT, &cause),
                false => conditions.end(&SUBJECT),
            }
            self.queue.changed().await;
        }
    }

    /// Waits until all entries are written, for [`FLUSH_TIMEOUT`] at most.
    pub(super) fn flush(&self) {
        self.queue.flush(FLUSH_TIMEOUT);
    }

    /// Prints text on stderr after all entries, even if the queue is full, and waits as [`Self::flush`] does.
    pub(super) fn print_last(&self, text: &str) {
        self.queue.push_always(Entry::Text(format!("{text}\n").into_bytes()));
        self.flush();
    }

    /// Writes entries as long as the process lives.
    fn write(&self, journal: Option<&Journal>) {
        loop {
            match self.queue.next() {
                Next::Write(entry) => self.queue.written(write(&entry, journal).is_ok()),
                Next::Report(dropped) => {
                    let destination = self.destination;
                    tracing::error!(
                        dropped,
                        "log: {dropped} entries were dropped before this line: {destination} did not accept them"
                    );
                    self.queue.reported(dropped);
                }
            }
        }
    }

    /// Has panics printed like failures. The standard library prints on the panicking thread: with a stderr that is not
    /// read, that thread would neither go on nor end the daemon.
    fn print_panics(&self) {
        let (log, default_hook) = (self.clone(), panic::take_hook());
        panic::set_hook(Box::new(move |panic| match log.queue.is_writer() {
            true => default_hook(panic),
            false => log.print_last(&panic_text(panic)),
        }));
    }
}

fn panic_text(panic: &PanicHookInfo<'_>) -> String {
    let (thread, backtrace) = (thread::current(), Backtrace::capture());
    let text = format!("thread {:?} {panic}", thread.name().unwrap_or("unnamed"));
    match backtrace.status() {
        BacktraceStatus::Captured => format!("{text}\n{backtrace}"),
        _ => text,
    }
}

fn write(entry: &Entry, journal: Option<&Journal>) -> io::Result<()> {
    match (entry, journal) {
        (Entry::Text(text), _) => io::stderr().write_all(text),
        (Entry::Journal(entry), Some(journal)) if journal.send(entry).is_ok() => Ok(()),
        // For example while the journal restarts; stderr may still be read.
        (Entry::Journal(entry), _) => io::stderr().write_all(entry.line()),
    }
}

/// Adds formatted lines to the queue.
#[derive(Debug)]
struct Lines(Arc<Queue>);

impl<'a> MakeWriter<'a> for Lines {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

/// [`fmt::Layer`] writes each line by one call.
impl Write for &Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.push(Entry::Text(line.into()));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn each_level_is_for_its_module_or_for_all_others() {
        let (levels, not_understood) = filter(DEFAULT_LEVELS);
        assert!(not_understood.is_empty(), "{not_understood:?}");
        assert!(levels.would_enable("spillwayd::app", &Level::INFO));
        assert!(!levels.would_enable("spillwayd::app", &Level::DEBUG));
        assert!(levels.would_enable("netlink_proto::handle", &Level::ERROR));
        assert!(!levels.would_enable("netlink_proto::handle", &Level::WARN));
        // By each handshake a server can have it write a line.
        assert!(!levels.would_enable("rustls::common_state", &Level::WARN));

        let (levels, _) = filter("lb_health=trace, off");
        assert!(levels.would_enable("lb_health", &Level::TRACE));
        assert!(!levels.would_enable("lb_net", &Level::ERROR));
    }

    #[test]
    fn what_is_no_level_is_named_and_changes_nothing() {
        for (levels, named) in [
            ("wran", &["wran"][..]),
            ("", &[]),
            (",,", &[]),
            ("lb_net=loud,lb_net", &["lb_net=loud", "lb_net"]),
            ("=", &["="]),
        ] {
            let (filter, not_understood) = filter(levels);
            assert_eq!(not_understood, named, "{levels}");
            assert!(filter.would_enable("lb_net", &Level::INFO), "{levels}");
            assert!(!filter.would_enable("lb_net", &Level::DEBUG), "{levels}");
        }
    }
}
