//! Flows of two packets, the second some time after the first, counted where they arrive.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddrV4;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::{SOURCES, ack_packet, datagram, packet, pcap, send, sources};
use crate::capture::Capture;
use crate::topology::{Backend, Node};

/// What a flow sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pair {
    /// A SYN, and the first ACK.
    Handshake,
    /// Two datagrams.
    Datagrams,
}

/// Flows that begin one after the other, each from a source of its own in [`SOURCES`], which backends must
/// [forget](super::forget).
#[derive(Clone, Copy, Debug)]
pub struct Pairs {
    /// What each sends.
    pub pair: Pair,
    /// Where to.
    pub to: SocketAddrV4,
    /// Other sources for each run.
    pub seed: u64,
    /// Flows.
    pub number: usize,
    /// How many begin a second.
    pub per_second: u32,
    /// Time from the first to the second packet.
    pub wait: Duration,
}

/// What became of them.
#[derive(Clone, Debug, Default)]
pub struct Paired {
    /// Flows of which both packets arrived at one backend, by the place of that.
    pub together: HashMap<usize, usize>,
    /// Flows whose packets arrived at two backends.
    pub parted: usize,
    /// Flows of which a packet did not arrive: a queue was full.
    pub lost: usize,
}

impl Paired {
    /// Flows that one backend has.
    pub fn complete(&self) -> usize {
        self.together.values().sum()
    }

    /// Those of them that some backends have.
    pub fn complete_at(&self, is_meant: impl Fn(usize) -> bool) -> usize {
        self.together.iter().filter(|(at, _)| is_meant(**at)).map(|(_, number)| number).sum()
    }
}

impl fmt::Display for Paired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (complete, Self { parted, lost, .. }) = (self.complete(), self);
        write!(f, "{complete} at one backend, {parted} at two, {lost} lost on the way")
    }
}

impl Pairs {
    /// Sends several kinds of flows from a node, beside each other; answers what became of each kind when the last packet has
    /// arrived.
    ///
    /// # Errors
    /// When a packet cannot be sent, or a capture misses some.
    pub fn run(all: &[Self], node: &Node, backends: &[Backend]) -> Result<Vec<Paired>> {
        let (prefix, bits) = SOURCES;
        let filter = format!("src net {prefix}/{bits}");
        let start = |backend: &Backend| Capture::start(&backend.node, "eth0", &filter);
        let captures: Vec<_> = backends.iter().map(start).collect::<Result<_>>()?;
        let (mut packets, mut kinds) = (Vec::new(), HashMap::new());
        for (kind, pairs) in all.iter().enumerate() {
            for (number, from) in (0..).zip(sources(pairs.seed, pairs.number)) {
                kinds.insert(from, kind);
                packets.extend(pairs.packets(number, from));
            }
        }
        packets.sort_by_key(|(at, _)| *at);
        let (moments, packets): (Vec<_>, Vec<_>) = packets.into_iter().unzip();
        let to = all.first().context("no flows")?.to;
        // All VIPs are behind one router.
        send(node, to, &packets, |number| moments[number])?;
        let mut arrived: HashMap<SocketAddrV4, Vec<usize>> = HashMap::new();
        for (backend, capture) in captures.into_iter().enumerate() {
            for (from, _) in pcap::packets(capture.stop()?.file())? {
                arrived.entry(from).or_default().push(backend);
            }
        }
        let mut paired = vec![Paired::default(); all.len()];
        for (from, kind) in kinds {
            let paired = &mut paired[kind];
            match arrived.get(&from).map(Vec::as_slice) {
                Some(&[one, other]) if one == other => {
                    *paired.together.entry(one).or_default() += 1;
                }
                None | Some([_]) => paired.lost += 1,
                Some(_) => paired.parted += 1,
            }
        }
        Ok(paired)
    }

    /// Both packets of the flow that begins as one of so many, and when they are sent.
    fn packets(&self, number: u32, from: SocketAddrV4) -> [(Duration, Vec<u8>); 2] {
        let sequence = 1_000 * self.seed as u32;
        let to = self.to;
        let [first, second] = match self.pair {
            Pair::Handshake => [packet(from, to, sequence), ack_packet(from, to, sequence + 1)],
            Pair::Datagrams => [datagram(from, to), datagram(from, to)],
        };
        let begin = Duration::from_secs(1) * number / self.per_second;
        [(begin, first), (begin + self.wait, second)]
    }
}
