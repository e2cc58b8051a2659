//! A server that works on one request at a time, and reports how much of its time it worked.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv6Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use lb_tests::process::pause;
use lb_tests::topology::Node;
use lb_tests::traffic::Agent;

/// Port of its agent.
pub(crate) const AGENT: u16 = 9707;
/// How often it looks whether it should end, and at what it worked.
const TICK: Duration = Duration::from_millis(50);
/// What it says is of this time.
const WINDOW: Duration = Duration::from_secs(2);
/// A client that has not asked by then is given up.
const PATIENCE: Duration = Duration::from_secs(2);

/// The server, on port 80: `/load` is answered at once, everything else with its name after its turn.
#[derive(Debug)]
pub(crate) struct Worker {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    name: String,
    work: Duration,
    stop: AtomicBool,
    /// Microseconds of work so far.
    worked: AtomicU64,
    /// Of the last window, thousandths.
    utilised: AtomicU64,
    /// What its agent says beside that.
    state: Mutex<String>,
    /// Whether it says so by an agent; else in a header.
    agent: Option<Agent>,
}

impl Worker {
    /// Starts it in a node; a request takes `work`.
    pub(crate) fn start(node: &Node, work: Duration, has_agent: bool) -> Result<Self> {
        let listener = node
            .enter(|| TcpListener::bind((Ipv6Addr::UNSPECIFIED, 80)))?
            .context("worker: bind")?;
        socket2::SockRef::from(&listener)
            .set_read_timeout(Some(TICK))
            .context("worker: timeout")?;
        let shared = Arc::new(Shared {
            name: node.name().to_owned(),
            work,
            stop: AtomicBool::new(false),
            worked: AtomicU64::new(0),
            utilised: AtomicU64::new(0),
            state: Mutex::new("ready".to_owned()),
            agent: has_agent.then(|| Agent::start(node, AGENT)).transpose()?,
        });
        let (queue, turns) = channel();
        let (accepting, working, looking) = (shared.clone(), shared.clone(), shared.clone());
        let threads = vec![
            spawn(move || accepting.accept(&listener, &queue)),
            spawn(move || working.labour(&turns)),
            spawn(move || looking.look()),
        ];
        Ok(Self { shared, threads })
    }

    /// Has its agent say this, beside what it is utilised.
    pub(crate) fn say(&self, state: &str) {
        *self.shared.state.lock().unwrap_or_else(PoisonError::into_inner) = state.to_owned();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panic there has been printed.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn accept(&self, listener: &TcpListener, queue: &Sender<TcpStream>) {
        while !self.stops() {
            let Ok((stream, _)) = listener.accept() else { continue };
            // How a connection ends is for its client to judge.
            let _ = self.receive(stream, queue);
        }
    }

    fn receive(&self, mut stream: TcpStream, queue: &Sender<TcpStream>) -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (mut head, mut buffer) = (Vec::new(), [0; 1024]);
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read(&mut buffer)? {
                0 => return Ok(()),
                length => head.extend_from_slice(&buffer[..length]),
            }
        }
        if !head.starts_with(b"GET /load ") {
            // The labour goes on as long as this.
            let _ = queue.send(stream);
            return Ok(());
        }
        let header = match &self.agent {
            Some(_) => String::new(),
            None => format!("endpoint-load-metrics: TEXT {}\r\n", self.utilisation()),
        };
        write!(stream, "HTTP/1.1 200 OK\r\n{header}Content-Length: 0\r\nConnection: close\r\n\r\n")
    }

    fn labour(&self, turns: &Receiver<TcpStream>) {
        for mut stream in turns {
            if self.stops() {
                return;
            }
            let began = Instant::now();
            pause(self.work);
            self.worked.fetch_add(began.elapsed().as_micros() as u64, Ordering::Relaxed);
            let (name, length) = (&self.name, self.name.len());
            // A client that has gone needs no answer.
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{name}"
            );
        }
    }

    /// Looks again and again how much of the window it worked, and has its agent say so.
    fn look(&self) {
        let mut looks = VecDeque::from([(Instant::now(), 0)]);
        while !self.stops() {
            pause(TICK);
            let now = (Instant::now(), self.worked.load(Ordering::Relaxed));
            looks.push_back(now);
            while looks.len() > 2 && now.0 - looks[1].0 >= WINDOW {
                looks.pop_front();
            }
            let (time, worked) = (now.0 - looks[0].0, now.1 - looks[0].1);
            let part = (worked as f64 / time.as_micros() as f64).min(1.0);
            self.utilised.store((part * 1000.0) as u64, Ordering::Relaxed);
            if let Some(agent) = &self.agent {
                let state = self.state.lock().unwrap_or_else(PoisonError::into_inner).clone();
                agent.say(format!("{} {state}", self.utilisation()));
            }
        }
    }

    fn utilisation(&self) -> String {
        format!("cpu_utilization={}", self.utilised.load(Ordering::Relaxed) as f64 / 1000.0)
    }
}
