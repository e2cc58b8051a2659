use std::time::Duration;

use futures::{Stream, stream};
use tokio::{net::UnixListener, time::sleep};

use super::limits::Limits;
use crate::tls::Connection;
use lb_base::{error_chain, rate_limited_log::RateLimit};

/// Rest after the kernel refused a connection, for want of descriptors for example.
const REST: Duration = Duration::from_millis(100);

/// The connections of the socket; those beyond its limits are closed at once.
pub(super) fn connections(
    listener: UnixListener,
    limits: Limits,
) -> impl Stream<Item = Result<Connection, std::convert::Infallible>> + Send {
    stream::unfold((listener, limits, RateLimit::default()), async |(listener, limits, lines)| {
        loop {
            let accepted = listener.accept().await;
            let taken = accepted.and_then(|(stream, _)| {
                let uid = stream.peer_cred()?.uid();
                Ok(limits.connection(uid).map(|lease| Connection::local(stream, uid, lease)))
            });
            match taken {
                Ok(Some(connection)) => return Some((Ok(connection), (listener, limits, lines))),
                Ok(None) => {}
                Err(error) => {
                    if let Some(left_out) = lines.now(1) {
                        tracing::warn!(
                            left_out,
                            "socket: no connection: {}",
                            error_chain::message(&error)
                        );
                    }
                    sleep(REST).await;
                }
            }
        }
    })
}
