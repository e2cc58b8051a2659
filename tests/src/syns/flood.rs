//! Packets by the hundred thousand, on the balancer's wire.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use aya::Ebpf;
use aya::programs::{TestRun as _, TestRunAttrs, TestRunOptions};

use super::{ack_packet, datagram, packet};
use crate::packets::objects;
use crate::process::pause;
use crate::test_run::programs::{self, Settings};
use crate::test_run::throughput;
use crate::topology::{Fabric, Node};

/// Frames of a call into the kernel at most, and of those how many at a time: a veth's ring holds 256.
const BATCH: u64 = 20_000;
const AT_ONCE: u32 = 64;
/// The number of a SYN.
const NUMBER: u32 = 1_000;

/// A packet of a flood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forged {
    /// A SYN.
    Syn,
    /// An ACK without data: the first after the SYN.
    Ack,
    /// A datagram.
    Datagram,
}

/// A sender at the router's end of the balancer's link: the bench's program, which gives each frame
/// a source of its own, and the kernel, which transmits them. Nothing corrects their checksums, so a
/// backend's kernel drops them first thing.
pub struct Flood {
    /// For each packet of a flow one, and they come by the same flows in the same order.
    senders: Vec<(Ebpf, Vec<u8>)>,
    node: Node,
}

impl std::fmt::Debug for Flood {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flood").field("node", &self.node).finish_non_exhaustive()
    }
}

impl Flood {
    /// Makes it ready to send SYNs to an address.
    ///
    /// # Errors
    /// When the program cannot be loaded.
    pub fn new(fabric: &Fabric, to: SocketAddrV4) -> Result<Self> {
        Self::with(fabric, to, &[Forged::Syn], 11)
    }

    /// Makes it ready to send these packets from each source. Floods with one seed have the same sources in the same order.
    ///
    /// # Errors
    /// When the program cannot be loaded.
    pub fn with(fabric: &Fabric, to: SocketAddrV4, packets: &[Forged], seed: u64) -> Result<Self> {
        let sender = |forged: &Forged| -> Result<_> {
            let mut bench = programs::load(&objects::directory(), "bench.o")?;
            let settings =
                Settings { grown: 0, version: 4, flows: 1 << 32, services: 0, sequence: seed };
            programs::set(&mut bench, settings)?;
            // The program writes the Ethernet header, and address and port of the client.
            let nowhere = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
            let packet = match forged {
                Forged::Syn => packet(nowhere, to, NUMBER),
                Forged::Ack => ack_packet(nowhere, to, NUMBER + 1),
                Forged::Datagram => datagram(nowhere, to),
            };
            let mut frame = [vec![0; 14], packet].concat();
            frame.resize(62, 0);
            Ok((bench, frame))
        };
        let senders = packets.iter().map(sender).collect::<Result<_>>()?;
        Ok(Self { senders, node: fabric.router.clone() })
    }

    /// Sends so many flows a second, or as many as it can if that is less, until so many are sent or the
    /// time is over; answers how many were sent. The second packets of some hundred flows follow the first ones of all of them.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn send(&mut self, number: u64, per_second: u64, most: Duration) -> Result<u64> {
        self.send_while(per_second, |sent, time| sent < number && time < most)
    }

    /// Sends so many flows a second as long as it should, by how many were sent and for how long; answers how many were sent.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn send_while(
        &mut self,
        per_second: u64,
        should: impl Fn(u64, Duration) -> bool + Send + Sync,
    ) -> Result<u64> {
        let Self { senders, node } = self;
        // Smaller bursts leave others room in the rings.
        let batch = (per_second / 10).clamp(u64::from(AT_ONCE), BATCH);
        node.enter(|| {
            let interface =
                nix::net::if_::if_nametoindex("balancer").context("the balancer's link")?;
            let (begin, mut sent) = (Instant::now(), 0);
            while should(sent, begin.elapsed()) {
                for (bench, frame) in senders.iter_mut() {
                    let context = throughput::context(frame.len() as u32, interface);
                    let mut options = TestRunOptions::new();
                    options.data_in = Some(frame);
                    options.ctx_in = Some(&context);
                    options.repeat = batch as u32;
                    options.attrs = TestRunAttrs::new().xdp_live_frames(AT_ONCE);
                    programs::program(bench, "sender")?.test_run(options)?;
                }
                sent += batch;
                let due = Duration::from_secs(1) * sent as u32 / per_second as u32;
                pause(due.saturating_sub(begin.elapsed()));
            }
            Ok(sent)
        })?
    }
}
