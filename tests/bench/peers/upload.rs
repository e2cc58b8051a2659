//! Uploads: as many bytes as get through, counted where they arrive.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream as Stream};
use tokio::runtime;
use tokio::sync::oneshot;

use lb_tests::process::PATIENCE;
use lb_tests::topology::Node;

use super::cpu::Busy;

/// The port that takes uploads.
pub(super) const PORT: u16 = 5001;
/// Bytes of a write and of a read.
const CHUNK: usize = 1 << 16;

/// Bytes that arrived at any server.
static ARRIVED: AtomicU64 = AtomicU64::new(0);

/// A server in each of some nodes that throws away what it gets; all end with it.
pub(super) struct UploadServer {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl UploadServer {
    /// Starts it in the nodes, all on one thread.
    pub(super) fn start<'n>(nodes: impl IntoIterator<Item = &'n Node>) -> Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let mut listeners = Vec::new();
        for node in nodes {
            let address = (Ipv4Addr::UNSPECIFIED, PORT);
            let listener = node.enter(|| std::net::TcpListener::bind(address))?;
            let listener = listener.with_context(|| format!("uploads: bind in {}", node.name()))?;
            listener.set_nonblocking(true)?;
            listeners.push(listener);
        }
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
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
pub(super) struct Upload {
    /// Bytes that arrived.
    pub(super) bytes: u64,
    /// In which time.
    pub(super) time: Duration,
    /// CPU time of the whole machine meanwhile.
    pub(super) cpu: Duration,
}

/// Uploads over so many connections at once for a time. Connections are made before it begins.
pub(super) fn run(
    client: &Node,
    to: Ipv4Addr,
    connections: usize,
    time: Duration,
) -> Result<Upload> {
    let to = SocketAddr::from((to, PORT));
    let streams =
        client.enter(|| (0..connections).map(|_| connect(to)).collect::<Result<Vec<_>>>())??;
    let stop = Arc::new(AtomicBool::new(false));
    let (before, busy, begin) = (ARRIVED.load(Ordering::Relaxed), Busy::read()?, Instant::now());
    let write = |stream| {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || write(stream, &stop))
    };
    let writers: Vec<_> = streams.into_iter().map(write).collect();
    lb_tests::process::pause(time);
    let (bytes, time, cpu) =
        (ARRIVED.load(Ordering::Relaxed) - before, begin.elapsed(), busy.since()?);
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        let ended = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ensure!(ended.is_ok(), "an upload to {to} ended early: {ended:?}");
    }
    Ok(Upload { bytes, time, cpu })
}

fn connect(to: SocketAddr) -> Result<TcpStream> {
    let stream =
        TcpStream::connect_timeout(&to, PATIENCE).with_context(|| format!("connect to {to}"))?;
    stream.set_write_timeout(Some(PATIENCE)).context("timeout")?;
    Ok(stream)
}

fn write(mut stream: TcpStream, stop: &AtomicBool) -> std::io::Result<()> {
    let chunk = vec![0x5a; CHUNK];
    while !stop.load(Ordering::Relaxed) {
        stream.write_all(&chunk)?;
    }
    Ok(())
}
