//! Reading a capture without tshark, which takes seconds for a hundred thousand frames.

use std::fs;
use std::net::SocketAddrV4;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};

/// First word of a file with nanoseconds, in the byte order of who wrote it (pcap-savefile(5)).
const MAGIC: u32 = 0xa1b2_3c4d;
/// Lengths of the header of a file and of a frame, below.
const HEADER: usize = 24;
const FRAME: usize = 16;

/// Source of each TCP segment and datagram over IPv4 in a file, and when it was seen (nanoseconds since 1970).
pub(super) fn packets(file: &Path) -> Result<Vec<(SocketAddrV4, u64)>> {
    let name = || file.display().to_string();
    let bytes = fs::read(file).with_context(name)?;
    ensure!(word(&bytes, 0) == Some(MAGIC), "{}: not a capture in nanoseconds", name());
    let (mut at, mut packets) = (HEADER, Vec::new());
    while at < bytes.len() {
        let header = || {
            let [seconds, nanoseconds, length] = [0, 4, 8].map(|field| word(&bytes, at + field));
            let frame = bytes.get(at + FRAME..at + FRAME + length? as usize)?;
            Some((u64::from(seconds?) * 1_000_000_000 + u64::from(nanoseconds?), frame))
        };
        let (seen, frame) = header().with_context(|| format!("{}: cut short", name()))?;
        packets.push((source(frame).with_context(|| format!("{}: at {at}", name()))?, seen));
        at += FRAME + frame.len();
    }
    Ok(packets)
}

fn source(frame: &[u8]) -> Result<SocketAddrV4> {
    let packet = SlicedPacket::from_ethernet(frame)?;
    let Some(NetSlice::Ipv4(ip)) = packet.net else { anyhow::bail!("not IPv4") };
    let port = match packet.transport {
        Some(TransportSlice::Tcp(tcp)) => tcp.source_port(),
        Some(TransportSlice::Udp(udp)) => udp.source_port(),
        other => anyhow::bail!("neither TCP nor UDP: {other:?}"),
    };
    Ok(SocketAddrV4::new(ip.header().source_addr(), port))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}
