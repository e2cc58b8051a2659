//! What a router says of the way to a backend.

use std::net::{Ipv4Addr, SocketAddrV4};

use anyhow::{Result, ensure};
use etherparse::icmpv4::DestUnreachableHeader::FragmentationNeeded;
use etherparse::{Icmpv4Header, Icmpv4Type, IpNumber, Ipv4Header};
use lb_tests::topology::Fabric;
use socket2::{Domain, Protocol, Socket, Type};

use super::watch::Watch;

const BACKEND: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 11);
const MTU: u16 = 1400;

/// An ICMP error about a tunnel packet to a backend.
pub(super) fn told(watch: &mut Watch<'_>) -> Result<()> {
    let source = Fabric::BALANCER_V4.octets();
    let mut quoted =
        Ipv4Header::new(1480, 64, IpNumber::IPV4, source, BACKEND.octets())?.to_bytes().to_vec();
    quoted.extend([0; 8]);
    let kind = Icmpv4Type::DestinationUnreachable(FragmentationNeeded { next_hop_mtu: MTU });
    let mut error = Icmpv4Header::with_checksum(kind, &quoted).to_bytes().to_vec();
    error.extend(quoted);
    let router = &watch.farm.fabric.router;
    let raw = || Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4));
    router.enter(raw)??.send_to(&error, &SocketAddrV4::new(Fabric::BALANCER_V4, 0).into())?;

    let of = [("backend", &*BACKEND.to_string())];
    watch.until("a router says what the way to a backend carries", |now| {
        now.value("spillway_backend_path_mtu_bytes", &of) == Some(MTU.into())
    })?;
    let mtu = watch.before.value("spillway_backend_mtu_bytes", &of);
    ensure!(mtu == Some(MTU.into()), "{mtu:?}");
    Ok(())
}
