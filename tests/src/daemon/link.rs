//! What the kernel says of an interface.

use anyhow::{Context as _, Result};

use crate::topology::Node;

/// How a packet program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver.
    Native,
    /// In the stack.
    Generic,
    /// Not at all.
    None,
}

/// How the interface of a node has a packet program attached, by netlink.
///
/// # Errors
/// When there is no such interface.
pub fn xdp_mode(node: &Node, interface: &str) -> Result<XdpMode> {
    let links = node.ip_json(&format!("link show dev {interface}"))?;
    let link = links.get(0).with_context(|| format!("no interface {interface}"))?;
    // if_link.h: XDP_ATTACHED_DRV is 1, XDP_ATTACHED_SKB is 2.
    Ok(match link["xdp"]["mode"].as_u64() {
        Some(1) => XdpMode::Native,
        Some(2) => XdpMode::Generic,
        _ => XdpMode::None,
    })
}
