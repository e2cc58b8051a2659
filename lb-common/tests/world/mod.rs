//! Clients, a clock and a daemon around the twin: what a test of several packets is made of.
//!
//! Every packet is a frame that etherparse built once, with its ports and numbers written over, and is
//! decided twice: at once, where that can be told, and in full. The two must agree to the counter.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use std::collections::HashMap;

use etherparse::{IpNumber, Ipv4Header, PacketBuilder};
use lb_common::{
    abi::{
        clock::{Coarse, EXCEPTION_LIFE, RECORD_LIFE},
        counter::GroupCounter,
        descriptor::LIMITED,
        event::Event,
        exception::ExceptionWord,
        member::MemberState,
        meter::{EXCEPTIONS_V4, FIRST_METER, LimitWord},
        pool::{PoolLine, PoolWord},
        verdict::Verdict,
    },
    flow_hash::FlowTuple,
    path::{self, Choice, Forward, Kind},
};

use super::twin::{OWN, Twin};

pub const NONE: u16 = 0xffff;
pub const SECOND: u64 = 1_000_000_000;

pub const FIN: u8 = 0x11;
pub const SYN: u8 = 0x02;
pub const RST: u8 = 0x04;
pub const ACK: u8 = 0x10;

/// Who sends: an address and a port, to the VIP's port 80.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Client(pub [u8; 4], pub u16);

/// A client that is told apart by its port.
pub const fn client(port: u16) -> Client {
    Client([192, 0, 2, 9], port)
}

/// Where a packet went: index of the backend.
pub type Went = Result<u32, Verdict>;

pub struct World {
    pub twin: Twin,
    tcp: Vec<u8>,
    udp: Vec<u8>,
    counted: HashMap<Event, u64>,
}

impl World {
    /// Two regions of one slot each, with two members: home is backend 1, then 2; the other region's
    /// are 3, then 4.
    pub fn two_regions() -> Self {
        let list = || (vec![[0, 1, NONE, NONE]], 2);
        Self::of(Twin::new(&[list(), list()], 4).with_service("198.51.100.1", 80, 6, 0))
    }

    pub fn of(twin: Twin) -> Self {
        let ip = || {
            PacketBuilder::ethernet2([2, 0, 0, 0, 0, 0x0c], OWN).ipv4([0; 4], [198, 51, 100, 1], 64)
        };
        let (mut tcp, mut udp) = (Vec::new(), Vec::new());
        ip().tcp(0, 80, 0, 1000).write(&mut tcp, b"hello").unwrap();
        ip().udp(0, 53).write(&mut udp, b"hello").unwrap();
        Self { twin, tcp, udp, counted: HashMap::new() }
    }

    /// Gives a region a limit, counted from now.
    pub fn limit(&mut self, region: usize, per_second: u64, burst: u32) {
        let interval = SECOND * LimitWord::PER_NANOSECOND / per_second;
        self.set_limit(region, LimitWord::new(interval, burst));
    }

    pub fn set_limit(&mut self, region: usize, limit: LimitWord) {
        self.twin.meters[FIRST_METER as usize + region].0.set(limit);
        for descriptor in &mut self.twin.descriptors {
            descriptor.flags |= LIMITED;
        }
    }

    /// How many IPv4 exceptions may be added in a time.
    pub fn budget(&self, limit: LimitWord) {
        self.twin.meters[EXCEPTIONS_V4 as usize].0.set(limit);
    }

    /// Region 0 has room for `burst` connections and then for one a minute.
    pub fn room_at_home(&mut self, burst: u32) {
        self.set_limit(0, LimitWord::new(60 * SECOND * LimitWord::PER_NANOSECOND, burst));
        self.twin.meters[FIRST_METER as usize].1.set(0);
    }

    pub fn set(&mut self, region: usize, rank: u32, state: MemberState) {
        self.twin.set(region, rank, state);
    }

    pub fn sleep(&self, seconds: u64) {
        self.sleep_ns(seconds * SECOND);
    }

    pub fn sleep_ns(&self, nanoseconds: u64) {
        self.twin.now.set(self.twin.now.get() + nanoseconds);
    }

    pub fn coarse(&self) -> Coarse {
        Coarse::of(self.twin.now.get())
    }

    fn frame(&self, template: &[u8], client: Client) -> Vec<u8> {
        let mut frame = template.to_vec();
        frame[26..30].copy_from_slice(&client.0);
        frame[34..36].copy_from_slice(&client.1.to_be_bytes());
        frame
    }

    /// Sends a segment.
    pub fn send(&self, client: Client, flags: u8, sequence: u32) -> Went {
        let mut frame = self.frame(&self.tcp, client);
        frame[38..42].copy_from_slice(&sequence.to_be_bytes());
        frame[47] = flags;
        self.decide(&frame).map(|forward| forward.choice.member.backend())
    }

    pub fn syn(&self, client: Client, number: u32) -> Went {
        self.send(client, SYN, number)
    }

    /// A segment with ACK, of data or without.
    pub fn ack(&self, client: Client, sequence: u32) -> Went {
        self.send(client, ACK, sequence)
    }

    /// A handshake: both packets must go the same way.
    pub fn open(&self, client: Client, number: u32) -> u32 {
        let to = self.syn(client, number).unwrap();
        assert_eq!(self.ack(client, number.wrapping_add(1)), Ok(to), "the handshake of {client:?}");
        to
    }

    pub fn datagram(&self, client: Client) -> Went {
        let frame = self.frame(&self.udp, client);
        self.decide(&frame).map(|forward| forward.choice.member.backend())
    }

    /// A fragment of a datagram or a segment: the first, or one that bears no ports.
    pub fn fragment(&self, client: Client, protocol: u8, first: bool) -> Went {
        let template = if protocol == 6 { &self.tcp } else { &self.udp };
        let mut frame = self.frame(template, client);
        if first {
            frame[20] = 0x20;
        } else {
            frame[20..22].copy_from_slice(&[0x20, 0xb9]);
            frame[34..].fill(0x5a);
        }
        path::decide(&frame[..], &self.twin).map(|forward| forward.choice.member.backend())
    }

    /// An ICMP error about a packet of a protocol from the VIP's port to a client.
    pub fn error(&self, client: Client, (protocol, port): (u8, u16)) -> Went {
        let mut quoted = Vec::new();
        let header = Ipv4Header::new(8, 63, IpNumber(protocol), [198, 51, 100, 1], client.0);
        header.unwrap().write(&mut quoted).unwrap();
        quoted.extend([port.to_be_bytes(), client.1.to_be_bytes(), [0; 2], [0; 2]].concat());
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([2, 0, 0, 0, 0, 0x0c], OWN)
            .ipv4([203, 0, 113, 77], [198, 51, 100, 1], 64)
            .icmpv4_raw(3, 4, [0, 0, 5, 0])
            .write(&mut frame, &quoted)
            .unwrap();
        path::decide(&frame[..], &self.twin).map(|forward| forward.choice.member.backend())
    }

    pub fn decide(&self, frame: &[u8]) -> Result<Forward<'_>, Verdict> {
        let before = self.twin.group_counters.borrow().clone();
        let parsed = path::parse::parse(frame)?;
        let at_once = path::decide_at_once(parsed, &self.twin, |_| ());
        let counted = self.twin.group_counters.replace(before);
        let full = path::decide(frame, &self.twin);
        let choice = |told: &Result<Forward<'_>, Verdict>| -> Result<Choice, Verdict> {
            told.as_ref().map(|forward| forward.choice).map_err(|verdict| *verdict)
        };
        if let Some(at_once) = at_once.transpose() {
            assert_eq!(choice(&at_once), choice(&full), "what is told at once differs");
            assert_eq!(counted, *self.twin.group_counters.borrow(), "counted at once differs");
        }
        full
    }

    /// What the daemon does every so often: clears the gate once nothing is away from home.
    pub fn daemon(&self) {
        let line = self.twin.pools[0].get();
        let (now, seen) = (self.coarse(), line.last_away);
        if line.cleared == seen || now.0 - seen <= RECORD_LIFE {
            return;
        }
        let purged = |flow: &FlowTuple, word: ExceptionWord| {
            !word.is_marked(now)
                && (word.idle(now) > EXCEPTION_LIFE
                    || (line.versions().former() == 0 && self.home(flow) == word.placed().backend))
        };
        let mut exceptions = self.twin.exceptions.borrow_mut();
        exceptions.retain(|flow, word| !purged(flow, ExceptionWord(word.get())));
        if exceptions.is_empty() && self.twin.pools[0].get().last_away == seen {
            let line = self.twin.pools[0].get();
            self.twin.pools[0].set(PoolLine { cleared: seen, ..line });
        }
    }

    /// Publishes versions of the pool.
    pub fn publish(&self, word: PoolWord) {
        let line = &self.twin.pools[0];
        line.set(PoolLine { word: word.0, ..line.get() });
    }

    /// Home of a flow: the first of its slot's list in the first group that is not out of home, or its
    /// owner.
    pub fn home(&self, flow: &FlowTuple) -> u32 {
        let current = self.twin.pools[0].get().versions().current();
        let descriptor = &self.twin.descriptors[current as usize];
        let service = self.twin.services.values().find(|s| s.key.port == flow.service_port);
        let hash = path::flow_hash(service.unwrap(), descriptor, flow);
        let head = &descriptor.home;
        let list = self.twin.tables[head.table as usize][hash.slot(head.slots) as usize];
        let ranks = (0..4).map(|entry| list.rank(entry)).filter(|rank| *rank != NONE);
        let members: Vec<_> = ranks
            .map(|rank| self.twin.members[head.members as usize + usize::from(rank)])
            .collect();
        members.iter().find(|member| !member.is_out_of_home()).unwrap_or(&members[0]).backend()
    }

    /// The flow of a client's TCP connection.
    pub fn flow(&self, client: Client) -> FlowTuple {
        let mut frame = self.frame(&self.tcp, client);
        frame[47] = ACK;
        let parsed = path::parse::parse(&frame[..]).unwrap();
        assert_eq!(parsed.kind, Kind::OpenConnection);
        parsed.flow
    }

    pub fn is_gate_closed(&self) -> bool {
        self.twin.pools[0].get().is_gate_closed()
    }

    /// Backend of a connection's exception, and whether it is marked.
    pub fn exception(&self, client: Client) -> Option<(u32, bool)> {
        let word = ExceptionWord(self.twin.exceptions.borrow().get(&self.flow(client))?.get());
        Some((word.placed().backend, word.is_marked(self.coarse())))
    }

    pub fn exceptions(&self) -> usize {
        self.twin.exceptions.borrow().len()
    }

    /// What was counted since this was last asked: look-ups of exceptions aside, each event by name.
    pub fn events(&mut self) -> Vec<(Event, u64)> {
        let now = self.twin.events.borrow().clone();
        let mut news: Vec<_> = now
            .iter()
            .map(|(&event, &count)| (event, count - self.counted.get(&event).unwrap_or(&0)))
            .filter(|&(event, count)| {
                count > 0 && !matches!(event, Event::ExceptionLookup | Event::ExceptionHit)
            })
            .collect();
        news.sort();
        self.counted = now;
        news
    }

    /// Offered, admitted, spilled in, spilled out, refused, overrun of a region.
    pub fn counters(&self, region: u32) -> [u64; 6] {
        let counters = self.twin.group_counters.borrow();
        let GroupCounter { offered, admitted, spilled_in, spilled_out, refused, overrun } =
            counters.get(&(FIRST_METER + region)).copied().unwrap_or_default();
        [offered, admitted, spilled_in, spilled_out, refused, overrun]
    }

    /// How often an event was counted.
    pub fn counted(&self, event: Event) -> u64 {
        self.twin.events.borrow().get(&event).copied().unwrap_or(0)
    }

    /// When a region's limit would have its next connection arrive.
    pub fn arrival(&self, region: usize) -> u64 {
        self.twin.meters[FIRST_METER as usize + region].1.get()
    }
}
