use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Failure;

/// Hangups from now on; without this, one ends the program.
pub(super) fn hangups() -> Result<Signal, Failure> {
    signal(SignalKind::hangup()).map_err(|error| Failure::of("signals", &error))
}

/// The signals that end the daemon, which it hears of from when this is made.
#[derive(Debug)]
pub(super) struct Ends {
    terminate: Signal,
    interrupt: Signal,
}

impl Ends {
    /// Hears of them from now on: before anybody is told that the daemon is ready, for until then
    /// they end the program at once.
    pub(super) fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(|error| Failure::of("signals", &error));
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// Ends when one came.
    pub(super) async fn told_to_stop(mut self) {
        let name = tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        };
        tracing::info!("{name}: stopping; packets go on");
    }
}
