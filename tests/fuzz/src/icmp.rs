//! ICMP errors: they go where the flow of the packet goes that they quote, or nowhere.

use std::net::{IpAddr, SocketAddr};

use lb_tests::packets::frames::{ETHERNET, Flow, Packet};

use crate::{maps, sent};

/// Maps, a service, a client, and how the error is made; what is left is changed in the error.
pub fn check(data: &[u8]) {
    let Some((maps, rest)) = maps::take(data) else { return };
    let Some(([service, kind, code, quoted, options, class, from @ ..], changes)) =
        rest.split_first_chunk::<24>()
    else {
        return;
    };
    let services = &maps.fixture.services;
    let service = services[usize::from(*service) % services.len()];
    let port = u16::from_be_bytes([from[16], from[17]]);
    let address: IpAddr = match service.vip {
        IpAddr::V4(_) => (*from.first_chunk::<4>().unwrap()).into(),
        IpAddr::V6(_) => (*from.first_chunk::<16>().unwrap()).into(),
    };
    let vip_port = if service.port == 0 { port ^ 0x5555 } else { service.port };
    let flow = Flow {
        client: SocketAddr::new(address, port),
        vip: SocketAddr::new(service.vip, vip_port),
    };
    let (plain, answer) = match service.protocol {
        6 => (Packet::new(flow).tcp("A"), Packet::new(flow.answered()).tcp("A")),
        _ => (Packet::new(flow).udp(), Packet::new(flow.answered()).udp()),
    };
    let header = if service.vip.is_ipv4() { 20 } else { 40 };
    let quote = &answer[ETHERNET..];
    let quote = &quote[..usize::from(*quoted).min(quote.len())];
    let kinds = if service.vip.is_ipv4() { [3, 11, 12] } else { [1, 2, 3] };
    let mut packet = Packet::new(flow).traffic_class(*class);
    if options % 11 != 0 && service.vip.is_ipv4() {
        packet = packet.options(4 * (options % 11));
    }
    let error = packet.error(kinds[usize::from(*kind) % 3], *code, [0; 4], quote);

    let (went, is_about) = (maps.fake.expects(&plain), maps.fake.expects(&error));
    sent::check(&maps.fixture, &plain, &went);
    sent::check(&maps.fixture, &error, &is_about);
    if quote.len() < header + 8 {
        assert!(is_about.traffic.is_none(), "nobody's: {is_about:?}");
    } else if let Some((service, backend, _)) = went.traffic
        && is_roomy(&maps, backend)
    {
        assert_eq!(is_about.traffic, Some((service, backend, 0)), "{is_about:?}");
    }
    if changes.is_empty() {
        return;
    }
    let mut changed = error;
    for change in changes.chunks_exact(2) {
        let at = 12 + usize::from(change[0]) % (changed.len() - 12);
        changed[at] = change[1];
    }
    sent::check(&maps.fixture, &changed, &maps.fake.expects(&changed));
}

/// Whether an error of any length fits the way to a backend.
fn is_roomy(maps: &maps::FuzzedMaps, backend: u32) -> bool {
    let mut members = maps.fixture.regions.iter().flat_map(|region| &region.members);
    members.any(|member| member.backend == backend && member.mtu >= 576)
}
