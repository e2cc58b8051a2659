//! A server that says its name and then returns every byte, over TCP, and answers datagrams with its
//! name, over UDP; one that begins with `=` it returns.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::topology::Node;

/// How often a waiting thread looks whether it should end.
const TICK: Duration = Duration::from_millis(50);

/// The server; its threads and sockets go with it.
#[derive(Debug)]
pub struct Echo {
    stop: Arc<AtomicBool>,
    datagrams: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Echo {
    /// Starts it in a node: TCP on `port` of all addresses, UDP on `port` of each of `vips`.
    ///
    /// # Errors
    /// When a socket cannot be bound.
    pub fn start(node: &Node, vips: &[IpAddr], port: u16) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let datagrams = Arc::new(AtomicU64::new(0));
        let listener = node
            .enter(|| TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)))?
            .context("echo: bind TCP")?;
        // On Linux the receive timeout of a listener bounds `accept`.
        socket2::SockRef::from(&listener).set_read_timeout(Some(TICK)).context("echo: timeout")?;
        let mut threads = vec![{
            let (name, stop) = (node.name().to_owned(), stop.clone());
            std::thread::spawn(move || accept(&listener, &name, &stop))
        }];
        for vip in vips {
            let address = SocketAddr::new(*vip, port);
            let socket = node
                .enter(|| UdpSocket::bind(address))?
                .with_context(|| format!("echo: bind UDP {address}"))?;
            socket.set_read_timeout(Some(TICK)).context("echo: timeout")?;
            let (name, stop) = (node.name().to_owned(), stop.clone());
            let datagrams = datagrams.clone();
            threads.push(std::thread::spawn(move || answer(&socket, &name, &stop, &datagrams)));
        }
        Ok(Self { stop, datagrams, threads })
    }

    /// Datagrams that came so far, over all VIPs.
    pub fn datagrams(&self) -> u64 {
        self.datagrams.load(Ordering::Relaxed)
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panic there has been printed; there is nothing else to do with it here.
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, name: &str, stop: &Arc<AtomicBool>) {
    let mut connections = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        if let Ok((stream, _)) = listener.accept() {
            let (name, stop) = (name.to_owned(), stop.clone());
            // How a connection ends is for its client to judge.
            connections.push(std::thread::spawn(move || drop(echo(stream, &name, &stop))));
        }
    }
    for connection in connections {
        let _ = connection.join();
    }
}

fn echo(mut stream: TcpStream, name: &str, stop: &AtomicBool) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TICK))?;
    stream.write_all(format!("{name}\n").as_bytes())?;
    let mut buffer = [0; 16384];
    while !stop.load(Ordering::Relaxed) {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => stream.write_all(&buffer[..length])?,
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn answer(socket: &UdpSocket, name: &str, stop: &AtomicBool, datagrams: &AtomicU64) {
    let mut buffer = [0; 2048];
    while !stop.load(Ordering::Relaxed) {
        if let Ok((length, from)) = socket.recv_from(&mut buffer) {
            datagrams.fetch_add(1, Ordering::Relaxed);
            let came = &buffer[..length];
            let answer = if came.starts_with(b"=") { came } else { name.as_bytes() };
            // A client that is gone needs no answer, and one that is told of a narrow way asks again.
            let _ = socket.send_to(answer, from);
        }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
