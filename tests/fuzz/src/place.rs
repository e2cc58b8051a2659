//! Where a packet comes to: services, regions, members and links, from a few bytes.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use lb_tests::packets::{
    scene::{Form, GATEWAY, INGRESS, MEMBERS, NONE, Room, Scene, TABLES},
    twin::Twin,
};

/// Bytes that a place is made of; all zero is a plain one.
pub const LENGTH: usize = 16;
/// The interface besides the one that packets come in by.
const OTHER: u16 = 5;
/// Places that are kept, for making one takes longer than all that is tried in it.
const KEPT: usize = 256;

/// A place.
#[derive(Debug)]
pub struct Place {
    /// What stands in the maps.
    pub scene: Scene,
    /// The same as the pure decision reads it.
    pub twin: Twin,
}

thread_local! {
    static PLACES: RefCell<HashMap<[u8; LENGTH], Rc<Place>>> = RefCell::default();
}

/// Takes a place off the front of some bytes; the second answer is the rest.
pub fn take(data: &[u8]) -> Option<(Rc<Place>, &[u8])> {
    let (bytes, rest) = data.split_first_chunk::<LENGTH>()?;
    let place = PLACES.with_borrow_mut(|places| {
        if places.len() >= KEPT && !places.contains_key(bytes) {
            places.clear();
        }
        Rc::clone(places.entry(*bytes).or_insert_with(|| Rc::new(Place::new(bytes))))
    });
    Some((place, rest))
}

impl Place {
    fn new(bytes: &[u8; LENGTH]) -> Self {
        let scene = scene(bytes);
        let twin = Twin::new(&scene);
        Self { scene, twin }
    }
}

fn scene(bytes: &[u8; LENGTH]) -> Scene {
    let [
        versions,
        regions,
        states,
        ramps,
        ways,
        sizes,
        links,
        lists,
        ranks,
        standbys,
        odd,
        rooms,
        vlan,
        form,
        ..,
    ] = *bytes;
    let version = |at: u8| if versions >> at & 1 == 0 { 4 } else { 6 };
    let mut scene = Scene::new(version(0));
    for region in 1..=regions % 4 {
        scene = scene.and_region(version(region));
    }
    for (number, region) in scene.regions.iter_mut().enumerate() {
        region.table = TABLES[3 - number % 2];
        for slot in 0..u32::from(lists % 8).min(region.table.slots) {
            let rank = |place: u8| match ranks.rotate_left(2 * u32::from(place) + slot) % 12 {
                rank if u16::from(rank) < MEMBERS + 1 => rank.into(),
                _ => NONE,
            };
            region.lists.insert(slot, [0, 1, 2, 3].map(rank));
        }
        for (place, standby) in region.standbys.iter_mut().enumerate() {
            *standby = (standbys >> place & 1 == 1).then_some(place as u16);
        }
        for (rank, member) in region.members.iter_mut().enumerate() {
            let of = |byte: u8| usize::from(byte.rotate_right(rank as u32 + number as u32));
            // Zero is the usual in all of them.
            member.state = [2, 2, 1, 0, 3][of(states) % 5];
            member.ramp = [255, 255, 128, 1, 0][of(ramps) % 5];
            member.next_hop = [30, 30, 31, 32, 0][of(ways) % 5];
            member.mtu = [1_500, 1_500, 1_280, 576, 100, 60, 9_000][of(sizes) % 7];
            member.link = [1_500, 1_500, 0, 120, 80, 9_000][of(links) % 6];
            member.on_link = odd & 16 == 0;
            member.incarnation = if odd & 1 == 1 && rank == 0 { 6 } else { 7 };
        }
        region.room = room(rooms >> (2 * (number % 2)));
    }
    scene.next_hops.insert(31, (GATEWAY, OTHER));
    scene.interfaces.insert(OTHER, [2, 0, 0, 0, 5, 1]);
    if odd & 2 == 0 {
        scene.devices.insert(OTHER.into());
    }
    if odd & 4 != 0 {
        scene.sources = ([0; 4].into(), [0; 16].into());
    }
    if odd & 8 != 0 {
        scene.regions.clear();
    }
    scene.form = match form % 8 {
        6 => Form::Direct,
        even if even % 2 == 0 => Form::IpInIp,
        _ => Form::Gue(6080),
    };
    (scene.errors, scene.echoes) = (room(rooms >> 4), room(rooms >> 6));
    if vlan != 0 {
        scene.vlans.insert(if vlan & 1 == 0 { INGRESS } else { OTHER }, vlan.into());
    }
    scene
}

/// None that time changes.
fn room(bits: u8) -> Room {
    if bits & 3 == 3 { Room::Closed } else { Room::Unlimited }
}
