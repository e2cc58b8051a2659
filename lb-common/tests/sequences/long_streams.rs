//! Streams of more than 4 GiB: every sequence number comes again.

use lb_common::abi::counter::Event;

use lb_common_fake::fixture::{Fixture, client};

/// The numbers of a stream of `bytes` from `from`: in steps just below 64 KiB, and segment by segment
/// around `foreign`.
fn stream(from: u32, bytes: u64, foreign: u32) -> impl Iterator<Item = u32> {
    let mut at = 0_u64;
    core::iter::from_fn(move || {
        let sequence = from.wrapping_add(at as u32);
        let to_foreign = foreign.wrapping_add(40_000).wrapping_sub(sequence);
        let step = if to_foreign < 100_000 {
            1_460
        } else {
            u64::from(to_foreign - 99_000).clamp(1_460, (1 << 16) - 1)
        };
        at += step;
        (at < bytes).then_some(sequence)
    })
}

/// A little over 4 GiB.
const TURN: u64 = (1 << 32) + (1 << 24);

#[test]
fn a_stream_at_home_passes_a_foreign_syn() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.open(client(1), 0), 1);
    let foreign = 3_000_000_000;
    assert_eq!(fixture.syn(client(1), foreign), Ok(3), "not its own: home is full");
    let mut segments = 0;
    for sequence in stream(1, TURN, foreign) {
        assert_eq!(fixture.ack(client(1), sequence), Ok(1), "at {sequence}");
        segments += 1;
    }
    // 65,792 steps of 64 KiB, and 68 of 1,460 bytes around the foreign number.
    assert!(segments > 65_536 + 60, "{segments} segments");
    // Its own SYN's cell goes as well: its stream comes by a second time, and home it is all the same.
    assert_eq!(fixture.events(), [(Event::FlowTaken, 2), (Event::SynDropped, 2)]);
    assert_eq!(fixture.displaced_count(), 0);
}

#[test]
fn a_stream_that_has_a_cell_passes_a_foreign_syn() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.open(client(1), 0), 1);
    assert_eq!(fixture.open(client(2), 0), 3);
    fixture.sleep(61);
    let foreign = 3_000_000_000;
    assert_eq!(fixture.syn(client(2), foreign), Ok(1), "home has room for it");
    assert_eq!(fixture.displaced(client(2)), Some(3));
    for sequence in stream(1, TURN, foreign) {
        assert_eq!(fixture.ack(client(2), sequence), Ok(3), "at {sequence}");
    }
    assert_eq!(fixture.displaced(client(2)), Some(3));
}

#[test]
fn a_stream_passes_syns_that_keep_coming() {
    // A forger that tries again each time the cell is gone, never within 64 KiB of the stream.
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.open(client(1), 0), 1);
    for n in 0..16_u32 {
        let (from, foreign) = (n << 28, (n << 28) + (1 << 27));
        assert_eq!(fixture.syn(client(1), foreign), Ok(3));
        for sequence in stream(from + 1, 1 << 28, foreign) {
            assert_eq!(fixture.ack(client(1), sequence), Ok(1), "at {sequence}");
        }
    }
    assert_eq!(fixture.displaced_count(), 0);
}

#[test]
fn a_spilled_stream_wraps_past_its_own_number() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.open(client(1), 0), 1);
    assert_eq!(fixture.open(client(2), 4_294_000_000), 3);
    for sequence in stream(4_294_000_001, TURN, 4_294_000_000) {
        assert_eq!(fixture.ack(client(2), sequence), Ok(3), "at {sequence}");
    }
}
