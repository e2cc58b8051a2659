//! Sends messages to peers: a task and a connection for each, one message at a time, the latest.

use std::{collections::BTreeMap, future::pending, io, net::SocketAddr, sync::Arc, time::Duration};

use hyper_util::rt::TokioIo;
use lb_base::error_chain;
use lb_fleet::settings::source;
use lb_model::Name;
use lb_peers::{EncodedReports, to_request};
use lb_sharing::{Message, RECENT};
use spillway_proto::peers::v1::peers_client::PeersClient;
use tokio::{
    net::{TcpSocket, TcpStream},
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tokio_rustls::{TlsConnector, client::TlsStream, rustls::pki_types::ServerName};
use tokio_util::{
    either::Either,
    sync::{CancellationToken, DropGuard},
};
use tonic::transport::Endpoint;

use super::{Direction, ErrorBoard, MAX_MESSAGE, PeerSecurity};

/// Time for a message and its answer. As long counts a balancer as there that was heard from, so waiting longer would
/// help nobody; less would cut off peers on other continents, or those that lost one packet (TCP repeats it after 200 ms
/// and more). It also is how long a newer message can wait behind one that is lost.
const EXCHANGE_TIMEOUT: Duration = RECENT;
/// Time to connect, with the handshakes of TCP and TLS: three round trips, each as slow as an exchange may be.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Pauses after failures: the first one, and the longest. Half of each is chosen at random.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// An older message is not sent any more: the loop that made it hangs, and must not look alive.
const MAX_AGE: Duration = RECENT;

/// The connections to all peers.
#[derive(Debug)]
pub(crate) struct PeerClients {
    /// Where its peers reach this balancer.
    own: SocketAddr,
    security: PeerSecurity,
    errors: ErrorBoard,
    peers: BTreeMap<Name, PeerClient>,
}

/// One peer's. Its task ends when this is dropped.
#[derive(Debug)]
struct PeerClient {
    address: SocketAddr,
    outgoing: watch::Sender<Option<Outgoing>>,
    _stop: DropGuard,
}

#[derive(Clone, Debug)]
struct Outgoing {
    message: Arc<Message>,
    reports: EncodedReports,
    made: Instant,
}

impl PeerClients {
    pub(crate) fn new(own: SocketAddr, security: PeerSecurity, errors: ErrorBoard) -> Self {
        Self { own, security, errors, peers: BTreeMap::new() }
    }

    /// Sets who the peers are. One with another address gets a new connection.
    pub(crate) fn set_peers(&mut self, peers: &BTreeMap<Name, SocketAddr>) {
        self.peers.retain(|name, client| peers.get(name) == Some(&client.address));
        self.errors.retain(|name| peers.contains_key(name));
        for (name, address) in peers {
            if !self.peers.contains_key(name) {
                let client = self.start(name.clone(), *address);
                self.peers.insert(name.clone(), client);
            }
        }
    }

    /// Sends each peer its message as soon as the one before is answered, in place of any other that waits. What all of
    /// them say of groups is the same, and is encoded once.
    pub(crate) fn send(&self, messages: Vec<(Name, Message)>) {
        let Some((_, first)) = messages.first() else { return };
        let (reports, made) = (EncodedReports::new(&first.groups), Instant::now());
        for (to, message) in messages {
            if let Some(client) = self.peers.get(&to) {
                let (message, reports) = (Arc::new(message), reports.clone());
                client.outgoing.send_replace(Some(Outgoing { message, reports, made }));
            }
        }
    }

    fn start(&self, name: Name, address: SocketAddr) -> PeerClient {
        let (outgoing, messages) = watch::channel(None);
        let stop = CancellationToken::new();
        let sender = PeerSender {
            name,
            address,
            own: self.own,
            security: self.security.clone(),
            errors: self.errors.clone(),
            connection: None,
        };
        let stopped = stop.clone();
        tokio::spawn(async move { stopped.run_until_cancelled(sender.run(messages)).await });
        PeerClient { address, outgoing, _stop: stop.drop_guard() }
    }
}

/// The task of one peer.
struct PeerSender {
    name: Name,
    address: SocketAddr,
    own: SocketAddr,
    security: PeerSecurity,
    errors: ErrorBoard,
    /// With the version of the credentials that it was made with.
    connection: Option<(PeersClient, u64)>,
}

/// Why a message was not taken.
enum SendError {
    /// The connection is of no use any more.
    Connection(String),
    /// The peer refused it.
    Refused(String),
}

impl PeerSender {
    async fn run(mut self, mut messages: watch::Receiver<Option<Outgoing>>) {
        let mut pause = BACKOFF.0;
        loop {
            // The sender is dropped only together with this task.
            if messages.changed().await.is_err() {
                return pending().await;
            }
            let result = self.send_latest(&mut messages).await;
            let failed = match result {
                Ok(()) => {
                    pause = BACKOFF.0;
                    self.errors.note(&self.name, Direction::Sending, Ok(()));
                    continue;
                }
                Err(SendError::Refused(cause)) => cause,
                Err(SendError::Connection(cause)) => {
                    self.connection = None;
                    cause
                }
            };
            self.errors.note(&self.name, Direction::Sending, Err(failed));
            sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
            pause = (pause * 2).min(BACKOFF.1);
        }
    }

    async fn send_latest(
        &mut self,
        messages: &mut watch::Receiver<Option<Outgoing>>,
    ) -> Result<(), SendError> {
        let version = match &self.security {
            PeerSecurity::Tls(credentials) => credentials.client().1,
            PeerSecurity::Plain => 0,
        };
        let (connection, _) = match self.connection.take().filter(|(_, made)| *made == version) {
            Some(connection) => self.connection.insert(connection),
            None => {
                let connection = self.connect().await.map_err(SendError::Connection)?;
                self.connection.insert((connection, version))
            }
        };
        // Connecting takes a while: there may be a newer message.
        let outgoing = messages.borrow_and_update().clone();
        let Some(Outgoing { message, reports, .. }) =
            outgoing.filter(|it| it.made.elapsed() <= MAX_AGE)
        else {
            return Ok(());
        };
        let exchange = connection.exchange(to_request(&message, &reports));
        match timeout(EXCHANGE_TIMEOUT, exchange).await {
            Ok(Ok(_)) => Ok(()),
            Err(_) => Err(SendError::Connection(format!(
                "{}: no answer within {EXCHANGE_TIMEOUT:?}",
                self.address
            ))),
            Ok(Err(status)) => {
                // An error of the connection has a cause, a peer's answer has none.
                let cause = std::error::Error::source(&status).map(error_chain::message);
                Err(match cause {
                    Some(cause) => SendError::Connection(format!("{}: {cause}", self.address)),
                    None => SendError::Refused(format!("refused: {}", status.message())),
                })
            }
        }
    }

    async fn connect(&self) -> Result<PeersClient, String> {
        // How it failed, which the transport says less well.
        let (failed, mut failure) = watch::channel(None);
        let (address, own) = (self.address, self.own);
        let (security, name) = (self.security.clone(), self.name.clone());
        let connector = tower::service_fn(move |_| {
            let (security, name, failed) = (security.clone(), name.clone(), failed.clone());
            async move {
                let connected = connect(address, own, &security, &name).await;
                connected.map(TokioIo::new).map_err(|cause| {
                    failed.send_replace(Some(cause.clone()));
                    io::Error::other(cause)
                })
            }
        });
        let endpoint = Endpoint::from_static("http://peer");
        match timeout(CONNECT_TIMEOUT, endpoint.connect_with_connector(connector)).await {
            Ok(Ok(channel)) => Ok(PeersClient::new(channel)
                .max_encoding_message_size(MAX_MESSAGE)
                .max_decoding_message_size(1 << 10)),
            Ok(Err(error)) => {
                let cause = failure.borrow_and_update().clone();
                let cause = cause.unwrap_or_else(|| error_chain::message(&error));
                Err(format!("{address}: {cause}"))
            }
            Err(_) => Err(format!("{address}: cannot connect within {CONNECT_TIMEOUT:?}")),
        }
    }
}

/// Connects to a peer, by [`source`] from where peers reach this balancer.
pub(super) async fn connect(
    address: SocketAddr,
    own: SocketAddr,
    security: &PeerSecurity,
    name: &Name,
) -> Result<Either<TcpStream, TlsStream<TcpStream>>, String> {
    let failed = |error: io::Error| format!("cannot connect: {}", error_chain::message(&error));
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    };
    let socket = socket.map_err(failed)?;
    if let Some(source) = source(own.ip(), address.ip()) {
        socket.bind((source, 0).into()).map_err(|error| {
            let cause = match error.kind() {
                io::ErrorKind::AddrNotAvailable => "this host does not have it".into(),
                _ => error_chain::message(&error),
            };
            format!("cannot connect from {source}, the address in [fleet]: {cause}")
        })?;
    }
    let stream = socket.connect(address).await.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    let PeerSecurity::Tls(credentials) = security else { return Ok(Either::Left(stream)) };
    let (config, _) = credentials.client();
    let server = ServerName::try_from(name.as_str().to_owned())
        .map_err(|error| format!("{name} cannot be the name of a certificate: {error}"))?;
    let connected = TlsConnector::from(config).connect(server, stream).await;
    connected.map(Either::Right).map_err(|error| format!("TLS: {}", error_chain::message(&error)))
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn a_peer_sees_the_address_of_the_balancer() {
        let peer = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (to, name) = (peer.local_addr().unwrap(), Name::new("peer").unwrap());
        // As the kernel takes it without a choice, 127.0.0.1, and where there is none.
        for (own, seen) in [
            ("127.0.0.2:7946", "127.0.0.2"),
            ("[::1]:7946", "127.0.0.1"),
            ("192.0.2.1:7946", "127.0.0.1"),
            ("0.0.0.0:7946", "127.0.0.1"),
        ] {
            let connecting = connect(to, at(own), &PeerSecurity::Plain, &name);
            let (connected, accepted) = tokio::join!(connecting, peer.accept());
            connected.unwrap();
            assert_eq!(accepted.unwrap().1.ip().to_string(), seen, "{own}");
        }
    }

    #[tokio::test]
    async fn an_address_that_the_host_has_lost_is_named() {
        let name = Name::new("peer").unwrap();
        let connecting =
            connect(at("192.0.2.9:1"), at("192.0.2.1:7946"), &PeerSecurity::Plain, &name);
        assert_eq!(
            connecting.await.err().unwrap(),
            "cannot connect from 192.0.2.1, the address in [fleet]: this host does not have it"
        );
    }
}
