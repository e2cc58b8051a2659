//! Links with a delay. Kernels without netem have none: here frames go through a VXLAN tunnel, whose datagrams a relay
//! keeps for a time.

use std::{
    net::{Ipv4Addr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use nix::sys::socket::{setsockopt, sockopt::RcvBufForce};

use super::{Node, Topology};
use crate::process::pause;

/// The port of VXLAN (RFC 7348, 5).
const PORT: u16 = 4789;
/// What VXLAN adds to an IP packet, with an outer IPv4 header, bytes.
const OVERHEAD: u32 = 50;
/// What may wait until the relay reads it, bytes: some 20,000 frames.
const BUFFER: usize = 64 << 20;
/// How long a thread of the relay waits until it looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(100);

/// The relay of a slow link; nothing passes the link without it.
#[derive(Debug)]
pub struct SlowLink {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// A frame in its datagram, and when it goes on.
type Delayed = (Instant, Vec<u8>);

impl Topology {
    /// Joins two nodes by a link on which every frame takes `delay`, and sets it up. `number`, other than that of
    /// another slow link, tells its subnets, 192.168.`2 * number`.0 and the next one.
    ///
    /// # Errors
    /// When a part of it cannot be made.
    pub fn slow_link(
        &mut self,
        number: u8,
        ends: [(&Node, &str); 2],
        mtu: u32,
        delay: Duration,
    ) -> Result<SlowLink> {
        let relay = self.node(&format!("relay{number}"))?;
        let (mut sockets, mut peers) = (Vec::new(), Vec::new());
        for ((node, end), side) in ends.into_iter().zip(0..) {
            let [here, there] = [1, 2].map(|host| Ipv4Addr::new(192, 168, 2 * number + side, host));
            let lower = format!("relay{number}-{side}");
            self.link(node, &lower, &relay, &format!("side{side}"), mtu + OVERHEAD)?;
            relay.ip(&format!("address add {here}/24 dev side{side}"))?;
            node.ip(&format!(
                "address add {there}/24 dev {lower}\n\
                 link add {end} mtu {mtu} type vxlan id {number} local {there} remote {here} dstport {PORT}\n\
                 link set {end} up"
            ))?;
            let socket = relay.enter(|| UdpSocket::bind((here, PORT)))?.context("relay: bind")?;
            setsockopt(&socket, RcvBufForce, &BUFFER).context("relay: buffer")?;
            socket.set_read_timeout(Some(LOOK)).context("relay: timeout")?;
            sockets.push(socket);
            peers.push(there);
        }
        let mut link = SlowLink { is_over: Arc::default(), threads: Vec::new() };
        for (from, to) in [(0, 1), (1, 0)] {
            let [from_socket, to_socket] = [from, to].map(|side: usize| sockets[side].try_clone());
            link.relay(from_socket?, to_socket?, peers[to], delay);
        }
        Ok(link)
    }
}

impl SlowLink {
    /// Begins to pass on what comes in at one socket by another one.
    fn relay(&mut self, from: UdpSocket, by: UdpSocket, to: Ipv4Addr, delay: Duration) {
        let (sender, delayed) = channel::<Delayed>();
        let is_over = Arc::clone(&self.is_over);
        self.threads.push(thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while !is_over.load(Ordering::Relaxed) {
                // Without a datagram, or when the link below is down, there is none to send.
                let Ok(length) = from.recv(&mut buffer) else { continue };
                if sender.send((Instant::now() + delay, buffer[..length].to_vec())).is_err() {
                    return;
                }
            }
        }));
        let is_over = Arc::clone(&self.is_over);
        self.threads.push(thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                match delayed.recv_timeout(LOOK) {
                    Ok(first) => send(first, &delayed, &by, to),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        }));
    }
}

/// Sends frames when their time has come, until none is left.
fn send(first: Delayed, others: &Receiver<Delayed>, by: &UdpSocket, to: Ipv4Addr) {
    let mut next = Some(first);
    while let Some((due, frame)) = next {
        pause(due.saturating_duration_since(Instant::now()));
        // A frame that finds no room is lost, as on any link.
        let _ = by.send_to(&frame, (to, PORT));
        next = others.try_recv().ok();
    }
}

impl Drop for SlowLink {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panic there has been printed.
            let _ = thread.join();
        }
    }
}
