//! What the packet path answers itself, for a VIP: the heads of those frames.

mod echo;
mod too_large;

pub use echo::{echo, turn_v4, turn_v6};
pub use too_large::{QUOTE_V4, QUOTE_V6, too_large};

use crate::{
    abi::service::{AddressWords, IPV4},
    wire::{ethernet, icmp, ipv4, ipv6},
};

/// Length of the headers of an answer over IPv4, Ethernet's included, bytes.
pub const HEAD_V4: usize = ethernet::LENGTH + ipv4::LENGTH + icmp::LENGTH;
/// Length of the headers of an answer over IPv6, Ethernet's included, bytes.
pub const HEAD_V6: usize = ethernet::LENGTH + ipv6::LENGTH + icmp::LENGTH;

/// The head of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// Over IPv4.
    V4([u8; HEAD_V4]),
    /// Over IPv6.
    V6([u8; HEAD_V6]),
}

/// The headers one after the other; the frame goes back to where that with `macs` came from.
#[inline(always)]
fn head<const IP: usize, const ALL: usize>(
    macs: &[u8; ethernet::LENGTH],
    ether_type: [u8; 2],
    ip: &[u8; IP],
    message: &[u8; icmp::LENGTH],
) -> [u8; ALL] {
    const { assert!(ALL == ethernet::LENGTH + IP + icmp::LENGTH) };
    let (sender, host) = (ethernet::source(macs), ethernet::destination(macs));
    let mut head = [0; ALL];
    head[..ethernet::LENGTH].copy_from_slice(&ethernet::header(sender, host, ether_type));
    head[ethernet::LENGTH..][..IP].copy_from_slice(ip);
    head[ethernet::LENGTH + IP..].copy_from_slice(message);
    head
}

/// Whether an address is one that a host elsewhere may have: not this network's or host's, nor a group's.
#[inline(always)]
fn is_one_host(address: &AddressWords, version: u8) -> bool {
    let last = address[3].to_ne_bytes();
    if version == IPV4 {
        return !matches!(last[0], 0 | 127 | 224..);
    }
    let front = address[0] | address[1] | address[2];
    // Neither unspecified nor loopback (RFC 4291, 2.5.2 and 2.5.3), nor multicast.
    let is_lowest = front == 0 && u32::from_be_bytes(last) <= 1;
    !is_lowest && address[0].to_ne_bytes()[0] != 0xff
}
