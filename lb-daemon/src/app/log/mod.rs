//! The log: text on stderr, or entries with fields if stderr is the journal.
//!
//! A thread that logs only formats its entry and adds it to a [`Queue`]. A thread of its own writes, and is the only one
//! that a journal or a pipe that is not read can block: health checks and failover must not wait for a reader.

mod journal;
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
    EnvFilter, Layer,
    filter::LevelFilter,
    fmt::{self, MakeWriter},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use super::Failure;
use journal::{Journal, JournalLayer};
use lb_base::conditions::{ConditionReason, Conditions, Subject};
use lb_observe::metrics::Counter;
use queue::{Entry, Next, Queue};

/// The default filter. netlink-proto warns about each answer to an abandoned request, for example of a VIP probe whose
/// caller disconnected.
const DEFAULT_FILTER: &str = "info,netlink_proto=error";

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
    let directives = env::var(EnvFilter::DEFAULT_ENV).unwrap_or_else(|_| DEFAULT_FILTER.into());
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into());
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
    tracing_subscriber::registry().with(filter.parse_lossy(directives)).with(layer).init();
    log.print_panics();
    Ok(log)
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
