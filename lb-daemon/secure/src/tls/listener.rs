//! The TLS listener of the API: accepts clients with a certificate, within limits.

use std::{
    future, io,
    net::{IpAddr, SocketAddr},
};

use futures::{FutureExt as _, future::BoxFuture};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use tokio_rustls::{TlsAcceptor, rustls::pki_types::CertificateDer};
use webpki::EndEntityCert;

use super::{
    Connection, Credentials, CredentialsInForce, TlsError,
    accept::{Acceptor, accept},
};
use crate::{
    access::{Lease, Peer, Quota, QuotaExceeded, TcpEnds, source_of},
    refusals::{ApiLimit, ApiListener, ApiRefusals},
};

/// Connections that may wait for the server.
const QUEUE: usize = 16;

/// Listens on an address, and returns the connections of clients that showed a certificate. Ends when the receiver is
/// dropped. Counts refusals because of a limit in `refusals`.
///
/// # Errors
/// [`TlsError::Listen`].
pub async fn listen(
    address: SocketAddr,
    credentials: Credentials,
    refusals: ApiRefusals,
) -> Result<(SocketAddr, mpsc::Receiver<Connection>), TlsError> {
    let failed = |source| TlsError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let (sender, connections) = mpsc::channel(QUEUE);
    let acceptor = ApiAcceptor { credentials, slots: ConnectionSlots::default(), refusals };
    tokio::spawn(accept(listener, acceptor, sender));
    Ok((bound, connections))
}

/// The API's.
struct ApiAcceptor {
    credentials: Credentials,
    slots: ConnectionSlots,
    refusals: ApiRefusals,
}

impl Acceptor for ApiAcceptor {
    type Connection = Connection;

    const LOG: (&str, u32) = ("TLS", 5);

    fn admit(
        &self,
        stream: TcpStream,
        client: SocketAddr,
    ) -> Result<BoxFuture<'static, io::Result<Connection>>, QuotaExceeded> {
        let refused = |_: &QuotaExceeded| {
            self.refusals.count(ApiListener::Tls, ApiLimit::Connections);
        };
        let slot = self.slots.take(client.ip()).inspect_err(refused)?;
        Ok(shake_hands(stream, self.credentials.clone(), slot).boxed())
    }
}

async fn shake_hands(
    stream: TcpStream,
    credentials: Credentials,
    slot: ConnectionSlot,
) -> io::Result<Connection> {
    stream.set_nodelay(true)?;
    let ends = TcpEnds { client: stream.peer_addr()?, daemon: stream.local_addr()? };
    let mut watch = credentials.watch();
    let CredentialsInForce { config, clients, epoch, .. } = watch.borrow_and_update().clone();
    let stream = TlsAcceptor::from(config).accept(stream).await?;
    let peer = clients.peer(&names(stream.get_ref().1.peer_certificates()));
    let peer = Peer { connection: Some(ends), ..peer };
    let revoked = async move {
        // If the credentials are gone, nothing can revoke them.
        if watch.wait_for(|now| now.epoch != epoch).await.is_err() {
            future::pending().await
        }
    };
    Ok(Connection::remote(stream, peer, slot, revoked))
}

/// Most connections at a time.
const MAX_CONNECTIONS: usize = 1024;
/// Most of them from one source, so that one client cannot keep the others out.
const MAX_OF_ONE: usize = 32;

#[derive(Clone, Debug)]
struct ConnectionSlots(Quota<IpAddr>);

/// The slot of a connection, released on drop.
pub(super) type ConnectionSlot = Lease<IpAddr>;

impl Default for ConnectionSlots {
    fn default() -> Self {
        Self(Quota::new(MAX_CONNECTIONS, MAX_OF_ONE))
    }
}

impl ConnectionSlots {
    fn take(&self, address: IpAddr) -> Result<ConnectionSlot, QuotaExceeded> {
        self.0.take(source_of(address))
    }
}

/// DNS names and URIs of a certificate (subject alternative names, RFC 5280, 4.2.1.6), without the common name (RFC
/// 9525, 2).
pub fn names(chain: Option<&[CertificateDer<'_>]>) -> Vec<String> {
    let Some(certificate) = chain.and_then(<[_]>::first) else { return Vec::new() };
    let Ok(certificate) = EndEntityCert::try_from(certificate) else { return Vec::new() };
    let names = certificate.valid_dns_names().chain(certificate.valid_uri_names());
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_source_leaves_places_to_others_and_gives_its_own_back() {
        let slots = ConnectionSlots::default();
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        let mut of_one: Vec<_> =
            (0..MAX_OF_ONE).map(|n| slots.take(at(&format!("2001:db8::{n:x}"))).unwrap()).collect();
        assert!(slots.take(at("2001:db8::ffff")).is_err());
        let _other = slots.take(at("2001:db8:0:1::1")).unwrap();
        of_one.pop();
        of_one.push(slots.take(at("2001:db8::ffff")).unwrap());
        drop(of_one);
        let all: Vec<_> = (1..MAX_CONNECTIONS)
            .map(|n| slots.take(at(&format!("10.0.{}.{}", n / 256, n % 256))).unwrap())
            .collect();
        assert!(slots.take(at("192.0.2.1")).is_err());
        drop(all);
        assert_eq!(slots.0.sources(), 1);
    }
}
