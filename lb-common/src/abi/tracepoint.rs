//! Frames that the kernel drops after a packet program, as its tracepoints report them (include/trace/events/xdp.h).
//!
//! Nothing here decides anything about packets: the programs count what a kernel reports, if it has the tracepoints.

/// A tracepoint that reports dropped frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Tracepoint {
    /// The driver could not send a frame back out of the interface that it came in on, or a program failed.
    XdpException = 0,
    /// The kernel refused to redirect a frame that came in on the interface.
    XdpRedirectErr = 1,
    /// The device map could not hand frames to the interface by which they were to leave.
    XdpDevmapXmit = 2,
}

impl Tracepoint {
    /// All of them, by number.
    pub const ALL: [Self; 3] = [Self::XdpException, Self::XdpRedirectErr, Self::XdpDevmapXmit];

    /// The kernel's name of it, and the program's.
    pub const fn name(self) -> &'static str {
        match self {
            Self::XdpException => "xdp_exception",
            Self::XdpRedirectErr => "xdp_redirect_err",
            Self::XdpDevmapXmit => "xdp_devmap_xmit",
        }
    }

    /// The key of an interface's count: `{tracepoint 32, interface 32}` from the high end.
    pub const fn key(self, interface: u32) -> u64 {
        (self as u64) << 32 | interface as u64
    }

    /// The tracepoint and the interface of a key; `None`: no program writes such a key.
    pub fn parse_key(key: u64) -> Option<(Self, u32)> {
        let tracepoint = Self::ALL.into_iter().find(|it| *it as u64 == key >> 32)?;
        Some((tracepoint, key as u32))
    }
}

/// Most counts kept, of all interfaces and tracepoints; beyond that the least recent is forgotten.
pub const MAX_TRACED: u32 = 1_024;

/// Global of the programs: offset of `ifindex` in `struct net_device`, bytes.
pub const IFINDEX_OFFSET: &str = "IFINDEX_OFFSET";
/// Global of the programs: offset of the pointer to the network namespace in `struct net_device`, bytes.
pub const NAMESPACE_OFFSET: &str = "NAMESPACE_OFFSET";
/// Global of the programs: offset of the inode number in `struct net`, bytes.
pub const INODE_OFFSET: &str = "INODE_OFFSET";
/// Global of the programs: inode number of the network namespace whose interfaces are counted.
pub const NAMESPACE_INODE: &str = "NAMESPACE_INODE";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_its_tracepoint_and_interface() {
        for tracepoint in Tracepoint::ALL {
            for interface in [0, 1, 7, u32::MAX] {
                let key = tracepoint.key(interface);
                assert_eq!(Tracepoint::parse_key(key), Some((tracepoint, interface)));
            }
        }
        assert_eq!(Tracepoint::XdpDevmapXmit.key(9), 0x2_0000_0009);
        assert_eq!(Tracepoint::parse_key(3 << 32), None);
    }
}
