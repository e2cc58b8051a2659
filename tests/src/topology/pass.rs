//! The packet program that passes every packet, for ends of links that XDP transmits to.
//!
//! What a program sends back by `XDP_TX` lies in the ring of the peer until somebody rings: the kernel
//! does so only if the peer has a packet program itself (`veth_xdp_flush` in drivers/net/veth.c). GRO
//! at the peer makes the ring, but then frames wait for the next ordinary packet, and once 256 of
//! them lie there no packet comes through at all.

use anyhow::Result;

use super::Node;
use super::object::{self, instruction};

/// `r0 = XDP_PASS; exit` (`XDP_PASS` is 2).
const PROGRAM: [[u8; 8]; 2] = [instruction(0xb7, (0, 0), 0, 2), instruction(0x95, (0, 0), 0, 0)];

/// Attaches the program to an interface, in the driver; it goes with the interface.
pub(super) fn attach(node: &Node, interface: &str) -> Result<()> {
    let file = object::write(node, "pass", "xdp", &PROGRAM)?;
    node.run("ip", ["link", "set", interface, "xdpdrv", "object", &file, "section", "xdp"])?;
    Ok(())
}
