//! Reaching a backend, and finding out whether its host is there where nothing comes of that.

use std::{io, net::IpAddr, time::Duration};

use tokio::{
    net::TcpStream,
    sync::Notify,
    time::{Instant, sleep_until, timeout_at},
};

use super::{
    Destination, Failure, NoConnection, is_shortage,
    tcp::{connect, is_answer},
};
use crate::host::Asker;

/// The host is asked when this part of the time has passed without a word of it: late enough that
/// hosts that serve are never asked, early enough that an answer has thrice as long to come.
const ASK_AFTER: u32 = 4;

/// Connects within `time`, from now.
pub(super) async fn made(
    to: Destination,
    time: Duration,
    asker: &Asker,
) -> Result<TcpStream, Failure> {
    word(connect(to), to.host, time, NoConnection::InTime(time), asker).await
}

/// What comes of `waiting`, for a word of the host, within `time` from now; `late` if nothing does.
/// The same time serves to ask the host: the check of a host that is gone takes no longer for it.
pub(super) async fn word<T>(
    waiting: impl Future<Output = io::Result<T>>,
    host: IpAddr,
    time: Duration,
    late: NoConnection,
    asker: &Asker,
) -> Result<T, Failure> {
    let start = Instant::now();
    let end = sleep_until(start + time);
    let hurry = Notify::new();
    let asking = async {
        // Whether the time came or the wait failed before.
        let _ = timeout_at(start + time / ASK_AFTER, hurry.notified()).await;
        asker.sign_of(host).await
    };
    tokio::pin!(waiting, asking, end);
    let (mut failed, mut sign) = (None, None);
    while failed.is_none() || sign.is_none() {
        tokio::select! {
            biased;
            come = &mut waiting, if failed.is_none() => match come {
                Err(error) if !is_answer(&error) && !is_shortage(&error) => {
                    failed = Some(error);
                    hurry.notify_one();
                }
                come => return Ok(come?),
            },
            found = &mut asking, if sign.is_none() => sign = Some(found),
            () = &mut end => break,
        }
    }
    let sign = sign.transpose()?.flatten();
    let why = failed.map_or(late, NoConnection::Failed);
    Err(Failure::NoConnection { why, sign })
}
