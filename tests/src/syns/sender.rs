//! Sending packets at chosen moments.

use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use nix::sched::{CpuSet, sched_getcpu, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use socket2::{Domain, Protocol, Socket, Type};

use crate::topology::Node;

/// Packets sent one after the other before the links are given time to take them: a veth's ring holds
/// 256.
const AT_ONCE: u32 = 32;
/// That time.
const BREATH: Duration = Duration::from_micros(200);

/// When a packet was sent, nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Shortly before.
    pub at: u64,
    /// What the clock that goes by the kernel's ticks showed then (`CLOCK_REALTIME_COARSE`).
    pub ticked: u64,
}

/// Sends each packet from a node to an address at its moment, counted from the first; what is late is
/// sent as soon as may be. All leave by one CPU, in order.
///
/// # Errors
/// When a packet cannot be sent.
pub fn send(
    node: &Node,
    to: SocketAddrV4,
    packets: &[Vec<u8>],
    at: impl Fn(usize) -> Duration + Sync,
) -> Result<Vec<Sent>> {
    send_until(node, to, packets, at, &AtomicBool::new(false))
}

/// The same, but no more once this is set. Answers those that were sent.
///
/// # Errors
/// When a packet cannot be sent.
pub fn send_until(
    node: &Node,
    to: SocketAddrV4,
    packets: &[Vec<u8>],
    at: impl Fn(usize) -> Duration + Sync,
    is_over: &AtomicBool,
) -> Result<Vec<Sent>> {
    node.enter(|| {
        let mut here = CpuSet::new();
        here.set(sched_getcpu()?)?;
        sched_setaffinity(Pid::from_raw(0), &here).context("stay on one CPU")?;
        // A raw socket of this number takes packets with their header (raw(7)).
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(255)))?;
        let to = socket2::SockAddr::from(to);
        let mut sent = Vec::with_capacity(packets.len());
        let (begin, mut at_once) = (Instant::now(), 0);
        for (number, packet) in packets.iter().enumerate() {
            let due = at(number);
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            while let Some(left) = due.checked_sub(begin.elapsed()).filter(|left| !left.is_zero()) {
                std::thread::park_timeout(left);
                at_once = 0;
            }
            if at_once == AT_ONCE {
                std::thread::park_timeout(BREATH);
                at_once = 0;
            }
            at_once += 1;
            let ticked = now(ClockId::CLOCK_REALTIME_COARSE)?;
            sent.push(Sent { at: now(ClockId::CLOCK_REALTIME)?, ticked });
            socket.send_to(packet, &to).with_context(|| format!("send packet {number}"))?;
        }
        Ok(sent)
    })?
}

fn now(clock: ClockId) -> Result<u64> {
    let now = Duration::from(clock_gettime(clock)?);
    u64::try_from(now.as_nanos()).context("the clock")
}
