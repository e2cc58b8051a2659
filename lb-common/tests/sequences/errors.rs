//! ICMP errors go where the packets they quote came from, and change nothing.

use lb_common::abi::{
    event::Event,
    exception::ExceptionWord,
    member::MemberState,
    pool::PoolWord,
    service::{SERVICE_BY_ADDRESS, SERVICE_TRACKED},
    verdict::Verdict,
};

use crate::{
    twin::Twin,
    world::{Client, NONE, World, client},
};

const TCP: (u8, u16) = (6, 80);
const UDP: (u8, u16) = (17, 53);

/// What an error must leave as it was.
fn remembered(world: &World) -> ([Vec<(u16, u64)>; 2], usize) {
    let words = [&world.twin.exceptions, &world.twin.tracked].map(|map| {
        let map = map.borrow();
        let words = map.iter().map(|(flow, word)| (flow.client_port, word.get()));
        let mut words: Vec<_> = words.collect();
        words.sort_unstable();
        words
    });
    (words, world.twin.records.borrow().len())
}

fn error(world: &World, client: Client, of: (u8, u16)) -> Result<u32, Verdict> {
    let before = (remembered(world), world.twin.pools[0].get(), world.counters(0));
    let went = world.error(client, of);
    let after = (remembered(world), world.twin.pools[0].get(), world.counters(0));
    assert_eq!(before, after, "an error has changed something");
    went
}

#[test]
fn a_connection_at_home_and_one_that_spilled() {
    let mut world = World::two_regions();
    world.room_at_home(1);
    assert_eq!(world.open(client(1), 100), 1);
    assert_eq!(world.open(client(2), 500), 3);
    assert_eq!(error(&world, client(1), TCP), Ok(1));
    assert_eq!(error(&world, client(2), TCP), Ok(3));
    // The exception is not used by it, so it is forgotten when its connection is.
    world.sleep(590);
    assert_eq!(error(&world, client(2), TCP), Ok(3));
    world.sleep(20);
    world.daemon();
    assert_eq!(world.exceptions(), 0);
    assert_eq!(error(&world, client(2), TCP), Ok(1), "nothing says where it was");
}

#[test]
fn the_host_of_a_spilled_connection_dies() {
    let mut world = World::two_regions();
    world.room_at_home(1);
    assert_eq!(world.open(client(1), 100), 1);
    assert_eq!(world.open(client(2), 500), 3);
    world.set(1, 0, MemberState::Unfit);
    assert_eq!(error(&world, client(2), TCP), Ok(3));
    world.set(1, 0, MemberState::Dead);
    assert_eq!(error(&world, client(2), TCP), Ok(1), "as its next packet would");
}

#[test]
fn a_marked_exception_stays_marked() {
    let mut world = World::two_regions();
    world.room_at_home(1);
    assert_eq!(world.open(client(1), 100), 1);
    assert_eq!(world.open(client(2), 500), 3);
    world.sleep(61);
    assert_eq!(world.syn(client(2), 4_000_000), Ok(1));
    assert_eq!(world.exception(client(2)), Some((3, true)));
    assert_eq!(error(&world, client(2), TCP), Ok(3), "the old connection is the one that has sent");
    assert_eq!(world.ack(client(2), 4_000_001), Ok(1));
    assert_eq!(error(&world, client(2), TCP), Ok(1));
    // And when the mark is too old to count, it is not an error that takes it away.
    world.sleep(200);
    let word = world.twin.exceptions.borrow().values().next().map(|word| word.get());
    assert!(word.is_some_and(|word| ExceptionWord(word).placed().backend == 1));
}

#[test]
fn during_a_change_of_home_it_goes_to_the_former_one() {
    let mut world = World::two_regions();
    assert_eq!(world.twin.add_version(&[1, 0], &[]), 2);
    assert_eq!(world.open(client(1), 100), 1);
    world.publish(PoolWord::new(2, 1));
    assert_eq!(world.open(client(2), 100), 3);
    assert_eq!(error(&world, client(1), TCP), Ok(1));
    assert_eq!(error(&world, client(2), TCP), Ok(3));
    world.publish(PoolWord::new(2, 1).adopting());
    world.events();
    assert_eq!(error(&world, client(1), TCP), Ok(1));
    assert_eq!(world.events(), [], "nothing is adopted for an error");
}

#[test]
fn tracked_flows_by_what_is_remembered_and_others_by_tables() {
    for flags in [SERVICE_TRACKED, SERVICE_TRACKED | SERVICE_BY_ADDRESS, 0] {
        let list = || (vec![[0, 1, NONE, NONE]], 2);
        let twin = Twin::new(&[list(), list()], 4);
        let idle = 56 << 16;
        let mut world = World::of(twin.with_service("198.51.100.1", 53, 17, flags | idle));
        world.room_at_home(1);
        assert_eq!(world.datagram(client(1)), Ok(1));
        // By address both are one flow.
        let other = Client([192, 0, 2, 10], 2);
        let spilled = if flags & SERVICE_TRACKED == 0 { 1 } else { 3 };
        assert_eq!(world.datagram(other), Ok(spilled));
        assert_eq!(error(&world, client(1), UDP), Ok(1));
        assert_eq!(error(&world, other, UDP), Ok(spilled));
        assert_eq!(error(&world, Client([192, 0, 2, 11], 3), UDP), Ok(1), "of a flow unknown");
        assert_eq!(world.counted(Event::FlowRefused), 0);
    }
}

#[test]
fn a_tracked_flow_of_which_only_errors_come_is_forgotten() {
    let list = || (vec![[0, 1, NONE, NONE]], 2);
    let twin = Twin::new(&[list(), list()], 4);
    let flags = SERVICE_TRACKED | 56 << 16;
    let mut world = World::of(twin.with_service("198.51.100.1", 53, 17, flags));
    world.room_at_home(1);
    assert_eq!(world.datagram(client(1)), Ok(1));
    assert_eq!(world.datagram(client(2)), Ok(3), "home is full");
    world.sleep(40);
    assert_eq!(error(&world, client(2), UDP), Ok(3));
    world.sleep(40);
    assert_eq!(error(&world, client(2), UDP), Ok(1), "nothing says where it was");
}

#[test]
fn of_another_service_it_is_the_hosts() {
    let world = World::two_regions();
    assert_eq!(error(&world, client(1), (6, 81)), Err(Verdict::NotOurs));
    assert_eq!(error(&world, client(1), UDP), Err(Verdict::NotOurs));
    assert_eq!(error(&world, client(1), (47, 80)), Err(Verdict::OtherProtocol));
}
