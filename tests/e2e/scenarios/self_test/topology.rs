//! The standard network works before anything of ours runs in it, and is removed whole.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use anyhow::{Result, ensure};
use lb_e2e::harness::Case;
use lb_tests::{
    process::PATIENCE,
    sandbox::Sandbox,
    topology::{Fabric, REGIONS},
};

pub(crate) const CASES: &[Case] = &[
    Case::waits(
        "every_backend_answers_the_client_from_its_vip",
        every_backend_answers_from_its_vip,
    ),
    Case::waits("a_removed_network_leaves_no_namespace", a_removed_network_leaves_no_namespace),
];

fn every_backend_answers_from_its_vip(sandbox: &Sandbox) -> Result<()> {
    let fabric = Fabric::new(sandbox, "reach", 3)?;
    ensure!(fabric.backends.len() == 3 * REGIONS.len());
    for backend in &fabric.backends {
        for (own, vip, client) in [
            (
                IpAddr::from(backend.v4),
                IpAddr::from(Fabric::VIP_V4),
                IpAddr::from(Fabric::CLIENT_V4),
            ),
            (backend.v6.into(), Fabric::VIP_V6.into(), Fabric::CLIENT_V6.into()),
        ] {
            let host = backend.node.enter(|| UdpSocket::bind((own, 9)))??;
            for asker in [&fabric.client, &fabric.balancer] {
                let socket = asker.enter(|| UdpSocket::bind((unspecified(own), 0)))??;
                socket.send_to(asker.name().as_bytes(), (own, 9))?;
                ensure!(receive(&host)?.0 == asker.name());
            }
            let receiver = fabric.client.enter(|| UdpSocket::bind((client, 0)))??;
            let sender = backend.node.enter(|| UdpSocket::bind((vip, 7)))??;
            sender.send_to(backend.name().as_bytes(), receiver.local_addr()?)?;
            let (text, source) = receive(&receiver)?;
            ensure!(text == backend.name());
            ensure!(source == (vip, 7).into(), "{}: came from {source}", backend.name());
        }
    }
    Ok(())
}

fn receive(socket: &UdpSocket) -> Result<(String, SocketAddr)> {
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut seen = [0; 64];
    let (length, source) = socket.recv_from(&mut seen)?;
    Ok((String::from_utf8_lossy(&seen[..length]).into_owned(), source))
}

fn unspecified(like: IpAddr) -> IpAddr {
    if like.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}

fn a_removed_network_leaves_no_namespace(sandbox: &Sandbox) -> Result<()> {
    let fabric = Fabric::new(sandbox, "gone", 1)?;
    let mut sleeper = fabric.client.spawn("sleep", ["1000"])?;
    let before = fabric_namespaces("gone")?;
    ensure!(before.len() == 5, "client, router, balancer, two backends, but {before:?}");
    drop(fabric);
    ensure!(fabric_namespaces("gone")?.is_empty());
    ensure!(!sleeper.wait()?.success(), "the program in it was ended by force");
    Ok(())
}

fn fabric_namespaces(name: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/run/netns")? {
        let entry = entry?.file_name().to_string_lossy().into_owned();
        if entry.starts_with(&format!("{name}-")) {
            found.push(entry);
        }
    }
    Ok(found)
}
