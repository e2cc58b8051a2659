use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Failure;

/// Hangups from now on; without this, one ends the program.
pub(super) fn hangups() -> Result<Signal, Failure> {
    signal(SignalKind::hangup()).map_err(|error| Failure::of("signals", &error))
}

/// Ends when the daemon is told to by SIGTERM or SIGINT.
pub(super) async fn told_to_stop() -> Result<(), Failure> {
    let listen = |kind| signal(kind).map_err(|error| Failure::of("signals", &error));
    let (mut terminate, mut interrupt) =
        (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let name = tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    };
    tracing::info!("{name}: stopping; packets go on");
    Ok(())
}
