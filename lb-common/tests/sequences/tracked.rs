//! UDP: flows that are remembered, and those that are not.

use lb_common::{
    abi::{
        clock::Coarse,
        counter::Event,
        limiter::LimitWord,
        member::Accepts,
        service::{SERVICE_REJECTS, SERVICE_TRACKED},
        verdict::Verdict,
    },
    flow_table::{FlowKey, Owner, Place, State},
};

use lb_common_fake::{
    FakeTables, POOL,
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
    assert_eq!(fixture.events(), [(Event::FlowTaken, 2)]);
    assert!(!fixture.has_displaced(), "tracked flows are not displaced");
}

#[test]
fn an_idle_flow_is_a_new_one() {
    let mut fixture = udp(SERVICE_TRACKED | IDLE);
    fixture.room_at_home(1);
    assert_eq!(fixture.datagram(client(1)), Ok(1));
    assert_eq!(fixture.datagram(client(2)), Ok(3));
    fixture.sleep(59);
    assert_eq!(fixture.datagram(client(2)), Ok(3));
    fixture.sleep(70);
    assert_eq!(fixture.datagram(client(2)), Ok(1), "and home has room");
    assert_eq!(fixture.tracked_count(), 1, "the other one is forgotten too");
}

#[test]
fn a_cell_that_another_flow_took_meanwhile_is_left_to_it() {
    let other = (Owner::new(FlowKey(77 << 36), true, 9, State::Open, Coarse(5_000)), Place(7));
    let fixture = udp(SERVICE_TRACKED | IDLE);
    assert_eq!(fixture.datagram(client(1)), Ok(1));
    fixture.sleep(30);
    fixture.fake.taken_meanwhile.set(Some(other));
    assert_eq!(fixture.datagram(client(1)), Ok(1));
    assert!(fixture.fake.cells().any(|cell| cell == other));
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

/// Its second datagram makes a flow one that keeps its cell.
#[test]
fn a_flow_that_finds_no_cell_goes_by_the_tables() {
    let mut fixture = udp(SERVICE_TRACKED | IDLE);
    assert_eq!(fixture.datagram(client(1)), Ok(1));
    fixture.fill();
    assert_eq!(fixture.datagram(client(2)), Ok(1));
    assert_eq!(fixture.datagram(client(2)), Ok(1));
    assert_eq!(fixture.events(), [(Event::FlowTaken, 1), (Event::FlowNoRoom, 2)]);
    fixture.set(0, 0, Accepts::OpenOnly);
    assert_eq!(fixture.datagram(client(1)), Ok(1), "it is remembered");
    assert_eq!(fixture.datagram(client(2)), Ok(2));
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
    assert_eq!(fixture.tracked_count(), 0);
}

/// Above half of the table a pool with more than an eighth of it opens no flow; one that it has goes on half-open.
#[test]
fn without_room_a_flow_stays_known_but_others_may_take_its_cell() {
    let mut fixture = udp(SERVICE_TRACKED | IDLE);
    fixture.room_at_home(1);
    for (port, at) in [(1, 1), (2, 3)] {
        assert_eq!(fixture.datagram(client(port)), Ok(at));
    }
    let room = fixture.fake.cells().count() as u64;
    let counts = |all: u64, its: u64| {
        fixture.fake.flow_counts[0].set(all);
        fixture.fake.flow_counts[POOL as usize].set(its);
    };
    let open = || fixture.fake.cells().filter(|(owner, _)| is_open(*owner)).count();
    counts(room / 2 + 1, room / 8 + 1);
    for _ in 0..5 {
        fixture.sleep(50);
        assert_eq!(fixture.datagram(client(2)), Ok(3), "home has had room again since");
    }
    assert_eq!(open(), 0);
    counts(room / 2, room / 2);
    assert_eq!(fixture.datagram(client(2)), Ok(3));
    assert_eq!((open(), fixture.fake.flow_counts[0].get()), (1, room / 2 + 1));
}

fn is_open(owner: Owner) -> bool {
    owner.0 != 0 && owner.state() == Some(State::Open)
}
