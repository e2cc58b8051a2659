//! A long connection to an [`Echo`](super::Echo) on which every byte is checked.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::process::{PATIENCE, until};
use crate::random::Random;
use crate::topology::Node;

/// No answer for so long, over which TCP repeats a segment six times: the connection is lost.
const LOST: Duration = Duration::from_secs(20);
/// Time between two exchanges.
const PACE: Duration = Duration::from_millis(20);

/// A connection that goes on until it is finished.
#[derive(Debug)]
pub struct Stream {
    backend: String,
    stop: Arc<AtomicBool>,
    exchanged: Arc<AtomicU64>,
    thread: JoinHandle<Result<()>>,
    /// Why it ended before its time, in words.
    lost: Arc<OnceLock<String>>,
}

/// What became of a connection.
#[derive(Debug)]
pub struct StreamReport {
    /// Who answered it.
    pub backend: String,
    /// Bytes that were sent, came back and were found equal.
    pub bytes: u64,
    /// Why it ended before it was finished.
    pub lost: Option<anyhow::Error>,
}

impl Stream {
    /// Connects and begins to exchange bytes; `seed` makes them differ from those of other streams.
    ///
    /// # Errors
    /// When the connection cannot be made.
    pub fn open(node: &Node, to: SocketAddr, seed: u64) -> Result<Self> {
        let stream = node
            .enter(|| TcpStream::connect_timeout(&to, LOST))?
            .with_context(|| format!("connect to {to}"))?;
        stream.set_nodelay(true).context("nodelay")?;
        stream.set_read_timeout(Some(LOST)).context("timeout")?;
        stream.set_write_timeout(Some(LOST)).context("timeout")?;
        let mut reader = BufReader::new(stream.try_clone().context("clone a socket")?);
        let mut backend = String::new();
        reader.read_line(&mut backend).context("read the name of the backend")?;
        let (stop, exchanged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let lost = Arc::new(OnceLock::new());
        let thread = std::thread::spawn({
            let (stop, exchanged, lost) = (stop.clone(), exchanged.clone(), lost.clone());
            move || {
                exchange(stream, reader, seed, &stop, &exchanged).inspect_err(|error| {
                    lost.get_or_init(|| format!("{error:#}"));
                })
            }
        });
        Ok(Self { backend: backend.trim_end().into(), stop, exchanged, thread, lost })
    }

    /// Who answers it.
    pub fn backend(&self) -> &str {
        &self.backend
    }

    /// Bytes exchanged so far.
    pub fn exchanged(&self) -> u64 {
        self.exchanged.load(Ordering::Relaxed)
    }

    /// Whether it has ended before its time.
    pub fn is_lost(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends it after the exchange under way.
    pub fn finish(self) -> StreamReport {
        self.stop.store(true, Ordering::Relaxed);
        let lost = match self.thread.join() {
            Ok(result) => result.err(),
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let bytes = self.exchanged.load(Ordering::Relaxed);
        StreamReport { backend: self.backend, bytes, lost }
    }

    /// Waits until each has exchanged so much since that each packet of it was decided anew.
    ///
    /// # Errors
    /// One of them is lost, or has not gone on in time.
    pub fn all_go_on<'a>(streams: impl IntoIterator<Item = &'a Self>) -> Result<()> {
        let begun: Vec<_> = streams.into_iter().map(|each| (each, each.exchanged())).collect();
        until("every stream goes on", PATIENCE, || {
            for (stream, _) in &begun {
                let reason = stream.lost.get().map_or("it panicked", String::as_str);
                ensure!(!stream.is_lost(), "a stream on {} is lost: {reason}", stream.backend());
            }
            let mut all = begun.iter();
            Ok(all.all(|(stream, before)| stream.exchanged() > before + 20_000).then_some(()))
        })
    }

    /// Ends all of them.
    ///
    /// # Errors
    /// One of them was lost before.
    pub fn finish_all(streams: impl IntoIterator<Item = Self>) -> Result<()> {
        for StreamReport { backend, bytes, lost } in streams.into_iter().map(Self::finish) {
            ensure!(lost.is_none(), "a stream on {backend} was lost after {bytes} bytes: {lost:?}");
        }
        Ok(())
    }
}

fn exchange(
    mut out: TcpStream,
    mut back: BufReader<TcpStream>,
    seed: u64,
    stop: &AtomicBool,
    exchanged: &AtomicU64,
) -> Result<()> {
    let mut random = Random::new(seed);
    while !stop.load(Ordering::Relaxed) {
        let length = 1 + (random.below(8192)) as usize;
        let sent = random.bytes(length);
        out.write_all(&sent).context("send")?;
        let mut returned = vec![0; length];
        back.read_exact(&mut returned).context("receive")?;
        let at = exchanged.load(Ordering::Relaxed);
        ensure!(sent == returned, "bytes {at} to {} came back changed", at + length as u64);
        exchanged.fetch_add(length as u64, Ordering::Relaxed);
        std::thread::park_timeout(PACE);
    }
    Ok(())
}
