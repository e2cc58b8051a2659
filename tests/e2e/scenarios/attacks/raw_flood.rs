//! Floods of whole IP packets from the client, which the standard library has no sockets for.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use lb_tests::process::pause;
use lb_tests::topology::Node;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// Packets that are sent without a look at the clock.
const BATCH: u64 = 64;
/// More than one CPU sends a second.
pub(crate) const FASTEST: u64 = 10_000_000;

/// A socket for whole IPv4 packets.
pub(crate) fn sender() -> Result<Socket> {
    Ok(Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(255)))?)
}

/// Packets that go out one after the other, again and again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawFlood<'p> {
    pub(crate) to: SocketAddr,
    pub(crate) packets: &'p [Vec<u8>],
    /// How many a second at most; a CPU may send fewer.
    pub(crate) per_second: u64,
}

/// Does something beside a flood. What is done may ask how many packets went out so far. Answers how many did a second, too.
pub(crate) fn beside<T>(
    client: &Node,
    flood: RawFlood<'_>,
    work: impl FnOnce(&AtomicU64) -> Result<T>,
) -> Result<(T, f64)> {
    let (is_done, sent) = (&AtomicBool::new(false), &AtomicU64::new(0));
    let begun = Instant::now();
    let send = || {
        client.enter(|| -> Result<()> {
            let (raw, to) = (sender()?, SockAddr::from(flood.to));
            for (number, packet) in (0_u64..).zip(flood.packets.iter().cycle()) {
                if is_done.load(Ordering::Relaxed) {
                    break;
                }
                if number % BATCH == 0 {
                    let due = Duration::from_secs(number) / flood.per_second as u32;
                    pause(due.saturating_sub(begun.elapsed()));
                }
                // A full queue loses a packet, no more.
                if raw.send_to(packet, &to).is_ok() {
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            }
            Ok(())
        })?
    };
    std::thread::scope(|scope| {
        let flood = scope.spawn(send);
        let done = work(sent);
        is_done.store(true, Ordering::Relaxed);
        flood.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let rate = sent.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64();
        Ok((done?, rate))
    })
}
