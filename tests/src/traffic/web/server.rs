//! The server itself: HTTP/1.1, a connection for each request.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use socket2::{Domain, Socket, Type};

use super::Visit;
use crate::process::pause;

/// Connections that the kernel holds for the server while it is busy accepting.
const BACKLOG: i32 = 4096;
/// A client that has not asked by then is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// Largest head of a request.
const HEAD: usize = 8192;

/// What a request costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Time of one request.
    pub time: Duration,
    /// Requests that are worked on at the same time.
    pub at_a_time: usize,
}

impl Work {
    /// Requests a second it can do.
    pub fn capacity(&self) -> f64 {
        self.at_a_time as f64 / self.time.as_secs_f64()
    }
}

/// A request that waits for its turn.
struct Job {
    stream: TcpStream,
    visit: Visit,
}

/// Serves on a port of all addresses until the process ends: `/healthz` at once and without a line
/// in the log, likewise what comes with a body, which is given back, and everything else with `work` and a page
/// that is `name`.
///
/// # Errors
/// When the port cannot be had.
pub fn serve(port: u16, name: &str, work: Work, log: File) -> Result<()> {
    let socket = Socket::new(Domain::IPV6, Type::STREAM, None).context("socket")?;
    socket.set_reuse_address(true).context("reuse")?;
    let address = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
    socket.bind(&address.into()).with_context(|| format!("bind {address}"))?;
    socket.listen(BACKLOG).context("listen")?;
    let listener = TcpListener::from(socket);

    let (queue, turns) = channel();
    let (turns, log) = (Arc::new(Mutex::new(turns)), Arc::new(Mutex::new(log)));
    for _ in 0..work.at_a_time {
        let (turns, log, name) = (turns.clone(), log.clone(), name.to_owned());
        std::thread::spawn(move || labour(&turns, work.time, &name, &log));
    }
    loop {
        // A connection that ended before it was accepted is none.
        let Ok((stream, client)) = listener.accept() else { continue };
        let (arrived, queue) = (now(), queue.clone());
        std::thread::spawn(move || drop(receive(stream, client, arrived, &queue)));
    }
}

/// Reads a request and puts it into the queue, or answers it if it costs nothing.
fn receive(
    mut stream: TcpStream,
    client: SocketAddr,
    arrived: f64,
    queue: &Sender<Job>,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let Some(request) = request(&mut stream)? else { return Ok(()) };
    if request.path == "/healthz" {
        return answer(&mut stream, "204 No Content", b"");
    }
    if !request.body.is_empty() {
        return answer(&mut stream, "200 OK", &request.body);
    }
    let (client, at) = (plain(client), plain(stream.local_addr()?).ip());
    let visit = Visit { arrived, begun: 0.0, ended: 0.0, client, at, status: 0 };
    // The queue lives as long as the process.
    let _ = queue.send(Job { stream, visit });
    Ok(())
}

/// What is asked.
struct Request {
    path: String,
    body: Vec<u8>,
}

/// What is asked; nothing if the connection ended before that was clear.
fn request(stream: &mut TcpStream) -> io::Result<Option<Request>> {
    const END: &[u8] = b"\r\n\r\n";
    let mut read = Vec::new();
    let mut buffer = [0; 1024];
    let head = loop {
        if let Some(end) = read.windows(END.len()).position(|four| four == END) {
            break end + END.len();
        }
        let length = stream.read(&mut buffer)?;
        if length == 0 || read.len() > HEAD {
            return Ok(None);
        }
        read.extend_from_slice(&buffer[..length]);
    };
    let mut body = read.split_off(head);
    let head = String::from_utf8_lossy(&read);
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
    let more = length.unwrap_or(0_u64).saturating_sub(body.len() as u64);
    if io::Read::take(stream, more).read_to_end(&mut body)? as u64 != more {
        return Ok(None);
    }
    Ok(head.split(' ').nth(1).map(|path| Request { path: path.to_owned(), body }))
}

/// One of the places: takes the request whose turn it is, works, answers, and writes it down.
fn labour(turns: &Mutex<Receiver<Job>>, time: Duration, name: &str, log: &Mutex<File>) {
    loop {
        let turn = turns.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { mut stream, mut visit }) = turn else { return };
        visit.begun = now();
        pause(time);
        let answered = answer(&mut stream, "200 OK", format!("{name}\n").as_bytes());
        visit.ended = now();
        // 499 as nginx has it: the client went away first.
        visit.status = if answered.is_ok() { 200 } else { 499 };
        let line = format!("{visit}\n");
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        // A log that cannot be written shows as requests that are missing in it.
        let _ = log.write_all(line.as_bytes());
    }
}

fn answer(stream: &mut TcpStream, status: &str, body: &[u8]) -> io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), body].concat())
}

/// An IPv4 address that IPv6 clothes, without them.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
