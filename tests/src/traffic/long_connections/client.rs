//! The clients' side.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::{self, Runtime};
use tokio::time::timeout;

use super::mark;
use crate::process::until;
use crate::random::Random;
use crate::topology::Node;

/// No answer for so long, over which TCP repeats a segment six times: the connection is lost.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two exchanges of a connection.
const PACE: Duration = Duration::from_millis(200);
/// Bytes of an exchange, at most.
const BYTES: u64 = 512;

/// Connections of a node that go on until they are dropped, all on one thread.
#[derive(Debug)]
pub struct LongConnections {
    node: Node,
    runtime: Runtime,
    connections: Vec<Arc<Connection>>,
}

/// One of them.
#[derive(Debug, Default)]
pub struct Connection {
    backend: OnceLock<String>,
    exchanges: AtomicU64,
    lost: Mutex<Option<String>>,
}

impl LongConnections {
    /// None as yet.
    ///
    /// # Errors
    /// When its thread cannot be started.
    pub fn new(node: &Node) -> Result<Self> {
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .context("long connections: start")?;
        Ok(Self { node: node.clone(), runtime, connections: Vec::new() })
    }

    /// Opens so many more at once, waits until each knows who answers it, and returns them.
    ///
    /// # Errors
    /// When one cannot be made.
    pub fn open(&mut self, to: SocketAddr, number: usize) -> Result<&[Arc<Connection>]> {
        let any =
            if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        self.open_from(any, to, number)
    }

    /// The same from an address that the node has, or may use.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_from(
        &mut self,
        from: IpAddr,
        to: SocketAddr,
        number: usize,
    ) -> Result<&[Arc<Connection>]> {
        let new = || {
            let socket = if to.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
            socket.bind(SocketAddr::new(from, 0)).map(|()| socket)
        };
        let _runtime = self.runtime.enter();
        // Where a socket is made it belongs.
        let sockets: Vec<_> = self.node.enter(|| (0..number).map(|_| new()).collect())?;
        let first = self.connections.len();
        for (socket, seed) in sockets.into_iter().zip(first as u64..) {
            let (socket, connection) = (socket?, Arc::new(Connection::default()));
            self.connections.push(connection.clone());
            tokio::spawn(async move {
                if let Err(error) = go_on(socket, to, seed, &connection).await {
                    connection.lose(format!("from {from} to {to}: {error:#}"));
                }
            });
        }
        let opened = &self.connections[first..];
        until("every connection is answered", 2 * PATIENCE, || {
            opened.iter().try_for_each(|connection| connection.ensure_open())?;
            Ok(opened.iter().all(|connection| connection.backend.get().is_some()).then_some(()))
        })?;
        Ok(opened)
    }

    /// Says that none has ended.
    ///
    /// # Errors
    /// Why one has, and how many have.
    pub fn ensure_open(&self) -> Result<()> {
        let errors: Vec<_> =
            self.connections.iter().filter_map(|each| each.ensure_open().err()).collect();
        match errors.first() {
            Some(first) => {
                bail!("{} of {} are lost; {first}", errors.len(), self.connections.len())
            }
            None => Ok(()),
        }
    }

    /// All, in the order in which they were opened.
    pub fn connections(&self) -> &[Arc<Connection>] {
        &self.connections
    }

    /// Waits until each but those of some backends has exchanged bytes that were sent after this was
    /// called.
    ///
    /// # Errors
    /// When one is lost, or does not go on within its patience.
    pub fn all_go_on(&self, but: &[&str]) -> Result<()> {
        let all = || self.connections.iter().filter(|each| !but.contains(&each.backend()));
        let before: Vec<u64> = all().map(|connection| connection.exchanges()).collect();
        until("every connection goes on", 2 * PATIENCE, || {
            all().try_for_each(|connection| connection.ensure_open())?;
            // The first exchange from now on may have begun before.
            let mut pairs = all().zip(&before);
            Ok(pairs.all(|(each, before)| each.exchanges() >= before + 2).then_some(()))
        })
    }

    /// Forgets those that some backends answer.
    pub fn forget(&mut self, backends: &[&str]) {
        self.connections.retain(|connection| !backends.contains(&connection.backend()));
    }
}

impl Connection {
    /// Who answers it; empty if nobody has yet.
    pub fn backend(&self) -> &str {
        self.backend.get().map_or("", String::as_str)
    }

    /// Exchanges of bytes so far, each found to be what was sent, from that backend.
    pub fn exchanges(&self) -> u64 {
        self.exchanges.load(Ordering::Relaxed)
    }

    /// Says that it has not ended.
    ///
    /// # Errors
    /// Why it has.
    pub fn ensure_open(&self) -> Result<()> {
        match &*self.lost.lock().unwrap_or_else(std::sync::PoisonError::into_inner) {
            Some(why) => bail!("{} after {} exchanges: {why}", self.backend(), self.exchanges()),
            None => Ok(()),
        }
    }

    fn lose(&self, why: String) {
        *self.lost.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(why);
    }
}

async fn go_on(socket: TcpSocket, to: SocketAddr, seed: u64, is: &Connection) -> Result<()> {
    let mut stream = BufReader::new(connect(socket, to).await?);
    let mut name = String::new();
    timeout(PATIENCE, stream.read_line(&mut name)).await.context("no name")??;
    let name = name.trim_end();
    ensure!(!name.is_empty(), "closed before it had a name");
    let mark = mark(name);
    // It is set here alone.
    let _ = is.backend.set(name.to_owned());
    let mut random = Random::new(seed);
    // Not all at the same time.
    tokio::time::sleep(PACE * random.below(100) as u32 / 100).await;
    loop {
        let length = 1 + random.below(BYTES) as usize;
        let sent = random.bytes(length);
        let mut returned = vec![0; length];
        let exchange = async {
            stream.get_mut().write_all(&sent).await.context("send")?;
            stream.read_exact(&mut returned).await.context("receive")
        };
        timeout(PATIENCE, exchange).await.context("no answer")??;
        let equal = sent.iter().zip(&returned).all(|(sent, back)| sent ^ mark == *back);
        ensure!(equal, "bytes came back changed, or from another backend");
        is.exchanges.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(PACE).await;
    }
}

async fn connect(socket: TcpSocket, to: SocketAddr) -> Result<TcpStream> {
    let connected = timeout(PATIENCE, socket.connect(to)).await.context("no connection")?;
    let stream = connected.with_context(|| format!("connect to {to}"))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
