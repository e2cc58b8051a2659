//! Offloads (ethtool-netlink) and XDP features (netdev, Linux 6.3) of interfaces, over generic netlink: unlike `/sys` it
//! always answers for the network namespace of the calling thread.

mod generic_netlink;

use std::{collections::BTreeSet, io};

use self::generic_netlink::{Family, attributes, nested, put, text, word};

/// XDP features of a driver; include/uapi/linux/netdev.h, `netdev_xdp_act`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpFeatures {
    /// It runs programs in the driver (`NETDEV_XDP_ACT_BASIC`).
    pub native: bool,
    /// Frames can be redirected out of it (`NETDEV_XDP_ACT_NDO_XMIT`).
    pub transmits: bool,
}

/// Names of the offloads that are on, as the kernel spells them: `rx-lro`, `rx-gro-hw`,
/// `rx-vlan-hw-parse`, `tx-checksum-ip-generic`.
///
/// # Errors
/// The kernel's error; `NotFound`: no ethtool-netlink, or no such interface.
pub fn offloads(interface: u32) -> io::Result<BTreeSet<String>> {
    // include/uapi/linux/ethtool_netlink_generated.h
    const FEATURES_GET: u8 = 11;
    const FEATURES_HEADER: u16 = 1;
    const FEATURES_ACTIVE: u16 = 4;
    const HEADER_DEV_INDEX: u16 = 1;
    const BITSET_BITS: u16 = 3;
    const BITS_BIT: u16 = 1;
    const BIT_NAME: u16 = 2;

    let mut header = Vec::new();
    put(&mut header, HEADER_DEV_INDEX, &interface.to_ne_bytes());
    let mut request = Vec::new();
    put(&mut request, FEATURES_HEADER | nested(), &header);
    let answer = Family::find("ethtool")?.request(FEATURES_GET, &request)?;
    let mut on = BTreeSet::new();
    for (_, active) in attributes(&answer).filter(|(kind, _)| *kind == FEATURES_ACTIVE) {
        for (_, bits) in attributes(active).filter(|(kind, _)| *kind == BITSET_BITS) {
            for (_, bit) in attributes(bits).filter(|(kind, _)| *kind == BITS_BIT) {
                on.extend(
                    attributes(bit).find(|(kind, _)| *kind == BIT_NAME).map(|(_, n)| text(n)),
                );
            }
        }
    }
    Ok(on)
}

/// The XDP features of an interface's driver.
///
/// # Errors
/// The kernel's error; `NotFound`: a kernel older than 6.3, or no such interface.
pub fn xdp_features(interface: u32) -> io::Result<XdpFeatures> {
    // include/uapi/linux/netdev.h
    const DEV_GET: u8 = 1;
    const DEV_IFINDEX: u16 = 1;
    const DEV_XDP_FEATURES: u16 = 3;
    const BASIC: u64 = 1;
    const NDO_XMIT: u64 = 4;

    let mut request = Vec::new();
    put(&mut request, DEV_IFINDEX, &interface.to_ne_bytes());
    let answer = Family::find("netdev")?.request(DEV_GET, &request)?;
    let features = attributes(&answer).find(|(kind, _)| *kind == DEV_XDP_FEATURES);
    let features = features.and_then(|(_, value)| word(value));
    let features =
        features.ok_or_else(|| io::Error::other("netdev: the answer has no XDP features"))?;
    Ok(XdpFeatures { native: features & BASIC != 0, transmits: features & NDO_XMIT != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_offloads_and_no_native_programs() {
        let lo = nix::net::if_::if_nametoindex("lo").unwrap();
        // lo never leaves its namespace and never computes a checksum; both are fixed.
        let on = offloads(lo).unwrap();
        assert!(on.contains("loopback"), "{on:?}");
        assert!(!on.contains("rx-lro"), "{on:?}");
        match xdp_features(lo) {
            Ok(features) => assert!(!features.native),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::NotFound, "before 6.3"),
        }
    }

    #[test]
    fn an_interface_that_is_not_there_has_none() {
        let error = offloads(0x7fff_fff0).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{error}");
    }
}
