//! ICMP errors go where the packets they quote came from, and change nothing.

use lb_common::{
    abi::{
        counter::Event,
        member::Accepts,
        pool::PoolWord,
        service::{SERVICE_BY_ADDRESS, SERVICE_TRACKED},
        verdict::Verdict,
    },
    flow_table::{Owner, Place},
};

use lb_common_fake::{
    FakeTables, POOL,
    fixture::{Client, Fixture, NONE, client},
};

const TCP: (u8, u16) = (6, 80);
const UDP: (u8, u16) = (17, 53);

/// What an error must leave as it was.
fn remembered(fixture: &Fixture) -> Vec<(Owner, Place)> {
    fixture.fake.cells().collect()
}

fn error(fixture: &Fixture, client: Client, of: (u8, u16)) -> Result<u32, Verdict> {
    let before =
        (remembered(fixture), fixture.fake.pools[POOL as usize].get(), fixture.counters(0));
    let went = fixture.error(client, of);
    let after = (remembered(fixture), fixture.fake.pools[POOL as usize].get(), fixture.counters(0));
    assert_eq!(before, after, "an error has changed something");
    went
}

#[test]
fn a_connection_at_home_and_one_that_spilled() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.open(client(1), 100), 1);
    assert_eq!(fixture.open(client(2), 500), 3);
    assert_eq!(error(&fixture, client(1), TCP), Ok(1));
    assert_eq!(error(&fixture, client(2), TCP), Ok(3));
    // The cell is not used by it, so it is forgotten when its connection is.
    fixture.sleep(700);
    assert_eq!(error(&fixture, client(2), TCP), Ok(3));
    fixture.sleep(30);
    fixture.daemon();
    assert_eq!(fixture.displaced_count(), 0);
    assert_eq!(error(&fixture, client(2), TCP), Ok(1), "nothing says where it was");
}

#[test]
fn the_host_of_a_spilled_connection_dies() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.open(client(1), 100), 1);
    assert_eq!(fixture.open(client(2), 500), 3);
    fixture.set(1, 0, Accepts::OpenOnly);
    assert_eq!(error(&fixture, client(2), TCP), Ok(3));
    fixture.set(1, 0, Accepts::Nothing);
    assert_eq!(error(&fixture, client(2), TCP), Ok(1), "as its next packet would");
}

/// Its number is of the other direction, so nothing tells which of a flow's connections it is about.
#[test]
fn of_two_connections_of_a_flow_it_goes_to_the_one_that_is_open() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.open(client(1), 100), 1);
    assert_eq!(fixture.open(client(2), 500), 3);
    fixture.sleep(61);
    assert_eq!(fixture.syn(client(2), 400_000_000), Ok(1));
    assert_eq!(error(&fixture, client(2), TCP), Ok(3), "the old connection has sent");
    assert_eq!(fixture.ack(client(2), 400_000_001), Ok(1));
    assert_eq!(error(&fixture, client(2), TCP), Ok(1));
}

#[test]
fn during_a_remap_it_goes_home_as_it_is_now() {
    let mut fixture = Fixture::two_regions();
    assert_eq!(fixture.fake.add_version(&[1, 0], &[]), 2);
    assert_eq!(fixture.open(client(1), 100), 1);
    fixture.publish(PoolWord::new(1, 2));
    assert_eq!(fixture.open(client(2), 100), 3);
    assert_eq!(error(&fixture, client(1), TCP), Ok(1));
    assert_eq!(error(&fixture, client(2), TCP), Ok(3));
    fixture.events();
    assert_eq!(error(&fixture, client(1), TCP), Ok(1));
    assert_eq!(fixture.events(), [], "no cell is taken for an error");
}

#[test]
fn tracked_flows_by_what_is_remembered_and_others_by_tables() {
    for flags in [SERVICE_TRACKED, SERVICE_TRACKED | SERVICE_BY_ADDRESS, 0] {
        let list = || (vec![[0, 1, NONE, NONE]], 2);
        let fake = FakeTables::new(&[list(), list()], 4);
        let idle = 56 << 16;
        let mut fixture = Fixture::with(fake.with_service("198.51.100.1", 53, 17, flags | idle));
        fixture.room_at_home(1);
        assert_eq!(fixture.datagram(client(1)), Ok(1));
        // By address both are one flow.
        let other = Client([192, 0, 2, 10], 2);
        let spilled = if flags & SERVICE_TRACKED == 0 { 1 } else { 3 };
        assert_eq!(fixture.datagram(other), Ok(spilled));
        assert_eq!(error(&fixture, client(1), UDP), Ok(1));
        assert_eq!(error(&fixture, other, UDP), Ok(spilled));
        assert_eq!(error(&fixture, Client([192, 0, 2, 11], 3), UDP), Ok(1), "of a flow unknown");
        assert_eq!(fixture.counted(Event::FlowNoRoom), 0);
    }
}

#[test]
fn a_tracked_flow_of_which_only_errors_come_is_forgotten() {
    let list = || (vec![[0, 1, NONE, NONE]], 2);
    let fake = FakeTables::new(&[list(), list()], 4);
    let flags = SERVICE_TRACKED | 56 << 16;
    let mut fixture = Fixture::with(fake.with_service("198.51.100.1", 53, 17, flags));
    fixture.room_at_home(1);
    assert_eq!(fixture.datagram(client(1)), Ok(1));
    assert_eq!(fixture.datagram(client(2)), Ok(3), "home is full");
    fixture.sleep(40);
    assert_eq!(error(&fixture, client(2), UDP), Ok(3));
    fixture.sleep(40);
    assert_eq!(error(&fixture, client(2), UDP), Ok(1), "nothing says where it was");
}

#[test]
fn of_another_service_it_is_the_hosts() {
    let fixture = Fixture::two_regions();
    assert_eq!(error(&fixture, client(1), (6, 81)), Err(Verdict::NotOurs));
    assert_eq!(error(&fixture, client(1), UDP), Err(Verdict::NotOurs));
    assert_eq!(error(&fixture, client(1), (47, 80)), Err(Verdict::OtherProtocol));
}
