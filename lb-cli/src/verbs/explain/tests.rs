use lb_common::{
    abi::{member::MemberState, service::SERVICE_BY_ADDRESS, slot::NO_RANK},
    path,
};
use lb_daemon::directory::Directory;

use super::*;
use crate::{names::Names, output::Report};

#[path = "../../../../lb-common/tests/twin/mod.rs"]
mod twin;

use twin::Twin;

/// One slot a region, so that every flow is in slot 0.
fn one_slot() -> Twin {
    Twin::new(&[(vec![[0, 1, 2, NO_RANK]], 3), (vec![[0, NO_RANK, NO_RANK, NO_RANK]], 1)], 4)
        .with_service("192.0.2.1", 80, 6, 0)
}

fn names() -> Names {
    Names(Directory {
        regions: [(0, "eu".into()), (1, "us".into())].into(),
        pools: [(0, "web".into())].into(),
        services: [(1, "shop".into())].into(),
        ..Directory::default()
    })
}

fn explain(twin: &Twin, open: bool) -> Explanation {
    let flow = Flow::parse("198.51.100.7:40000", "192.0.2.1:80", Protocol::Tcp, open).unwrap();
    let key = ServiceKey::new(flow.vip.ip(), 80, 6);
    trace::explain(twin, &names(), &twin.services[&key], &flow)
}

/// The table without its hash, which other tests hold.
fn table(explanation: &Explanation) -> String {
    let hash = explanation.hash.clone().unwrap();
    explanation.table().replace(&hash, "HASH")
}

#[test]
fn the_owner_has_the_packet() {
    assert_eq!(
        table(&explain(&one_slot(), false)),
        "\
packet    tcp 198.51.100.7:40000 -> 192.0.2.1:80, new connection
service   shop, pool web, affinity connection
slot      0 of 1 (hash HASH)
verdict   forwarded
backend   10.0.0.0, region eu
next hop  02:00:00:00:00:fe on interface 2
why       10.0.0.0 owns the slot and is up

REGION  SLOT  PLACE        BACKEND   STATE  OUTCOME
eu      0     owner        10.0.0.0  up     chosen
eu      0     alternate 1  10.0.0.1  up     not asked
eu      0     alternate 2  10.0.0.2  up     not asked
"
    );
}

#[test]
fn an_alternate_has_it_when_the_owner_may_not() {
    let mut twin = one_slot();
    twin.set(0, 0, MemberState::Unfit);
    twin.set_next_hop(0, 1, 0);
    assert_eq!(
        table(&explain(&twin, false)),
        "\
packet    tcp 198.51.100.7:40000 -> 192.0.2.1:80, new connection
service   shop, pool web, affinity connection
slot      0 of 1 (hash HASH)
verdict   forwarded
backend   10.0.0.2, region eu
next hop  02:00:00:00:00:fe on interface 2
why       10.0.0.0 owns the slot but is unfit; alternate 2 is the first of its
          list that may have the packet

REGION  SLOT  PLACE        BACKEND   STATE  OUTCOME
eu      0     owner        10.0.0.0  unfit  passed over: it takes no new
                                            connections
eu      0     alternate 1  10.0.0.1  up     passed over: its next hop has no
                                            address
eu      0     alternate 2  10.0.0.2  up     chosen
"
    );
    let open = explain(&twin, true);
    assert_eq!(open.why, "10.0.0.0 owns the slot and is unfit");
    assert_eq!(open.packet, "open connection");
    assert!(open.choice.unwrap().owner);
}

#[test]
fn the_next_region_has_it_when_nobody_of_the_first_may() {
    let mut twin = one_slot();
    for rank in 0..3 {
        twin.set(0, rank, MemberState::Dead);
    }
    let explanation = explain(&twin, false);
    assert_eq!(
        explanation.why,
        "nobody asked in region eu may have the packet; owner of slot 0 is the next that may"
    );
    let choice = explanation.choice.as_ref().unwrap();
    assert_eq!((choice.backend.as_str(), choice.region.as_str()), ("10.0.1.0", "us"));
    assert!(!choice.owner);
    // Three entries of five slots in the first region, then the one that has it.
    assert_eq!(explanation.entries.len(), 16);
}

#[test]
fn nobody_at_all_is_a_verdict_with_its_meaning() {
    let mut twin = one_slot();
    for (region, rank) in [(0, 0), (0, 1), (0, 2), (1, 0)] {
        twin.set(region, rank, MemberState::Dead);
    }
    let explanation = explain(&twin, false);
    assert_eq!(explanation.verdict, "no_backend");
    assert_eq!(explanation.why, "The pool of the service has no member that may have the packet.");
    assert!(explanation.choice.is_none());
    assert!(explanation.entries.iter().all(|entry| entry.outcome == "passed over: it is dead"));
}

#[test]
fn an_empty_pool_has_no_slot() {
    let twin = Twin::new(&[], 4).with_service("192.0.2.1", 80, 6, 0);
    assert_eq!(
        explain(&twin, false).table(),
        "\
packet   tcp 198.51.100.7:40000 -> 192.0.2.1:80, new connection
service  shop, pool web, affinity connection
verdict  no_backend
why      The pool of the service has no member that may have the packet.
"
    );
}

#[test]
fn without_a_source_address_the_choice_stands_but_the_packet_is_dropped() {
    let mut twin = one_slot();
    twin.descriptors[1].source_v4 = 0;
    let explanation = explain(&twin, false);
    assert_eq!(explanation.verdict, "no_source_address");
    assert_eq!(explanation.choice.unwrap().backend, "10.0.0.0");
}

#[test]
fn no_service_is_an_answer() {
    let flow = Flow::parse("[2001:db8::7]:1", "[2001:db8:1::1]:53", Protocol::Udp, false).unwrap();
    assert_eq!(
        trace::no_service(&flow).table(),
        "\
packet   udp [2001:db8::7]:1 -> [2001:db8:1::1]:53, datagram
verdict  not_ours
why      No service has this address, port and protocol.
"
    );
}

/// A SYN from 198.51.100.7 to 192.0.2.1, port 80.
fn syn(client_port: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00];
    frame.extend([0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 198, 51, 100, 7, 192, 0, 2, 1]);
    frame.extend(client_port.to_be_bytes());
    frame.extend([0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x02, 0, 0, 0, 0, 0, 0]);
    frame
}

#[test]
fn what_is_explained_is_what_the_packet_path_decides() {
    let lists: Vec<[u16; 4]> =
        (0..251_u16).map(|n| [n % 7, (n + 1) % 7, (n * 3 + 2) % 7, (n * 5 + 3) % 7]).collect();
    for flags in [0, SERVICE_BY_ADDRESS] {
        let mut twin = Twin::new(&[(lists.clone(), 7), (vec![[0, 1, NO_RANK, NO_RANK]], 2)], 4)
            .with_service("192.0.2.1", 80, 6, flags);
        for (rank, state) in [(0, MemberState::Dead), (1, MemberState::Unfit)] {
            twin.set(0, rank, state);
        }
        twin.set_next_hop(0, 2, 0);
        let mut seen = std::collections::BTreeMap::new();
        for port in 1..2_000 {
            let client = format!("198.51.100.7:{port}");
            let flow = Flow::parse(&client, "192.0.2.1:80", Protocol::Tcp, false).unwrap();
            let key = ServiceKey::new(flow.vip.ip(), 80, 6);
            let explanation = trace::explain(&twin, &names(), &twin.services[&key], &flow);
            let decided = path::decide(syn(port).as_slice(), &twin).unwrap();
            let choice = explanation.choice.unwrap();
            assert_eq!(choice.backend, pinned::address(decided.backend), "{client}");
            *seen.entry(choice.backend).or_insert(0) += 1;
        }
        let backends = if flags == 0 { 4 } else { 1 };
        assert_eq!(seen.len(), backends, "{seen:?}");
    }
}
