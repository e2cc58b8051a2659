//! What a packet meets in the maps: services, regions, members and links, from a few bytes.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use lb_tests::packets::{
    fake_tables::FakeTables,
    fixture::{Form, GATEWAY, INGRESS, MEMBERS, MapFixture, NONE, Room, TABLES},
};

/// Bytes that maps are made of; all zero makes plain ones.
pub const LENGTH: usize = 16;
/// The interface besides the one that packets come in by.
const OTHER: u16 = 5;
/// Maps that are kept, because making them takes longer than all that is tried in it.
const KEPT: usize = 256;

/// The contents of maps, made from bytes.
#[derive(Debug)]
pub struct FuzzedMaps {
    /// What stands in the maps.
    pub fixture: MapFixture,
    /// The same as the pure decision reads it.
    pub fake: FakeTables,
}

thread_local! {
    static CACHE: RefCell<HashMap<[u8; LENGTH], Rc<FuzzedMaps>>> = RefCell::default();
}

/// Makes maps of the front of some bytes; the second answer is the rest.
pub fn take(data: &[u8]) -> Option<(Rc<FuzzedMaps>, &[u8])> {
    let (bytes, rest) = data.split_first_chunk::<LENGTH>()?;
    let maps = CACHE.with_borrow_mut(|cache| {
        if cache.len() >= KEPT && !cache.contains_key(bytes) {
            cache.clear();
        }
        Rc::clone(cache.entry(*bytes).or_insert_with(|| Rc::new(FuzzedMaps::new(bytes))))
    });
    Some((maps, rest))
}

impl FuzzedMaps {
    fn new(bytes: &[u8; LENGTH]) -> Self {
        let fixture = fixture(bytes);
        let fake = FakeTables::new(&fixture);
        Self { fixture, fake }
    }
}

fn fixture(bytes: &[u8; LENGTH]) -> MapFixture {
    let [
        versions,
        regions,
        states,
        ramps,
        ways,
        sizes,
        // Spare, so that files of the corpus keep their meaning.
        _,
        lists,
        ranks,
        standbys,
        odd,
        rooms,
        vlan,
        form,
        prefix,
        _,
    ] = *bytes;
    let version = |at: u8| if versions >> at & 1 == 0 { 4 } else { 6 };
    let mut fixture = MapFixture::new(version(0));
    for region in 1..=regions % 4 {
        fixture = fixture.and_region(version(region));
    }
    for (number, region) in fixture.regions.iter_mut().enumerate() {
        region.table = TABLES[3 - number % 2];
        for slot in 0..u32::from(lists % 8).min(region.table.slots) {
            let rank = |maps: u8| match ranks.rotate_left(2 * u32::from(maps) + slot) % 12 {
                rank if u16::from(rank) < MEMBERS + 1 => rank.into(),
                _ => NONE,
            };
            region.lists.insert(slot, [0, 1, 2, 3].map(rank));
        }
        for (maps, standby) in region.standbys.iter_mut().enumerate() {
            *standby = (standbys >> maps & 1 == 1).then_some(maps as u16);
        }
        for (rank, member) in region.members.iter_mut().enumerate() {
            let of = |byte: u8| usize::from(byte.rotate_right(rank as u32 + number as u32));
            // Zero is the usual in all of them.
            member.state = [2, 2, 1, 0, 3][of(states) % 5];
            member.ramp = [255, 255, 128, 1, 0][of(ramps) % 5];
            member.next_hop = [30, 30, 31, 32, 0][of(ways) % 5];
            member.mtu = [1_500, 1_500, 1_280, 576, 100, 60, 9_000][of(sizes) % 7];
            member.on_link = odd & 16 == 0;
            member.incarnation = if odd & 1 == 1 && rank == 0 { 6 } else { 7 };
        }
        region.room = room(rooms >> (2 * (number % 2)));
    }
    fixture.next_hops.insert(31, (GATEWAY, OTHER));
    fixture.interfaces.insert(OTHER, [2, 0, 0, 0, 5, 1]);
    if odd & 2 == 0 {
        fixture.devices.insert(OTHER.into());
    }
    // All of it is what receivers allow.
    fixture = fixture.sending_from([10, 0, 0, 1].into(), 32 - prefix % 4);
    if odd & 4 != 0 {
        fixture.sources = ([0; 4].into(), [0; 16].into());
    }
    if odd & 8 != 0 {
        fixture.regions.clear();
    }
    fixture.form = match form % 8 {
        6 => Form::Direct,
        even if even % 2 == 0 => Form::IpInIp,
        _ => Form::Gue(6080),
    };
    (fixture.errors, fixture.echoes) = (room(rooms >> 4), room(rooms >> 6));
    if vlan != 0 {
        fixture.vlans.insert(if vlan & 1 == 0 { INGRESS } else { OTHER }, vlan.into());
    }
    fixture
}

/// None that time changes.
fn room(bits: u8) -> Room {
    if bits & 3 == 3 { Room::Closed } else { Room::Unlimited }
}
