use std::{future, io, net::SocketAddr, sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

use super::{
    Connection, Credentials, InForce, TlsError,
    identity::names,
    slots::{Slot, Slots},
};
use crate::{
    access::{Peer, TcpEnds},
    metrics::{ApiLimit, Door, Live},
};
use lb_base::rate_limited_log::RateLimit;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Connections that wait for the server.
const WAITING: usize = 16;
/// Lines a second about connections that did not come about.
const LINES: u32 = 5;

/// Listens on an address, and hands over connections of clients that showed a certificate. Ends when
/// nobody takes them. What is refused because of a limit is counted in `live`.
///
/// # Errors
/// [`TlsError::Listen`].
pub async fn listen(
    address: SocketAddr,
    credentials: Credentials,
    live: Live,
) -> Result<(SocketAddr, mpsc::Receiver<Connection>), TlsError> {
    let failed = |source| TlsError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let (sender, connections) = mpsc::channel(WAITING);
    tokio::spawn(accept(listener, credentials, sender, live));
    Ok((bound, connections))
}

async fn accept(
    listener: TcpListener,
    credentials: Credentials,
    to: mpsc::Sender<Connection>,
    live: Live,
) {
    let (slots, seldom) = (Slots::default(), Arc::new(RateLimit::default()));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = to.closed() => return,
        };
        let (stream, client) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                say(&seldom, "no client", &error.to_string());
                // Out of descriptors, for instance: some may come free.
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let slot = match slots.take(client.ip()) {
            Ok(slot) => slot,
            Err(exceeded) => {
                live.api_refused(Door::Tls, ApiLimit::Connections);
                say(&seldom, &client.to_string(), &format!("there are {exceeded}"));
                continue;
            }
        };
        let (credentials, to, seldom) = (credentials.clone(), to.clone(), Arc::clone(&seldom));
        tokio::spawn(async move {
            match timeout(HANDSHAKE, shake_hands(stream, &credentials, slot)).await {
                Ok(Ok(connection)) => drop(to.send(connection).await),
                Ok(Err(error)) => say(&seldom, &client.to_string(), &error.to_string()),
                Err(_) => say(&seldom, &client.to_string(), "no handshake within 5 s"),
            }
        });
    }
}

async fn shake_hands(
    stream: TcpStream,
    credentials: &Credentials,
    slot: Slot,
) -> io::Result<Connection> {
    stream.set_nodelay(true)?;
    let ends = TcpEnds { client: stream.peer_addr()?, daemon: stream.local_addr()? };
    let mut watch = credentials.watch();
    let InForce { config, clients, epoch, .. } = watch.borrow_and_update().clone();
    let stream = TlsAcceptor::from(config).accept(stream).await?;
    let peer = clients.peer(&names(stream.get_ref().1.peer_certificates()));
    let peer = Peer { connection: Some(ends), ..peer };
    let over = async move {
        // Without credentials nobody is left to take rights away.
        if watch.wait_for(|now| now.epoch != epoch).await.is_err() {
            future::pending().await
        }
    };
    Ok(Connection::remote(stream, peer, slot, over))
}

fn say(seldom: &RateLimit, client: &str, cause: &str) {
    if let Some(left_out) = seldom.now(LINES) {
        tracing::warn!(client, left_out, "TLS: no connection with {client}: {cause}");
    }
}
