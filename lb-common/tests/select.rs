//! Which member gets a packet: every combination, compared with a naive implementation of the design.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use lb_common::{
    abi::{
        member::{Accepts, FULL_RAMP, MemberWord},
        service::IPV4,
        slot::StandbyWord,
        verdict::Verdict,
    },
    flow_hash::FlowHash,
    path::{Choice, Kind, Observe, Outcome, Position, Unobserved, select::select_member},
};
use lb_common_fake::FakeTables;
use proptest::prelude::*;

const NEW: Kind = Kind::NewConnection;
const OPEN: Kind = Kind::OpenConnection;
const NONE: u16 = 0xffff;

fn run(fake: &FakeTables, hash: u64, kind: Kind) -> Result<u32, Verdict> {
    select_member(fake, (1, &fake.descriptors[1]), FlowHash(hash), kind, &mut Unobserved)
        .map(|choice| choice.member.backend())
}

/// One slot, so that every hash meets the same list.
fn one_slot(list: [u16; 4], members: u8) -> FakeTables {
    FakeTables::new(&[(vec![list], members)], IPV4)
}

#[test]
fn the_owner_has_it_while_it_may() {
    use Accepts::{All, Nothing, OpenOnly};
    // Ranks 2, 0, 1; backend indices are rank + 1.
    let rows = [
        (All, NEW, 3),
        (All, OPEN, 3),
        (All, Kind::Datagram, 3),
        (OpenOnly, NEW, 1),
        (OpenOnly, OPEN, 3),
        (OpenOnly, Kind::Datagram, 1),
        (Nothing, NEW, 1),
        (Nothing, OPEN, 1),
        (Nothing, Kind::Datagram, 1),
    ];
    for (state, kind, backend) in rows {
        let mut fake = one_slot([2, 0, 1, NONE], 3);
        fake.set(0, 2, state);
        assert_eq!(run(&fake, 7, kind), Ok(backend), "{state:?} {kind:?}");
    }
}

#[test]
fn alternates_come_in_the_order_of_the_list() {
    let mut fake = one_slot([3, 1, 0, 2], 4);
    for (dies, then) in [(3, Ok(2)), (1, Ok(1)), (0, Ok(3)), (2, Err(Verdict::NoBackend))] {
        fake.set(0, dies, Accepts::Nothing);
        assert_eq!(run(&fake, 99, NEW), then, "after {dies}");
    }
}

#[test]
fn an_unresolved_next_hop_is_passed_over_and_named_when_nothing_else_is_left() {
    let mut fake = one_slot([0, 1, NONE, NONE], 2);
    fake.set_next_hop(0, 0, 0);
    assert_eq!(run(&fake, 1, NEW), Ok(2));
    fake.set(0, 1, Accepts::Nothing);
    assert_eq!(run(&fake, 1, NEW), Err(Verdict::NextHopUnresolved));
    fake.set(0, 0, Accepts::Nothing);
    assert_eq!(run(&fake, 1, NEW), Err(Verdict::NoBackend));
}

#[test]
fn the_next_region_takes_over_when_the_first_has_nobody() {
    let mut fake =
        FakeTables::new(&[(vec![[0, 1, NONE, NONE]], 2), (vec![[1, 0, NONE, NONE]], 2)], IPV4);
    fake.set(0, 0, Accepts::Nothing);
    fake.set(0, 1, Accepts::OpenOnly);
    assert_eq!(run(&fake, 1, NEW), Ok(4), "rank 1 of the second region");
    assert_eq!(run(&fake, 1, OPEN), Ok(2), "an unfit member keeps what is open");
}

#[test]
fn a_standby_serves_when_every_list_is_dead() {
    let mut fake = one_slot([0, 1, NONE, NONE], 5);
    for rank in [0, 1] {
        fake.set(0, rank, Accepts::Nothing);
    }
    assert_eq!(run(&fake, 1, NEW), Err(Verdict::NoBackend), "no standby is set");
    fake.standbys = vec![StandbyWord::new(Some(4)); 8];
    assert_eq!(run(&fake, 1, NEW), Ok(5));
    fake.set(0, 4, Accepts::Nothing);
    assert_eq!(
        run(&fake, 1, NEW),
        Err(Verdict::NoBackend),
        "a standby that accepts nothing serves no connection"
    );
}

#[test]
fn a_pool_without_members_has_nobody() {
    let fake = FakeTables::new(&[], IPV4);
    assert_eq!(run(&fake, 1, NEW), Err(Verdict::NoBackend));
}

#[test]
fn a_ramp_limits_new_connections_alone_and_in_proportion() {
    let lists = vec![[0, 1, NONE, NONE]; 10_007];
    let mut fake = FakeTables::new(&[(lists, 2)], IPV4);
    let taken = |fake: &FakeTables, kind| {
        let hashes = (0..20_000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        hashes.filter(|&hash| run(fake, hash, kind) == Ok(1)).count()
    };
    assert_eq!(taken(&fake, NEW), 20_000);
    fake.members[0] = MemberWord::new(1, 5, Accepts::All, 51, 1);
    // 51 of 255 is a fifth; the standard deviation over 10,007 slots is 0.4 %.
    let share = taken(&fake, NEW) as f64 / 20_000.0;
    assert!((share - 0.2).abs() < 0.02, "{share}");
    assert_eq!(taken(&fake, OPEN), 20_000, "open connections know no ramp");
    fake.members[0] = MemberWord::new(1, 5, Accepts::All, 0, 1);
    assert_eq!(taken(&fake, NEW), 0);
    fake.members[0] = MemberWord::new(1, 5, Accepts::All, FULL_RAMP, 1);
    assert_eq!(taken(&fake, NEW), 20_000);
}

/// Each daemon numbers backends in the order in which it met them.
#[test]
fn balancers_of_different_histories_agree_while_members_ramp() {
    let lists: Vec<_> = (0..10_007).map(|slot| [0, 1, 2, 3].map(|n| (slot + n) % 5)).collect();
    let numbered = |number: fn(u32) -> u32| {
        let mut fake = FakeTables::new(&[(lists.clone(), 5), (lists.clone(), 5)], IPV4);
        for (member, ramp) in
            fake.members.iter_mut().zip([13, 51, 128, 200, 255, 26, 0, 77, 180, 240])
        {
            *member = MemberWord::new(number(member.backend()), 5, Accepts::All, ramp, 1);
        }
        fake
    };
    let (one, other) = (numbered(|n| n), numbered(|n| 5_000 - n));
    for n in 0..100_000_u64 {
        let hash = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for kind in [NEW, OPEN, Kind::Datagram] {
            let of_other = run(&other, hash, kind).map(|number| 5_000 - number);
            assert_eq!(run(&one, hash, kind), of_other, "{hash:x} {kind:?}");
        }
    }
}

/// Records what is reported to it.
#[derive(Default)]
struct Trace(Vec<(Position, u16, Outcome)>);

impl Observe for Trace {
    fn entry(&mut self, place: Position, rank: u16, _: MemberWord, outcome: Outcome) {
        self.0.push((place, rank, outcome));
    }
}

#[test]
fn an_observer_hears_of_each_entry_once_and_in_order() {
    let mut fake = one_slot([1, 0, 2, NONE], 3);
    fake.set(0, 1, Accepts::Nothing);
    fake.set_next_hop(0, 0, 0);
    let mut trace = Trace::default();
    let choice = select_member(&fake, (1, &fake.descriptors[1]), FlowHash(0), NEW, &mut trace);
    assert_eq!(choice.map(|Choice { member, .. }| member.backend()), Ok(3));
    let place = |entry| Position { region: 0, slot: Some(0), entry };
    assert_eq!(
        trace.0,
        [
            (place(0), 1, Outcome::State),
            (place(1), 0, Outcome::NextHop),
            (place(2), 2, Outcome::Chosen)
        ]
    );
}

/// The design's sentence, word for word: the slot's list, then the lists of up to four further
/// slots, then the standby picked by hash, then the next region. What is open is not moved on from a member that lost its
/// next hop a moment ago.
fn by_the_design(fake: &FakeTables, hash: u64, kind: Kind) -> Result<u32, Verdict> {
    let descriptor = &fake.descriptors[1];
    let mut unresolved = false;
    for &index in &descriptor.groups[..descriptor.group_count as usize] {
        let group = &fake.groups[index as usize];
        let table = &fake.tables[group.head.table as usize];
        let mut ranks = Vec::new();
        for attempt in 0..5 {
            let hash = if attempt == 0 { FlowHash(hash) } else { FlowHash(hash).again(attempt) };
            let list = table[hash.slot(table.len() as u32) as usize];
            ranks.extend((0..4).map(|place| list.rank(place)));
        }
        let standby = index * 8 + FlowHash(hash).standby();
        ranks.extend(fake.standbys[standby as usize].rank());
        for rank in ranks.into_iter().filter(|&rank| u32::from(rank) < group.head.member_count) {
            let member = fake.members[group.head.members as usize + usize::from(rank)];
            let wanted = match kind {
                Kind::OpenConnection => member.accepts() != Accepts::Nothing,
                _ => member.accepts() == Accepts::All,
            };
            let is_awaited = member.next_hop() == 65_535;
            if wanted && is_awaited && kind == Kind::OpenConnection {
                return Err(Verdict::NextHopUnresolved);
            }
            if wanted && !is_awaited && fake.next_hops[usize::from(member.next_hop())].is_resolved()
            {
                return Ok(member.backend());
            }
            unresolved |= wanted;
        }
    }
    Err(if unresolved { Verdict::NextHopUnresolved } else { Verdict::NoBackend })
}

fn regions() -> impl Strategy<Value = Vec<(Vec<[u16; 4]>, u8)>> {
    let list = [0..8_u16, 0..8_u16, 0..8_u16, 0..8_u16];
    prop::collection::vec((prop::collection::vec(list, 1..6), 1..8_u8), 0..=8)
}

proptest! {
    #[test]
    fn any_state_of_the_maps_is_read_as_the_design_says(
        regions in regions(),
        states in prop::collection::vec((0..3_u8, prop::sample::select(vec![0, 1, 1, 65_535])), 64),
        standbys in prop::collection::vec(prop::option::of(0..8_u16), 64),
        hash: u64,
        kind in prop::sample::select(vec![NEW, OPEN, Kind::Datagram]),
    ) {
        let mut fake = FakeTables::new(&regions, IPV4);
        for (member, &(state, next_hop)) in fake.members.iter_mut().zip(&states) {
            let state = Accepts::from_number(state);
            *member = member.with_accepts(state).with_next_hop(next_hop);
        }
        for (word, &rank) in fake.standbys.iter_mut().zip(&standbys) {
            *word = StandbyWord::new(rank);
        }
        prop_assert_eq!(run(&fake, hash, kind), by_the_design(&fake, hash, kind));
    }
}
