//! Accepts connections of peers, within limits.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use futures::{FutureExt as _, future::BoxFuture};
use tokio::{
    net::TcpStream,
    sync::{mpsc, watch},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::{
    connection::{Caller, PeerConnection, PeerStream},
    credentials::{PeerSecurity, balancers},
};
use crate::sharing::FleetView;
use lb_secure::{
    access::{Lease, Quota, QuotaExceeded, source_of},
    tls::Acceptor,
};

/// Connections that may wait for the server.
const QUEUE: usize = 16;
/// Most connections from addresses of peers at a time, and of one of them: a peer needs one, and another one while it
/// reconnects, so there is room for a thousand peers. Several balancers may be behind one address.
const KNOWN: (usize, usize) = (2_048, 32);
/// Most connections from any other address. They leave the places of peers alone; a peer behind address translation is
/// one of them.
const STRANGERS: (usize, usize) = (64, 16);

#[derive(Clone, Debug)]
struct ConnectionSlots {
    known: Quota<IpAddr>,
    strangers: Quota<IpAddr>,
}

impl ConnectionSlots {
    fn new() -> Self {
        let quota = |(all, of_one)| Quota::new(all, of_one);
        Self { known: quota(KNOWN), strangers: quota(STRANGERS) }
    }

    fn take(&self, address: IpAddr, view: &FleetView) -> Result<Lease<IpAddr>, QuotaExceeded> {
        let address = address.to_canonical();
        if view.peers.values().any(|peer| peer.ip().to_canonical() == address) {
            // Not by network: a hundred balancers may be in one /64.
            return self.known.take(address);
        }
        self.strangers.take(source_of(address))
    }
}

/// Makes connections of peers. All of them end with `end`: a peer must not go on talking to a server whose messages nobody
/// takes.
pub(super) struct PeerAcceptor {
    security: PeerSecurity,
    view: watch::Receiver<FleetView>,
    slots: ConnectionSlots,
    end: CancellationToken,
}

impl PeerAcceptor {
    pub(super) fn new(
        security: PeerSecurity,
        view: watch::Receiver<FleetView>,
        end: CancellationToken,
    ) -> Self {
        Self { security, view, slots: ConnectionSlots::new(), end }
    }
}

impl Acceptor for PeerAcceptor {
    type Connection = PeerConnection;

    const LOG: (&str, u32) = ("peers", 1);

    fn admit(
        &self,
        stream: TcpStream,
        client: SocketAddr,
    ) -> Result<BoxFuture<'static, io::Result<PeerConnection>>, QuotaExceeded> {
        let slot = self.slots.take(client.ip(), &self.view.borrow())?;
        let (security, end) = (self.security.clone(), self.end.clone());
        Ok(shake_hands(stream, client, security, end, slot).boxed())
    }
}

/// A channel for accepted connections.
pub(super) fn channel() -> (mpsc::Sender<PeerConnection>, mpsc::Receiver<PeerConnection>) {
    mpsc::channel(QUEUE)
}

async fn shake_hands(
    stream: TcpStream,
    address: SocketAddr,
    security: PeerSecurity,
    end: CancellationToken,
    slot: Lease<IpAddr>,
) -> io::Result<PeerConnection> {
    stream.set_nodelay(true)?;
    let PeerSecurity::Tls(credentials) = security else {
        let caller = Caller { address, certified: None };
        let (stream, end) = (PeerStream::Left(stream), end.cancelled_owned());
        return Ok(PeerConnection::new(stream, caller, end, slot));
    };
    let mut watch = credentials.watch();
    let (config, version) = {
        let now = watch.borrow_and_update();
        (Arc::clone(&now.server), now.version)
    };
    let stream = TlsAcceptor::from(config).accept(stream).await?;
    let certified = Some(balancers(stream.get_ref().1.peer_certificates()));
    let revoked = async move {
        tokio::select! {
            // If the credentials are gone, nothing can revoke them.
            Ok(_) = watch.wait_for(|now| now.version != version) => {}
            () = end.cancelled() => {}
        }
    };
    let caller = Caller { address, certified };
    Ok(PeerConnection::new(PeerStream::Right(Box::new(stream)), caller, revoked, slot))
}

#[cfg(test)]
mod tests {
    use lb_model::Name;

    use super::*;

    #[test]
    fn strangers_leave_the_places_of_peers_alone() {
        let slots = ConnectionSlots::new();
        let mut view = FleetView::default();
        view.peers.insert(Name::new("lb-2").unwrap(), "[2001:db8::2]:7000".parse().unwrap());
        let peer: IpAddr = "2001:db8::2".parse().unwrap();
        let strangers: Vec<_> = (0..=STRANGERS.0)
            .filter_map(|n| slots.take(IpAddr::from([10, 0, 0, n as u8]), &view).ok())
            .collect();
        assert_eq!(strangers.len(), STRANGERS.0);
        // One in the same network is a stranger, and takes no place of the peer either.
        assert!(slots.take("2001:db8::3".parse().unwrap(), &view).is_err());
        let of_peer: Vec<_> = (0..=KNOWN.1).filter_map(|_| slots.take(peer, &view).ok()).collect();
        assert_eq!(of_peer.len(), KNOWN.1);
    }

    #[test]
    fn a_thousand_peers_of_one_network_have_places() {
        let slots = ConnectionSlots::new();
        let mut view = FleetView::default();
        let addresses = (1..=1_000_u128).map(|n| IpAddr::V6((0x2001_0db8_u128 << 96 | n).into()));
        for (n, address) in addresses.clone().enumerate() {
            view.peers.insert(Name::new(&format!("lb-{n}")).unwrap(), (address, 7_000).into());
        }
        // Each has one, and makes another one before the first has ended.
        let taken: Vec<_> =
            addresses.flat_map(|address| [address; 2]).map(|it| slots.take(it, &view)).collect();
        assert!(taken.iter().all(Result::is_ok));
    }
}
