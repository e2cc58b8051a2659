//! What a peer is asked: how many packets it sent to backends, by which a drain knows that it is done, and the digests of
//! its tables, by which a status names the pools that differ.

use std::{collections::BTreeMap, fmt, io, net::SocketAddr, time::Duration};

use hyper_util::rt::TokioIo;
use lb_base::error_chain;
use lb_model::Name;
use spillway_proto::peers::v1::{
    CountPacketsRequest, DigestTablesRequest, PoolDigest, peers_client::PeersClient,
};
use tokio::time::timeout;
use tonic::{Response, Status, transport::Endpoint};

use super::{MAX_MESSAGE, PeerSecurity, client};

/// Most backends of a question.
pub(super) const MOST_BACKENDS: usize = 10_000;

/// Time for a connection, a question and its answer.
const TIMEOUT: Duration = Duration::from_secs(3);

/// What decides packets of each pool.
pub(crate) type TableDigests = BTreeMap<Name, u64>;

/// What this balancer answers to its peers.
#[tonic::async_trait]
pub trait Answers: fmt::Debug + Send + Sync {
    /// Packets that it sent to backends since its counters began, in their order.
    async fn count_packets(&self, backends: Vec<String>) -> Result<Vec<u64>, String>;
    /// Digests of its tables.
    async fn digest_tables(&self) -> Result<TableDigests, String>;
}

/// A peer that is asked, by a connection of its own for each question.
#[derive(Clone, Debug)]
pub(crate) struct AskedPeer {
    pub(crate) name: Name,
    pub(crate) address: SocketAddr,
    /// Where this balancer is reached.
    pub(crate) own: SocketAddr,
    pub(crate) security: PeerSecurity,
}

impl AskedPeer {
    /// Packets that it sent to backends since its counters began, in their order.
    ///
    /// # Errors
    /// A sentence: it does not answer.
    pub(crate) async fn count_packets(&self, backends: Vec<String>) -> Result<Vec<u64>, String> {
        let expected = backends.len();
        let request = CountPacketsRequest { backends };
        let answer = self.ask(async |peer| peer.count_packets(request).await).await?;
        match answer.packets.len() == expected {
            true => Ok(answer.packets),
            false => Err(format!("answered {} counts instead of {expected}", answer.packets.len())),
        }
    }

    /// The digests of its tables.
    ///
    /// # Errors
    /// A sentence: it does not answer, or is too old for the question.
    pub(crate) async fn digest_tables(&self) -> Result<TableDigests, String> {
        let request = DigestTablesRequest {};
        let answer = self.ask(async |peer| peer.digest_tables(request).await).await?;
        let named = answer.pools.into_iter().map(|PoolDigest { pool, digest }| {
            let pool = Name::new(&pool).map_err(|error| format!("answered {pool:?}: {error}"))?;
            Ok((pool, digest))
        });
        named.collect()
    }

    async fn ask<T>(
        &self,
        question: impl AsyncFnOnce(&mut PeersClient) -> Result<Response<T>, Status>,
    ) -> Result<T, String> {
        let peer = self.clone();
        let connector = tower::service_fn(move |_| {
            let AskedPeer { name, address, own, security } = peer.clone();
            async move {
                let connected = client::connect(address, own, &security, &name).await;
                connected.map(TokioIo::new).map_err(io::Error::other)
            }
        });
        let ask = async {
            let endpoint = Endpoint::from_static("http://peer");
            let channel = endpoint.connect_with_connector(connector).await;
            let channel = channel.map_err(|error| error_chain::message(&error))?;
            let mut client = PeersClient::new(channel).max_decoding_message_size(MAX_MESSAGE);
            let answer = question(&mut client).await;
            answer.map(Response::into_inner).map_err(|status| status.message().to_owned())
        };
        timeout(TIMEOUT, ask).await.map_err(|_| format!("no answer within {TIMEOUT:?}"))?
    }
}
