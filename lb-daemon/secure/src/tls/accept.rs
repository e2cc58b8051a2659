//! Accepts connections, each with a handshake of its own, within the limits of a listener.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use lb_base::rate_limited_log::RateLimit;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::{sleep, timeout},
};

use crate::access::QuotaExceeded;

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// What a listener makes of the connections that it accepts.
pub trait Acceptor {
    /// A connection whose handshake is done.
    type Connection: Send + 'static;

    /// The listener in log lines, and how many of them it writes a second about connections that failed.
    const LOG: (&str, u32);

    /// Takes the place of a connection, and begins its handshake.
    ///
    /// # Errors
    /// Which limit is reached.
    fn admit(
        &self,
        stream: TcpStream,
        client: SocketAddr,
    ) -> Result<BoxFuture<'static, io::Result<Self::Connection>>, QuotaExceeded>;
}

/// Accepts until the receiver of `to` is dropped.
pub async fn accept<A: Acceptor>(
    listener: TcpListener,
    acceptor: A,
    to: mpsc::Sender<A::Connection>,
) {
    let rate_limit = Arc::new(RateLimit::default());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = to.closed() => return,
        };
        let (stream, client) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                log_failure::<A>(&rate_limit, "no client", &error.to_string());
                // For example without free descriptors: wait for some.
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let handshake = match acceptor.admit(stream, client) {
            Ok(handshake) => handshake,
            Err(exceeded) => {
                let cause = format!("there are {exceeded}");
                log_failure::<A>(&rate_limit, &client.to_string(), &cause);
                continue;
            }
        };
        let (to, rate_limit) = (to.clone(), Arc::clone(&rate_limit));
        tokio::spawn(async move {
            let failed = |cause: &str| log_failure::<A>(&rate_limit, &client.to_string(), cause);
            match timeout(HANDSHAKE_TIMEOUT, handshake).await {
                Ok(Ok(connection)) => drop(to.send(connection).await),
                Ok(Err(error)) => failed(&error.to_string()),
                Err(_) => failed("no handshake within 5 s"),
            }
        });
    }
}

fn log_failure<A: Acceptor>(rate_limit: &RateLimit, client: &str, cause: &str) {
    let (listener, lines) = A::LOG;
    if let Some(left_out) = rate_limit.now(lines) {
        tracing::warn!(client, left_out, "{listener}: connection of {client} failed: {cause}");
    }
}
