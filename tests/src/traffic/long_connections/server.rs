//! The server's side.

use std::net::{Ipv6Addr, TcpListener};
use std::thread::JoinHandle;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::sync::oneshot;

use super::mark;
use crate::topology::Node;

/// A server in each of some nodes; all end with it.
#[derive(Debug)]
pub struct LongConnectionServer {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LongConnectionServer {
    /// Starts it on a TCP port of all addresses of the nodes.
    ///
    /// # Errors
    /// When a socket cannot be bound.
    pub fn start<'n>(nodes: impl IntoIterator<Item = &'n Node>, port: u16) -> Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let mut listeners = Vec::new();
        for node in nodes {
            let listener = node
                .enter(|| TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)))?
                .with_context(|| format!("long connections: bind in {}", node.name()))?;
            listener.set_nonblocking(true)?;
            listeners.push((node.name().to_owned(), listener));
        }
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async move {
                for (name, listener) in listeners {
                    tokio::spawn(accept(name, listener));
                }
                // Told to, or nobody is left who could.
                let _ = stopped.await;
            });
        });
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for LongConnectionServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // It may have ended by itself.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed; there is nothing else to do with it here.
            let _ = thread.join();
        }
    }
}

async fn accept(name: String, listener: TcpListener) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            // How a connection ends is for its client to judge.
            tokio::spawn(answer(name.clone(), stream));
        }
    }
}

async fn answer(name: String, mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.write_all(format!("{name}\n").as_bytes()).await?;
    let (mark, mut buffer) = (mark(&name), [0; 4096]);
    loop {
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        buffer[..length].iter_mut().for_each(|byte| *byte ^= mark);
        stream.write_all(&buffer[..length]).await?;
    }
}
