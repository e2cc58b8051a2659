//! The checks of captured frames find a wrong checksum and an empty capture.

use std::net::{SocketAddr, UdpSocket};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::harness::Case;
use lb_tests::capture::{Capture, Frames};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::{Node, Topology};
use socket2::{Domain, Protocol, Socket, Type};

pub(crate) const CASES: &[Case] = &[
    Case::waits("whole_frames_pass", whole_frames_pass),
    Case::waits("a_checksum_that_was_left_to_the_card_is_a_fault", a_missing_checksum_is_a_fault),
    Case::waits("the_kernels_other_zero_is_no_fault", the_other_zero_is_no_fault),
    Case::waits("no_frames_are_no_proof", no_frames_are_no_proof),
];

fn pair(sandbox: &Sandbox, name: &str) -> Result<(Topology, Node, Node)> {
    let mut net = Topology::new(sandbox, name)?;
    let (a, b) = (net.node("a")?, net.node("b")?);
    net.link(&a, "eth0", &b, "eth0", 1500)?;
    a.ip("address add 192.0.2.1/24 dev eth0")?;
    b.ip("address add 192.0.2.2/24 dev eth0")?;
    net.ready()?;
    Ok((net, a, b))
}

/// Ten datagrams; returns the capture.
fn exchange(a: &Node, b: &Node) -> Result<Frames> {
    let capture = Capture::start(b, "eth0", "udp")?;
    let to = b.enter(|| UdpSocket::bind("192.0.2.2:7000"))??;
    let from = a.enter(|| UdpSocket::bind("192.0.2.1:0"))??;
    let mut buffer = [0; 16];
    for number in 0..10_u8 {
        from.send_to(&[number], to.local_addr()?)?;
        ensure!(to.recv(&mut buffer)? == 1 && buffer[0] == number);
    }
    capture.stop()
}

fn whole_frames_pass(sandbox: &Sandbox) -> Result<()> {
    let (_net, a, b) = pair(sandbox, "whole")?;
    let frames = exchange(&a, &b)?;
    let expected: Vec<_> =
        (0..10).map(|n| ["192.0.2.1".to_owned(), "192.0.2.2".into(), format!("0{n}")]).collect();
    ensure!(frames.fields("udp", ["ip.src", "ip.dst", "data.data"])? == expected);
    frames.assert_faultless()
}

fn a_missing_checksum_is_a_fault(sandbox: &Sandbox) -> Result<()> {
    let (_net, a, b) = pair(sandbox, "missing")?;
    a.run("ethtool", ["-K", "eth0", "tx", "on"])?;
    let frames = exchange(&a, &b)?;
    let verdict = fault(&frames)?;
    ensure!(verdict.starts_with("tshark finds fault with 10 frames:"), "{verdict}");
    Ok(())
}

/// A segment whose checksum would be 0000, with what the kernel writes then; and one bit beside it.
fn the_other_zero_is_no_fault(sandbox: &Sandbox) -> Result<()> {
    let (_net, a, b) = pair(sandbox, "zero")?;
    let send = |checksum: u16| -> Result<Frames> {
        let capture = Capture::start(&b, "eth0", "tcp port 7001")?;
        let socket = a.enter(|| Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::TCP)))??;
        // Pseudo header: c000 + 0201 + c000 + 0202 + 0006 + 0014; header: 1b59 + 1b58 + 5010 + the
        // sequence number, which makes the sum up to ffff, so that the checksum is its complement, 0.
        let mut segment = *b"\x1b\x59\x1b\x58\0\0\0\0\0\0\0\0\x50\x10\0\0\0\0\0\0";
        let sum: u32 = [0xc000, 0x0201, 0xc000, 0x0202, 0x0006, 0x0014, 0x1b59, 0x1b58, 0x5010]
            .into_iter()
            .sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        segment[4..6].copy_from_slice(&(0xffff - folded as u16).to_be_bytes());
        segment[16..18].copy_from_slice(&checksum.to_be_bytes());
        let to = SocketAddr::from(([192, 0, 2, 2], 0));
        ensure!(socket.send_to(&segment, &to.into())? == segment.len());
        capture.stop()
    };
    send(0xffff)?.assert_faultless()?;
    let verdict = fault(&send(0xfffe)?)?;
    ensure!(verdict.starts_with("tshark finds fault with 1 frames:"), "{verdict}");
    Ok(())
}

fn no_frames_are_no_proof(sandbox: &Sandbox) -> Result<()> {
    let (_net, _a, b) = pair(sandbox, "none")?;
    let frames = Capture::start(&b, "eth0", "udp port 9")?.stop()?;
    let verdict = fault(&frames)?;
    ensure!(verdict.ends_with("no frames"), "{verdict}");
    Ok(())
}

fn fault(frames: &Frames) -> Result<String> {
    Ok(frames.assert_faultless().err().context("no fault was found")?.to_string())
}
