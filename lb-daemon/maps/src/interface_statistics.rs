//! What kernel and driver count of an interface.

use std::io;

use netlink_packet_route::link::LinkAttribute;
use serde::Serialize;

use crate::{
    attach::link_message,
    raw::{self, DriverStatistics},
};

/// An interface with its counters, since it exists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceStatistics {
    pub name: String,
    pub link: LinkStatistics,
    /// `None`: the driver counts nothing, or its counters cannot be read.
    pub driver: Option<DriverStatistics>,
}

/// The kernel's statistics of a link, as `ip -statistics link` prints them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkStatistics {
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_errors: u64,
    pub tx_errors: u64,
    pub rx_dropped: u64,
    pub tx_dropped: u64,
    /// Dropped by the card, which had no room.
    pub rx_missed: u64,
    /// Dropped because nothing took them.
    pub rx_no_handler: u64,
}

impl LinkStatistics {
    /// What was lost, by the names of the counters.
    pub fn errors(&self) -> [(&'static str, u64); 6] {
        [
            ("rx_errors", self.rx_errors),
            ("tx_errors", self.tx_errors),
            ("rx_dropped", self.rx_dropped),
            ("tx_dropped", self.tx_dropped),
            ("rx_missed", self.rx_missed),
            ("rx_no_handler", self.rx_no_handler),
        ]
    }
}

/// Reads the counters of an interface by index; in the network namespace of the calling thread.
///
/// # Errors
/// What netlink answers; `ENODEV`: there is no such interface.
pub fn interface_statistics(index: u32) -> io::Result<InterfaceStatistics> {
    let mut statistics = InterfaceStatistics::default();
    for attribute in link_message(index)?.attributes {
        match attribute {
            LinkAttribute::IfName(name) => statistics.name = name,
            LinkAttribute::Stats64(it) => {
                statistics.link = LinkStatistics {
                    rx_packets: it.rx_packets,
                    tx_packets: it.tx_packets,
                    rx_errors: it.rx_errors,
                    tx_errors: it.tx_errors,
                    rx_dropped: it.rx_dropped,
                    tx_dropped: it.tx_dropped,
                    rx_missed: it.rx_missed_errors,
                    rx_no_handler: it.rx_nohandler,
                };
            }
            _ => {}
        }
    }
    // Their number may change while they are read, when queues are added.
    let read = || raw::driver_statistics(&statistics.name);
    statistics.driver = read().or_else(|_| read()).ok();
    Ok(statistics)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn loopback_counts_what_is_sent_over_it() {
        let lo = nix::net::if_::if_nametoindex("lo").unwrap();
        let before = interface_statistics(lo).unwrap();
        assert_eq!((before.name.as_str(), &before.driver), ("lo", &None));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..3 {
            socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
        }
        let after = interface_statistics(lo).unwrap();
        assert!(after.link.tx_packets >= before.link.tx_packets + 3, "{before:?} {after:?}");
        assert!(after.link.rx_packets >= before.link.rx_packets + 3, "{before:?} {after:?}");
    }

    #[test]
    fn an_interface_that_is_not_there_has_none() {
        let error = interface_statistics(0x7fff_fff0).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }
}
