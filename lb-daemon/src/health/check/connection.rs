//! Making the connection, and finding out whether the host is there where none comes about.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    net::TcpStream,
    sync::Notify,
    time::{Instant, sleep_until, timeout_at},
};

use super::{
    Failure, NoConnection, is_shortage,
    tcp::{connect, is_answer},
};
use crate::health::host::Asker;

/// The host is asked when this part of the time has passed without a connection: late enough that
/// hosts that serve are never asked, early enough that an answer has thrice as long to come.
const ASK_AFTER: u32 = 4;

/// Connects within `time`, from now. The same time serves to ask the host: the check of a host that
/// is gone takes no longer for it.
pub(super) async fn made(
    server: SocketAddr,
    time: Duration,
    asker: &Asker,
) -> Result<TcpStream, Failure> {
    let start = Instant::now();
    let (connecting, end) = (connect(server), sleep_until(start + time));
    let hurry = Notify::new();
    let asking = async {
        // Whether the time came or the connection failed before.
        let _ = timeout_at(start + time / ASK_AFTER, hurry.notified()).await;
        asker.sign_of(server.ip()).await
    };
    tokio::pin!(connecting, asking, end);
    let (mut failed, mut sign) = (None, None);
    while failed.is_none() || sign.is_none() {
        tokio::select! {
            biased;
            made = &mut connecting, if failed.is_none() => match made {
                Err(error) if !is_answer(&error) && !is_shortage(&error) => {
                    failed = Some(error);
                    hurry.notify_one();
                }
                made => return Ok(made?),
            },
            found = &mut asking, if sign.is_none() => sign = Some(found),
            () = &mut end => break,
        }
    }
    let sign = sign.transpose()?.flatten();
    let why = failed.map_or(NoConnection::InTime(time), NoConnection::Failed);
    Err(Failure::NoConnection { why, sign })
}
