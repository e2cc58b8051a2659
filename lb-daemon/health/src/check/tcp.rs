use std::io::{self, ErrorKind};

use tokio::net::{TcpSocket, TcpStream};

use super::Destination;

/// Connects; the connection ends with a reset when it is dropped.
///
/// A FIN would leave this host's end in TIME_WAIT for a minute: ten thousand checks a second would
/// hold 600,000 of them, more than the kernel keeps, and use up the source ports towards a backend
/// that is checked often. A reset leaves nothing at either end.
pub async fn connect(to: Destination) -> io::Result<TcpStream> {
    let server = to.server;
    let socket = if server.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_zero_linger()?;
    to.prepare(&socket, true)?;
    if let Some(local) = to.local() {
        socket.bind(local)?;
    }
    let stream = socket.connect(server).await?;
    if stream.local_addr()? == server {
        // Nobody listens: the kernel picked the very port as source, and the socket met itself.
        return Err(ErrorKind::ConnectionRefused.into());
    }
    Ok(stream)
}

/// Whether the host itself said that there is no connection. What is unreachable somebody else says:
/// this host, or a router.
pub fn is_answer(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset)
}
