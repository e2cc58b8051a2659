//! Takes messages of peers.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use futures::StreamExt;
use lb_base::rate_limited_log::RateLimit;
use lb_model::Name;
use lb_peers::{MessageReader, PeerMessageError};
use spillway_proto::peers::v1::{
    CountPacketsRequest, CountPacketsResponse, DigestTablesRequest, DigestTablesResponse,
    ExchangeRequest, ExchangeResponse, PoolDigest,
    peers_server::{Peers, PeersServer},
};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, transport::Server};

use super::{
    Direction, ErrorBoard, Inbox, MAX_MESSAGE, PeerSecurity,
    connection::Caller,
    credentials::owner,
    listener::{self, PeerAcceptor},
    questions::{Answers, MOST_BACKENDS},
};
use crate::sharing::FleetView;
use lb_secure::tls;

/// Time for a whole call. A message is repeated long before.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);
/// Calls of one connection at a time: a peer has one message on its way, and perhaps one that it gave up.
const MAX_STREAMS: u32 = 4;
/// Most bytes of the headers of a call.
const MAX_HEADERS: u32 = 16 << 10;
/// Time that calls under way have left at the end.
const DEADLINE: Duration = Duration::from_millis(500);
/// Log lines a second about messages that are refused.
const LINES: u32 = 1;

/// What a server works with.
#[derive(Clone, Debug)]
pub(crate) struct PeerServerParts {
    /// Of this balancer.
    pub(crate) name: Name,
    pub(crate) security: PeerSecurity,
    pub(crate) view: watch::Receiver<FleetView>,
    pub(crate) inbox: Inbox,
    pub(crate) errors: ErrorBoard,
    pub(crate) answers: Arc<dyn Answers>,
}

/// A server that runs.
#[derive(Debug)]
pub(crate) struct PeerServer {
    #[cfg(test)]
    address: SocketAddr,
    stop: CancellationToken,
    /// Ends the connections that are left.
    end: CancellationToken,
    task: JoinHandle<()>,
}

impl PeerServer {
    /// Listens on an address, and serves until [`Self::stop`].
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub(crate) async fn start(address: SocketAddr, parts: PeerServerParts) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        #[cfg(test)]
        let address = listener.local_addr()?;
        let (stop, end) = (CancellationToken::new(), CancellationToken::new());
        let task = tokio::spawn(serve(listener, parts, stop.clone(), end.clone()));
        Ok(Self {
            #[cfg(test)]
            address,
            stop,
            end,
            task,
        })
    }

    /// Where it listens.
    #[cfg(test)]
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns once its address is free again.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        if timeout(DEADLINE, &mut self.task).await.is_err() {
            self.task.abort();
            let _aborted = (&mut self.task).await;
        }
    }
}

impl Drop for PeerServer {
    fn drop(&mut self) {
        self.stop.cancel();
        self.end.cancel();
        self.task.abort();
    }
}

async fn serve(
    listener: TcpListener,
    parts: PeerServerParts,
    stop: CancellationToken,
    end: CancellationToken,
) {
    let follow = {
        let security = parts.security.clone();
        async move {
            match security {
                PeerSecurity::Tls(credentials) => credentials.follow().await,
                PeerSecurity::Plain => std::future::pending().await,
            }
        }
    };
    let (to, connections) = listener::channel();
    let acceptor = PeerAcceptor::new(parts.security.clone(), parts.view.clone(), end);
    let accept = tls::accept(listener, acceptor, to);
    let service = Exchange { parts, reader: MessageReader::default(), rate_limit: Arc::default() };
    let service = PeersServer::new(service)
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE);
    // The windows have room for a whole message, so that a distant peer need not wait for each of its pieces.
    let window = MAX_MESSAGE as u32;
    let calls = Server::builder()
        .timeout(CALL_TIMEOUT)
        .concurrency_limit_per_connection(MAX_STREAMS as usize)
        .max_concurrent_streams(MAX_STREAMS)
        .http2_max_header_list_size(MAX_HEADERS)
        .initial_stream_window_size(window)
        .initial_connection_window_size(window)
        .add_service(service)
        .serve_with_incoming_shutdown(
            ReceiverStream::new(connections).map(Ok::<_, io::Error>),
            stop.clone().cancelled_owned(),
        );
    // Accepting ends when the server does, and with it the listener.
    tokio::select! {
        served = calls => {
            if let Err(error) = served {
                tracing::error!("peers: {}", lb_base::error_chain::message(&error));
            }
        }
        () = async { tokio::join!(accept, follow); } => {}
    }
}

#[derive(Debug)]
struct Exchange {
    parts: PeerServerParts,
    reader: MessageReader,
    rate_limit: Arc<RateLimit>,
}

#[tonic::async_trait]
impl Peers for Exchange {
    async fn exchange(
        &self,
        request: Request<ExchangeRequest>,
    ) -> Result<Response<ExchangeResponse>, Status> {
        let caller = caller(&request)?;
        self.take(&caller, request.into_inner())
            .inspect_err(|status| self.note_refusal(&caller, status.message()))?;
        Ok(Response::new(ExchangeResponse {}))
    }

    async fn count_packets(
        &self,
        request: Request<CountPacketsRequest>,
    ) -> Result<Response<CountPacketsResponse>, Status> {
        self.require_member(&caller(&request)?)?;
        let CountPacketsRequest { backends } = request.into_inner();
        if backends.len() > MOST_BACKENDS {
            return Err(Status::invalid_argument(format!("more than {MOST_BACKENDS} backends")));
        }
        let packets =
            self.parts.answers.count_packets(backends).await.map_err(Status::unavailable)?;
        Ok(Response::new(CountPacketsResponse { packets }))
    }

    async fn digest_tables(
        &self,
        request: Request<DigestTablesRequest>,
    ) -> Result<Response<DigestTablesResponse>, Status> {
        self.require_member(&caller(&request)?)?;
        let digests = self.parts.answers.digest_tables().await.map_err(Status::unavailable)?;
        let pool = |(pool, digest): (Name, u64)| PoolDigest { pool: pool.to_string(), digest };
        let pools = digests.into_iter().map(pool).collect();
        Ok(Response::new(DigestTablesResponse { pools }))
    }
}

fn caller<T>(request: &Request<T>) -> Result<Caller, Status> {
    let caller = request.extensions().get::<Caller>().cloned();
    caller.ok_or_else(|| Status::internal("the connection is not known"))
}

impl Exchange {
    /// Without certificates anybody may ask.
    fn require_member(&self, caller: &Caller) -> Result<(), Status> {
        let Some(names) = &caller.certified else { return Ok(()) };
        let view = self.parts.view.borrow();
        match names.iter().any(|name| view.peers.contains_key(name)) {
            true => Ok(()),
            false => Err(Status::permission_denied("the caller is not a member of the fleet")),
        }
    }

    fn take(&self, caller: &Caller, request: ExchangeRequest) -> Result<(), Status> {
        let message = self.reader.from_request(request).map_err(|error| match error {
            PeerMessageError::Protocol { .. } => Status::failed_precondition(error.to_string()),
            _ => Status::invalid_argument(error.to_string()),
        })?;
        let from = &message.message.from;
        if let Some(names) = &caller.certified
            && !names.contains(from)
        {
            let cause =
                format!("the message is of {from}, but the certificate is {}", owner(names));
            return Err(Status::unauthenticated(cause));
        }
        if *from == self.parts.name {
            return Err(Status::invalid_argument(format!(
                "{from} is this balancer itself: two balancers have one name"
            )));
        }
        {
            let view = self.parts.view.borrow();
            if !view.is_known() {
                let cause = format!("{} has not read who belongs to its fleet", self.parts.name);
                return Err(Status::unavailable(cause));
            }
            if !view.membership.members.contains_key(from) && !view.peers.contains_key(from) {
                let cause = format!("{from} is not a member of the fleet");
                return Err(Status::permission_denied(cause));
            }
        }
        self.parts.errors.note(from, Direction::Receiving, Ok(()));
        self.parts.inbox.put(message);
        Ok(())
    }

    /// Notes a refusal with the peers whose certificate it is, or in the log alone.
    fn note_refusal(&self, caller: &Caller, cause: &str) {
        let peers: Vec<Name> = {
            let view = self.parts.view.borrow();
            let certified = caller.certified.iter().flatten();
            certified.filter(|name| view.peers.contains_key(*name)).cloned().collect()
        };
        for peer in &peers {
            self.parts.errors.note(peer, Direction::Receiving, Err(cause.to_owned()));
        }
        if peers.is_empty()
            && let Some(left_out) = self.rate_limit.now(LINES)
        {
            let client = caller.address;
            tracing::warn!(%client, left_out, "peers: a message from {client} was refused: {cause:?}");
        }
    }
}
