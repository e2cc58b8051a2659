//! Encapsulation: what goes out is right by RFC 2003 and RFC 2473, and the receiver gives back what came.

use lb_tests::packets::{fake_tables::Lists, fixture::Form, receiver::VIPS};

use crate::{
    ip::{self, ETHERNET},
    maps, sent,
};

/// Maps and a frame.
pub fn check(data: &[u8]) {
    let Some((maps, frame)) = maps::take(data) else { return };
    // No driver hands on less than an Ethernet header.
    if frame.len() < ETHERNET {
        return;
    }
    let became = maps.fake.expects(frame);
    let Some(tunnelled) = sent::check(&maps.fixture, frame, &became) else { return };
    let arrived = became.frame.as_ref().unwrap();
    let outer = ip::read(&tunnelled.frame.0[ETHERNET..]).unwrap();
    let inner = ip::read(&tunnelled.hopped[ETHERNET..]).unwrap();
    let is_served = VIPS.contains(&inner.destination) && inner.is_sound();
    // Who claims to be the host that is sent to, or a VIP, is refused there.
    let is_strange = VIPS.contains(&inner.source) || inner.source == outer.destination;
    if !is_served || is_strange {
        return;
    }
    let received = Lists(&[outer.destination]).expects(arrived);
    // The checksum of a tunnel in UDP vouches for nothing in it: what is wrong in there is found.
    if matches!(maps.fixture.form, Form::Gue(_)) && !inner.has_sound_segment() {
        assert_eq!(received.verdict, "inner_checksum");
        return;
    }
    assert_eq!(received.verdict, "decapsulated");
    let (frame, tags) = ip::untagged(received.frame.as_ref().unwrap());
    assert_eq!(tags, tunnelled.frame.1);
    assert_eq!(frame[..12], tunnelled.frame.0[..12]);
    assert_eq!(frame[12..], tunnelled.hopped[12..], "the packet that came");
}
