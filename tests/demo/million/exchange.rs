//! The packets that the client of a short request sends: those of a real one, recorded.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, TcpListener},
};

use anyhow::{Context as _, Result, ensure};
use lb_tests::{capture::Capture, sandbox::Sandbox, topology::Topology, traffic::Curl};

use super::site::VIP;

/// SYN, ACK, request, ACK, FIN, ACK.
pub(crate) const PACKETS: usize = 6;

/// The frames of a client, in order.
pub(crate) type Exchange = [Vec<u8>; PACKETS];

/// Has curl fetch a page from the VIP's address over a link of two hosts, and takes down what it sends.
pub(crate) fn record(sandbox: &Sandbox) -> Result<Exchange> {
    let mut net = Topology::new(sandbox, "recording")?;
    let (client, server) = (net.node("client")?, net.node("server")?);
    net.link(&client, "eth0", &server, "eth0", 1500)?;
    let address = Ipv4Addr::new(10, 0, 0, 1);
    client.ip(&format!("address add {address}/32 dev eth0\nroute add {VIP} dev eth0"))?;
    server.ip(&format!("address add {VIP}/32 dev eth0\nroute add {address} dev eth0"))?;
    net.ready()?;
    let listener = server.enter(|| TcpListener::bind((VIP, 80)))??;
    let serving = std::thread::spawn(move || serve_one(&listener));
    let capture = Capture::start(&client, "eth0", "tcp")?;
    Curl::new(&client).get(&format!("http://{VIP}/"))?;
    serving.join().map_err(|_| anyhow::anyhow!("the server panicked"))??;
    let frames = capture.stop()?.bytes(&format!("ip.src == {address}"))?;
    let count = frames.len();
    let frames = Exchange::try_from(frames).ok();
    let frames = frames.with_context(|| format!("curl sent {count} packets, not {PACKETS}"))?;
    ensure!(flags(&frames[0]) == Some(2), "curl's first packet is no SYN");
    Ok(frames)
}

/// Answers a request, and leaves the end of the connection to the client.
fn serve_one(listener: &TcpListener) -> Result<()> {
    let (mut connection, _) = listener.accept().context("accept curl")?;
    let mut request = Vec::new();
    let mut bytes = [0; 4096];
    while !request.ends_with(b"\r\n\r\n") {
        let count = connection.read(&mut bytes)?;
        ensure!(count > 0, "curl went away");
        request.extend_from_slice(&bytes[..count]);
    }
    connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")?;
    while connection.read(&mut bytes)? > 0 {}
    Ok(())
}

/// The flags of TCP over IPv4.
fn flags(frame: &[u8]) -> Option<u8> {
    frame.get(47).copied()
}
