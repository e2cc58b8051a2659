//! Answers that the balancer sends itself: which packets take from their limits.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use etherparse::PacketBuilder;
use lb_common::{
    abi::{
        limiter::{self, LimitWord},
        verdict::Verdict,
    },
    path::{self, Version, icmp_error, icmp_reply, oversize},
};
use lb_common_fake::{FakeTables, OWN, fixture::SECOND};

const CLIENT: [u8; 4] = [192, 0, 2, 9];
const VIP: [u8; 4] = [198, 51, 100, 1];

/// One service, and room for one answer of each kind.
fn tables() -> FakeTables {
    let fake = FakeTables::new(&[(vec![[0, 0xffff, 0xffff, 0xffff]], 1)], 4).with_service(
        "198.51.100.1",
        80,
        6,
        0,
    );
    let one = LimitWord::new(60 * SECOND * LimitWord::PER_NANOSECOND, 1);
    for answers in [limiter::ERRORS, limiter::ECHOES] {
        fake.limiters[answers as usize].0.set(one);
    }
    fake
}

fn ping(source: [u8; 4]) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2; 6], OWN)
        .ipv4(source, VIP, 64)
        .icmpv4_echo_request(1, 2)
        .write(&mut frame, b"hello")
        .unwrap();
    frame
}

fn segment(source: [u8; 4], ttl: u8) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2; 6], OWN)
        .ipv4(source, VIP, ttl)
        .tcp(4711, 80, 1, 1000)
        .write(&mut frame, b"hello")
        .unwrap();
    frame
}

/// The frame with a bit changed.
fn damaged(mut frame: Vec<u8>, at: usize) -> Vec<u8> {
    frame[at] ^= 1;
    frame
}

#[test]
fn pings_that_are_not_answered_take_nothing_from_the_limit() {
    let fake = tables();
    let echo = |frame: Vec<u8>| icmp_reply::echo(&frame[..], &fake);
    let mut group = ping(CLIENT);
    group[..6].fill(0xff);
    for (frame, verdict) in [
        (damaged(ping(CLIENT), 46), Verdict::EchoChecksum),
        (damaged(ping(CLIENT), 24), Verdict::EchoChecksum),
        (ping([127, 0, 0, 1]), Verdict::MartianSource),
        (ping(VIP), Verdict::MartianSource),
        (group, Verdict::OtherProtocol),
    ] {
        assert_eq!(echo(frame), Err(verdict));
    }
    assert_eq!(echo(ping(CLIENT)), Ok(Version::V4));
    assert_eq!(echo(ping(CLIENT)), Err(Verdict::EchoLimited));
    assert_eq!(echo(damaged(ping(CLIENT), 46)), Err(Verdict::EchoLimited), "it is not summed up");
}

#[test]
fn packets_that_no_error_is_sent_about_take_nothing_from_the_limit() {
    let fake = tables();
    let last = |frame: Vec<u8>| icmp_error::time_exceeded(&frame[..], &fake).map(|it| it.quoted);
    let mut group = segment(CLIENT, 1);
    group[0] |= 1;
    for frame in [damaged(segment(CLIENT, 1), 24), segment([224, 0, 0, 1], 1), ping(CLIENT), group]
    {
        assert_eq!(last(frame), Err(Verdict::HopLimitExceeded));
    }
    assert_eq!(last(segment(CLIENT, 1)), Ok(45), "all of the packet");
    assert_eq!(last(segment(CLIENT, 1)), Err(Verdict::HopLimitExceeded), "the limit is reached");
    // Both kinds of errors share it.
    let large = oversize::too_large(&segment(CLIENT, 64)[..], &fake, 40);
    assert_eq!(large, Err(Verdict::TooLarge));
}

/// What is not for a service is left to the host, whatever its source and TTL.
#[test]
fn the_last_hop_is_judged_for_services_only() {
    let fake = tables();
    let decided = |frame: &[u8]| path::decide(frame, &fake).map(drop);
    assert_eq!(decided(&segment(CLIENT, 1)), Err(Verdict::HopLimitExceeded));
    assert_eq!(decided(&segment([0, 0, 0, 0], 1)), Err(Verdict::MartianSource));
    let mut other = segment([0, 0, 0, 0], 1);
    other[37] = 81;
    assert_eq!(decided(&other), Err(Verdict::NotOurs));
}
