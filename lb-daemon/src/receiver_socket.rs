//! Answers on a receiver's control socket; the protocol is in [`lb_base::receiver_socket`].

use std::{sync::Arc, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    sync::Semaphore,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::reloads::Reloads;
use lb_base::receiver_socket::{Answer, Request};
use lb_control::command::Stopping;

/// Connections that are served at once; others wait.
const AT_ONCE: usize = 16;

/// How long a connection may take for its question, and for taking the answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Longest line that is read, bytes.
const LONGEST: u64 = 16;

/// Pause after a connection could not be accepted, as for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers until the daemon stops. `status` says how the settings are.
pub(crate) async fn serve(
    listener: UnixListener,
    reloads: Reloads,
    status: impl Fn() -> Answer + Clone + Send + Sync + 'static,
    stop: CancellationToken,
) {
    let free = Arc::new(Semaphore::new(AT_ONCE));
    let accept = async {
        loop {
            // It is never closed.
            let Ok(place) = free.clone().acquire_owned().await else { return };
            let Ok((stream, _)) = listener.accept().await else {
                sleep(PAUSE).await;
                continue;
            };
            let (reloads, status) = (reloads.clone(), status.clone());
            tokio::spawn(async move {
                // A broken connection concerns its caller alone, who sees it.
                let _ = one(stream, &reloads, status).await;
                drop(place);
            });
        }
    };
    tokio::select! {
        () = accept => {}
        () = stop.cancelled() => {}
    }
}

/// A question and its answer. What is no question, or comes too slowly, gets none.
async fn one(
    mut stream: UnixStream,
    reloads: &Reloads,
    status: impl Fn() -> Answer,
) -> std::io::Result<()> {
    let mut line = Vec::new();
    let mut reader = BufReader::new((&mut stream).take(LONGEST));
    timeout(PATIENCE, reader.read_until(b'\n', &mut line)).await??;
    let answer = match Request::parse(&line) {
        None => return Ok(()),
        Some(Request::Status) => status(),
        // What was refused is a condition.
        Some(Request::Reload) => match reloads.ask().await {
            Ok(_) => status(),
            Err(Stopping) => return Ok(()),
        },
    };
    let mut text = serde_json::to_vec(&answer).map_err(std::io::Error::from)?;
    text.push(b'\n');
    timeout(PATIENCE, stream.write_all(&text)).await?
}
