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
    ping_of(source, VIP)
}

fn ping_of(source: [u8; 4], vip: [u8; 4]) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2; 6], OWN)
        .ipv4(source, vip, 64)
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

/// Pings a second of a flood.
const FLOOD: u64 = 5_000;

/// Answers to pings of a flood, each a source and a VIP by its number, and to one a second of another client, in ten seconds
/// in which 1,000 a second may be answered; and to how many of those of the other client.
fn flooded(
    asks: impl Fn(u64) -> ([u8; 4], [u8; 4]),
    (client, vip): ([u8; 4], [u8; 4]),
) -> (u64, u64) {
    let mut fake = FakeTables::new(&[(vec![[0, 0xffff, 0xffff, 0xffff]], 1)], 4);
    for vip in ["198.51.100.1", "198.51.100.2", "198.51.100.3", "198.51.100.4"] {
        fake = fake.with_service(vip, 80, 6, 0);
    }
    let limit = LimitWord::new(SECOND * LimitWord::PER_NANOSECOND / 1_000, 100);
    fake.limiters[limiter::ECHOES as usize].0.set(limit);
    let answers = |(source, vip)| icmp_reply::echo(&ping_of(source, vip)[..], &fake).is_ok();
    let (mut flood, mut others) = (0, 0);
    for number in 0..10 * FLOOD {
        flood += u64::from(answers(asks(number)));
        others += u64::from(number % FLOOD == FLOOD - 1 && answers((client, vip)));
        fake.now.set(fake.now.get() + SECOND / FLOOD);
    }
    (flood, others)
}

fn vip(number: u64) -> [u8; 4] {
    [198, 51, 100, 1 + (number % 4) as u8]
}

#[test]
fn a_flood_from_one_network_leaves_other_networks_their_answers() {
    // At one VIP, and at all.
    for asks in [|_| ([203, 0, 113, 7], VIP), |number| ([203, 0, 113, number as u8], vip(number))] {
        let (flood, others) = flooded(asks, (CLIENT, VIP));
        assert_eq!(
            (flood, others),
            (10 + 1_000 - 1, 10),
            "a tenth of the answers, and of the burst"
        );
    }
}

#[test]
fn a_flood_at_one_vip_leaves_other_vips_their_answers() {
    let (flood, others) = flooded(
        |number| ([10, (number >> 8) as u8, number as u8, 1], VIP),
        (CLIENT, [198, 51, 100, 2]),
    );
    assert_eq!((flood, others), (50 + 5_000 - 1, 10), "half of the answers, and of the burst");
}

#[test]
fn all_networks_and_vips_together_keep_the_limit() {
    let asks = |number| ([10, (number >> 8) as u8, number as u8, 1], vip(number));
    let (flood, others) = flooded(asks, (CLIENT, VIP));
    assert!((10_090..=10_100).contains(&(flood + others)), "{flood} and {others}");
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
