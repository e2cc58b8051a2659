//! A backend that answers when the test says so.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinHandle,
    time::timeout,
};

/// Longest wait for what must come.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Accepts connections and holds them until they are answered.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    connections: mpsc::UnboundedReceiver<TcpStream>,
    accepting: JoinHandle<()>,
}

impl Server {
    pub(super) async fn start(address: &str) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (accepted, connections) = mpsc::unbounded_channel();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if accepted.send(stream).is_err() {
                    return;
                }
            }
        });
        Self { address, connections, accepting }
    }

    /// The next connection.
    pub(super) async fn next(&mut self) -> Held {
        let stream = timeout(PATIENCE, self.connections.recv()).await.expect("no connection came");
        Held { stream: stream.unwrap() }
    }

    /// Connections accepted and not yet taken by [`Server::next`].
    pub(super) fn waiting(&self) -> usize {
        self.connections.len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// A connection that waits for its answer.
pub(super) struct Held {
    stream: TcpStream,
}

impl Held {
    /// Reads the request up to its blank line.
    pub(super) async fn request(&mut self) -> String {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let read = timeout(PATIENCE, self.stream.read_buf(&mut request)).await;
            assert_ne!(read.expect("the request is not whole").unwrap(), 0);
        }
        String::from_utf8(request).unwrap()
    }

    /// Reads the request, answers with `status` and a short body, and closes, as servers do.
    pub(super) async fn answer(mut self, status: u16) {
        self.request().await;
        self.send(&format!("HTTP/1.1 {status} X\r\nContent-Length: 3\r\n\r\nok\n")).await;
    }

    pub(super) async fn send(&mut self, text: &str) {
        self.send_bytes(text.as_bytes()).await;
    }

    pub(super) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Writes `text` over and over until the other end is gone; says how that showed.
    pub(super) async fn send_forever(&mut self, text: &str) -> io::Error {
        let sending = async {
            loop {
                if let Err(error) = self.stream.write_all(text.as_bytes()).await {
                    return error;
                }
            }
        };
        timeout(PATIENCE, sending).await.expect("the other end goes on reading")
    }

    /// How the other end closed: `Ok` orderly, an error if by reset.
    pub(super) async fn closed(&mut self) -> io::Result<()> {
        let mut rest = Vec::new();
        timeout(PATIENCE, self.stream.read_to_end(&mut rest)).await.expect("not closed").map(drop)
    }

    /// Writes `text` a byte at a time; the error if the other end went away meanwhile.
    pub(super) async fn drip(&mut self, text: &str, gap: Duration) -> Option<io::Error> {
        for byte in text.bytes() {
            tokio::time::sleep(gap).await;
            if let Err(error) = self.stream.write_all(&[byte]).await {
                return Some(error);
            }
        }
        None
    }

    /// Sends no more, but goes on reading.
    pub(super) async fn shut(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// Breaks the connection off.
    pub(super) fn reset(self) {
        self.stream.set_zero_linger().unwrap();
    }

    pub(super) fn local(&self) -> SocketAddr {
        self.stream.local_addr().unwrap()
    }
}
