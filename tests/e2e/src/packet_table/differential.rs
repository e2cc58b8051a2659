//! The loaded programs against the pure decision, over random fixtures and mutated packets.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use anyhow::{Context as _, Result, anyhow, ensure};
use fastrand::Rng;
use lb_common::{abi::next_hop::AWAITED, wire::vlan::Tags};
use lb_tests::packets::expected::Expected;
use lb_tests::packets::{
    balancer::{Balancer, Ran},
    counters::Counters,
    fake_tables::{FakeTables, Lists},
    fixture::{
        Form, GATEWAY, INGRESS, MEMBERS, MapFixture, NONE, NOTHING, OPEN_ONLY, Owners,
        POOL_NOTHING, POOL_OPEN_ONLY, Room, Service, TABLES, UP,
    },
    frames::{ETHERNET, Flow, Packet, Tunnel, extended, tagged},
    receiver::{ENDPOINTS, Receiver, VIPS, is_for_tc},
};
use lb_tests::sample::Sample;

/// Packets in a fixture.
const PACKETS: u64 = 250;
/// What so many packets of these fixtures end as at least once, the way out with the fewest among them.
const COMMON: [&str; 11] = [
    "transmitted",
    "redirected",
    "answered_echo",
    "echo_limited",
    "echo_checksum",
    "answered_too_large",
    "too_large",
    "answered_time_exceeded",
    "hop_limit_exceeded",
    "martian_source",
    "broadcast_frame",
];
/// Connections that a fixture remembers, at most.
const REMEMBERED: usize = 6;
/// Counters below this are looked at.
const WATCHED: u32 = 128;

/// The fixtures of a run, each by the seed that it is drawn from.
#[derive(Clone, Debug)]
pub(crate) struct RandomFixtures(Vec<u64>);

impl RandomFixtures {
    /// As many as have `packets` packets together; of these a sample has a `parts`th.
    pub(crate) fn new(packets: u64, sample: Sample, parts: u64) -> Self {
        Self((0..packets / PACKETS).filter(|seed| sample.has(*seed, parts)).collect())
    }

    fn packets(&self) -> u64 {
        self.0.len() as u64 * PACKETS
    }
}

/// The balancer against `lb_common::path`.
pub(crate) fn balancer(fixtures: &RandomFixtures) -> Result<()> {
    let packets = fixtures.packets();
    let (seen, away) = (Mutex::new(BTreeSet::new()), AtomicU64::new(0));
    let sent = in_turn(fixtures, Balancer::load, |balancer, random| {
        let fixture = random_scene(random);
        balancer.show(&fixture)?;
        let fake = FakeTables::new(&fixture);
        let forgetful = FakeTables::new(&MapFixture { remembered: Vec::new(), ..fixture.clone() });
        let before = balancer.counters(WATCHED)?;
        let (mut all, mut sent) = (Counters::default(), 0);
        let mut ended = BTreeSet::new();
        for number in 0..PACKETS {
            let frame = random_frame(random, &fixture);
            let expected = fake.expects(&frame);
            sent += u64::from(expected.is_sent());
            if !fixture.remembered.is_empty()
                && expected.traffic != forgetful.expects(&frame).traffic
            {
                away.fetch_add(1, Ordering::Relaxed);
            }
            ended.insert(expected.verdict);
            let ran = balancer.run(&frame)?;
            check(&frame, &expected, &ran, &mut all)
                .with_context(|| format!("packet {number}: {frame:02x?}"))?;
            // A SYN that a mutation made.
            if fake.begins_anew(&frame) {
                balancer.show(&fixture)?;
            }
        }
        let moved = balancer.counters(WATCHED)?.since(&before);
        ensure!(moved == all, "counters {moved:?}, expected {all:?}");
        seen.lock().unwrap_or_else(PoisonError::into_inner).extend(ended);
        Ok(sent)
    })?;
    let seen = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
    for verdict in COMMON {
        ensure!(seen.contains(verdict), "no packet ended as {verdict}: a blind test");
    }
    let away = away.into_inner();
    ensure!(away > packets / 200, "{away} of {packets} were remembered elsewhere: a blind test");
    ensure!(sent > packets / 5 && sent < packets * 4 / 5, "{sent} of {packets}: a lopsided test");
    Ok(())
}

/// The receiver against `lb_common::receive`.
pub(crate) fn receiver(fixtures: &RandomFixtures) -> Result<()> {
    tunnels(fixtures, Receiver::load, |random| {
        let frame = random_tunnel(random);
        let expected = Lists::LOADED.expects(&frame);
        (frame, expected)
    })
}

/// The same at tc's hook, to which the kernel hands frames without tags.
pub(crate) fn receiver_at_tc(fixtures: &RandomFixtures) -> Result<()> {
    tunnels(fixtures, Receiver::load_for_tc, |random| {
        loop {
            let frame = random_tunnel(random);
            if is_for_tc(&frame) && Tags::read(&*frame).is_none() {
                let expected = Lists::LOADED.expects_at_tc(&frame);
                return (frame, expected);
            }
        }
    })
}

fn tunnels(
    fixtures: &RandomFixtures,
    load: impl Fn() -> Result<Receiver> + Sync,
    next: impl Fn(&mut Rng) -> (Vec<u8>, Expected) + Sync,
) -> Result<()> {
    let packets = fixtures.packets();
    let opened = in_turn(fixtures, load, |receiver, random| {
        let before = receiver.counters(WATCHED)?;
        let (mut all, mut opened) = (Counters::default(), 0);
        for number in 0..PACKETS {
            let (frame, expected) = next(random);
            opened += u64::from(expected.verdict == "decapsulated");
            let ran = receiver.run(&frame)?;
            check(&frame, &expected, &ran, &mut all)
                .with_context(|| format!("packet {number}: {frame:02x?}"))?;
        }
        let moved = receiver.counters(WATCHED)?.since(&before);
        ensure!(moved == all, "counters {moved:?}, expected {all:?}");
        Ok(opened)
    })?;
    ensure!(
        opened > packets / 5 && opened < packets * 4 / 5,
        "{opened} of {packets}: a lopsided test"
    );
    Ok(())
}

/// Tries the fixtures, shared out among the CPUs, each with a program of its own; the answer is the sum of theirs.
fn in_turn<P>(
    fixtures: &RandomFixtures,
    load: impl Fn() -> Result<P> + Sync,
    fixture: impl Fn(&mut P, &mut Rng) -> Result<u64> + Sync,
) -> Result<u64> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(8);
    let work = |first: usize| {
        let mut program = load()?;
        let mut sum = 0;
        for seed in fixtures.0.iter().skip(first).step_by(threads) {
            let done = fixture(&mut program, &mut Rng::with_seed(*seed));
            sum += done.with_context(|| format!("seed {seed}"))?;
        }
        Ok(sum)
    };
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|first| {
                scope.spawn({
                    let work = &work;
                    move || work(first)
                })
            })
            .collect();
        let sums = running.into_iter().map(|it| it.join().map_err(|_| anyhow!("it panicked"))?);
        sums.sum()
    })
}

/// Checks action and bytes; the counters are checked together after a fixture.
fn check(frame: &[u8], expected: &Expected, ran: &Ran, all: &mut Counters) -> Result<()> {
    let counters = expected.counters(frame.len() as u64)?;
    all.add_all(&counters);
    expected.check(frame.len(), ran, &counters)
}

/// Everything that a fixture can say, at random; small tables, so that flows meet every slot.
fn random_scene(random: &mut Rng) -> MapFixture {
    let mut fixture = MapFixture::new(if random.bool() { 4 } else { 6 });
    for _ in 0..random.usize(0..4) {
        fixture = fixture.and_region(if random.bool() { 4 } else { 6 });
    }
    if random.u8(..) < 8 {
        fixture.regions.clear();
    }
    let mostly = random.u8(0..3);
    for region in &mut fixture.regions {
        region.table = TABLES[random.usize(2..4)];
        for slot in 0..region.table.slots {
            let rank = |_| if random.u8(..) < 30 { NONE } else { random.u16(0..MEMBERS + 1) };
            region.lists.insert(slot, [0; 4].map(rank));
        }
        for standby in &mut region.standbys {
            *standby = random.bool().then(|| random.u16(0..MEMBERS + 1));
        }
        for member in &mut region.members {
            member.state = if random.bool() { mostly } else { random.u8(0..4) };
            member.ramp = one_of(random, [0, 40, 128, 254, 255, 255]);
            member.next_hop = one_of(random, [0, 30, 30, 30, 31, 32, AWAITED]);
            member.mtu = one_of(random, [60, 112, 700, 1_280, 1_290, 1_400, 1_500, 1_500, 1_500]);
            member.on_link = random.u8(..) < 224;
            member.incarnation = if random.u8(..) < 8 { 6 } else { 7 };
        }
    }
    fixture.next_hops.insert(31, (GATEWAY, 5));
    fixture.interfaces.insert(5, [2, 0, 0, 0, 5, 1]);
    if random.bool() {
        fixture.devices.insert(5);
    }
    for interface in [INGRESS, 5] {
        if random.u8(..) < 80 {
            fixture.vlans.insert(interface, random.u16(1..4095));
        }
    }
    fixture.bond = one_of(random, [None, Some(5), Some(6)]);
    fixture.drops_unserved = random.bool();
    let rooms = [Room::Unlimited, Room::Free, Room::Full, Room::Closed];
    (fixture.errors, fixture.echoes) = (one_of(random, rooms), one_of(random, rooms));
    fixture.form = match random.u8(0..4) {
        0 => Form::Direct,
        1 | 2 => Form::Gue(random.u16(..)),
        _ => Form::IpInIp,
    };
    let prefix = one_of(random, [32, 32, 32, 31, 26, 24, 20, 12, 8]);
    fixture = fixture.sending_from([10, 64, 77, 42].into(), prefix);
    if random.u8(..) < 8 {
        fixture.sources = ([0; 4].into(), [0; 16].into());
    }
    if random.bool() {
        say_what_pool_accepts(&mut fixture);
    }
    if random.bool() { remember(random, fixture) } else { fixture }
}

/// Each member's word says truly what the best one accepts.
fn say_what_pool_accepts(fixture: &mut MapFixture) {
    let accepts = |state: u8| if state > UP { NOTHING } else { state };
    let members = || fixture.regions.iter().flat_map(|region| &region.members);
    let said = match members().map(|member| accepts(member.state)).max() {
        Some(UP) => 0,
        Some(OPEN_ONLY) => POOL_OPEN_ONLY,
        _ => POOL_NOTHING,
    };
    for region in &mut fixture.regions {
        region.members.iter_mut().for_each(|member| member.state |= said);
    }
}

/// The fixture with some connections that are remembered, each at any member.
fn remember(random: &mut Rng, mut fixture: MapFixture) -> MapFixture {
    let regions = fixture.regions.len();
    let services: Vec<_> = fixture.services.iter().filter(|it| it.protocol == 6).copied().collect();
    for _ in 0..if regions > 0 { REMEMBERED } else { 0 } {
        let service = services[random.usize(..services.len())];
        let member = (random.usize(..regions), random.u16(..MEMBERS));
        let flow = random_flow(random, service);
        // By address a client's ports are one, of which there may be a connection already.
        if service.flags & 1 == 0 {
            fixture = fixture.remembering(flow, service.protocol, member);
        }
    }
    fixture.has_displaced = random.u8(..) < 192;
    let owners = [Owners::This, Owners::This, Owners::Another, Owners::Several(random.u8(0..3))];
    fixture.owners = one_of(random, owners);
    fixture
}

fn random_flow(random: &mut Rng, service: Service) -> Flow {
    let any = service.port == 0 || random.u8(..) < 16;
    let port = if any { random.u16(..) } else { service.port };
    let client: IpAddr = match service.vip {
        IpAddr::V4(_) => random.u32(..).to_be_bytes().into(),
        IpAddr::V6(_) => random.u128(..).to_be_bytes().into(),
    };
    Flow {
        client: SocketAddr::new(client, random.u16(..)),
        vip: SocketAddr::new(service.vip, port),
    }
}

/// A packet, most often for one of the services, and often with something wrong about it.
fn random_frame(random: &mut Rng, fixture: &MapFixture) -> Vec<u8> {
    let known = match fixture.remembered.len() {
        0 => None,
        many => Some(fixture.remembered[random.usize(..many)]).filter(|_| random.u8(..) < 96),
    };
    let (flow, protocol) = known.map_or_else(
        || {
            let service = fixture.services[random.usize(..fixture.services.len())];
            (random_flow(random, service), service.protocol)
        },
        |known| (known.flow, known.protocol),
    );
    // What does not fit is answered if it fills what the answer quotes.
    let most = if random.u8(..) < 32 { 1_500 } else { 60 };
    let mut packet = Packet::new(flow)
        .hop_limit(random_hop_limit(random))
        .traffic_class(random.u8(..))
        .payload(&bytes(random, most));
    if random.u8(..) < 60 {
        packet = packet.options(4 * random.u8(1..11));
    }
    let mut frame = match protocol {
        // A connection that is remembered begins no more.
        6 if known.is_some() => packet.tcp(one_of(random, ["A", "PA", "FA", "R"])),
        6 => packet.tcp(one_of(random, ["S", "S", "SA", "A", "PA", "FA", "R", "SF"])),
        _ => packet.udp(),
    };
    if flow.vip.is_ipv4() && random.bool() {
        frame[20] = 0;
    }
    let frame = match random.u8(..) {
        0..60 => error(random, &flow, protocol),
        // A first, a later, a last fragment, or one of another's making.
        60..75 if flow.vip.is_ipv4() => {
            let mut frame = frame;
            let word: u16 = one_of(random, [0x2000, 0x2001, 0x0b50, 0x60b9, 0x4000, 0x8000]);
            frame[20..22].copy_from_slice(&word.to_be_bytes());
            frame
        }
        60..75 => {
            let header = one_of(random, ["00 00 0001 0000002a", "00 00 0579 0000002a"]);
            extended(&frame, &[(44, header)])
        }
        75..120 if flow.vip.is_ipv6() => {
            let all = [
                (0, "00 00 0502 0000 0100"),
                (43, "00 02 04 00 00000000 fd000000000000000000000000000009"),
                (44, "00 00 0000 0000002a"),
                (44, "00 00 0001 0000002a"),
                (51, "00 02 0000 00000001 00000001 00010203"),
                (60, "00 01 01 0c 000000000000000000000000"),
            ];
            let headers: Vec<_> = (0..random.usize(1..6)).map(|_| one_of(random, all)).collect();
            extended(&frame, &headers)
        }
        _ => frame,
    };
    mutated(random, frame)
}

/// One packet of sixteen is at its last hop.
fn random_hop_limit(random: &mut Rng) -> u8 {
    if random.u8(..) < 16 { random.u8(..2) } else { random.u8(1..) }
}

/// An ICMP message, most often an error about a packet that a backend of the flow sent.
fn error(random: &mut Rng, flow: &Flow, protocol: u8) -> Vec<u8> {
    let quoted = Packet::new(if random.u8(..) < 240 { flow.answered() } else { *flow });
    let mut quoted = if protocol == 6 { quoted.tcp("A") } else { quoted.udp() };
    if flow.vip.is_ipv4() && random.u8(..) < 48 {
        let word: u16 = one_of(random, [0x2000, 0x20b9, 0x0001]);
        quoted[20..22].copy_from_slice(&word.to_be_bytes());
    } else if flow.vip.is_ipv6() && random.u8(..) < 48 {
        let header = one_of(random, ["00 00 0001 0000002a", "00 00 0579 0000002a"]);
        quoted = extended(&quoted, &[(44, header)]);
    }
    let end = random.usize(ETHERNET + 20..=quoted.len());
    let end = if random.bool() { end } else { quoted.len() };
    let kinds = if flow.vip.is_ipv4() { [3, 3, 11, 12, 5, 8] } else { [1, 2, 3, 4, 128, 136] };
    let (kind, rest) = (one_of(random, kinds), random.u32(..).to_be_bytes());
    let code = if random.bool() { 0 } else { random.u8(0..5) };
    let packet =
        Packet::new(*flow).hop_limit(random_hop_limit(random)).traffic_class(random.u8(..));
    packet.error(kind, code, rest, &quoted[ETHERNET..end])
}

/// A packet in a tunnel, most often an allowed one, and often with something wrong about it.
fn random_tunnel(random: &mut Rng) -> Vec<u8> {
    let last = random.u16(..);
    let source = match random.u8(0..5) {
        0..2 => IpAddr::from([10, 0, 0, random.u8(0..9)]),
        2 => IpAddr::from(one_of(random, [[192, 0, 2, 1], [9; 4]])),
        network => IpAddr::from([0xfd00, 0, 0, u16::from(network == 4), 0, 0, 0, last]),
    };
    let v6 = usize::from(source.is_ipv6());
    let destination = match random.u8(0..64) {
        0 => VIPS[v6],
        1 => [IpAddr::from([10; 4]), IpAddr::from([9_u8; 16])][v6],
        _ => ENDPOINTS[v6],
    };
    let tunnel = Tunnel { macs: ([2; 6], [4; 6]), source, destination, flow_label: 7 };
    let vips = ["198.51.100.1:80", "[2001:db8:80::1]:80", "198.51.100.1:1", "198.51.100.9:80"];
    let vip = one_of(random, vips);
    let client = if vip.starts_with('[') { "[2001:db8::1]:9" } else { "192.0.2.1:9" };
    let packet = Packet::new(Flow::new(client, vip)).payload(&bytes(random, 40));
    let frame = if random.bool() { packet.tcp("A") } else { packet.udp() };
    if random.bool() {
        return mutated(random, tunnel.around(&frame));
    }
    let protocol = if frame[ETHERNET] >> 4 == 4 { 4 } else { 41 };
    let outer = Flow {
        client: SocketAddr::new(source, random.u16(..)),
        vip: SocketAddr::new(destination, 6_080),
    };
    let payload = [&[0, protocol, 0, 0], &frame[ETHERNET..]].concat();
    let mut frame = Packet::new(outer).payload(&payload).traffic_class(random.u8(..)).udp();
    let (udp, headers) = if source.is_ipv4() { (34, 46) } else { (54, 66) };
    match random.u8(0..4) {
        // Another checksum of the inner packet, say, under an outer one that is right or not there.
        0 => frame[headers + random.usize(0..28)] ^= 1 << random.u8(0..8),
        1 => {}
        _ => frame[udp + 6..udp + 8].fill(0),
    }
    mutated(random, frame)
}

fn one_of<T: Copy, const N: usize>(random: &mut Rng, choices: [T; N]) -> T {
    choices[random.usize(..N)]
}

fn bytes(random: &mut Rng, limit: usize) -> Vec<u8> {
    (0..random.usize(..limit)).map(|_| random.u8(..)).collect()
}

/// A frame of three gets one to three VLAN tags.
fn sometimes_tagged(random: &mut Rng, frame: Vec<u8>) -> Vec<u8> {
    let count = one_of(random, [0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3]);
    let tags: Vec<_> =
        (0..count).map(|_| [one_of(random, [0x8100, 0x88a8]), random.u16(..)]).collect();
    tagged(&frame, &tags)
}

/// Two frames of five get one to three bytes of their headers changed, or an end at another place.
fn mutated(random: &mut Rng, mut frame: Vec<u8>) -> Vec<u8> {
    frame = sometimes_tagged(random, frame);
    if random.u8(..) < 4 {
        frame[..6].copy_from_slice(&one_of(random, [[0xff; 6], [0x01, 0, 0x5e, 0, 0, 1], [4; 6]]));
    }
    if random.u8(0..5) < 3 {
        return frame;
    }
    for _ in 0..random.usize(1..4) {
        let at = random.usize(12..frame.len().min(120));
        frame[at] = if random.bool() { random.u8(..) } else { frame[at] ^ 1 << random.u8(0..8) };
    }
    match random.u8(0..6) {
        0 => frame.truncate(random.usize(14..=frame.len())),
        1 => frame.extend(bytes(random, 40)),
        _ => {}
    }
    frame
}
