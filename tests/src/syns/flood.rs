//! SYNs by the hundred thousand, on the balancer's wire.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use aya::Ebpf;
use aya::programs::{TestRun as _, TestRunAttrs, TestRunOptions};

use super::packet;
use crate::packets::objects;
use crate::process::pause;
use crate::test_run::programs::{self, Settings};
use crate::test_run::throughput;
use crate::topology::{Fabric, Node};

/// Frames of a call into the kernel, and of those how many at a time: a veth's ring holds 256.
const BATCH: u32 = 20_000;
const AT_ONCE: u32 = 64;

/// A sender at the router's end of the balancer's link: the bench's program, which gives each frame
/// a source of its own, and the kernel, which transmits them. Nothing corrects their checksums, so a
/// backend's kernel drops them first thing.
pub struct Flood {
    bench: Ebpf,
    frame: Vec<u8>,
    node: Node,
}

impl std::fmt::Debug for Flood {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flood").field("node", &self.node).finish_non_exhaustive()
    }
}

impl Flood {
    /// Makes it ready to send to an address.
    ///
    /// # Errors
    /// When the program cannot be loaded.
    pub fn new(fabric: &Fabric, to: SocketAddrV4) -> Result<Self> {
        let mut bench = programs::load(&objects::directory(), "bench.o")?;
        let settings = Settings { grown: 0, version: 4, flows: 1 << 32, services: 0, sequence: 11 };
        programs::set(&mut bench, settings)?;
        // The program writes the Ethernet header, and address and port of the client.
        let nowhere = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        let mut frame = [vec![0; 14], packet(nowhere, to, 1000)].concat();
        frame.resize(60, 0);
        Ok(Self { bench, frame, node: fabric.router.clone() })
    }

    /// Sends so many a second, or as many as it can if that is less, until so many are sent or the
    /// time is over; answers how many were sent.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn send(&mut self, number: u64, per_second: u64, most: Duration) -> Result<u64> {
        let Self { bench, frame, node } = self;
        node.enter(|| {
            let context = throughput::context(
                frame.len() as u32,
                nix::net::if_::if_nametoindex("balancer").context("the balancer's link")?,
            );
            let (begin, mut sent) = (Instant::now(), 0);
            while sent < number && begin.elapsed() < most {
                let mut options = TestRunOptions::new();
                options.data_in = Some(frame);
                options.ctx_in = Some(&context);
                options.repeat = BATCH;
                options.attrs = TestRunAttrs::new().xdp_live_frames(AT_ONCE);
                programs::program(bench, "sender")?.test_run(options)?;
                sent += u64::from(BATCH);
                let due = Duration::from_secs(1) * sent as u32 / per_second as u32;
                pause(due.saturating_sub(begin.elapsed()));
            }
            Ok(sent)
        })?
    }
}
