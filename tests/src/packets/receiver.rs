//! The loaded receiver, with one allow-list for all rows.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anyhow::{Context as _, Result, bail};
use aya::{
    Ebpf,
    maps::{Array, HashMap, LpmTrie, lpm_trie::Key},
    programs::SchedClassifier,
};

use super::{
    balancer::{Ran, map_mut, run, run_program},
    counters::Counters,
    frames::ETHERNET,
    layout, objects,
};

/// Balancers are here.
pub const SOURCES: [(IpAddr, u32); 3] = [
    (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), 29),
    (IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 32),
    (IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0)), 64),
];
/// GUE ends here.
pub const GUE_PORT: u16 = 6080;
/// The host serves these.
pub const VIPS: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0x80, 0, 0, 0, 0, 1)),
];

/// Tunnels end here.
pub const ENDPOINTS: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(10, 1, 0, 1)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 1, 0, 0, 0, 0, 0, 1)),
];

/// `TC_ACT_UNSPEC` and `TC_ACT_SHOT`, include/uapi/linux/pkt_cls.h, and the XDP actions of the same effect.
const ACTIONS: [(u32, u32); 2] = [(u32::MAX, 2), (2, 1)];

/// Whether the kernel runs a program for tc on a frame in a test: since Linux 6.18 not where an IP header is
/// announced that is not whole.
pub fn is_for_tc(frame: &[u8]) -> bool {
    let header = match frame.get(12..ETHERNET) {
        Some([0x08, 0x00]) => 20,
        Some([0x86, 0xdd]) => 40,
        _ => 1,
    };
    frame.len() >= ETHERNET + header
}

/// The loaded receiver.
#[derive(Debug)]
pub struct Receiver {
    bpf: Ebpf,
    program: &'static str,
}

impl Receiver {
    /// Its program for XDP.
    const XDP: &'static str = "receiver";
    /// Its program for tc.
    const TC: &'static str = "receiver_tc";

    /// Loads it for XDP and fills its lists.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn load() -> Result<Self> {
        Self::load_for(Self::XDP)
    }

    /// Loads it for tc and fills its lists.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn load_for_tc() -> Result<Self> {
        Self::load_for(Self::TC)
    }

    fn load_for(program: &'static str) -> Result<Self> {
        let mut bpf = objects::load("receiver", &[program])?;
        let mut sources: LpmTrie<_, [u8; 16], u32> = map_mut(&mut bpf, "SOURCES")?;
        for (prefix, bits) in SOURCES {
            let (bits, address) = layout::source_prefix(prefix, bits);
            sources.insert(&Key::new(bits, address), 1, 0).context("allow a source")?;
        }
        let mut port: Array<_, u64> = map_mut(&mut bpf, "GUE_PORT")?;
        port.set(0, u64::from(GUE_PORT), 0).context("set the port of GUE")?;
        for (map, addresses) in [("VIPS", VIPS), ("ENDPOINTS", ENDPOINTS)] {
            let mut set: HashMap<_, [u8; 20], u32> = map_mut(&mut bpf, map)?;
            for address in addresses {
                set.insert(layout::vip_key(address), 1, 0).context(map)?;
            }
        }
        Ok(Self { bpf, program })
    }

    /// Runs a frame. What tc is told is shown as the XDP action of the same effect.
    ///
    /// # Errors
    /// As [`run`]; tc has no frames without a byte of payload, and a program for it may answer what ours never
    /// does.
    pub fn run(&self, frame: &[u8]) -> Result<Ran> {
        if self.program == Self::XDP {
            return run(&self.bpf, self.program, frame);
        }
        let program = self.bpf.program(self.program).context("no program for tc")?;
        let ran = run_program(<&SchedClassifier>::try_from(program)?, frame)?;
        match ACTIONS.into_iter().find(|(tc, _)| *tc == ran.action) {
            Some((_, action)) => Ok(Ran { action, ..ran }),
            None => bail!("tc action {}", ran.action),
        }
    }

    /// The first `limit` counters.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn counters(&self, limit: u32) -> Result<Counters> {
        Counters::read(&self.bpf, limit)
    }
}
