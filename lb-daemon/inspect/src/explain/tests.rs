use lb_common::{
    abi::{
        limiter::LimitWord,
        member::Accepts,
        next_hop::AWAITED,
        pool::{LIMITED, PANIC, PoolWord},
        service::{SERVICE_BY_ADDRESS, SERVICE_REJECTS, SERVICE_TRACKED},
        slot::NO_RANK,
    },
    path,
};
use std::net::SocketAddr;

use super::*;
use crate::names;
use lb_common_fake::FakeTables;
use lb_maps::directory::Directory;
use lb_model::{
    Protocol,
    unserved::{UnservedCause, UnservedDecision},
};

fn names() -> Names {
    Names(Directory {
        regions: [(0, "eu".into()), (1, "us".into())].into(),
        pools: [(1, "web".into())].into(),
        services: [(1, "shop".into())].into(),
        ..Directory::default()
    })
}

fn explain(fake: &FakeTables, open: bool) -> Explanation {
    let flow = flow("198.51.100.7:40000", "192.0.2.1:80", Protocol::Tcp, open);
    super::explain(fake, &names(), &fake.services[&flow.tuple().service_key()], &flow)
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

/// Explaining changes nothing in pinned maps; in the fake it leaves the cell of its SYN.
fn forget(fake: &FakeTables) {
    fake.flows.iter().for_each(|word| word.set(0));
}

#[test]
fn the_next_region_has_it_when_nobody_of_the_first_may() {
    let mut fake = FakeTables::one_slot();
    for rank in 0..3 {
        fake.set(0, rank, Accepts::Nothing);
    }
    let explanation = explain(&fake, false);
    assert_eq!(
        explanation.why,
        "no backend in region eu can take the packet; owner of slot 0 is the next that can"
    );
    let choice = explanation.choice.as_ref().unwrap();
    assert_eq!((&*choice.backend, choice.region.as_deref()), ("10.0.1.0", Some("us")));
    assert!(!choice.owner);
    // Three entries of five slots in the first region, then the one that has it.
    assert_eq!(explanation.entries.len(), 16);
}

#[test]
fn nobody_at_all_is_a_verdict_with_its_meaning() {
    let mut fake = FakeTables::one_slot();
    for (region, rank) in [(0, 0), (0, 1), (0, 2), (1, 0)] {
        fake.set(region, rank, Accepts::Nothing);
    }
    let explanation = explain(&fake, false);
    assert_eq!(explanation.verdict, "no_backend");
    assert_eq!(explanation.why, "The pool of the service has no member that may have the packet.");
    assert!(explanation.choice.is_none());
    assert!(
        explanation.entries.iter().all(|entry| entry.outcome == "passed over: it takes no packets")
    );
}

#[test]
fn a_client_that_no_router_forwards_is_a_verdict_without_a_choice() {
    let fake = FakeTables::one_slot();
    for client in ["127.0.0.1:40000", "240.0.0.1:40000", "192.0.2.1:80"] {
        let flow = flow(client, "192.0.2.1:80", Protocol::Tcp, false);
        let service = &fake.services[&flow.tuple().service_key()];
        let explanation = super::explain(&fake, &names(), service, &flow);
        assert_eq!(explanation.verdict, "martian_source", "{client}");
        assert!(explanation.choice.is_none());
    }
}

#[test]
fn without_a_source_address_the_choice_stands_but_the_packet_is_dropped() {
    let mut fake = FakeTables::one_slot();
    fake.source = [0; 4];
    let explanation = explain(&fake, false);
    assert_eq!(explanation.verdict, "no_source_address");
    assert_eq!(explanation.choice.unwrap().backend, "10.0.0.0");
}

#[test]
fn what_is_explained_is_what_the_packet_path_decides() {
    let lists: Vec<[u16; 4]> =
        (0..251_u16).map(|n| [n % 7, (n + 1) % 7, (n * 3 + 2) % 7, (n * 5 + 3) % 7]).collect();
    for flags in [0, SERVICE_BY_ADDRESS] {
        let mut fake =
            FakeTables::new(&[(lists.clone(), 7), (vec![[0, 1, NO_RANK, NO_RANK]], 2)], 4)
                .with_service("192.0.2.1", 80, 6, flags);
        for (rank, state) in [(0, Accepts::Nothing), (1, Accepts::OpenOnly)] {
            fake.set(0, rank, state);
        }
        fake.set_next_hop(0, 2, 0);
        let mut seen = std::collections::BTreeMap::new();
        for port in 1..2_000 {
            let client = format!("198.51.100.7:{port}");
            let flow = flow(&client, "192.0.2.1:80", Protocol::Tcp, false);
            let key = flow.tuple().service_key();
            let explanation = super::explain(&fake, &names(), &fake.services[&key], &flow);
            forget(&fake);
            let decided = path::decide(syn(port).as_slice(), &fake).unwrap();
            let choice = explanation.choice.unwrap();
            assert_eq!(choice.backend, names::address(decided.backend), "{client}");
            *seen.entry(choice.backend).or_insert(0) += 1;
        }
        let backends = if flags == 0 { 4 } else { 1 };
        assert_eq!(seen.len(), backends, "{seen:?}");
    }
}

#[test]
fn an_open_connection_waits_for_its_backends_next_hop() {
    let mut fake = FakeTables::one_slot();
    fake.set_next_hop(0, 0, AWAITED);
    let open = explain(&fake, true);
    assert!(open.verdict == "next_hop_unresolved" && open.choice.is_none());
    assert!(open.why.starts_with("the connection's backend has lost its next hop"), "{}", open.why);
    let outcomes: Vec<_> = open.entries.iter().map(|entry| entry.outcome.as_str()).collect();
    assert_eq!(outcomes[..2], ["dropped: it awaits its next hop", "not asked"]);
    let new = explain(&fake, false);
    assert_eq!((&*new.verdict, &*new.choice.unwrap().backend), ("forwarded", "10.0.0.1"));
}

/// A connection a second and one at once in the first region, which has had it.
fn full(fake: &mut FakeTables, region: usize) {
    let limiter = &fake.limiters[fake.groups[region].limiter as usize];
    limiter.0.set(LimitWord::new(16 * 1_000_000_000, 1));
    // One second ahead of the clock: no more than that may come early.
    limiter.1.set((fake.now.get() + 1_000_000_000) * 16);
    fake.descriptors[1].flags |= LIMITED;
}

fn outcomes(explanation: &Explanation) -> Vec<(&str, RegionOutcome)> {
    explanation.regions.iter().map(|region| (region.region.as_str(), region.outcome)).collect()
}

#[test]
fn where_all_is_full_the_nearest_serves_or_nobody() {
    let mut fake = FakeTables::one_slot();
    full(&mut fake, 0);
    full(&mut fake, 1);
    let nearest = explain(&fake, false);
    assert_eq!(
        nearest.why,
        "every region that could take it is full; 10.0.0.0 in region eu takes it over capacity"
    );
    let expected = [("eu", RegionOutcome::OverCapacity), ("us", RegionOutcome::Full)];
    assert_eq!(outcomes(&nearest), expected);

    let fake = fake.with_service("192.0.2.1", 80, 6, SERVICE_REJECTS);
    forget(&fake);
    let reject = explain(&fake, false);
    assert_eq!(reject.verdict, "regions_full");
    assert!(reject.choice.is_none());
    let expected = [("eu", RegionOutcome::Full), ("us", RegionOutcome::Full)];
    assert_eq!(outcomes(&reject), expected);
}

#[test]
fn a_drained_region_is_told_from_one_with_nobody_healthy() {
    let mut fake = FakeTables::one_slot();
    fake.limiters[fake.groups[0].limiter as usize].0.set(LimitWord::CLOSED);
    fake.descriptors[1].flags |= LIMITED;
    assert_eq!(
        explain(&fake, false).why,
        "region eu is drained; owner of slot 0 is the next that can"
    );
    for rank in 0..3 {
        fake.set(0, rank, Accepts::Nothing);
    }
    forget(&fake);
    assert_eq!(
        explain(&fake, false).why,
        "region eu has no healthy backend; owner of slot 0 is the next that can"
    );
}

#[test]
fn without_room_in_the_flow_table_a_full_region_keeps_it() {
    let mut fake = FakeTables::one_slot();
    full(&mut fake, 0);
    fake.flow_counts.iter().for_each(|count| count.set(u64::from(u32::MAX)));
    let explanation = explain(&fake, false);
    let choice = explanation.choice.as_ref().unwrap();
    assert_eq!((&*choice.backend, choice.owner), ("10.0.0.0", true));
    let expected = [("eu", RegionOutcome::Held), ("us", RegionOutcome::NotAsked)];
    assert_eq!(outcomes(&explanation), expected);
    assert_eq!(
        explanation.why,
        "region eu is full, but the flow table has no room for more connections away from home: 10.0.0.0 takes it over capacity"
    );
}

#[test]
fn a_member_that_has_its_fill_is_passed_over() {
    let mut fake = FakeTables::one_slot();
    full(&mut fake, 1);
    // The second region's limiter serves as the member's own.
    let limiter = fake.groups[1].limiter;
    let at = fake.groups[0].head.members;
    fake.members[at as usize] = fake.members[at as usize].with_limit(true);
    fake.member_limiters.insert(at, limiter);
    let explanation = explain(&fake, false);
    assert_eq!(
        explanation.why,
        "10.0.0.0 owns the slot but has reached its own limit of new connections; \
         alternate 1 is the first on its list that can take the packet"
    );
    assert_eq!(explanation.choice.unwrap().backend, "10.0.0.1");
}

/// The connection went to the second region while the first was full.
#[test]
fn what_is_remembered_of_a_connection_is_told() {
    let mut fake = FakeTables::one_slot();
    full(&mut fake, 0);
    let mut frame = syn(40_000);
    frame[38..42].copy_from_slice(&1_000_u32.to_be_bytes());
    let spilled = path::decide(frame.as_slice(), &fake).unwrap();
    assert_eq!(names::address(spilled.backend), "10.0.1.0");

    let by_handshake = explain(&fake, true);
    let why = "its SYN went to 10.0.1.0, which is remembered for 64 s (a half-open cell)";
    assert_eq!(
        (by_handshake.why.as_str(), by_handshake.remembered),
        (why, Some(Memory::Handshake))
    );
    let known = |explanation: &Explanation| {
        let cell = explanation.cell.as_ref().unwrap();
        let zone = explanation.zone.unwrap().looks_for_cells;
        (cell.state.name(), cell.backend.clone(), cell.seconds_left, zone)
    };
    // 60 units of 2^30 ns; 720 s are 671 of them, rounded up.
    assert_eq!(known(&by_handshake), ("half_open", "10.0.1.0".into(), 64, true));
    assert_eq!((by_handshake.home.as_deref(), by_handshake.next), (Some("10.0.0.0"), None));
    let choice = by_handshake.choice.unwrap();
    assert_eq!((&*choice.backend, choice.region.as_deref()), ("10.0.1.0", Some("us")));
    assert!(!choice.owner);

    // The client's answer to the SYN-ACK.
    frame[41] += 1;
    frame[47] = 0x10;
    path::decide(frame.as_slice(), &fake).unwrap();
    let by_displaced_entry = explain(&fake, true);
    let why = "it is a displaced connection: it lives at 10.0.1.0, not at its home";
    assert_eq!(
        (by_displaced_entry.why.as_str(), by_displaced_entry.remembered),
        (why, Some(Memory::Displaced))
    );
    assert_eq!(known(&by_displaced_entry), ("open", "10.0.1.0".into(), 720, true));
    assert_eq!(by_displaced_entry.choice.unwrap().region.as_deref(), Some("us"));
}

#[test]
fn a_tracked_flow_is_where_it_was() {
    let mut fake =
        FakeTables::one_slot().with_service("192.0.2.1", 53, 17, SERVICE_TRACKED | 60 << 16);
    full(&mut fake, 0);
    let flow = flow("198.51.100.7:40000", "192.0.2.1:53", Protocol::Udp, false);
    let service = fake.services[&flow.tuple().service_key()];
    let explain = |fake: &FakeTables| super::explain(fake, &names(), &service, &flow);
    path::forward(&fake, &service, flow.parsed(), &mut path::Unobserved).unwrap();
    fake.limiters[fake.groups[0].limiter as usize].0.set(LimitWord::UNLIMITED);
    let explanation = explain(&fake);
    assert_eq!(explanation.why, "its flow is tracked: it lives at 10.0.1.0");
    assert_eq!(explanation.remembered, Some(Memory::Tracked));
    let state = |explanation: Explanation| explanation.cell.unwrap().state.name();
    assert_eq!(state(explanation), "half_open");
    path::forward(&fake, &service, flow.parsed(), &mut path::Unobserved).unwrap();
    assert_eq!(state(explain(&fake)), "open");
}

#[test]
fn the_former_home_keeps_what_it_has() {
    let mut fake = FakeTables::one_slot();
    let previous = fake.add_version(&[1, 0], &[]);
    fake.set_versions(PoolWord::new(previous, 1));
    let explanation = explain(&fake, true);
    assert_eq!(explanation.remembered, Some(Memory::PreviousHome));
    let homes = (explanation.home.as_deref(), explanation.next.as_deref());
    assert_eq!(homes, (Some("10.0.1.0"), Some("10.0.0.0")));
    assert_eq!(
        explanation.why,
        "10.0.1.0 is its home until the pool's change is settled, and keeps its connections for the settle time"
    );
}

#[test]
fn the_last_resort_is_called_so() {
    let mut fake = FakeTables::one_slot();
    fake.descriptors[1].flags |= PANIC;
    for (region, rank) in [(0, 0), (0, 1), (0, 2), (1, 0)] {
        fake.set(region, rank, Accepts::OpenOnly);
    }
    let at = fake.groups[0].head.members as usize + 1;
    fake.members[at] = fake.members[at].with_last_resort(true);
    assert_eq!(
        explain(&fake, false).why,
        "no healthy backend can take it; 10.0.0.1 is the pool's last resort (panic threshold)"
    );
}

#[test]
fn a_packet_that_no_service_of_a_vip_takes_is_dropped_or_left_to_the_host_for_a_reason() {
    let flow = flow("198.51.100.7:40000", "192.0.2.1:81", Protocol::Tcp, false);
    let decided = |drops, cause| {
        let mut explanation = unserved(&flow, drops);
        explanation.add_cause(&flow, UnservedDecision { drops, cause });
        let Explanation { verdict, unserved, why, .. } = explanation;
        let unserved = unserved.unwrap();
        assert_eq!(unserved.drops, drops);
        (verdict.into_owned(), unserved.cause.unwrap(), unserved.prefix, why)
    };
    let begin = "no service of this VIP takes the packet, so it is ";
    for (drops, cause, name, end) in [
        (
            true,
            UnservedCause::NotOfHost,
            "not_of_host",
            "dropped: the VIP is no address of the host, and the host does not forward IPv4 packets",
        ),
        (
            false,
            UnservedCause::Forwards,
            "forwards",
            "left to the host, which forwards IPv4 packets",
        ),
        (
            false,
            UnservedCause::OwnAddress,
            "own_address",
            "left to the host: the VIP is an address of the host",
        ),
    ] {
        let verdict = if drops { "unserved" } else { "not_ours" };
        let expected = (verdict.to_owned(), name, None, format!("{begin}{end}"));
        assert_eq!(decided(drops, cause), expected);
    }
    let prefix = "192.0.2.0/24";
    let by_range = UnservedCause::Configured(prefix.parse().unwrap());
    for (drops, verdict, what) in
        [(true, "unserved", "dropped"), (false, "not_ours", "left to the host")]
    {
        let why = format!("{begin}{what}: `unserved` of vip {prefix} says so");
        let expected = (verdict.to_owned(), "configured", Some(prefix.to_owned()), why);
        assert_eq!(decided(drops, by_range), expected);
    }
}

/// The maps count: what follows from a configuration that packets do not see yet is no reason.
#[test]
fn without_a_reason_that_fits_the_maps_none_is_named() {
    let flow = flow("198.51.100.7:40000", "192.0.2.1:81", Protocol::Tcp, false);
    let mut explanation = unserved(&flow, false);
    let before = format!("{explanation:?}");
    explanation.add_cause(&flow, UnservedDecision { drops: true, cause: UnservedCause::NotOfHost });
    assert_eq!(format!("{explanation:?}"), before);
    assert_eq!(
        explanation.why,
        "no service of this VIP takes the packet, so it is left to the host"
    );
    let elsewhere = no_service(&flow);
    assert_eq!((elsewhere.unserved, &*elsewhere.verdict), (None, "not_ours"));
}
