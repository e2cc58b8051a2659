use lb_common::{
    abi::{
        descriptor::{LIMITED, PANIC},
        member::MemberState,
        meter::{EXCEPTIONS_V4, LimitWord},
        pool::{PoolLine, PoolWord},
        service::{SERVICE_BY_ADDRESS, SERVICE_REJECTS, SERVICE_TRACKED, ServiceKey},
        slot::NO_RANK,
    },
    path,
};
use std::net::SocketAddr;

use super::*;
use crate::{directory::Directory, model::Protocol, names};

#[path = "../../../lb-common/tests/twin/mod.rs"]
mod twin;

use twin::Twin;

fn names() -> Names {
    Names(Directory {
        regions: [(0, "eu".into()), (1, "us".into())].into(),
        pools: [(0, "web".into())].into(),
        services: [(1, "shop".into())].into(),
        ..Directory::default()
    })
}

fn explain(twin: &Twin, open: bool) -> Explanation {
    let flow = flow("198.51.100.7:40000", "192.0.2.1:80", Protocol::Tcp, open);
    super::explain(twin, &names(), &twin.services[&ServiceKey::of(&flow.tuple())], &flow)
}

fn flow(client: &str, vip: &str, protocol: Protocol, open: bool) -> Flow {
    let address = |text: &str| text.parse::<SocketAddr>().unwrap();
    Flow::new(address(client), address(vip), protocol, open).unwrap()
}

/// A SYN from 198.51.100.7 to 192.0.2.1, port 80.
fn syn(client_port: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00];
    frame.extend([0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 198, 51, 100, 7, 192, 0, 2, 1]);
    frame.extend(client_port.to_be_bytes());
    frame.extend([0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x02, 0, 0, 0, 0, 0, 0]);
    frame
}

/// Explaining changes nothing in pinned maps; in the twin it leaves the record of its SYN.
fn forget(twin: &Twin) {
    twin.records.borrow_mut().clear();
}

#[test]
fn the_next_region_has_it_when_nobody_of_the_first_may() {
    let mut twin = Twin::one_slot();
    for rank in 0..3 {
        twin.set(0, rank, MemberState::Dead);
    }
    let explanation = explain(&twin, false);
    assert_eq!(
        explanation.why,
        "nobody asked in region eu may have the packet; owner of slot 0 is the next that may"
    );
    let choice = explanation.choice.as_ref().unwrap();
    assert_eq!((&*choice.backend, choice.region.as_deref()), ("10.0.1.0", Some("us")));
    assert!(!choice.owner);
    // Three entries of five slots in the first region, then the one that has it.
    assert_eq!(explanation.entries.len(), 16);
}

#[test]
fn nobody_at_all_is_a_verdict_with_its_meaning() {
    let mut twin = Twin::one_slot();
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
fn without_a_source_address_the_choice_stands_but_the_packet_is_dropped() {
    let mut twin = Twin::one_slot();
    twin.descriptors[1].source_v4 = 0;
    let explanation = explain(&twin, false);
    assert_eq!(explanation.verdict, "no_source_address");
    assert_eq!(explanation.choice.unwrap().backend, "10.0.0.0");
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
            let flow = flow(&client, "192.0.2.1:80", Protocol::Tcp, false);
            let key = ServiceKey::of(&flow.tuple());
            let explanation = super::explain(&twin, &names(), &twin.services[&key], &flow);
            forget(&twin);
            let decided = path::decide(syn(port).as_slice(), &twin).unwrap();
            let choice = explanation.choice.unwrap();
            assert_eq!(choice.backend, names::address(decided.backend), "{client}");
            *seen.entry(choice.backend).or_insert(0) += 1;
        }
        let backends = if flags == 0 { 4 } else { 1 };
        assert_eq!(seen.len(), backends, "{seen:?}");
    }
}

/// A connection a second and one at once in the first region, which has had it.
fn full(twin: &mut Twin, region: usize) {
    let meter = &twin.meters[twin.groups[region].meter as usize];
    meter.0.set(LimitWord::new(16 * 1_000_000_000, 1));
    // One second ahead of the clock: no more than that may come early.
    meter.1.set((twin.now.get() + 1_000_000_000) * 16);
    twin.descriptors[1].flags |= LIMITED;
}

fn outcomes(explanation: &Explanation) -> Vec<(&str, RegionOutcome)> {
    explanation.regions.iter().map(|region| (region.region.as_str(), region.outcome)).collect()
}

#[test]
fn where_all_is_full_the_nearest_serves_or_nobody() {
    let mut twin = Twin::one_slot();
    full(&mut twin, 0);
    full(&mut twin, 1);
    let nearest = explain(&twin, false);
    assert_eq!(
        nearest.why,
        "no region that may have it has room; 10.0.0.0 in region eu serves beyond the limit"
    );
    let expected = [("eu", RegionOutcome::Overrun), ("us", RegionOutcome::Full)];
    assert_eq!(outcomes(&nearest), expected);

    let twin = twin.with_service("192.0.2.1", 80, 6, SERVICE_REJECTS);
    forget(&twin);
    let reject = explain(&twin, false);
    assert_eq!(reject.verdict, "regions_full");
    assert!(reject.choice.is_none());
    let expected = [("eu", RegionOutcome::Full), ("us", RegionOutcome::Full)];
    assert_eq!(outcomes(&reject), expected);
}

#[test]
fn a_drained_region_is_told_from_one_with_nobody_healthy() {
    let mut twin = Twin::one_slot();
    twin.meters[twin.groups[0].meter as usize].0.set(LimitWord::CLOSED);
    twin.descriptors[1].flags |= LIMITED;
    assert_eq!(
        explain(&twin, false).why,
        "region eu is drained; owner of slot 0 is the next that may"
    );
    for rank in 0..3 {
        twin.set(0, rank, MemberState::Dead);
    }
    forget(&twin);
    assert_eq!(
        explain(&twin, false).why,
        "region eu has nobody healthy; owner of slot 0 is the next that may"
    );
}

#[test]
fn without_budget_a_full_region_keeps_it() {
    let mut twin = Twin::one_slot();
    full(&mut twin, 0);
    twin.meters[EXCEPTIONS_V4 as usize].0.set(LimitWord::CLOSED);
    let explanation = explain(&twin, false);
    let choice = explanation.choice.as_ref().unwrap();
    assert_eq!((&*choice.backend, choice.owner), ("10.0.0.0", true));
    let expected = [("eu", RegionOutcome::Held), ("us", RegionOutcome::NotAsked)];
    assert_eq!(outcomes(&explanation), expected);
    assert_eq!(
        explanation.why,
        "region eu is full, but no more connections can be remembered elsewhere for now: \
         10.0.0.0 serves beyond the limit"
    );
}

#[test]
fn a_member_that_has_its_fill_is_passed_over() {
    let mut twin = Twin::one_slot();
    full(&mut twin, 1);
    // The second region's meter serves as the member's own.
    let meter = twin.groups[1].meter;
    let at = twin.groups[0].head.members;
    twin.members[at as usize] = twin.members[at as usize].with_limit(true);
    twin.member_meters.insert(at, meter);
    let explanation = explain(&twin, false);
    assert_eq!(
        explanation.why,
        "10.0.0.0 owns the slot but has all the new connections of its own limit; \
         alternate 1 is the first of its list that may have the packet"
    );
    assert_eq!(explanation.choice.unwrap().backend, "10.0.0.1");
}

/// The connection went to the second region while the first was full.
#[test]
fn what_is_remembered_of_a_connection_is_told() {
    let mut twin = Twin::one_slot();
    full(&mut twin, 0);
    let mut frame = syn(40_000);
    frame[38..42].copy_from_slice(&1_000_u32.to_be_bytes());
    let spilled = path::decide(frame.as_slice(), &twin).unwrap();
    assert_eq!(names::address(spilled.backend), "10.0.1.0");

    let by_record = explain(&twin, true);
    let why = "10.0.1.0 was given its SYN, which is remembered for 64 s (a record)";
    assert_eq!((by_record.why.as_str(), by_record.remembered), (why, Some(Memory::Record)));
    let choice = by_record.choice.unwrap();
    assert_eq!((&*choice.backend, choice.region.as_deref()), ("10.0.1.0", Some("us")));
    assert!(!choice.owner);

    // The client's answer to the SYN-ACK.
    frame[41] += 1;
    frame[47] = 0x10;
    path::decide(frame.as_slice(), &twin).unwrap();
    let by_exception = explain(&twin, true);
    let why = "it lives away from where the table puts it: at 10.0.1.0 (an exception)";
    assert_eq!(
        (by_exception.why.as_str(), by_exception.remembered),
        (why, Some(Memory::Exception))
    );
    assert_eq!(by_exception.choice.unwrap().region.as_deref(), Some("us"));
}

#[test]
fn a_tracked_flow_is_where_it_was() {
    let mut twin = Twin::one_slot().with_service("192.0.2.1", 53, 17, SERVICE_TRACKED | 60 << 16);
    full(&mut twin, 0);
    let flow = flow("198.51.100.7:40000", "192.0.2.1:53", Protocol::Udp, false);
    let service = twin.services[&ServiceKey::of(&flow.tuple())];
    let explain = |twin: &Twin| super::explain(twin, &names(), &service, &flow);
    path::forward(&twin, &service, flow.parsed(), &mut path::Unobserved).unwrap();
    twin.meters[twin.groups[0].meter as usize].0.set(LimitWord::UNLIMITED);
    let explanation = explain(&twin);
    assert_eq!(explanation.why, "its flow is tracked: it lives at 10.0.1.0");
    assert_eq!(explanation.remembered, Some(Memory::Tracked));
}

#[test]
fn the_former_home_keeps_what_it_has() {
    let mut twin = Twin::one_slot();
    let mut former = twin.descriptors[1];
    former.groups.swap(0, 1);
    former.home = twin.groups[1].head;
    twin.descriptors.push(former);
    let line = twin.pools[0].get();
    twin.pools[0].set(PoolLine { word: PoolWord::new(1, 2).0, ..line });
    let explanation = explain(&twin, true);
    assert_eq!(explanation.remembered, Some(Memory::FormerHome));
    assert_eq!(
        explanation.why,
        "10.0.1.0 had its slot before the pool changed, and keeps what it has for a while"
    );
}

#[test]
fn the_last_resort_is_called_so() {
    let mut twin = Twin::one_slot();
    twin.descriptors[1].flags |= PANIC;
    for (region, rank) in [(0, 0), (0, 1), (0, 2), (1, 0)] {
        twin.set(region, rank, MemberState::Unfit);
    }
    let at = twin.groups[0].head.members as usize + 1;
    twin.members[at] = twin.members[at].with_last_resort(true);
    assert_eq!(
        explain(&twin, false).why,
        "nobody healthy may have it; 10.0.0.1 is the pool's last resort (its panic threshold)"
    );
}
