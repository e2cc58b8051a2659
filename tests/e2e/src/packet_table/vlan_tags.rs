//! VLAN tags (IEEE 802.1Q): what a packet comes in with is taken off and put on again.

use anyhow::{Context as _, Result, ensure};

use crate::packet_table::row::Row;
use lb_tests::packets::expected::Expected;
use lb_tests::packets::{
    fixture::{GATEWAY, INGRESS, MapFixture},
    frames::{Packet, hex, tagged},
};

use super::{
    flows::{fixture, v4, v4_udp, v6, v6_udp},
    programs, receiver,
};

const OWNER: (usize, u16) = (0, 0);
/// Another interface.
const OTHER: u16 = 5;

/// EtherTypes of tags.
const CUSTOMER: u16 = 0x8100;
const PROVIDER: u16 = 0x88a8;

type Tags = &'static [[u16; 2]];

const ONE: Tags = &[[CUSTOMER, 42]];
const TWO: Tags = &[[PROVIDER, 0x6fff], [CUSTOMER, 0xb001]];

/// What tags packets come in with.
const STACKS: &[(&str, Tags)] = &[
    ("one tag", ONE),
    ("a tag with priority 7, discarded first, of VLAN 4094", &[[CUSTOMER, 0xfffe]]),
    ("a priority and no VLAN", &[[CUSTOMER, 0xa000]]),
    ("a provider's tag alone", &[[PROVIDER, 7]]),
    ("a provider's tag and a customer's", TWO),
    ("two customers' tags", &[[CUSTOMER, 1], [CUSTOMER, 2]]),
    ("two providers' tags", &[[PROVIDER, 1], [PROVIDER, 2]]),
    ("a customer's tag and a provider's", &[[CUSTOMER, 1], [PROVIDER, 2]]),
];

pub(crate) fn rows() -> Vec<Row<MapFixture>> {
    [by_hand(), came_with(), set(), elsewhere()].concat()
}

/// The row with tags on what comes in, and others on what comes of it.
fn behind<S>(row: Row<S>, what: &str, came: Tags, leaves: Tags) -> Row<S> {
    let frame = row.expected.frame.map(|frame| tagged(&frame, leaves));
    let expected = Expected { frame, ..row.expected };
    let what = format!("{}, {what}", row.what);
    Row { what, fixture: row.fixture, frame: tagged(&row.frame, came), expected }
}

/// Packets of the four flows.
fn packets(fixture: impl Fn(u8) -> MapFixture) -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for tunnel in [4, 6] {
        for (what, flow, frame) in [
            ("SYN over IPv4", v4(), Packet::new(v4()).tcp("S")),
            ("ACK over IPv6", v6(), Packet::new(v6()).tcp("A")),
            ("UDP over IPv4", v4_udp(), Packet::new(v4_udp()).traffic_class(0xb9).udp()),
            ("UDP over IPv6", v6_udp(), Packet::new(v6_udp()).udp()),
        ] {
            let what = format!("{what} in IPv{tunnel}");
            rows.push(Row::sent(what, fixture(tunnel), (&flow, frame), OWNER));
        }
    }
    rows
}

/// Back out of the interface that it came in on, a packet has the tags that it came in with.
fn came_with() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for (name, tags) in STACKS {
        let all = packets(fixture).into_iter();
        rows.extend(all.map(|row| behind(row, &format!("with {name}"), tags, tags)));
    }
    rows
}

/// What is set for an interface is on all that the balancer sends to backends there.
fn set() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for (id, set) in [(1, &[[CUSTOMER, 1]]), (4094, &[[CUSTOMER, 4094]])] {
        let with =
            move |tunnel| fixture(tunnel).with(|fixture| fixture.vlans.extend([(INGRESS, id)]));
        for (name, tags) in [("none", &[][..]), ("one", ONE), ("two", TWO)] {
            let what = format!("VLAN {id} set, with {name}");
            rows.extend(packets(with).into_iter().map(|row| behind(row, &what, tags, set)));
        }
    }
    // Answers go back to where the question came from.
    let with = |fixture: MapFixture| fixture.with(|fixture| fixture.vlans.extend([(INGRESS, 9)]));
    let answers = [super::pings::rows(), super::oversize::rows(), super::last_hop::rows()];
    let answers = answers.concat().into_iter();
    for row in answers.filter(|row| row.expected.verdict.starts_with("answered_")) {
        let row = Row { fixture: with(row.fixture), ..row };
        rows.push(behind(row.clone(), "another VLAN set, with one tag", ONE, ONE));
        rows.push(behind(row, "a VLAN set, with none", &[], &[]));
    }
    rows
}

/// By another interface goes what is set for that one, and nothing else; by the bond of the interface that it came in
/// on, as by the bond.
fn elsewhere() -> Vec<Row<MapFixture>> {
    let there = |bond: Option<u16>, vlan: Option<u16>| {
        move |tunnel| {
            fixture(tunnel).with(|fixture| {
                fixture.next_hops.insert(31, (GATEWAY, OTHER));
                fixture.interfaces.insert(OTHER, [2, 0, 0, 0, 5, 1]);
                fixture.devices.insert(OTHER.into());
                fixture.regions[0].members[0].next_hop = 31;
                // What is set for the interface of clients goes on nothing.
                fixture.vlans.insert(INGRESS, 77);
                fixture.bond = bond;
                fixture.vlans.extend(vlan.map(|vlan| (OTHER, vlan)));
            })
        }
    };
    let mut rows = Vec::new();
    for (came, tags) in [("none", &[][..]), ("one", ONE), ("two", TWO)] {
        for (by, bond, kept) in [
            ("another interface", None, &[][..]),
            ("another interface than its bond", Some(OTHER + 1), &[]),
            ("its bond", Some(OTHER), tags),
        ] {
            let what = format!("by {by}, with {came}");
            let none = packets(there(bond, None)).into_iter();
            rows.extend(none.map(|row| behind(row, &what, tags, kept)));
            let what = format!("by {by}, where VLAN 300 is set, with {came}");
            let set = packets(there(bond, Some(300))).into_iter();
            rows.extend(set.map(|row| behind(row, &what, tags, &[[CUSTOMER, 300]])));
        }
    }
    rows
}

/// Written out: no library had a hand in it.
fn by_hand() -> Vec<Row<MapFixture>> {
    // The ACK of the answers to what is too large, with no payload: 40 bytes.
    let frame = hex("020000000001 02000000000c 88a8 0064 8100 2065 0800
        4500 0028 0001 4000 40 06 4e91 c0000209 c6336401
        1267 0050 00000001 00000000 5010 2000 90de 0000");
    let after = hex("0200000000fe 020000000001 88a8 0064 8100 2065 0800
        4500 003c 0000 4000 40 04 26bc 0a000001 0a010001
        4500 0028 0001 4000 3f 06 4f91 c0000209 c6336401
        1267 0050 00000001 00000000 5010 2000 90de 0000");
    let traffic = Some((11, 10, 0));
    let expected = Expected { verdict: "transmitted", frame: Some(after), traffic };
    vec![Row { what: "by hand: an ACK with two tags".into(), fixture: fixture(4), frame, expected }]
}

/// Every row of the balancer that has none, behind tags.
pub(crate) fn tags_make_no_difference() -> Result<()> {
    let mut subject = programs::balancer()?;
    let mut behind_tags = 0;
    for row in super::balancer_rows() {
        for (name, tags) in [("one tag", ONE), ("two tags", TWO)] {
            if cannot_have(&row.frame, tags) || !row.fixture.vlans.is_empty() {
                continue;
            }
            let stays = row.expected.verdict == "redirected";
            let row = behind(row.clone(), name, tags, if stays { &[] } else { tags });
            subject.check(&row).with_context(|| row.what.clone())?;
            behind_tags += 1;
        }
    }
    ensure!(behind_tags > 1_000, "only {behind_tags} rows");
    Ok(())
}

/// The same of the receiver: what is inside a tunnel has the tags that were outside of it.
pub(crate) fn none_to_the_receiver() -> Result<()> {
    let mut subject = programs::receiver()?;
    for row in receiver::rows() {
        for (name, tags) in STACKS {
            if cannot_have(&row.frame, tags) {
                continue;
            }
            let row = behind(row.clone(), name, tags, tags);
            subject.check(&row).with_context(|| row.what.clone())?;
        }
    }
    Ok(())
}

/// At tc's hook the kernel has the outermost tag beside the packet; what has one among its bytes has two, and is
/// left as it is.
pub(crate) fn left_at_tc() -> Result<()> {
    let mut subject = programs::receiver_at_tc()?;
    for row in receiver::rows() {
        for (name, tags) in STACKS {
            let what = format!("{}, {name}", row.what);
            let row = Row::passed(what, (), tagged(&row.frame, tags), "not_tunnel");
            subject.check(&row).with_context(|| row.what.clone())?;
        }
    }
    Ok(())
}

/// Whether a frame with so many tags more has more than two.
fn cannot_have(frame: &[u8], tags: Tags) -> bool {
    let is_tag = |at: usize| matches!(frame.get(at..at + 2), Some([0x81, 0x00] | [0x88, 0xa8]));
    is_tag(12) && tags.len() + 1 + usize::from(is_tag(16)) > 2
}
