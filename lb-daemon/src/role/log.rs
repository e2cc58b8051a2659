use std::io::{self, IsTerminal};

use tracing_subscriber::{EnvFilter, filter::LevelFilter};

/// Logs to stderr: data has no place there, and stdout is not for logs.
pub(super) fn start() {
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into());
    tracing_subscriber::fmt()
        .with_env_filter(filter.from_env_lossy())
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .init();
}
