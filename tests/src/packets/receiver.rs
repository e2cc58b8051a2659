//! The loaded receiver, with one allow-list for all rows.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anyhow::{Context as _, Result};
use aya::{
    Ebpf,
    maps::{HashMap, LpmTrie, lpm_trie::Key},
};

use super::{
    balancer::{Ran, map_mut, run},
    counters::Counters,
    layout, objects,
};

/// Balancers are here.
pub const SOURCES: [(IpAddr, u32); 3] = [
    (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), 29),
    (IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 32),
    (IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0)), 64),
];
/// The host serves these.
pub const VIPS: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0x80, 0, 0, 0, 0, 1)),
];

/// The loaded receiver.
#[derive(Debug)]
pub struct Receiver {
    bpf: Ebpf,
}

impl Receiver {
    /// Loads it and fills its lists.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn load() -> Result<Self> {
        let mut bpf = objects::load("receiver", &["receiver"])?;
        let mut sources: LpmTrie<_, [u8; 16], u32> = map_mut(&mut bpf, "SOURCES")?;
        for (prefix, bits) in SOURCES {
            let (bits, address) = layout::source_prefix(prefix, bits);
            sources.insert(&Key::new(bits, address), 1, 0).context("allow a source")?;
        }
        let mut vips: HashMap<_, [u8; 20], u32> = map_mut(&mut bpf, "VIPS")?;
        for vip in VIPS {
            vips.insert(layout::vip_key(vip), 1, 0).context("allow a VIP")?;
        }
        Ok(Self { bpf })
    }

    /// Runs a frame.
    ///
    /// # Errors
    /// As [`run`].
    pub fn run(&self, frame: &[u8]) -> Result<Ran> {
        run(&self.bpf, "receiver", frame)
    }

    /// The first `limit` counters.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn counters(&self, limit: u32) -> Result<Counters> {
        Counters::read(&self.bpf, limit)
    }
}
