//! Asks a peer how many packets it sent to backends, by which a drain knows that it is done.

use std::{fmt, io, net::SocketAddr, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use hyper_util::rt::TokioIo;
use lb_base::error_chain;
use lb_model::Name;
use spillway_proto::peers::v1::{CountPacketsRequest, peers_client::PeersClient};
use tokio::time::timeout;
use tonic::transport::Endpoint;

use super::{PeerSecurity, client};

/// Most backends of a request.
pub(super) const MOST_BACKENDS: usize = 10_000;
/// Largest answer, bytes: ten for each backend, and as much again.
pub(super) const MAX_COUNTS: usize = 200 << 10;

/// Time for a connection, a question and its answer.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Counts packets to backends, in their order.
type Count = dyn Fn(Vec<String>) -> BoxFuture<'static, Result<Vec<u64>, String>> + Send + Sync;

/// Where this balancer's own counters are read.
#[derive(Clone)]
pub(crate) struct PacketCounts(Arc<Count>);

impl PacketCounts {
    pub(crate) fn new<F>(count: impl Fn(Vec<String>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Vec<u64>, String>> + Send + 'static,
    {
        Self(Arc::new(move |backends| Box::pin(count(backends))))
    }

    pub(super) async fn count(&self, backends: Vec<String>) -> Result<Vec<u64>, String> {
        (self.0)(backends).await
    }
}

impl fmt::Debug for PacketCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PacketCounts")
    }
}

/// Packets that a peer sent to backends since its counters began, in their order.
///
/// # Errors
/// A sentence: it does not answer.
pub(crate) async fn count_packets(
    address: SocketAddr,
    security: &PeerSecurity,
    name: &Name,
    backends: Vec<String>,
) -> Result<Vec<u64>, String> {
    let (connected_by, peer) = (security.clone(), name.clone());
    let connector = tower::service_fn(move |_| {
        let (security, name) = (connected_by.clone(), peer.clone());
        async move {
            let connected = client::connect(address, &security, &name).await;
            connected.map(TokioIo::new).map_err(io::Error::other)
        }
    });
    let expected = backends.len();
    let ask = async {
        let channel = Endpoint::from_static("http://peer").connect_with_connector(connector).await;
        let channel = channel.map_err(|error| error_chain::message(&error))?;
        let mut client = PeersClient::new(channel).max_decoding_message_size(MAX_COUNTS);
        let answer = client.count_packets(CountPacketsRequest { backends }).await;
        answer
            .map(|answer| answer.into_inner().packets)
            .map_err(|status| status.message().to_owned())
    };
    let packets =
        timeout(TIMEOUT, ask).await.map_err(|_| format!("no answer within {TIMEOUT:?}"))??;
    match packets.len() == expected {
        true => Ok(packets),
        false => Err(format!("answered {} counts instead of {expected}", packets.len())),
    }
}
