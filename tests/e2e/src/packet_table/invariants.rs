//! What is true of the table as a whole. Each test runs the rows it speaks of itself.

use std::{collections::BTreeSet, path::Path};

use crate::packet_table::row::Row;
use anyhow::{Context as _, Result, bail, ensure};
use lb_tests::packets::{
    balancer::Balancer,
    counters::Counters,
    frames::{ETHERNET, Packet},
    receiver::Receiver,
    tshark, verdicts,
};

use super::{
    balancer_rows,
    flows::{v4, v4_udp, v6, v6_udp},
    headroom, receiver as receiver_rows,
};

/// A name that stands for two rows would run both.
pub(crate) fn names_differ() -> Result<()> {
    let mut seen = BTreeSet::new();
    let balancer = balancer_rows().into_iter().map(|row| ("balancer", row.what));
    let receiver = receiver_rows::rows().into_iter().map(|row| ("receiver", row.what));
    for name in balancer.chain(receiver) {
        ensure!(seen.insert(name.clone()), "{name:?}: twice");
    }
    Ok(())
}

/// No way out of the programs goes unseen.
pub(crate) fn every_verdict_has_a_row() -> Result<()> {
    let balancer = balancer_rows().into_iter().map(|row| row.expected.verdict);
    let receiver = receiver_rows::rows().into_iter().map(|row| row.expected.verdict);
    let cramped = headroom::cramped().map(|(row, _)| row.expected.verdict);
    let seen: BTreeSet<&str> = balancer.chain(receiver).chain(cramped).collect();
    for verdict in verdicts::all()? {
        ensure!(seen.contains(verdict.name), "{}: no row", verdict.name);
    }
    Ok(())
}

/// All counters of the whole maps, after all rows, on programs loaded for this alone.
pub(crate) fn no_other_counter_moves() -> Result<()> {
    let mut expected = Counters::default();
    let mut balancer = Balancer::load()?;
    for row in balancer_rows() {
        balancer.show(&row.fixture)?;
        balancer.run(&row.frame)?;
        expected.add_all(&row.expected.counters(row.frame.len() as u64)?);
    }
    compare(&balancer.counters(u32::MAX)?, &expected)?;
    let mut expected = Counters::default();
    let receiver = Receiver::load()?;
    for row in receiver_rows::rows() {
        receiver.run(&row.frame)?;
        expected.add_all(&row.expected.counters(row.frame.len() as u64)?);
    }
    compare(&receiver.counters(u32::MAX)?, &expected)
}

fn compare(counters: &Counters, expected: &Counters) -> Result<()> {
    let keys = counters.0.keys().chain(expected.0.keys());
    for key in keys {
        let (found, wanted) = (counters.0.get(key), expected.0.get(key));
        ensure!(found == wanted, "{key:?}: {found:?}, expected {wanted:?}");
    }
    Ok(())
}

/// Frames that the balancer sends, as it sent them, and what the receiver makes of its own.
/// They are written to a file in `directory`.
pub(crate) fn tshark_finds_no_fault(directory: &Path) -> Result<()> {
    let mut balancer = Balancer::load()?;
    // What is wrong as it comes is wrong as it goes.
    let is_faultless = |row: &Row<_>| !row.what.contains("wrong checksum");
    let sent: Vec<_> = balancer_rows()
        .into_iter()
        .filter(|row| row.expected.is_sent() && is_faultless(row))
        .collect();
    ensure!(sent.len() > 100, "only {} frames", sent.len());
    // Of what is too large the answer quotes a part.
    let (forwarded, answers): (Vec<_>, Vec<_>) =
        sent.into_iter().partition(|row| row.expected.traffic.is_some());
    for (rows, is_whole, file) in
        [(forwarded, true, "forwarded.pcap"), (answers, false, "answers.pcap")]
    {
        let (mut frames, mut names) = (Vec::new(), Vec::new());
        for row in rows {
            balancer.show(&row.fixture)?;
            frames.push(balancer.run(&row.frame)?.frame);
            names.push(row.what);
        }
        let protocols = tshark::decode(&frames, &names, is_whole, &directory.join(file))?;
        for ((frame, name), protocols) in frames.iter().zip(names).zip(protocols) {
            let stack = stack(frame).with_context(|| name.clone())?;
            ensure!(protocols.starts_with(&stack), "{name}: tshark sees {protocols}, not {stack}…");
        }
    }
    let receiver = Receiver::load()?;
    let (mut frames, mut names) = (Vec::new(), Vec::new());
    // Of these tshark does not know that the host has yet to judge them.
    let is_odd = |what: &str| {
        what.starts_with("inner total length below the outer") || what.starts_with("for the host")
    };
    for row in receiver_rows::rows() {
        if row.expected.verdict == "decapsulated" && !is_odd(&row.what) {
            frames.push(receiver.run(&row.frame)?.frame);
            names.push(row.what);
        }
    }
    ensure!(frames.len() > 100, "only {} frames", frames.len());
    for protocols in tshark::decode(&frames, &names, true, &directory.join("received.pcap"))? {
        // An ICMP error quotes a packet, and a client's datagram may look like a tunnel.
        let own =
            protocols.split(':').take_while(|name| !name.starts_with("icmp") && *name != "gue");
        let headers = own.filter(|name| matches!(*name, "ip" | "ipv6")).count();
        ensure!(protocols.starts_with("eth:ethertype:ip") && headers == 1, "{protocols}");
    }
    Ok(())
}

/// It would find fault: a frame of each kind with a bit of a checksum turned over, and as it was made.
pub(crate) fn tshark_finds_faults(directory: &Path) -> Result<()> {
    let (quoted, router) = (Packet::new(v6().answered()).tcp("A"), Packet::new(v6()));
    let too_big = router.error(2, 0, [0, 0, 5, 0], &quoted[ETHERNET..]);
    let echo = Packet::new(v4()).error(8, 0, [0, 7, 0, 1], b"ping");
    for (what, frame, checksum) in [
        ("IPv4", Packet::new(v4()).tcp("A"), ETHERNET + 10),
        ("TCP", Packet::new(v4()).tcp("A"), ETHERNET + 20 + 16),
        ("TCP over IPv6", Packet::new(v6()).tcp("A"), ETHERNET + 40 + 16),
        ("UDP", Packet::new(v4_udp()).payload(b"data").udp(), ETHERNET + 20 + 6),
        ("UDP over IPv6", Packet::new(v6_udp()).payload(b"data").udp(), ETHERNET + 40 + 6),
        ("ICMP", echo, ETHERNET + 20 + 2),
        ("ICMPv6", too_big, ETHERNET + 40 + 2),
    ] {
        let mut wrong = frame.clone();
        wrong[checksum] ^= 1;
        let decode = |frame: Vec<u8>| {
            tshark::decode(&[frame], &[what.to_owned()], true, &directory.join("fault.pcap"))
        };
        decode(frame)?;
        ensure!(decode(wrong).is_err(), "{what}: no fault was found");
    }
    Ok(())
}

/// The protocols that a frame must begin with, by its tags and its outer header.
fn stack(frame: &[u8]) -> Result<String> {
    let (mut packet, mut below) = (&frame[14..], "eth:ethertype".to_owned());
    let mut ether_type = &frame[12..14];
    while let [0x81, 0x00] | [0x88, 0xa8] = ether_type {
        let tag = if ether_type == [0x81, 0x00] { "vlan" } else { "ieee8021ad" };
        // Of two providers' tags tshark tells once.
        if !below.ends_with(&format!("{tag}:ethertype")) || tag == "vlan" {
            below = format!("{below}:{tag}:ethertype");
        }
        (ether_type, packet) = (&packet[2..4], &packet[4..]);
    }
    let (outer, protocol, header) = match packet[0] >> 4 {
        4 => ("ip", packet[9], usize::from(packet[0] & 15) * 4),
        _ => ("ipv6", packet[6], 40),
    };
    let inner = match protocol {
        1 => "icmp",
        4 => "ip",
        6 => "tcp",
        // The rows' own datagrams, without a tunnel.
        17 if packet[header + 2..header + 4] == [0, 53] => "udp",
        17 => "udp:gue",
        41 => "ipv6",
        58 => "icmpv6",
        60 => "ipv6.dstopts",
        other => bail!("protocol {other}"),
    };
    Ok(format!("{below}:{outer}:{inner}"))
}
