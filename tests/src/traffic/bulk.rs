//! Bulk transfers: as many bytes as get through, up and down, counted where they arrive.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use socket2::SockRef;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream as Stream};
use tokio::runtime;
use tokio::sync::oneshot;

use crate::process::{Busy, PATIENCE, pause, until};
use crate::topology::Node;

/// The port that takes uploads.
pub const UPLOAD_PORT: u16 = 5001;
/// Bytes of a write and of a read.
const CHUNK: usize = 1 << 16;
/// When nothing has arrived for so long, nothing is on its way: longer than a round trip.
const QUIET: Duration = Duration::from_millis(250);
/// How often a download asks for the file, all at once.
const REQUESTS: usize = 64;

/// Bytes that arrived at any server.
static ARRIVED: AtomicU64 = AtomicU64::new(0);

/// A server in each of some nodes that throws away what it gets; all end with it.
#[derive(Debug)]
pub struct UploadServer {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl UploadServer {
    /// Starts it in the nodes, all on one thread.
    ///
    /// # Errors
    /// When the port is taken in one of them.
    pub fn start<'n>(nodes: impl IntoIterator<Item = &'n Node>) -> Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let mut listeners = Vec::new();
        for node in nodes {
            let address = (Ipv4Addr::UNSPECIFIED, UPLOAD_PORT);
            let listener = node.enter(|| std::net::TcpListener::bind(address))?;
            let listener = listener.with_context(|| format!("uploads: bind in {}", node.name()))?;
            listener.set_nonblocking(true)?;
            listeners.push(listener);
        }
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            runtime.block_on(async move {
                for listener in
                    listeners.into_iter().filter_map(|it| TcpListener::from_std(it).ok())
                {
                    tokio::spawn(accept(listener));
                }
                // Either outcome ends the servers.
                let _ = stopped.await;
            });
        });
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for UploadServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // It may have ended by itself.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed.
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(throw_away(stream));
    }
}

async fn throw_away(mut stream: Stream) {
    let mut buffer = vec![0; CHUNK];
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        ARRIVED.fetch_add(length as u64, Ordering::Relaxed);
    }
}

/// What got through.
#[derive(Clone, Copy, Debug)]
pub struct Upload {
    /// Bytes that arrived.
    pub bytes: u64,
    /// In which time.
    pub time: Duration,
    /// CPU time of the whole machine meanwhile.
    pub cpu: Duration,
}

/// Uploads over so many connections at once for a time. Connections are made before it begins.
///
/// # Errors
/// When one cannot be made, or ends early.
pub fn upload(client: &Node, to: Ipv4Addr, connections: usize, time: Duration) -> Result<Upload> {
    let to = SocketAddr::from((to, UPLOAD_PORT));
    let streams = connect(client, to, connections)?;
    let stop = Arc::new(AtomicBool::new(false));
    let (before, busy, begin) = (ARRIVED.load(Ordering::Relaxed), Busy::read()?, Instant::now());
    let write = |stream| {
        let stop = Arc::clone(&stop);
        thread::spawn(move || write(stream, &stop))
    };
    let writers: Vec<_> = streams.into_iter().map(write).collect();
    pause(time);
    let (bytes, time, cpu) =
        (ARRIVED.load(Ordering::Relaxed) - before, begin.elapsed(), busy.since()?);
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        let ended = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ensure!(ended.is_ok(), "an upload to {to} ended early: {ended:?}");
    }
    until("nothing is on its way any more", PATIENCE, || {
        let before = ARRIVED.load(Ordering::Relaxed);
        pause(QUIET);
        Ok((ARRIVED.load(Ordering::Relaxed) == before).then_some(()))
    })?;
    Ok(Upload { bytes, time, cpu })
}

/// Connects from a node so many times, all at once.
fn connect(client: &Node, to: SocketAddr, connections: usize) -> Result<Vec<TcpStream>> {
    let connect = || {
        let stream = TcpStream::connect_timeout(&to, PATIENCE)
            .with_context(|| format!("connect to {to}"))?;
        stream.set_write_timeout(Some(PATIENCE)).context("timeout")?;
        stream.set_read_timeout(Some(PATIENCE)).context("timeout")?;
        // What was not sent by its end would go on beside what is measured next.
        SockRef::from(&stream).set_linger(Some(Duration::ZERO)).context("linger")?;
        Ok(stream)
    };
    client.enter(|| {
        thread::scope(|scope| {
            // A thread is in the node of the one that began it.
            let threads: Vec<_> = (0..connections).map(|_| scope.spawn(connect)).collect();
            let joined = threads.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            joined.collect()
        })
    })?
}

fn write(mut stream: TcpStream, stop: &AtomicBool) -> std::io::Result<()> {
    let chunk = vec![0x5a; CHUNK];
    while !stop.load(Ordering::Relaxed) {
        stream.write_all(&chunk)?;
    }
    Ok(())
}

/// Downloads a file, again and again, over so many connections at once for a time. Connections are made before it begins.
/// Returns bytes a second.
///
/// # Errors
/// When a connection cannot be made, or ends early.
pub fn download(
    client: &Node,
    to: Ipv4Addr,
    path: &str,
    connections: usize,
    time: Duration,
) -> Result<f64> {
    let to = SocketAddr::from((to, 80));
    let streams = connect(client, to, connections)?;
    let (stop, arrived) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let request = format!("GET {path} HTTP/1.1\r\nHost: {to}\r\n\r\n").repeat(REQUESTS);
    let begin = Instant::now();
    let read = |stream| {
        let (stop, arrived, request) = (Arc::clone(&stop), Arc::clone(&arrived), request.clone());
        thread::spawn(move || read(stream, &request, &stop, &arrived))
    };
    let readers: Vec<_> = streams.into_iter().map(read).collect();
    pause(time);
    let rate = arrived.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    for reader in readers {
        let ended = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ensure!(ended.is_ok(), "a download from {to} ended early: {ended:?}");
    }
    Ok(rate)
}

fn read(
    mut stream: TcpStream,
    request: &str,
    stop: &AtomicBool,
    arrived: &AtomicU64,
) -> Result<()> {
    stream.write_all(request.as_bytes()).context("ask")?;
    let mut buffer = vec![0; CHUNK];
    let mut is_first = true;
    while !stop.load(Ordering::Relaxed) {
        let length = stream.read(&mut buffer).context("read")?;
        ensure!(length > 0, "it was closed");
        ensure!(!is_first || buffer.starts_with(b"HTTP/1.1 200 "), "no answer of 200");
        is_first = false;
        arrived.fetch_add(length as u64, Ordering::Relaxed);
    }
    Ok(())
}
