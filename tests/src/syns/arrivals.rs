//! SYNs as they arrive at the backends.

use std::collections::HashMap;
use std::net::SocketAddrV4;

use anyhow::{Result, ensure};

use super::{SOURCES, pcap};
use crate::capture::Capture;
use crate::topology::Backend;

/// A SYN that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The backend, its place among all of them.
    pub backend: usize,
    /// When its kernel saw it behind the receiver, nanoseconds since 1970.
    pub at: u64,
}

/// Captures of the SYNs of [`SOURCES`], on all backends.
#[derive(Debug)]
pub struct Arrivals(Vec<Capture>);

impl Arrivals {
    /// Begins.
    ///
    /// # Errors
    /// When a capture does not begin.
    pub fn start(backends: &[Backend]) -> Result<Self> {
        let (prefix, bits) = SOURCES;
        let filter = format!("src net {prefix}/{bits} and tcp[tcpflags] == tcp-syn");
        let start = |backend: &Backend| Capture::start(&backend.node, "eth0", &filter);
        Ok(Self(backends.iter().map(start).collect::<Result<_>>()?))
    }

    /// Ends; answers what arrived from whom.
    ///
    /// # Errors
    /// When a capture missed some, or a SYN arrived twice.
    pub fn stop(self) -> Result<HashMap<SocketAddrV4, Arrival>> {
        let mut arrivals = HashMap::new();
        for (backend, capture) in self.0.into_iter().enumerate() {
            for (from, at) in pcap::packets(capture.stop()?.file())? {
                let twice = arrivals.insert(from, Arrival { backend, at });
                ensure!(twice.is_none(), "{from} arrived twice: {twice:?}");
            }
        }
        Ok(arrivals)
    }
}
