//! A query: a packet, its service, and the pool's line.

use core::ops::Deref;

use super::{
    parse::{Kind, Parsed},
    tables::Tables,
};
use crate::{
    abi::{
        connection::{FlowKeyV6, flow_key_v6, flow_of_v6},
        pool::{Descriptor, PoolLine},
        service::{IPV4, IPV6, SERVICE_BY_ADDRESS, SERVICE_BY_PORT, SERVICE_FRAGMENTS, Service},
        verdict::Verdict,
    },
    flow_hash::{FlowHash, FlowTuple},
    flow_table::Segment,
    wire::tcp,
};

/// What a backend is chosen for. Made of whole words: a packet program keeps it on the stack, where the verifier requires
/// aligned stores and the compiler merges small ones.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// The words of the pool's line that are of use.
    line: [u64; 4],
    pub(super) hash: FlowHash,
    flow: FlowKeyV6,
    /// `{kind 8, is IPv4 8, TCP control bits 8, is quoted 8, sequence number 32}` from the low end.
    packet: u64,
    /// `{pool 32, service 32}` from the low end.
    indices: u64,
    service_flags: u64,
}

impl Query {
    /// The query of a packet of a service.
    ///
    /// # Errors
    /// [`Verdict::Inconsistent`].
    #[inline(always)]
    pub fn new<T: Tables + ?Sized>(
        tables: &T,
        service: &Service,
        parsed: &Parsed,
    ) -> Result<Self, Verdict> {
        let line = tables.pool(service.pool).ok_or(Verdict::Inconsistent)?;
        let descriptor = tables.descriptor(line.versions().now()).ok_or(Verdict::Inconsistent)?;
        let kind = match parsed.kind {
            Kind::NewConnection => NEW,
            Kind::OpenConnection => OPEN,
            Kind::Datagram => DATAGRAM,
        };
        Ok(Self {
            line: [line.word, line.cleared, line.last_displaced, line.zones],
            hash: hash_flow(&parsed.flow, service.flags, descriptor),
            flow: flow_key_v6(&parsed.flow),
            packet: kind
                | u64::from(parsed.flow.version == IPV4) << 8
                | u64::from(parsed.tcp_flags) << 16
                | u64::from(parsed.is_quoted) << 24
                | u64::from(parsed.sequence) << 32,
            indices: u64::from(service.pool) | u64::from(service.index) << 32,
            service_flags: u64::from(service.flags),
        })
    }

    /// The pool's line.
    #[inline(always)]
    pub(super) const fn line(&self) -> PoolLine {
        let [word, cleared, last_displaced, zones] = self.line;
        PoolLine { word, cleared, last_displaced, zones }
    }

    /// Kind of the packet.
    #[inline(always)]
    pub const fn kind(&self) -> Kind {
        match self.packet & 0xff {
            NEW => Kind::NewConnection,
            OPEN => Kind::OpenConnection,
            _ => Kind::Datagram,
        }
    }

    /// The zone of the flow's slot, by the version that is in force.
    #[inline(always)]
    pub const fn zone(&self) -> u16 {
        self.line().zones().of(self.hash)
    }

    /// Whether the flow may have a cell.
    #[inline(always)]
    pub fn may_have_cell<T: Tables + ?Sized>(&self, tables: &T) -> bool {
        self.line().has_displaced()
            && tables.zone(self.zone().into()).is_none_or(|zone| zone.has_displaced())
    }

    /// Index of the pool.
    #[inline(always)]
    pub(super) const fn pool(&self) -> u32 {
        self.indices as u32
    }

    /// Index of the service.
    #[inline(always)]
    pub(super) const fn service(&self) -> u32 {
        (self.indices >> 32) as u32
    }

    /// Time after which a tracked flow is forgotten, in coarse units.
    #[inline(always)]
    pub(super) const fn idle(&self) -> u64 {
        self.service_flags >> 16
    }

    /// Whether the service has one of some flags.
    #[inline(always)]
    pub(super) const fn service_has(&self, flags: u32) -> bool {
        self.service_flags as u32 & flags != 0
    }

    /// Whether the packet has one of some TCP control bits.
    #[inline(always)]
    pub(super) const fn tcp_has(&self, flags: u8) -> bool {
        (self.packet >> 16) as u8 & flags != 0
    }

    /// Whether the packet is a RST by which a client answers one that it has no connection for (RFC 9293, 3.10.7.1). The
    /// RST of a connection that ends early has ACK too, with most systems.
    #[inline(always)]
    pub(super) const fn is_answering_reset(&self) -> bool {
        self.tcp_has(tcp::RST) && !self.tcp_has(tcp::ACK)
    }

    #[inline(always)]
    pub(super) const fn is_v4(&self) -> bool {
        self.packet >> 8 & 1 != 0
    }

    /// Whether the packet is an ICMP error that quotes a packet of the flow.
    #[inline(always)]
    pub const fn is_quoted(&self) -> bool {
        self.packet >> 24 & 1 != 0
    }

    /// Whether the packet is one of TCP.
    #[inline(always)]
    pub const fn is_tcp(&self) -> bool {
        self.packet & 0xff != DATAGRAM
    }

    /// The packet as the flow table sees it.
    #[inline(always)]
    pub(super) const fn segment(&self) -> Segment {
        Segment(self.packet & 0xffff_ffff_00ff_0000)
    }

    /// The TCP sequence number.
    #[inline(always)]
    pub(super) const fn sequence(&self) -> u32 {
        (self.packet >> 32) as u32
    }

    /// The flow.
    #[inline(always)]
    pub(super) const fn flow(&self) -> FlowTuple {
        let version = if self.is_v4() { IPV4 } else { IPV6 };
        FlowTuple { version, ..flow_of_v6(&self.flow) }
    }

    /// The hash that chooses the outer header's source port, flow label and source address: one of all addresses and
    /// ports, whatever the service hashes by, because its affinity says nothing about the network. If the service
    /// forwards fragments, which lack the ports, it is of the addresses for all packets of the flow, so that neither the
    /// fragments of a datagram nor datagrams of different sizes take different paths.
    #[inline(always)]
    pub(super) fn entropy(&self, key: &[u64; 2]) -> FlowHash {
        let by = self.service_has(SERVICE_BY_ADDRESS | SERVICE_BY_PORT);
        if by && !self.service_has(SERVICE_FRAGMENTS) {
            return FlowHash::new(&self.flow(), key);
        }
        self.hash
    }

    /// The flow as a tracking service distinguishes flows.
    #[inline(always)]
    pub(super) const fn tracked_flow(&self) -> FlowTuple {
        let flow = self.flow();
        if self.service_has(SERVICE_FRAGMENTS) {
            // Later fragments have no ports, so no packet of the flow may be tracked by them.
            FlowTuple { client_port: 0, service_port: 0, ..flow }
        } else if self.service_has(SERVICE_BY_ADDRESS) {
            FlowTuple { client_port: 0, ..flow }
        } else {
            flow
        }
    }
}

/// What the fast path of a packet program leaves to its slow path.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Deferred {
    /// The query to resolve.
    pub query: Query,
    /// Why, by a number that is the program's own.
    pub reason: u32,
    /// 1: its frame is captured.
    pub is_captured: u32,
    /// Of a packet that is too large for its backend: bytes of one that fits.
    pub room: u32,
    /// Zero.
    pub reserved: u32,
}

const DATAGRAM: u64 = 0;
const NEW: u64 = 1;
const OPEN: u64 = 2;

/// A query, and the version of the pool that decides it.
#[derive(Clone, Copy, Debug)]
pub(super) struct VersionedQuery<'q> {
    query: &'q Query,
    pub(super) descriptor: &'q Descriptor,
    /// Index of that descriptor.
    pub(super) version: u32,
    /// The flow's hash by it.
    pub(super) hash: FlowHash,
}

impl Deref for VersionedQuery<'_> {
    type Target = Query;

    #[inline(always)]
    fn deref(&self) -> &Query {
        self.query
    }
}

impl<'q> VersionedQuery<'q> {
    /// By the version that is in force.
    ///
    /// # Errors
    /// [`Verdict::Inconsistent`].
    #[inline(always)]
    pub(super) fn new<T: Tables + ?Sized>(
        tables: &'q T,
        query: &'q Query,
    ) -> Result<Self, Verdict> {
        let version = query.line().versions().now();
        let descriptor = tables.descriptor(version).ok_or(Verdict::Inconsistent)?;
        Ok(Self { query, descriptor, version, hash: query.hash })
    }

    /// The same by the next version, during a remap.
    #[inline(always)]
    pub(super) fn next<T: Tables + ?Sized>(&self, tables: &'q T) -> Option<Self> {
        let version = self.line().versions().next();
        if version == 0 {
            return None;
        }
        let descriptor = tables.descriptor(version)?;
        let hash = hash_flow(&self.flow(), self.service_flags as u32, descriptor);
        Some(Self { query: self.query, descriptor, version, hash })
    }
}

/// Hash of a flow by its service's affinity.
#[inline(always)]
pub(super) const fn hash_flow(
    flow: &FlowTuple,
    service_flags: u32,
    descriptor: &Descriptor,
) -> FlowHash {
    let key = &descriptor.hash_key;
    let mut flow = *flow;
    // One branch for both rare cases keeps the usual case short.
    if service_flags & (SERVICE_BY_ADDRESS | SERVICE_BY_PORT) != 0 {
        if service_flags & SERVICE_BY_PORT != 0 {
            return FlowHash::from_port(flow.service_port, key);
        }
        (flow.client_port, flow.service_port) = (0, 0);
    }
    FlowHash::new(&flow, key)
}
