use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Failure;

/// SIGHUP, which from now on no longer ends the program.
pub(super) fn hangups() -> Result<Signal, Failure> {
    listen(SignalKind::hangup())
}

/// The signals that stop the daemon. Before this value exists they end the program at once.
#[derive(Debug)]
pub(super) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    pub(super) fn listen() -> Result<Self, Failure> {
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// Waits for the first of them.
    pub(super) async fn next(mut self) {
        let name = tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        };
        tracing::info!("{name}: stopping; packets are still forwarded");
    }
}

fn listen(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|error| Failure::about("signals", &error))
}
