use std::{io, net::SocketAddr};

use tokio::net::TcpListener;

/// The listener cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("http {address}")]
pub struct BindError {
    address: SocketAddr,
    source: io::Error,
}

impl BindError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self.source.kind() {
            io::ErrorKind::AddrInUse => "somebody listens there already: give --http another port",
            io::ErrorKind::AddrNotAvailable => "give --http an address that this host has",
            io::ErrorKind::PermissionDenied => "give --http a port above 1023",
            _ => "give --http an address and a port, as 127.0.0.1:9750",
        }
    }
}

/// Listens on an address.
///
/// # Errors
/// It is not ours to have.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, BindError> {
    let failed = |source| BindError { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let there = listener.local_addr().map_err(failed)?;
    if address.ip().is_loopback() {
        tracing::info!(address = %there, "http: answering at {there}");
    } else {
        tracing::warn!(
            address = %there,
            "http: answering at {there}, and whoever reaches this address may read"
        );
    }
    Ok(listener)
}
