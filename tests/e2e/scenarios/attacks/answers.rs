//! Floods that ask the balancer for answers of its own: pings, and packets that an ICMP error is sent about.

use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lb_common::abi::counter::Event;
use lb_e2e::fixture::{ECHO, Fixture, Health, Tunnel};
use lb_e2e::harness;
use lb_tests::packets::frames::{ETHERNET, Flow, Packet};
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::Node;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::attacks::raw_flood::{self, FASTEST, RawFlood};

/// Questions of honest clients, each of which is asked [`TRIES`] times: packets are lost where floods fill queues.
const ASKED: u32 = 40;
const TRIES: u32 = 3;
/// How long an answer may take.
const WAIT: Duration = Duration::from_millis(300);
/// An honest client of a network of its own; floods come from others.
const HONEST: Ipv4Addr = Ipv4Addr::new(100, 127, 1, 9);
/// The network of a flood that comes from one.
const FLOOD: Ipv4Addr = Ipv4Addr::new(100, 70, 7, 0);
/// Packets of a flood with other sources each.
const SOURCES: u32 = 4_096;

/// What asks for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Ping,
    /// A packet whose TTL reaches zero at the balancer.
    LastHop,
    /// A packet with DF that does not fit into the tunnel.
    TooLarge,
}

impl Question {
    const ALL: [Self; 3] = [Self::Ping, Self::LastHop, Self::TooLarge];

    /// The IP packet of a client that asks a VIP.
    fn packet(self, client: Ipv4Addr, vip: SocketAddr) -> Vec<u8> {
        let packet = Packet::new(Flow { client: SocketAddrV4::new(client, 4711).into(), vip });
        let frame = match self {
            Self::Ping => packet.error(8, 0, [0x12, 0x34, 0, 7], b"are you there?"),
            // The router takes one.
            Self::LastHop => packet.hop_limit(2).udp(),
            Self::TooLarge => packet.payload(&[0; 1_490 - 28]).udp(),
        };
        frame[ETHERNET..].to_vec()
    }

    /// Type and code of the answer (RFC 792).
    const fn answer(self) -> [u8; 2] {
        match self {
            Self::Ping => [0, 0],
            Self::LastHop => [11, 0],
            Self::TooLarge => [3, 4],
        }
    }

    /// What packets that are answered are counted under, and those that are not.
    const fn verdicts(self) -> [&'static str; 2] {
        match self {
            Self::Ping => ["answered_echo", "echo_limited"],
            Self::LastHop => ["answered_time_exceeded", "hop_limit_exceeded"],
            Self::TooLarge => ["answered_too_large", "too_large"],
        }
    }
}

pub(crate) fn leave_others_theirs(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "answers", Health::QUICK)?;
    fixture.fabric.balancer.ip("link set eth0 mtu 1500")?;
    let client = &fixture.fabric.client;
    let [attacked, other] = [Tunnel::Ipip, Tunnel::Ip4In6].map(|tunnel| tunnel.endpoint(ECHO));
    // The daemon may not have heard of the link yet.
    until("a datagram is too large", PATIENCE, || {
        let answered = ask(client, Question::TooLarge, attacked, 1)?;
        Ok((answered == 1).then_some(()))
    })?;
    for question in Question::ALL {
        let control = [attacked, other].map(|vip| ask(client, question, vip, ASKED));
        let [Ok(ASKED), Ok(ASKED)] = control else { anyhow::bail!("{question:?}: {control:?}") };

        let one = [question.packet(Ipv4Addr::from(u32::from(FLOOD) + 7), attacked)];
        let event = Event::AnswerLimitedNetwork;
        let answered = beside(&fixture, (question, event, &one), || {
            Ok([ask(client, question, attacked, ASKED)?, ask(client, question, other, ASKED)?])
        })?;
        harness::note(format!("{question:?}, a flood from one network: {answered:?} of {ASKED}"));
        ensure!(answered.iter().all(|&each| each >= ASKED - 2), "{question:?}: {answered:?}");

        let many: Vec<_> = (0..SOURCES)
            .map(|n| question.packet(Ipv4Addr::from((u32::from(FLOOD) + n * 256) | 7), attacked))
            .collect();
        let answered = beside(&fixture, (question, Event::AnswerLimitedVip, &many), || {
            ask(client, question, other, ASKED)
        })?;
        harness::note(format!("{question:?}, a flood at one VIP: {answered} of {ASKED}"));
        ensure!(answered >= ASKED - 2, "{question:?}: {answered}");
    }
    Ok(())
}

/// Does something while a flood of packets goes on that are beyond their limit, which an event counts.
fn beside<T>(
    fixture: &Fixture,
    (question, event, packets): (Question, Event, &[Vec<u8>]),
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let [_, limited] = question.verdicts();
    let flood = RawFlood { to: Tunnel::Ipip.endpoint(0), packets, per_second: FASTEST };
    let (done, rate) = raw_flood::beside(&fixture.fabric.client, flood, |sent| {
        // Not before it has used up what a burst may have.
        let before = fixture.count(event)?;
        until("the flood is limited", PATIENCE, || {
            Ok((fixture.count(event)? > before + 5_000).then_some(()))
        })?;
        let now = || -> Result<_> {
            Ok((sent.load(Ordering::Relaxed), fixture.balancer.packets(limited)?))
        };
        let begun = now()?;
        let done = work()?;
        let ended = now()?;
        let (sent, limited) = (ended.0 - begun.0, ended.1 - begun.1);
        ensure!(limited * 2 > sent, "{question:?}: {limited} of {sent} were refused an answer");
        Ok(done)
    })?;
    harness::note(format!("{question:?}: {rate:.0} packets a second"));
    Ok(done)
}

/// Asks a VIP so often; returns how many answers came from it.
fn ask(client: &Node, question: Question, vip: SocketAddr, times: u32) -> Result<u32> {
    client.enter(|| {
        let mut answers = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4))?;
        answers.bind(&SocketAddr::new(HONEST.into(), 0).into())?;
        let (raw, to) = (raw_flood::sender()?, SockAddr::from(vip));
        let packet = question.packet(HONEST, vip);
        let mut answered = 0;
        for _ in 0..times {
            for _ in 0..TRIES {
                raw.send_to(&packet, &to)?;
                if is_answered(&mut answers, question, vip)? {
                    answered += 1;
                    break;
                }
            }
        }
        Ok(answered)
    })?
}

fn is_answered(answers: &mut Socket, question: Question, vip: SocketAddr) -> Result<bool> {
    let until = Instant::now() + WAIT;
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|it| !it.is_zero()) {
        answers.set_read_timeout(Some(left))?;
        let mut message = [0; 128];
        match answers.read(&mut message) {
            Ok(length) if length >= 28 => {
                let source = Ipv4Addr::from([message[12], message[13], message[14], message[15]]);
                if message[20..22] == question.answer() && vip.ip() == source {
                    return Ok(true);
                }
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}
