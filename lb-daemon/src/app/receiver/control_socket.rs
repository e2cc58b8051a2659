//! The receiver's control socket, where `spillway` requests reloads and reads conditions; the protocol is in
//! [`lb_base::receiver_socket`].

use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    sync::Semaphore,
    time::{sleep, timeout},
};

use lb_api::reload::Reloads;
use lb_base::receiver_socket::{Answer, Request};
use lb_control::command::Stopping;

/// Connections served at a time; others wait.
const MAX_CONNECTIONS: usize = 16;

/// Time for a client to send its question, and to read the answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Longest question, bytes.
const MAX_LINE: u64 = 16;

/// Pause after a failed accept, for example without free file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers questions until the daemon stops. `status` makes the answer.
pub(super) async fn serve(
    listener: UnixListener,
    reloads: Reloads,
    status: impl Fn() -> Answer + Clone + Send + Sync + 'static,
    stop: CancellationToken,
) {
    let free = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let accept = async {
        loop {
            // The semaphore is never closed.
            let Ok(permit) = free.clone().acquire_owned().await else { return };
            let Ok((stream, _)) = listener.accept().await else {
                sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let (reloads, status) = (reloads.clone(), status.clone());
            tokio::spawn(async move {
                // The client notices a broken connection itself.
                let _ = answer_one(stream, &reloads, status).await;
                drop(permit);
            });
        }
    };
    tokio::select! {
        () = accept => {}
        () = stop.cancelled() => {}
    }
}

/// Answers one question. An unknown question, or one that arrives too slowly, gets no answer.
async fn answer_one(
    mut stream: UnixStream,
    reloads: &Reloads,
    status: impl Fn() -> Answer,
) -> std::io::Result<()> {
    let mut line = Vec::new();
    let mut reader = BufReader::new((&mut stream).take(MAX_LINE));
    timeout(TIMEOUT, reader.read_until(b'\n', &mut line)).await??;
    let answer = match Request::parse(&line) {
        None => return Ok(()),
        Some(Request::Status) => status(),
        // The answer lists conditions, and so what the reload refused, but of several mistakes only the first.
        Some(Request::Reload) => match reloads.request(false).await {
            Ok(outcome) => {
                let refused = outcome.refused.into_iter();
                let mistakes = refused.flat_map(|refused| refused.mistakes).collect();
                Answer { mistakes, ..status() }
            }
            Err(Stopping) => return Ok(()),
        },
    };
    let mut text = serde_json::to_vec(&answer).map_err(std::io::Error::from)?;
    text.push(b'\n');
    timeout(TIMEOUT, stream.write_all(&text)).await?
}
