//! Clients at a steady rate, each on a connection of its own.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, spawn};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_tests::process::pause;
use lb_tests::topology::Node;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Stack of a client.
const STACK: usize = 128 * 1024;

/// What came of a client.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// When it came.
    pub(crate) at: Instant,
    /// From then to the end of the answer.
    pub(crate) took: Duration,
    /// Who answered.
    pub(crate) by: String,
}

/// The clients, until they are stopped.
#[derive(Debug)]
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    answers: Arc<Mutex<Vec<Result<Answer>>>>,
    coming: JoinHandle<Vec<JoinHandle<()>>>,
}

impl Load {
    /// So many a second, from a node.
    pub(crate) fn start(node: &Node, to: SocketAddr, a_second: u32) -> Result<Self> {
        let (stop, answers) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let (stopping, noting) = (stop.clone(), Arc::clone(&answers));
        // Threads begin in the namespace of who began them.
        let coming = node.enter(move || spawn(move || come(to, a_second, &stopping, &noting)))?;
        Ok(Self { stop, answers, coming })
    }

    /// Ends it; every client has had its answer then.
    pub(crate) fn finish(self) -> Result<Vec<Answer>> {
        self.stop.store(true, Ordering::Relaxed);
        let clients = self.coming.join().ok().context("load: it panicked")?;
        for client in clients {
            ensure!(client.join().is_ok(), "load: a client panicked");
        }
        let answers =
            std::mem::take(&mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner));
        answers.into_iter().collect()
    }
}

fn come(
    to: SocketAddr,
    a_second: u32,
    stop: &AtomicBool,
    answers: &Arc<Mutex<Vec<Result<Answer>>>>,
) -> Vec<JoinHandle<()>> {
    let (mut clients, mut next) = (Vec::new(), Instant::now());
    while !stop.load(Ordering::Relaxed) {
        pause(next.saturating_duration_since(Instant::now()));
        let (at, noting) = (next, answers.clone());
        let client = Builder::new().stack_size(STACK).spawn(move || {
            let answer = ask(to).map(|by| Answer { at, took: at.elapsed(), by });
            noting.lock().unwrap_or_else(PoisonError::into_inner).push(answer);
        });
        match client.context("load: begin a client") {
            Ok(client) => clients.push(client),
            Err(error) => {
                answers.lock().unwrap_or_else(PoisonError::into_inner).push(Err(error));
            }
        }
        next += Duration::from_secs(1) / a_second;
    }
    clients
}

fn ask(to: SocketAddr) -> Result<String> {
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE).context("load: connect")?;
    stream.set_read_timeout(Some(PATIENCE)).context("load: timeout")?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").context("load: ask")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).context("load: answer")?;
    let (_, by) = answer.split_once("\r\n\r\n").context("load: the answer is cut")?;
    Ok(by.to_owned())
}

/// The time that all but a hundredth took at most.
pub(crate) fn p99(answers: &[Answer]) -> Duration {
    let mut took: Vec<_> = answers.iter().map(|answer| answer.took).collect();
    took.sort();
    took.get(took.len() * 99 / 100).copied().unwrap_or_default()
}

/// The part of them that one answered.
pub(crate) fn part(answers: &[Answer], by: &str) -> f64 {
    answers.iter().filter(|answer| answer.by == by).count() as f64 / answers.len().max(1) as f64
}
