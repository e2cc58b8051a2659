//! Plays a case.

use std::collections::BTreeMap;

use lb_common::abi::{
    counter::Event,
    limiter::LimitWord,
    member::Accepts,
    next_hop::AWAITED,
    pool::{ISOLATED, LIMITED, PoolWord},
    service::{SERVICE_BY_ADDRESS, SERVICE_REJECTS, SERVICE_TRACKED},
    verdict::Verdict,
};

use crate::{
    act::{Act, CLIENTS, Late, Limit, MEMBERS, Number, Play, REGIONS, SINGLE},
    oracle::{Before, Connection, Flow, HANDSHAKE, IDLE, IDLE_UNITS, Port, USED},
};
use lb_common_fake::{
    FakeTables, POOL,
    fixture::{ACK, Client, Decision, FIN, Fixture, NONE, RST, SECOND, VIP_V4, VIP_V6},
};

/// What became of a case.
pub(crate) struct Run {
    pub(crate) fixture: Fixture,
    ports: [Port; CLIENTS as usize],
    /// Whether the flow table is full.
    is_full: bool,
    /// Of each host, by its number: whether it takes new connections, and whether its next hop is lost.
    hosts: [(bool, bool); 1 + REGIONS * MEMBERS as usize],
    /// Flows of datagrams, by client or by its address.
    flows: BTreeMap<u16, Flow>,
    by_address: bool,
    version: u8,
    /// Since when the pool is in a remap, as it is now.
    remap: Option<u64>,
    /// How often the displaced check was turned off.
    pub(crate) cleared: u64,
    /// Packets of open connections whose host was known.
    pub(crate) checked: u64,
    /// Datagrams of flows whose host was known.
    pub(crate) tracked: u64,
    /// ICMP errors of open connections whose host was known.
    pub(crate) errors: u64,
    /// Packets of open connections that were dropped because their host's next hop was lost.
    pub(crate) awaited: u64,
    /// Remaps that took the place of one that had not ended; and such that were taken back.
    pub(crate) replaced: [u64; 2],
}

pub(crate) fn run(play: &Play) -> Run {
    let mut run = Run {
        fixture: fixture(play),
        ports: [Port::default(); CLIENTS as usize],
        is_full: false,
        hosts: [(true, false); _],
        flows: BTreeMap::new(),
        by_address: play.by_address,
        version: play.version,
        remap: None,
        cleared: 0,
        checked: 0,
        tracked: 0,
        errors: 0,
        awaited: 0,
        replaced: [0; 2],
    };
    for &act in &play.acts {
        let before = run.taken();
        run.act(act);
        if run.is_full && run.taken() > before {
            run.lose_half_open(act);
        }
        // Packets of one moment are no two events of one cause.
        run.fixture.sleep_ns(1_000_000);
    }
    run
}

/// Regions of two members and seven slots each, in several orders and with members marked out.
fn fixture(play: &Play) -> Fixture {
    let lists = || (0..7).map(|slot| [slot % 2, 1 - slot % 2, NONE, NONE]).collect();
    let flags = if play.by_address { SERVICE_BY_ADDRESS } else { 0 }
        | if play.rejects { SERVICE_REJECTS } else { 0 };
    let regions: Vec<_> = (0..REGIONS).map(|_| (lists(), MEMBERS as u8)).collect();
    let vip = if play.version == 4 { VIP_V4 } else { VIP_V6 };
    let by = if play.by_address { SERVICE_BY_ADDRESS } else { 0 };
    let mut fake = FakeTables::new(&regions, play.version)
        .with_service(vip, 80, 6, flags)
        .with_service(vip, 53, 17, SERVICE_TRACKED | by | IDLE_UNITS << 16);
    let current = &mut fake.descriptors[1];
    current.flags =
        if play.limited { LIMITED } else { 0 } | if play.isolated { ISOLATED } else { 0 };
    for (order, out) in HOMES {
        fake.add_version(&order, out);
    }
    // By another hash key flows have other slots and other zones.
    for version in [HOMES.len(), HOMES.len() + 1] {
        fake.descriptors[version].hash_key = [77, 78];
    }
    Fixture::in_family(fake, play.version)
}

/// A meaning of home: the order of regions, and members (region, rank) marked out.
type Meaning = ([usize; REGIONS], &'static [(usize, u32)]);

/// Meanings of home beside the first.
pub(crate) const HOMES: [Meaning; 4] = [
    ([2, 1, 0], &[]),
    ([0, 1, 2], &[(0, 0)]),
    ([0, 2, 1], &[(0, 0), (0, 1)]),
    ([2, 0, 1], &[(2, 1), (0, 1)]),
];

/// Far from 0, which an ICMP error has for a number.
const FIRST_NUMBER: u32 = 0x6000_0000;

/// Number of a member's host.
fn host(region: usize, rank: u32) -> u32 {
    1 + region as u32 * MEMBERS + rank
}

/// By address, clients of one address would all be in one slot.
fn client(n: u16) -> Client {
    Client([192, 0, 2, (n / 2) as u8], 1_000 + n)
}

impl Run {
    fn now(&self) -> u64 {
        self.fixture.fake.now.get()
    }

    fn taken(&self) -> u64 {
        self.fixture.counted(Event::FlowTaken) + self.fixture.counted(Event::RemapTaken)
    }

    /// In a full table a flow takes the cell of a half-open one, which may be any other.
    fn lose_half_open(&mut self, by: Act) {
        let (connection, flow) = match by {
            Act::Datagram(port) => (None, Some(self.is_of_port(port))),
            Act::Syn(port, _)
            | Act::Repeat(port)
            | Act::Open(port)
            | Act::Ack(port, _)
            | Act::Data(port, _)
            | Act::KeepAlive(port) => (Some(port), None),
            _ => (None, None),
        };
        let in_remap = self.remap.is_some();
        for (port, its) in (0..).zip(&mut self.ports) {
            if let Some(now) = its.now.as_mut().filter(|_| connection != Some(port)) {
                now.lost |= !now.open || in_remap;
            }
        }
        for (_, its) in self.flows.iter_mut().filter(|(at, _)| flow != Some(**at)) {
            its.lost |= !its.kept;
        }
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Syn(port, _) if port >= SINGLE && self.ports[port as usize].now.is_some() => {}
            Act::Forge(port, _) | Act::Pass(port) if port >= SINGLE => {}
            Act::Syn(port, number) => self.syn(port, number),
            Act::Repeat(port) => self.repeat(port),
            Act::Open(port) if self.ports[port as usize].now.is_none() => {
                self.syn(port, Number::Far(7));
                self.fixture.sleep_ns(50_000_000);
                self.establish(port, 0);
            }
            Act::Open(_) => {}
            Act::Ack(port, beyond) => self.establish(port, beyond),
            Act::Data(port, bytes) => self.segment(port, ACK, bytes),
            // At its SYN's number it may be taken for one of a connection that began just below.
            Act::KeepAlive(port) if self.is_recent(self.ports[port as usize].close) => {}
            Act::KeepAlive(port) => self.segment(port, ACK, 0_u32.wrapping_sub(1)),
            Act::Fin(port) => self.end(port, FIN),
            // After a forged SYN, what only answers something may be meant for that one's host.
            Act::Rst(port) if self.is_recent(self.ports[port as usize].forged) => {
                self.end(port, RST | ACK);
            }
            Act::Rst(port) => self.end(port, RST),
            Act::Late(port, late) => self.late(port, late),
            Act::Forge(port, ahead) => self.forge(port, ahead),
            Act::Pass(port) => {
                self.forge(port, 2_500_000);
                for bytes in core::iter::repeat_n(900_000, 2).chain([14_600; 60]) {
                    self.segment(port, ACK, bytes);
                }
            }
            Act::Limit(region, limit) => self.limit(region, limit),
            Act::State(region, rank, state) => self.state(region, rank, state),
            Act::Lost(region, rank, is_lost) => {
                self.fixture.fake.set_next_hop(region, rank, if is_lost { AWAITED } else { 1 });
                self.hosts[host(region, rank) as usize].1 = is_lost;
            }
            Act::Full(is_full) => self.fill(is_full),
            Act::Sleep(time) => self.fixture.sleep_ns(time),
            Act::Daemon => {
                let open = self.fixture.has_displaced();
                self.fixture.daemon();
                self.cleared += u64::from(open && !self.fixture.has_displaced());
            }
            Act::Home(version) => self.home(version),
            Act::Settle(in_use) => self.settle(in_use),
            Act::Error(port, late) => {
                // Long enough for a packet to renew a cell.
                self.fixture.sleep(if late { 62 } else { 0 });
                self.error(port);
            }
            Act::Datagram(port) => self.datagram(port),
        }
    }

    /// A new connection. The one that the port had before has ended without another packet.
    fn syn(&mut self, port: u16, number: Number) {
        // Numbers of a port rise, also after a SYN that nobody answered (RFC 6528).
        let Port { now, before, .. } = self.ports[port as usize];
        let end = before.map_or(FIRST_NUMBER, |before| before.end);
        let before = now.map_or(end, |connection| connection.next);
        let (number, far) = match number {
            // Beyond the reach of a late packet, and rising, as numbers of one client do (RFC 6528):
            // four of them within a second are not half of all numbers apart.
            Number::Far(any) => {
                (before.wrapping_add((1 << 24) + any % ((1 << 28) - (1 << 24))), true)
            }
            // Two SYNs whose windows overlap and a forged one on top are too much: each packet of the
            // later connection may be one of the earlier one.
            Number::Beyond(_) if self.is_recent(self.ports[port as usize].forged) => return,
            Number::Beyond(by) => (before.wrapping_add(by), false),
        };
        if let Some(connection) = self.ports[port as usize].now {
            let whole = connection.open && !connection.lost;
            self.ports[port as usize].before = Some(Before { end: before, far, whole });
        }
        self.ports[port as usize].now = None;
        if !far {
            self.ports[port as usize].close = Some(self.now());
        }
        self.ports[port as usize].recent.rotate_right(1);
        self.ports[port as usize].recent[0] = self.now();
        let untraced = self.leaves_no_trace();
        let refused = self.refused();
        let Ok(host) = self.fixture.syn(client(port), number) else { return };
        let (next, used) = (number.wrapping_add(1), self.now());
        // Without a cell nothing keeps it when the remap ends, or tells it from the port's connection before.
        let needs = self.remap.is_some() || self.ports[port as usize].before.is_some();
        let lost = self.refused() != refused || self.is_full && needs;
        let open = false;
        let connection =
            Connection { number, next, host, lost, open, untraced, ended: false, used };
        self.ports[port as usize].now = Some(connection);
    }

    fn repeat(&mut self, port: u16) {
        let Some(mut connection) = self.ports[port as usize].now else { return };
        if connection.open {
            return;
        }
        let untraced = self.leaves_no_trace();
        let refused = self.refused();
        let went = self.fixture.syn(client(port), connection.number);
        // A host that takes no new connections may never answer.
        if self.hosts[connection.host as usize] == (true, false)
            && connection.binds(self.now())
            && !connection.untraced
        {
            assert_eq!(went, Ok(connection.host), "a repeated SYN of {port} {connection:?}");
        }
        let Ok(host) = went else { return };
        // Without an entry of the first decision it is unknown which host's answer comes first.
        let lost = connection.lost
            || connection.untraced && host != connection.host
            || self.refused() != refused
            || self.is_full && self.remap.is_some();
        // What left a trace may have been too old for this one, and this one makes none young.
        let untraced = connection.untraced || untraced;
        connection = Connection { host, lost, untraced, used: self.now(), ..connection };
        self.ports[port as usize].now = Some(connection);
    }

    /// Whether a SYN leaves no trace if it goes home.
    fn leaves_no_trace(&self) -> bool {
        self.is_full || self.fixture.fake.descriptors[1].flags & LIMITED == 0
    }

    /// The packet that ends the handshake, `beyond` bytes into the stream: those before it are lost.
    fn establish(&mut self, port: u16, beyond: u32) {
        let Some(connection) = &mut self.ports[port as usize].now else { return };
        if connection.open || !connection.binds(self.fixture.fake.now.get()) {
            return;
        }
        let next = connection.next;
        connection.next = connection.number.wrapping_add(1 + beyond);
        let came = self.check(port, ACK);
        if let Some(connection) = &mut self.ports[port as usize].now {
            connection.open = came;
            if !came {
                connection.next = next;
            }
        }
    }

    fn segment(&mut self, port: u16, flags: u8, bytes: u32) {
        let Some(connection) = &mut self.ports[port as usize].now else { return };
        if !connection.open {
            return;
        }
        let next = connection.next;
        connection.next = next.wrapping_add(bytes);
        let came = self.check(port, flags);
        if (bytes == u32::MAX || !came)
            && let Some(connection) = &mut self.ports[port as usize].now
        {
            connection.next = next;
        }
    }

    fn end(&mut self, port: u16, flags: u8) {
        self.segment(port, flags, 0);
    }

    /// Sends what is next of a connection, which must go to its host or, while that one's next hop is lost, nowhere. Returns
    /// whether it may have arrived.
    fn check(&mut self, port: u16, flags: u8) -> bool {
        let Some(connection) = self.ports[port as usize].now else { return false };
        let refused = self.refused();
        let went = self.fixture.send(client(port), flags, connection.next);
        let now = self.now();
        let idle = connection.open && !connection.binds(now);
        if connection.binds(now) {
            if self.hosts[connection.host as usize].1 {
                assert_eq!(went, Err(Verdict::NextHopUnresolved), "{port} {connection:?} at {now}");
                self.awaited += 1;
                return false;
            }
            assert_eq!(went, Ok(connection.host), "a packet of {port} {connection:?} at {now}");
            self.checked += 1;
        }
        let lost = connection.lost || idle || self.refused() != refused;
        // A client that resets a connection no longer needs it, so no entry is kept for it.
        let used = if flags & RST != 0 { connection.used } else { now };
        let ended = connection.ended || flags & (FIN & !ACK | RST) != 0;
        self.ports[port as usize].now = Some(Connection { lost, ended, used, ..connection });
        true
    }

    /// Whether handshake entries of that time may count.
    fn is_recent(&self, time: Option<u64>) -> bool {
        time.is_some_and(|time| self.now() - time <= 2 * HANDSHAKE)
    }

    fn refused(&self) -> u64 {
        self.fixture.counted(Event::DisplacedWithoutCell) + self.fixture.counted(Event::RemapNoRoom)
    }

    /// Whoever it goes to: it is of no connection that is still there. What is late and goes on close
    /// below a number makes a SYN's cell go (`find::APPROACH`), so it comes only where that is far; and
    /// together with a forged SYN it is what a forged ACK would be. Of a connection that never got its
    /// displaced entry it comes no later than the next one's handshake: afterwards its displaced entry would be the
    /// flow's, which a forged SYN must not prevent.
    fn late(&mut self, port: u16, late: Late) {
        let Some(Before { end, far, whole }) = self.ports[port as usize].before else { return };
        let open = self.ports[port as usize].now.is_some_and(|connection| connection.open);
        if open && !whole && !matches!(late, Late::Rst) {
            return;
        }
        if self.is_recent(self.ports[port as usize].forged) || self.is_full {
            return;
        }
        let flags = match late {
            Late::Ack if far => ACK,
            Late::Ack => return,
            Late::Fin => FIN,
            Late::Rst => RST,
        };
        let _: Decision = self.fixture.send(client(port), flags, end);
    }

    /// A line of handshake entries has four cells: whoever forges four SYNs of a flow while its handshake lasts
    /// does take the cell of its SYN away.
    fn forge(&mut self, port: u16, ahead: u32) {
        let now = self.now();
        // In a full table a SYN takes the cell of another one of its buckets.
        if self.is_recent(self.ports[port as usize].close) || self.is_full {
            return;
        }
        let recent = &mut self.ports[port as usize].recent;
        if recent.iter().filter(|&&time| now - time <= 2 * HANDSHAKE).count() >= 3 {
            return;
        }
        recent.rotate_right(1);
        recent[0] = now;
        self.ports[port as usize].forged = Some(now);
        let next = self.ports[port as usize].now.map_or(0, |connection| connection.next);
        let _: Decision = self.fixture.syn(client(port), next.wrapping_add(ahead));
    }

    fn limit(&mut self, region: usize, limit: Limit) {
        if self.fixture.fake.descriptors[1].flags & LIMITED == 0 {
            return;
        }
        let per = |time: u64| time * LimitWord::PER_NANOSECOND;
        let limit = match limit {
            Limit::Unlimited => LimitWord::UNLIMITED,
            Limit::Closed => LimitWord::CLOSED,
            Limit::OneAMinute => LimitWord::new(per(60 * SECOND), 1),
            Limit::TenASecond => LimitWord::new(per(SECOND / 10), 2),
        };
        self.fixture.set_limit(region, limit);
    }

    fn state(&mut self, region: usize, rank: u32, state: Accepts) {
        self.fixture.set(region, rank, state);
        let host = host(region, rank);
        self.hosts[host as usize].0 = state == Accepts::All;
        if state == Accepts::Nothing {
            for connection in self.ports.iter_mut().filter_map(|port| port.now.as_mut()) {
                connection.lost |= connection.host == host;
            }
            for flow in self.flows.values_mut() {
                flow.lost |= flow.host == host;
            }
        }
    }

    fn fill(&mut self, is_full: bool) {
        self.is_full = is_full;
        if !is_full {
            self.fixture.unfill();
            return;
        }
        self.fixture.fill();
        // Half-open flows take each other's cells.
        for flow in self.flows.values_mut() {
            flow.lost |= !flow.kept;
        }
    }

    fn is_of_port(&self, port: u16) -> u16 {
        if self.by_address { port / 2 } else { port }
    }

    fn datagram(&mut self, port: u16) {
        let at = self.is_of_port(port);
        let (known, now) = (self.flows.get(&at).copied(), self.now());
        let went = self.fixture.datagram(client(port));
        let is_known = |flow: &Flow| !flow.lost && now - flow.used <= IDLE;
        let is_awaited = |flow: &Flow| self.hosts[flow.host as usize].1;
        let flow = match known.filter(is_known) {
            Some(flow) if flow.kept && is_awaited(&flow) => {
                assert_eq!(went, Err(Verdict::NextHopUnresolved), "{port} {flow:?} at {now}");
                return;
            }
            Some(flow) if !is_awaited(&flow) => {
                assert_eq!(went, Ok(flow.host), "a datagram of {port} {flow:?} at {now}");
                self.tracked += 1;
                Flow { kept: true, used: now, ..flow }
            }
            _ => match went {
                // A cell that was thought lost, or over, may be there, and be of one datagram still.
                Ok(host) => Flow { host, lost: self.is_full, kept: false, used: now },
                Err(_) => {
                    self.flows.remove(&at);
                    return;
                }
            },
        };
        self.flows.insert(at, flow);
    }

    /// It goes where the connection is, unless the flow may have cells of others, and changes nothing.
    fn error(&mut self, port: u16) {
        if self.version != 4 {
            return;
        }
        let remembered = |run: &Self| {
            let counters: Vec<_> = (0..REGIONS as u32).map(|n| run.fixture.counters(n)).collect();
            (run.fixture.fake.cells().collect::<Vec<_>>(), counters)
        };
        let before = remembered(self);
        let went = self.fixture.error(client(port), (6, 80));
        assert!(before == remembered(self), "an error of {port} has changed something");
        let Port { now, before, forged, .. } = self.ports[port as usize];
        if let Some(connection) = now.filter(|connection| connection.open)
            && before.is_none()
            && forged.is_none()
            && connection.binds(self.now())
        {
            let is_awaited = self.hosts[connection.host as usize].1;
            let due =
                if is_awaited { Err(Verdict::NextHopUnresolved) } else { Ok(connection.host) };
            assert_eq!(went, due, "an error of {port} {connection:?}");
            self.errors += 1;
        }
    }

    /// A remap begins, or another one takes its place: whatever is at home now is there still. One that leads to where
    /// home is now takes it back.
    fn home(&mut self, version: u32) {
        let versions = self.fixture.fake.pools[POOL as usize].get().versions();
        let (now, next) = (versions.now(), versions.next());
        if version == next || version == now && next == 0 {
            return;
        }
        self.replaced[0] += u64::from(next != 0 && version != now);
        self.replaced[1] += u64::from(next != 0 && version == now);
        self.remap = (version != now).then(|| self.now());
        let next = if version == now { 0 } else { version };
        self.fixture.publish(PoolWord::new(now, next));
    }

    /// A remap ends when it has lasted for as long as a connection may be idle.
    fn settle(&mut self, in_use: bool) {
        while self.remap.is_some_and(|since| self.now() - since <= USED) {
            self.fixture.sleep(200);
            for port in (0..CLIENTS).filter(|_| in_use) {
                self.segment(port, ACK, 100);
            }
            self.fixture.daemon();
        }
        let next = self.fixture.fake.pools[POOL as usize].get().versions().next();
        if self.remap.take().is_some() {
            self.fixture.publish(PoolWord::new(next, 0));
        }
    }
}
