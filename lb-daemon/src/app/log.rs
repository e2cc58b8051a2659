//! The log: text on stderr, or entries with fields where stderr is the journal.

mod entry;
mod journal;

use std::{
    env,
    io::{self, IsTerminal},
};

use tracing_subscriber::{
    EnvFilter, Layer as _, filter::LevelFilter, fmt, layer::SubscriberExt, util::SubscriberInitExt,
};

use journal::Journal;

/// What is logged unless `RUST_LOG` says otherwise. netlink-proto warns of each answer that comes after its request was
/// given up, as a probe's is whose caller went away.
const USUAL: &str = "info,netlink_proto=error";

/// Logs to stderr: data has no place there, and stdout is not for logs.
pub(super) fn start() {
    let directives = env::var(EnvFilter::DEFAULT_ENV).unwrap_or_else(|_| USUAL.into());
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
