//! The backends' servers: real sockets that checks connect to.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use socket2::{Domain, Socket, Type};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use lb_tests::topology::Node;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 65_535;
/// How often a waiting thread looks whether it should end.
const TICK: Duration = Duration::from_millis(100);
const PASSES: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const FAILS: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// A backend that fails its check when it is told to, and knows when it answered so.
#[derive(Debug)]
pub(crate) struct Switchable {
    /// Its address.
    pub(crate) address: Ipv4Addr,
    answers: Arc<Answers>,
    thread: Option<JoinHandle<()>>,
}

/// What its checks are answered.
#[derive(Debug)]
struct Answers {
    origin: Instant,
    fail: AtomicBool,
    stop: AtomicBool,
    /// When the first failing answer since the last switch began to be written, and when it was written; nanoseconds
    /// after the origin, 0: not yet.
    began: AtomicU64,
    written: AtomicU64,
}

/// The first failing answer since a backend was told to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailedAnswer {
    /// There was none.
    None,
    /// It is being written.
    UnderWay,
    /// It was written then, after the origin.
    Written(Duration),
}

impl Switchable {
    /// Starts a backend on a port of its address. `origin` is what its times count from.
    ///
    /// # Errors
    /// When the port cannot be had.
    pub(crate) fn start(
        node: &Node,
        address: Ipv4Addr,
        port: u16,
        origin: Instant,
    ) -> Result<Self> {
        let listener = node
            .enter(|| TcpListener::bind((address, port)))?
            .with_context(|| format!("listen on {address} port {port}"))?;
        // On Linux the receive timeout of a listener bounds `accept`.
        socket2::SockRef::from(&listener).set_read_timeout(Some(TICK))?;
        let answers = Arc::new(Answers {
            origin,
            fail: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            began: AtomicU64::new(0),
            written: AtomicU64::new(0),
        });
        let shared = answers.clone();
        let thread = std::thread::spawn(move || {
            // Whether that may be is said once, by the thread that reads the maps.
            let _ = prefer_this_thread();
            while !shared.stop.load(Ordering::Relaxed) {
                // How a check ends is for the daemon to judge.
                if let Ok((stream, _)) = listener.accept() {
                    let _ = shared.answer(stream);
                }
            }
        });
        Ok(Self { address, answers, thread: Some(thread) })
    }

    /// From now on it answers that it fails, and forgets when it did so before.
    pub(crate) fn fail(&self) {
        self.answers.began.store(0, Ordering::Release);
        self.answers.written.store(0, Ordering::Release);
        self.answers.fail.store(true, Ordering::Release);
    }

    /// From now on it answers that all is well.
    pub(crate) fn pass(&self) {
        self.answers.fail.store(false, Ordering::Release);
    }

    /// Its first failing answer since it was told to fail.
    pub(crate) fn failed_answer(&self) -> FailedAnswer {
        let read = |time: &AtomicU64| time.load(Ordering::Acquire);
        match (read(&self.answers.written), read(&self.answers.began)) {
            (0, 0) => FailedAnswer::None,
            (0, _) => FailedAnswer::UnderWay,
            (written, _) => FailedAnswer::Written(Duration::from_nanos(written)),
        }
    }
}

impl Drop for Switchable {
    fn drop(&mut self) {
        self.answers.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed.
            let _ = thread.join();
        }
    }
}

impl Answers {
    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(TICK))?;
        stream.set_nodelay(true)?;
        let mut request = Vec::new();
        let mut buffer = [0; 1024];
        while !request.ends_with(b"\r\n\r\n") {
            match stream.read(&mut buffer)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                length => request.extend_from_slice(&buffer[..length]),
            }
        }
        if !self.fail.load(Ordering::Acquire) {
            return stream.write_all(PASSES);
        }
        self.set_first(&self.began);
        stream.write_all(FAILS)?;
        self.set_first(&self.written);
        Ok(())
    }

    fn set_first(&self, time: &AtomicU64) {
        let now = u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1);
        // Of several failing answers the first one counts.
        let _ = time.compare_exchange(0, now, Ordering::AcqRel, Ordering::Relaxed);
    }
}

/// One server on a port of all backends' addresses. When it goes, connections are refused.
#[derive(Debug)]
pub(crate) struct Crowd {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Crowd {
    /// Starts it: it answers each request with 200, or accepts connections only.
    ///
    /// # Errors
    /// When the port cannot be had.
    pub(crate) fn start(node: &Node, port: u16, is_http: bool) -> Result<Self> {
        let listener = node.enter(|| listen(port))?.with_context(|| format!("port {port}"))?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async move {
                tokio::select! {
                    ended = serve(listener, is_http) => {
                        if let Err(error) = ended {
                            eprintln!("server of backends: {error}");
                        }
                    }
                    // Told to, or nothing is left that could.
                    _ = stopped => {}
                }
            });
        });
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Crowd {
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

fn listen(port: u16) -> std::io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&std::net::SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

async fn serve(listener: TcpListener, is_http: bool) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        if is_http {
            // How a check ends is for the daemon to judge.
            tokio::spawn(answer(stream));
        }
    }
}

/// A check's request comes in one piece.
async fn answer(mut stream: tokio::net::TcpStream) -> std::io::Result<()> {
    let mut buffer = [0; 1024];
    let length = stream.read(&mut buffer).await?;
    if buffer[..length].ends_with(b"\r\n\r\n") {
        stream.write_all(PASSES).await?;
    }
    Ok(())
}

/// Has the calling thread run before all ordinary ones (`SCHED_FIFO`, sched(7)), so that what is
/// measured is the daemon and not when the bench had a CPU.
///
/// # Errors
/// When it may not.
pub(crate) fn prefer_this_thread() -> Result<()> {
    let thread = nix::unistd::gettid().to_string();
    let output = Command::new("chrt").args(["--fifo", "--pid", "1", &thread]).output();
    let output = output.context("chrt")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "chrt --fifo: {}", said.trim());
    Ok(())
}
