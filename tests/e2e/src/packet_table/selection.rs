//! Who has a packet: states, lists, further slots, standbys, regions, homes, ramps, next hops.

use crate::packet_table::row::Row;
use lb_common::abi::next_hop::AWAITED;
use lb_tests::packets::{
    fixture::{
        BYTE, CHUNK, HASH_KEY, MEMBERS, MapFixture, NEXT, NONE, NOTHING, OPEN_ONLY, OUT,
        POOL_NOTHING, POOL_OPEN_ONLY, Room, TABLES, UP, WIDE,
    },
    flow_hash,
    frames::{Flow, Packet},
};

use super::flows::{fixture, listed, tcp_hash, v4, v4_udp, v6};

pub(crate) fn rows() -> Vec<Row<MapFixture>> {
    [
        states(),
        list_order(),
        further_slots(),
        regions(),
        homes(),
        ramps(),
        next_hops(),
        dead_pools(),
        affinity(),
        capacity(),
        tables(),
        contradictions(),
    ]
    .concat()
}

fn syn() -> Vec<u8> {
    Packet::new(v4()).tcp("S")
}

fn ack() -> Vec<u8> {
    Packet::new(v4()).tcp("A")
}

/// The owner's state decides; who is next is rank 1.
fn states() -> Vec<Row<MapFixture>> {
    let datagram = || Packet::new(v4_udp()).udp();
    let mut rows = Vec::new();
    for (state, name, new, open) in [
        (UP, "up", 0, 0),
        (OPEN_ONLY, "unfit", 1, 0),
        (NOTHING, "dead", 1, 1),
        (3, "in an unknown state", 1, 1),
    ] {
        let fixture = || fixture(4).states(0, state, &[0]);
        rows.push(Row::sent(format!("owner {name}: SYN"), fixture(), (&v4(), syn()), (0, new)));
        rows.push(Row::sent(format!("owner {name}: ACK"), fixture(), (&v4(), ack()), (0, open)));
        let rst = Packet::new(v4()).tcp("R");
        rows.push(Row::sent(format!("owner {name}: RST"), fixture(), (&v4(), rst), (0, open)));
        let udp = (&v4_udp(), datagram());
        rows.push(Row::sent(format!("owner {name}: UDP"), fixture(), udp, (0, new)));
    }
    rows
}

fn list_order() -> Vec<Row<MapFixture>> {
    let list = [5, 2, 7, 0];
    let fixture = |list| MapFixture::new(4).list(0, tcp_hash(&v4()), list);
    let mut rows = Vec::new();
    for (place, rank) in list.into_iter().enumerate() {
        let fixture = fixture(list).states(0, NOTHING, &list[..place]);
        rows.push(Row::sent(format!("list entry {place}"), fixture, (&v4(), syn()), (0, rank)));
    }
    let holes = fixture([NONE, NONE, NONE, 6]);
    rows.push(Row::sent("list with empty places", holes, (&v4(), syn()), (0, 6)));
    let beyond = fixture([9, 4, NONE, NONE]);
    rows.push(Row::sent("list with a rank beyond the members", beyond, (&v4(), ack()), (0, 4)));
    rows
}

/// Each slot has a member of its own: 0 to 3 in the first, 4 to 7 in the further ones, 8 stands by.
fn with_further_slots(fixture: MapFixture, region: usize, flow: &Flow) -> MapFixture {
    let hash = tcp_hash(flow);
    let mut fixture = listed(fixture, region);
    for (attempt, rank) in (1..=4).zip(4..) {
        fixture = fixture.list(region, hash.further(attempt), [0, rank, 1, 2]);
    }
    fixture
}

fn further_slots() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for flow in [v4(), v6()] {
        let version = if flow.vip.is_ipv4() { 4 } else { 6 };
        let fixture = |dead: &[u16]| {
            with_further_slots(MapFixture::new(4), 0, &flow).states(0, NOTHING, dead)
        };
        let frame = || (Packet::new(flow).tcp("S"), Packet::new(flow).tcp("A"));
        for (attempt, rank) in (1..=4).zip(4..) {
            let dead: Vec<u16> = (0..rank).collect();
            for (kind, frame) in [("SYN", frame().0), ("ACK", frame().1)] {
                let what = format!("IPv{version} {kind} to further slot {attempt}");
                rows.push(Row::sent(what, fixture(&dead), (&flow, frame), (0, rank)));
            }
        }
        let all_listed: Vec<u16> = (0..8).collect();
        let standby = tcp_hash(&flow).standby();
        let stands_by = |rank| {
            fixture(&all_listed).with(|fixture| fixture.regions[0].standbys[standby] = Some(rank))
        };
        let what = format!("IPv{version} SYN to the standby");
        rows.push(Row::sent(what, stands_by(8), (&flow, frame().0), (0, 8)));
        let what = format!("IPv{version} SYN, standby dead");
        rows.push(Row::dropped(what, stands_by(3), frame().0, "no_backend"));
        let what = format!("IPv{version} ACK to an unfit standby");
        let unfit = stands_by(8).states(0, OPEN_ONLY, &[8]);
        rows.push(Row::sent(what, unfit.clone(), (&flow, frame().1), (0, 8)));
        let what = format!("IPv{version} SYN, standby unfit");
        rows.push(Row::dropped(what, unfit, frame().0, "no_backend"));
        let others = fixture(&all_listed).with(|fixture| {
            fixture.regions[0].standbys = [Some(8); 8];
            fixture.regions[0].standbys[standby] = None;
        });
        let what = format!("IPv{version} SYN, its own standby unset");
        rows.push(Row::dropped(what, others, frame().0, "no_backend"));
    }
    rows
}

fn regions() -> Vec<Row<MapFixture>> {
    let everybody: Vec<u16> = (0..9).collect();
    let three = || {
        let fixture = MapFixture::new(4).and_region(6).and_region(4);
        (0..3).fold(fixture, listed)
    };
    let near_dead = || three().states(0, NOTHING, &everybody);
    let none = || near_dead().states(1, NOTHING, &everybody).states(2, OPEN_ONLY, &everybody);
    let mut rows = vec![
        Row::sent("nearest region first", three(), (&v4(), syn()), (0, 0)),
        Row::sent("second region, over IPv6", near_dead(), (&v4(), syn()), (1, 0)),
        Row::sent("second region, open connection", near_dead(), (&v4(), ack()), (1, 0)),
        Row::sent(
            "second region, next of the list",
            near_dead().states(1, OPEN_ONLY, &[0]),
            (&v4(), syn()),
            (1, 1),
        ),
        Row::sent(
            "third region",
            near_dead().states(1, NOTHING, &everybody),
            (&v4(), syn()),
            (2, 0),
        ),
        Row::sent(
            "second region's standby before the third region",
            near_dead()
                .states(1, NOTHING, &[0, 1, 2, 3, 4, 5, 6, 8])
                .with(|fixture| fixture.regions[1].standbys = [Some(7); 8]),
            (&v4(), syn()),
            (1, 7),
        ),
        Row::sent("open connection finds an unfit member far away", none(), (&v4(), ack()), (2, 0)),
        Row::dropped("nobody in three regions", none(), syn(), "no_backend"),
        Row::dropped(
            "nobody in one region",
            fixture(4).states(0, NOTHING, &everybody),
            ack(),
            "no_backend",
        ),
        Row::dropped(
            "a pool without members",
            fixture(4).with(|fixture| fixture.regions.clear()),
            syn(),
            "no_backend",
        ),
        Row::dropped(
            "a pool without a descriptor",
            fixture(4).with(|fixture| fixture.pool_word = (0, 0)),
            syn(),
            "no_backend",
        ),
    ];
    let eight = (1..8).fold(MapFixture::new(4), |fixture, _| fixture.and_region(4));
    let eight = (0..7)
        .fold(listed(eight, 7), |fixture, region| fixture.states(region, NOTHING, &everybody));
    rows.push(Row::sent("eighth region", eight, (&v4(), syn()), (7, 0)));
    rows
}

/// Home is the first of the list that is not out of it. In a remap SYNs go by the next version.
fn homes() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    let out = |states: &[u8]| {
        let ranks = states.iter().zip(0_u16..);
        ranks.fold(fixture(4), |fixture, (state, rank)| fixture.states(0, *state, &[rank]))
    };
    for (name, states, new, open) in [
        ("the owner, dead", &[NOTHING | OUT][..], 1, 1),
        ("the owner, drained", &[OPEN_ONLY | OUT], 1, 1),
        ("the owner, just back", &[UP | OUT], 1, 1),
        ("two of the list", &[OPEN_ONLY | OUT, UP | OUT], 2, 2),
        ("the owner, while the next is drained", &[OPEN_ONLY | OUT, OPEN_ONLY], 2, 1),
        ("the owner, while the next is dead", &[NOTHING | OUT, NOTHING], 2, 2),
        ("all but the last", &[UP | OUT, UP | OUT, UP | OUT], 3, 3),
        ("all of the list", &[OPEN_ONLY | OUT, UP | OUT, UP | OUT, UP | OUT], 1, 0),
    ] {
        rows.push(Row::sent(
            format!("marked out: {name}: SYN"),
            out(states),
            (&v4(), syn()),
            (0, new),
        ));
        rows.push(Row::sent(
            format!("marked out: {name}: ACK"),
            out(states),
            (&v4(), ack()),
            (0, open),
        ));
    }
    let turned = || listed(fixture(4).and_region(4), 1).with(|fixture| fixture.pool_word.1 = NEXT);
    rows.extend([
        Row::sent("remap: SYN", turned(), (&v4(), syn()), (1, 0)),
        Row::sent("remap: ACK", turned(), (&v4(), ack()), (0, 0)),
        Row::sent("remap: datagram", turned(), (&v4_udp(), Packet::new(v4_udp()).udp()), (1, 0)),
        Row::sent(
            "remap, home unfit: ACK",
            turned().states(0, OPEN_ONLY, &[0]),
            (&v4(), ack()),
            (0, 0),
        ),
        Row::sent(
            "remap, home dead: ACK",
            turned().states(0, NOTHING, &[0]),
            (&v4(), ack()),
            (0, 1),
        ),
        Row::sent(
            "remap, home marked out: ACK",
            turned().states(0, OPEN_ONLY | OUT, &[0]),
            (&v4(), ack()),
            (0, 1),
        ),
        Row::sent(
            "remap, the next home marked out: SYN",
            turned().states(1, OPEN_ONLY | OUT, &[0]),
            (&v4(), syn()),
            (1, 1),
        ),
        Row::sent(
            "a next version that is the current one: ACK",
            turned().with(|fixture| fixture.pool_word.1 = fixture.pool_word.0),
            (&v4(), ack()),
            (0, 0),
        ),
        Row::sent(
            "a next version that is the current one: SYN",
            turned().with(|fixture| fixture.pool_word.1 = fixture.pool_word.0),
            (&v4(), syn()),
            (0, 0),
        ),
        Row::sent(
            "a next version that is not there: ACK",
            turned().with(|fixture| fixture.pool_word.1 = NEXT + 1),
            (&v4(), ack()),
            (0, 0),
        ),
    ]);
    rows
}

/// A ramping member takes a slot's new connections from a share on that is fixed for slot and member.
fn ramps() -> Vec<Row<MapFixture>> {
    let fixture = |ramp| fixture(4).member(0, 0, |owner| owner.ramp = ramp);
    let slot = tcp_hash(&v4()).slot(65_537);
    let threshold = flow_hash::ramp_threshold(slot, 0);
    vec![
        Row::sent("ramp 0: SYN", fixture(0), (&v4(), syn()), (0, 1)),
        Row::sent("ramp 0: ACK", fixture(0), (&v4(), ack()), (0, 0)),
        Row::sent("ramp 255: SYN", fixture(255), (&v4(), syn()), (0, 0)),
        Row::sent("ramp not yet there: SYN", fixture(threshold), (&v4(), syn()), (0, 1)),
        Row::sent("ramp just there: SYN", fixture(threshold + 1), (&v4(), syn()), (0, 0)),
        Row::sent("ramp not yet there: ACK", fixture(threshold), (&v4(), ack()), (0, 0)),
        Row::sent(
            "ramp of a slot's first alternate",
            fixture(0).member(0, 1, |next| next.ramp = flow_hash::ramp_threshold(slot, 1)),
            (&v4(), syn()),
            (0, 2),
        ),
    ]
}

fn next_hops() -> Vec<Row<MapFixture>> {
    let gateway = [0x02, 0, 0, 0, 5, 0xfe];
    let own = [0x02, 0, 0, 0, 5, 0x01];
    let behind = |ranks: &[u16], next_hop| {
        ranks.iter().fold(fixture(4), |fixture, &rank| {
            fixture.member(0, rank, |member| member.next_hop = next_hop)
        })
    };
    let everybody: Vec<u16> = (0..9).collect();
    let elsewhere = |fixture: MapFixture| {
        fixture.with(|fixture| {
            fixture.next_hops.insert(31, (gateway, 5));
            fixture.interfaces.insert(5, own);
            fixture.devices.insert(5);
        })
    };
    let udp = Packet::new(v4_udp()).udp();
    let lost =
        |what: &str, fixture, frame| Row::dropped(what, fixture, frame, "next_hop_unresolved");
    let unknown_device = elsewhere(behind(&[0], 31)).with(|fixture| fixture.devices.clear());
    let no_mac = elsewhere(behind(&[0], 31)).with(|fixture| {
        fixture.interfaces.remove(&5);
    });
    vec![
        Row::sent("out of another interface", elsewhere(behind(&[0], 31)), (&v4(), syn()), (0, 0)),
        Row::dropped("out of an unknown interface", unknown_device, syn(), "redirect_failed"),
        Row::dropped("out of an interface without MAC", no_mac, syn(), "next_hop_unresolved"),
        Row::sent("owner without next hop: SYN", behind(&[0], 0), (&v4(), syn()), (0, 1)),
        Row::sent("owner without next hop: ACK", behind(&[0], 0), (&v4(), ack()), (0, 1)),
        Row::sent("owner's next hop unresolved", behind(&[0], 77), (&v4(), ack()), (0, 1)),
        Row::sent("owner awaits its next hop: SYN", behind(&[0], AWAITED), (&v4(), syn()), (0, 1)),
        Row::sent(
            "owner awaits its next hop: UDP",
            behind(&[0], AWAITED),
            (&v4_udp(), udp),
            (0, 1),
        ),
        lost("owner awaits its next hop: ACK", behind(&[0], AWAITED), ack()),
        lost("owner awaits its next hop: FIN", behind(&[0], AWAITED), Packet::new(v4()).tcp("FA")),
        lost("owner awaits its next hop: RST", behind(&[0], AWAITED), Packet::new(v4()).tcp("R")),
        lost(
            "owner unfit, and awaits its next hop: ACK",
            behind(&[0], AWAITED).states(0, OPEN_ONLY, &[0]),
            ack(),
        ),
        lost(
            "owner dead, the next awaits its next hop: ACK",
            behind(&[1], AWAITED).states(0, NOTHING, &[0]),
            ack(),
        ),
        lost(
            "at a backend that awaits its next hop: ACK",
            behind(&[4], AWAITED).remembering(v4(), 6, (0, 4)),
            ack(),
        ),
        Row::sent(
            "at a backend that is dead and awaits its next hop: ACK",
            behind(&[4], AWAITED).states(0, NOTHING, &[4]).remembering(v4(), 6, (0, 4)),
            (&v4(), ack()),
            (0, 0),
        ),
        Row::dropped(
            "nobody's next hop resolved",
            behind(&everybody, 77),
            ack(),
            "next_hop_unresolved",
        ),
        Row::dropped(
            "one next hop unresolved, everybody else dead",
            behind(&[3], 77).states(0, NOTHING, &[0, 1, 2, 4, 5, 6, 7, 8]),
            syn(),
            "next_hop_unresolved",
        ),
        Row::dropped(
            "unresolved and unfit for a SYN",
            behind(&everybody, 77).states(0, OPEN_ONLY, &everybody),
            syn(),
            "no_backend",
        ),
    ]
}

/// What a member's word says of the whole pool is believed.
fn dead_pools() -> Vec<Row<MapFixture>> {
    let down = |most: u8, state: u8| {
        fixture(4).states(0, state, &[0]).with(|fixture| {
            fixture.regions[0].members.iter_mut().for_each(|member| member.state |= most);
        })
    };
    let (all, open, nothing) = (0, POOL_OPEN_ONLY, POOL_NOTHING);
    let udp = || Packet::new(v4_udp()).udp();
    let dropped = |what: &str, fixture, frame| Row::dropped(what, fixture, frame, "no_backend");
    vec![
        Row::sent("owner dead, some are up: SYN", down(all, NOTHING), (&v4(), syn()), (0, 1)),
        Row::sent("owner up, whatever is said: SYN", down(nothing, UP), (&v4(), syn()), (0, 0)),
        Row::sent("owner up, whatever is said: ACK", down(nothing, UP), (&v4(), ack()), (0, 0)),
        dropped("owner unfit, none is up: SYN", down(open, OPEN_ONLY), syn()),
        dropped("owner unfit, none is up: UDP", down(open, OPEN_ONLY), udp()),
        Row::sent("owner unfit, none is up: ACK", down(open, OPEN_ONLY), (&v4(), ack()), (0, 0)),
        Row::sent("owner dead, some are unfit: ACK", down(open, NOTHING), (&v4(), ack()), (0, 1)),
        dropped("all are dead: SYN", down(nothing, NOTHING), syn()),
        dropped("all are dead: ACK", down(nothing, NOTHING), ack()),
        dropped(
            "all are dead, with a limit: SYN",
            down(nothing, NOTHING).room(0, Room::Full),
            syn(),
        ),
        Row::sent(
            "all are dead but one that a cell names: ACK",
            down(nothing, NOTHING).remembering(v4(), 6, (0, 4)),
            (&v4(), ack()),
            (0, 4),
        ),
    ]
}

/// Capacity is asked for new connections alone; what of a full service is dropped is its own affair.
fn capacity() -> Vec<Row<MapFixture>> {
    use Room::{Closed, Full};
    const REJECTS: u32 = 4;
    let hash = flow_hash::hash(&v4(), 6, false, HASH_KEY);
    let listed = |fixture: MapFixture, region| fixture.list(region, hash, [0, 1, 2, 3]);
    let two = |near, far| {
        let fixture = (0..2).fold(MapFixture::new(4).and_region(4), listed);
        fixture.room(0, near).room(1, far)
    };
    let one = |room| listed(MapFixture::new(4), 0).room(0, room);
    let open = Room::Unlimited;
    vec![
        Row::sent("a full region: SYN", two(Full, open), (&v4(), syn()), (1, 0)),
        Row::sent("a full region: ACK", two(Full, open), (&v4(), ack()), (0, 0)),
        Row::sent("a drained region: SYN", two(Closed, open), (&v4(), syn()), (1, 0)),
        Row::sent("a drained region: ACK", two(Closed, open), (&v4(), ack()), (0, 0)),
        Row::sent("both full", two(Full, Full), (&v4(), syn()), (0, 0)),
        Row::sent("drained and full", two(Closed, Full), (&v4(), syn()), (1, 0)),
        Row::sent("full and drained", two(Full, Closed), (&v4(), syn()), (0, 0)),
        Row::dropped("both drained", two(Closed, Closed), syn(), "no_backend"),
        Row::sent(
            "both full, nobody near",
            two(Full, Full).states(0, NOTHING, &[0, 1, 2, 3, 4, 5, 6, 7, 8]),
            (&v4(), syn()),
            (1, 0),
        ),
        Row::sent("alone and full", one(Full), (&v4(), syn()), (0, 0)),
        Row::dropped("rejects: alone and full", one(Full).flags(REJECTS), syn(), "regions_full"),
        Row::dropped("rejects: both full", two(Full, Full).flags(REJECTS), syn(), "regions_full"),
        Row::sent("rejects: room far away", two(Full, open).flags(REJECTS), (&v4(), syn()), (1, 0)),
        Row::sent("rejects: ACK", one(Full).flags(REJECTS), (&v4(), ack()), (0, 0)),
    ]
}

/// A by-address service sends all ports of a client to one member; another service does not.
fn affinity() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for (flow, protocol, name) in [
        (Flow::new("192.0.2.9:1000", "198.51.100.1:81"), 6, "IPv4 TCP"),
        (Flow::new("192.0.2.9:2000", "198.51.100.1:81"), 6, "IPv4 TCP, another port"),
        (Flow::new("192.0.2.9:1000", "198.51.100.1:54"), 17, "IPv4 UDP"),
        (Flow::new("[2001:db8:c::9]:1000", "[2001:db8:80::1]:81"), 6, "IPv6 TCP"),
        (Flow::new("[2001:db8:c::9]:2000", "[2001:db8:80::1]:81"), 6, "IPv6 TCP, another port"),
    ] {
        let without_port = flow_hash::hash(&flow, protocol, true, HASH_KEY);
        let with_port = flow_hash::hash(&flow, protocol, false, HASH_KEY);
        let fixture = MapFixture::new(4).list(0, with_port, [5, NONE, NONE, NONE]).list(
            0,
            without_port,
            [2, NONE, NONE, NONE],
        );
        let packet = Packet::new(flow);
        let frame = if protocol == 6 { packet.tcp("S") } else { packet.udp() };
        rows.push(Row::sent(format!("by address, {name}"), fixture, (&flow, frame), (0, 2)));
    }
    let flow = Flow::new("192.0.2.9:1000", "198.51.100.1:80");
    let fixture = MapFixture::new(4)
        .list(0, flow_hash::hash(&flow, 6, true, HASH_KEY), [2, NONE, NONE, NONE])
        .list(0, tcp_hash(&flow), [5, NONE, NONE, NONE]);
    let frame = Packet::new(flow).tcp("S");
    rows.push(Row::sent("by port, IPv4 TCP", fixture, (&flow, frame), (0, 5)));
    rows
}

/// Tables of other sizes and at other places.
fn tables() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for table in TABLES {
        for flow in [v4(), v6()] {
            let version = if flow.vip.is_ipv4() { 4 } else { 6 };
            let fixture = MapFixture::new(4).with(|fixture| fixture.regions[0].table = table);
            let members = match table {
                WIDE => 257,
                BYTE => 17,
                _ => MEMBERS,
            };
            let fixture = fixture.members(members, 4);
            let fixture = listed(fixture, 0);
            let frame = Packet::new(flow).tcp("A");
            let what =
                format!("IPv{version}, table {:#x} of {} slots", table.reference, table.slots);
            rows.push(Row::sent(what, fixture, (&flow, frame), (0, 0)));
        }
    }
    // The last rank that four bits hold, the first that they do not, and the same of a byte.
    for (members, table) in [(16, TABLES[2]), (17, BYTE), (256, BYTE), (257, WIDE)] {
        let fixture = MapFixture::new(4).with(|fixture| fixture.regions[0].table = table);
        let fixture = fixture.members(members, 4);
        let flow = v4();
        let fixture = fixture.list(0, tcp_hash(&flow), [members - 1, 1, 2, 3]);
        let what = format!("the last of {members} members is the owner");
        let frame = Packet::new(flow).tcp("A");
        rows.push(Row::sent(what, fixture, (&flow, frame), (0, members - 1)));
    }
    rows
}

/// What a half-made map would look like: never a packet to the wrong place.
fn contradictions() -> Vec<Row<MapFixture>> {
    let no_table = |reference| {
        MapFixture::new(4).with(|fixture| {
            fixture.regions[0].table.reference = reference;
            fixture.regions[0].lists.clear();
        })
    };
    vec![
        Row::dropped(
            "backend of another incarnation",
            fixture(4).member(0, 0, |owner| owner.incarnation = 8),
            ack(),
            "inconsistent",
        ),
        Row::dropped(
            "descriptor beyond the map",
            fixture(4).with(|fixture| fixture.pool_word.0 = 1 << 20),
            ack(),
            "inconsistent",
        ),
        Row::dropped(
            "no chunk at the table's place",
            no_table(7 * CHUNK + 4),
            ack(),
            "inconsistent",
        ),
        Row::dropped(
            "a table beyond all chunks",
            no_table(4_096 * CHUNK + 4),
            ack(),
            "inconsistent",
        ),
    ]
}
