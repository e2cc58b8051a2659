//! Connecting to a backend within a time, and finding out whether its host is there if that fails.

use std::{io, time::Duration};

use tokio::{
    net::TcpStream,
    sync::Notify,
    time::{Instant, sleep_until, timeout_at},
};

use super::{Failure, NoConnection};
use crate::{
    connect::{Destination, connect, is_answer, is_shortage},
    host::HostQuestion,
};

/// The host is probed after this fraction of the timeout without any answer: late enough that hosts that serve are
/// never probed, early enough that the probe has three times as long.
const ASK_AFTER: u32 = 4;

/// Connects within `time`, and probes the host meanwhile.
pub(super) async fn connect_or_probe_host(
    to: Destination,
    time: Duration,
    question: HostQuestion<'_>,
) -> Result<TcpStream, Failure> {
    wait_or_probe_host(connect(to), to, NoConnection::TimedOut(time), time, question).await
}

/// Waits for `waiting` within `time`, and probes the host within the same time, so that the check of a host that is
/// down does not take longer. `late` is the reason if nothing answers.
pub(super) async fn wait_or_probe_host<T>(
    waiting: impl Future<Output = io::Result<T>>,
    to: Destination,
    late: NoConnection,
    time: Duration,
    question: HostQuestion<'_>,
) -> Result<T, Failure> {
    let start = Instant::now();
    let end = sleep_until(start + time);
    let hurry = Notify::new();
    let asking = async {
        // Either the time has come, or `waiting` has failed before.
        let _ = timeout_at(start + time / ASK_AFTER, hurry.notified()).await;
        question.ask(to.host).await
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
    Err(Failure::NoConnection { why, sign, vip: to.vip() })
}
