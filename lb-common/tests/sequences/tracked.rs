//! UDP: flows that are remembered, and those that are not.

use lb_common::abi::{
    event::Event,
    member::MemberState,
    meter::EXCEPTIONS_V4,
    meter::LimitWord,
    service::{SERVICE_REJECTS, SERVICE_TRACKED},
    verdict::Verdict,
};

use crate::{
    twin::Twin,
    world::{NONE, World, client},
};

/// An idle timeout of 60 s: 56 units of 2^30 ns, rounded up.
const IDLE: u32 = 56 << 16;

fn udp(flags: u32) -> World {
    let list = || (vec![[0, 1, NONE, NONE]], 2);
    World::of(Twin::new(&[list(), list()], 4).with_service("198.51.100.1", 53, 17, flags))
}

#[test]
fn a_flow_stays_where_it_went_and_only_new_ones_spill() {
    let mut world = udp(SERVICE_TRACKED | IDLE);
    world.room_at_home(1);
    assert_eq!(world.datagram(client(1)), Ok(1));
    assert_eq!(world.datagram(client(2)), Ok(3), "home is full");
    for _ in 0..10 {
        world.sleep(30);
        assert_eq!(world.datagram(client(1)), Ok(1));
        assert_eq!(world.datagram(client(2)), Ok(3), "home has had room again since");
    }
    assert_eq!(world.counters(0), [2, 1, 0, 1, 0, 0]);
    assert_eq!(world.counters(1), [1, 1, 1, 0, 0, 0]);
    assert_eq!(world.events(), [(Event::FlowTracked, 2)]);
    assert!(world.is_gate_closed(), "tracked flows are no exceptions");
}

#[test]
fn an_idle_flow_is_a_new_one() {
    let mut world = udp(SERVICE_TRACKED | IDLE);
    world.room_at_home(1);
    assert_eq!(world.datagram(client(1)), Ok(1));
    assert_eq!(world.datagram(client(2)), Ok(3));
    world.sleep(59);
    assert_eq!(world.datagram(client(2)), Ok(3));
    world.sleep(63);
    assert_eq!(world.datagram(client(2)), Ok(1), "and home has room");
    assert_eq!(world.twin.tracked.borrow().len(), 2, "in its old place");
}

#[test]
fn an_entry_whose_memory_another_flow_was_given_is_left_to_it() {
    let others = 0x0123_4567;
    let world = udp(SERVICE_TRACKED | IDLE);
    assert_eq!(world.datagram(client(1)), Ok(1));
    world.sleep(30);
    world.twin.reused.set(Some(others));
    assert_eq!(world.datagram(client(1)), Ok(1));
    assert!(world.twin.tracked.borrow().values().all(|word| word.get() == others));
}

#[test]
fn a_flow_leaves_a_dead_host_and_not_an_unfit_one() {
    let mut world = udp(SERVICE_TRACKED | IDLE);
    assert_eq!(world.datagram(client(1)), Ok(1));
    world.set(0, 0, MemberState::Unfit);
    assert_eq!(world.datagram(client(1)), Ok(1));
    assert_eq!(world.datagram(client(2)), Ok(2));
    world.set(0, 0, MemberState::Dead);
    assert_eq!(world.datagram(client(1)), Ok(2));
    world.set(0, 0, MemberState::Up);
    assert_eq!(world.datagram(client(1)), Ok(2), "it lives there now");
}

#[test]
fn a_new_flow_is_refused_where_everything_is_full_and_the_service_rejects() {
    let mut world = udp(SERVICE_TRACKED | SERVICE_REJECTS | IDLE);
    world.room_at_home(1);
    world.set_limit(1, LimitWord::CLOSED);
    assert_eq!(world.datagram(client(1)), Ok(1));
    assert_eq!(world.datagram(client(2)), Err(Verdict::RegionsFull));
    assert_eq!(world.datagram(client(1)), Ok(1));
    assert_eq!(world.counters(0), [2, 1, 0, 0, 1, 0]);
}

#[test]
fn the_budget_of_exceptions_is_not_for_flows() {
    let mut world = udp(SERVICE_TRACKED | IDLE);
    world.room_at_home(1);
    world.twin.meters[EXCEPTIONS_V4 as usize].0.set(LimitWord::CLOSED);
    assert_eq!(world.datagram(client(1)), Ok(1));
    assert_eq!(world.datagram(client(2)), Ok(3));
    assert_eq!(world.datagram(client(2)), Ok(3));
}

#[test]
fn a_stateless_flow_knows_neither_limits_nor_its_past() {
    let mut world = udp(0);
    world.room_at_home(1);
    for port in 1..50 {
        assert_eq!(world.datagram(client(port)), Ok(1), "limits are not for it");
    }
    world.set(0, 0, MemberState::Unfit);
    assert_eq!(world.datagram(client(1)), Ok(2), "a change of health moves it");
    assert_eq!(world.twin.tracked.borrow().len(), 0);
}
