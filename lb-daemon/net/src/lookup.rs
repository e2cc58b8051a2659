//! Questions to the kernel.

use std::{collections::BTreeSet, net::IpAddr, time::Duration};

use futures::{StreamExt, stream};
use rtnetlink::Handle;
use tokio::{task::JoinHandle, time::timeout};
use tracing::warn;

use super::{
    NetError, Unresolved,
    route::{Route, route_to},
};

/// Look-ups under way at once; the answers fit the socket's buffer.
const AT_ONCE: usize = 32;

/// Longest wait for an answer that the kernel gives at once, or, being lost, never.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the routes of addresses are; `None` where the kernel did not answer.
pub(super) type Routes = Vec<(IpAddr, Option<Result<Route, Unresolved>>)>;

/// A netlink socket in this thread's network namespace, and the task that serves it. It ends when all
/// its handles are gone, or when the socket fails.
pub(super) fn connect() -> Result<(Handle, JoinHandle<()>), NetError> {
    let (connection, handle, _) = rtnetlink::new_connection().map_err(NetError::Socket)?;
    Ok((handle, tokio::spawn(connection)))
}

/// Looks up the routes of all `addresses`.
pub(super) async fn routes(handle: Handle, addresses: BTreeSet<IpAddr>) -> Routes {
    let look_up = |address| {
        let handle = handle.clone();
        async move {
            let answer = timeout(PATIENCE, route_to(handle, address, 0)).await;
            let route = match answer {
                Ok(Ok(route)) => Some(route),
                Ok(Err(error)) => {
                    warn!("net: route to {address}: {error}");
                    None
                }
                Err(_) => {
                    warn!("net: route to {address}: no answer from the kernel");
                    None
                }
            };
            (address, route)
        }
    };
    stream::iter(addresses).map(look_up).buffer_unordered(AT_ONCE).collect().await
}
