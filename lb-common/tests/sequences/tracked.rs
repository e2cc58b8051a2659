//! UDP: flows that are remembered, and those that are not.

use lb_common::abi::{
    counter::Event,
    limiter::{DISPLACED_V4, LimitWord},
    member::Accepts,
    service::{SERVICE_REJECTS, SERVICE_TRACKED},
    verdict::Verdict,
};

use lb_common_fake::{
    FakeTables,
    fixture::{Fixture, NONE, client},
};

/// An idle timeout of 60 s: 56 units of 2^30 ns, rounded up.
const IDLE: u32 = 56 << 16;

fn udp(flags: u32) -> Fixture {
    let list = || (vec![[0, 1, NONE, NONE]], 2);
    Fixture::with(FakeTables::new(&[list(), list()], 4).with_service("198.51.100.1", 53, 17, flags))
}

#[test]
fn a_flow_stays_where_it_went_and_only_new_ones_spill() {
    let mut fixture = udp(SERVICE_TRACKED | IDLE);
    fixture.room_at_home(1);
    assert_eq!(fixture.datagram(client(1)), Ok(1));
    assert_eq!(fixture.datagram(client(2)), Ok(3), "home is full");
    for _ in 0..10 {
        fixture.sleep(30);
        assert_eq!(fixture.datagram(client(1)), Ok(1));
        assert_eq!(fixture.datagram(client(2)), Ok(3), "home has had room again since");
    }
    assert_eq!(fixture.counters(0), [2, 1, 0, 1, 0, 0]);
    assert_eq!(fixture.counters(1), [1, 1, 1, 0, 0, 0]);
    assert_eq!(fixture.events(), [(Event::FlowTracked, 2)]);
    assert!(!fixture.has_displaced(), "tracked flows are no displaced entries");
}

#[test]
fn an_idle_flow_is_a_new_one() {
    let mut fixture = udp(SERVICE_TRACKED | IDLE);
    fixture.room_at_home(1);
    assert_eq!(fixture.datagram(client(1)), Ok(1));
    assert_eq!(fixture.datagram(client(2)), Ok(3));
    fixture.sleep(59);
    assert_eq!(fixture.datagram(client(2)), Ok(3));
    fixture.sleep(63);
    assert_eq!(fixture.datagram(client(2)), Ok(1), "and home has room");
    assert_eq!(fixture.fake.tracked.borrow().len(), 2, "in its old place");
}

#[test]
fn an_entry_whose_memory_another_flow_was_given_is_left_to_it() {
    let others = 0x0123_4567;
    let fixture = udp(SERVICE_TRACKED | IDLE);
    assert_eq!(fixture.datagram(client(1)), Ok(1));
    fixture.sleep(30);
    fixture.fake.reused.set(Some(others));
    assert_eq!(fixture.datagram(client(1)), Ok(1));
    assert!(fixture.fake.tracked.borrow().values().all(|word| word.get() == others));
}

#[test]
fn a_flow_leaves_a_dead_host_and_not_an_unfit_one() {
    let mut fixture = udp(SERVICE_TRACKED | IDLE);
    assert_eq!(fixture.datagram(client(1)), Ok(1));
    fixture.set(0, 0, Accepts::OpenOnly);
    assert_eq!(fixture.datagram(client(1)), Ok(1));
    assert_eq!(fixture.datagram(client(2)), Ok(2));
    fixture.set(0, 0, Accepts::Nothing);
    assert_eq!(fixture.datagram(client(1)), Ok(2));
    fixture.set(0, 0, Accepts::All);
    assert_eq!(fixture.datagram(client(1)), Ok(2), "it lives there now");
}

#[test]
fn a_new_flow_is_refused_where_everything_is_full_and_the_service_rejects() {
    let mut fixture = udp(SERVICE_TRACKED | SERVICE_REJECTS | IDLE);
    fixture.room_at_home(1);
    fixture.set_limit(1, LimitWord::CLOSED);
    assert_eq!(fixture.datagram(client(1)), Ok(1));
    assert_eq!(fixture.datagram(client(2)), Err(Verdict::RegionsFull));
    assert_eq!(fixture.datagram(client(1)), Ok(1));
    assert_eq!(fixture.counters(0), [2, 1, 0, 0, 1, 0]);
}

#[test]
fn the_budget_of_displaced_entries_is_not_for_flows() {
    let mut fixture = udp(SERVICE_TRACKED | IDLE);
    fixture.room_at_home(1);
    fixture.fake.limiters[DISPLACED_V4 as usize].0.set(LimitWord::CLOSED);
    assert_eq!(fixture.datagram(client(1)), Ok(1));
    assert_eq!(fixture.datagram(client(2)), Ok(3));
    assert_eq!(fixture.datagram(client(2)), Ok(3));
}

#[test]
fn a_stateless_flow_knows_neither_limits_nor_its_past() {
    let mut fixture = udp(0);
    fixture.room_at_home(1);
    for port in 1..50 {
        assert_eq!(fixture.datagram(client(port)), Ok(1), "limits are not for it");
    }
    fixture.set(0, 0, Accepts::OpenOnly);
    assert_eq!(fixture.datagram(client(1)), Ok(2), "a change of health moves it");
    assert_eq!(fixture.fake.tracked.borrow().len(), 0);
}
