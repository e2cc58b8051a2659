//! An agent: whoever connects is told one line of how its host is.

use std::io::Write as _;
use std::net::{Ipv6Addr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::topology::Node;

/// How often it looks whether it should end.
const TICK: Duration = Duration::from_millis(50);

/// The agent; its thread and socket go with it.
#[derive(Debug)]
pub struct Agent {
    line: Arc<Mutex<String>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Agent {
    /// Starts it on a port of all addresses of a node; it says `up`.
    ///
    /// # Errors
    /// When the port cannot be had.
    pub fn start(node: &Node, port: u16) -> Result<Self> {
        let listener = node
            .enter(|| TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)))?
            .context("agent: bind")?;
        // On Linux the receive timeout of a listener bounds `accept`.
        socket2::SockRef::from(&listener).set_read_timeout(Some(TICK)).context("agent: timeout")?;
        let line = Arc::new(Mutex::new("up".to_owned()));
        let stop = Arc::new(AtomicBool::new(false));
        let (says, stopping) = (line.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            while !stopping.load(Ordering::Relaxed) {
                let Ok((mut stream, _)) = listener.accept() else { continue };
                let line = says.lock().unwrap_or_else(PoisonError::into_inner).clone();
                // Who has gone needs no answer.
                let _ = stream.write_all(format!("{line}\n").as_bytes());
            }
        });
        Ok(Self { line, stop, thread: Some(thread) })
    }

    /// Says this from now on.
    pub fn say(&self, line: impl Into<String>) {
        *self.line.lock().unwrap_or_else(PoisonError::into_inner) = line.into();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A panic there has been printed; there is nothing else to do with it here.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
