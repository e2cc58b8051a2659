//! The way of a packet, pure: frame in, decision out. One direction, one file a stage:
//! `parse → service → hash → choose → encapsulate`; the program that runs it emits.
//!
//! Choosing has one file for each kind of packet: [`connect`] for a SYN, [`open`] for the packets of
//! an open connection, [`track`] for datagrams whose flow is remembered. What they share: [`admit`]
//! (limits), [`records`] (what a SYN decided), [`hosts`] (where a remembered connection is),
//! [`mod@choose`] and [`search`] (tables and states).

mod admit;
pub mod choose;
mod connect;
pub mod encapsulate;
mod hosts;
mod open;
pub mod parse;
pub mod records;
mod search;
pub mod tables;
mod track;

pub use choose::{Choice, Left, Memory, Observe, Outcome, Place, Unobserved};
pub use encapsulate::Head;
pub use parse::{Kind, Parsed, Version};
pub use search::{FURTHER_SLOTS, Search};
pub use tables::Tables;

use crate::{
    abi::{
        backend::Backend,
        descriptor::Descriptor,
        flow_key::{FlowKeyV6, flow_key_v6, flow_of_v6},
        pool::PoolLine,
        service::{IPV4, IPV6, SERVICE_BY_ADDRESS, SERVICE_TRACKED, Service, ServiceKey},
        verdict::Verdict,
    },
    flow_hash::{FlowHash, FlowTuple},
    wire::{packet::Packet, tcp},
};

/// A packet on its way to a backend.
#[derive(Clone, Copy, Debug)]
pub struct Forward<'t> {
    /// What was read of it.
    pub parsed: Parsed,
    /// The service it is for.
    pub service: Service,
    /// The version of the pool that decided.
    pub descriptor: &'t Descriptor,
    /// Hash of its flow.
    pub hash: FlowHash,
    /// Who has it.
    pub choice: Choice,
    /// Where that is.
    pub backend: &'t Backend,
}

/// What becomes of a frame.
///
/// # Errors
/// The verdict of a frame that no backend gets.
#[inline(always)]
pub fn decide<'t, P: Packet + ?Sized, T: Tables + ?Sized>(
    packet: &P,
    tables: &'t T,
) -> Result<Forward<'t>, Verdict> {
    decide_parsed(parse::parse(packet)?, tables)
}

/// What becomes of a frame whose headers were read.
///
/// # Errors
/// As [`decide`].
#[inline(always)]
pub fn decide_parsed<T: Tables + ?Sized>(
    parsed: Parsed,
    tables: &T,
) -> Result<Forward<'_>, Verdict> {
    let service = find_service(tables, &parsed.flow)?;
    admissible(&parsed)?;
    forward(tables, &service, parsed, &mut Unobserved)
}

/// The service a flow is for.
///
/// # Errors
/// [`Verdict::NotOurs`].
#[inline(always)]
pub fn find_service<T: Tables + ?Sized>(tables: &T, flow: &FlowTuple) -> Result<Service, Verdict> {
    let key = ServiceKey {
        address: flow.vip,
        port: flow.service_port,
        protocol: flow.protocol,
        version: flow.version,
    };
    match tables.service(&key) {
        Some(service) if service.key == key => Ok(service),
        _ => Err(Verdict::NotOurs),
    }
}

/// Whether a packet of a service is one that may be forwarded at all.
#[inline(always)]
fn admissible(parsed: &Parsed) -> Result<(), Verdict> {
    if parsed.is_fragment {
        return Err(Verdict::Fragment);
    }
    if parsed.tcp_flags & tcp::SYN != 0 && parsed.tcp_flags & (tcp::FIN | tcp::RST) != 0 {
        return Err(Verdict::InvalidTcpFlags);
    }
    if parsed.hop_limit <= 1 {
        return Err(Verdict::HopLimitExceeded);
    }
    Ok(())
}

/// Hash and choice of a packet whose service is known; `observer` hears of each entry looked at.
///
/// # Errors
/// The verdict of a packet that no backend gets.
#[inline(always)]
pub fn forward<'t, T: Tables + ?Sized, O: Observe>(
    tables: &'t T,
    service: &Service,
    parsed: Parsed,
    observer: &mut O,
) -> Result<Forward<'t>, Verdict> {
    let line = tables.pool(service.pool).ok_or(Verdict::Inconsistent)?;
    let current = line.versions().current();
    let descriptor = tables.descriptor(current).ok_or(Verdict::Inconsistent)?;
    let hash = flow_hash(service, descriptor, &parsed.flow);
    let ask = Ask::new(service, (line, descriptor), hash, &parsed);
    let choice = match parsed.kind {
        Kind::OpenConnection => open::open(tables, &ask, observer)?,
        Kind::NewConnection => connect::connect(tables, &ask, observer)?,
        Kind::Datagram if service.flags & SERVICE_TRACKED != 0 => {
            track::track(tables, ask, observer)?
        }
        Kind::Datagram => {
            choose::choose(tables, (current, descriptor), hash, Kind::Datagram, observer)?
        }
    };
    let backend = tables.backend(choice.member.backend()).ok_or(Verdict::Inconsistent)?;
    if backend.incarnation != choice.member.incarnation() {
        return Err(Verdict::Inconsistent);
    }
    Ok(Forward { parsed, service: *service, descriptor, hash, choice, backend })
}

/// Hash of a flow as its service wants it.
#[inline(always)]
pub fn flow_hash(service: &Service, descriptor: &Descriptor, flow: &FlowTuple) -> FlowHash {
    hash_of(flow, service.flags & SERVICE_BY_ADDRESS != 0, descriptor)
}

#[inline(always)]
const fn hash_of(flow: &FlowTuple, by_address: bool, descriptor: &Descriptor) -> FlowHash {
    let client_port = if by_address { 0 } else { flow.client_port };
    FlowHash::of(&FlowTuple { client_port, ..*flow }, &descriptor.hash_key)
}

/// What is asked for: a packet, its service, and the version of the pool that decides.
///
/// It is made of whole words, and copied where the way of a packet leaves the fast path: so nothing of
/// the fast path must stand in memory for it, and what does is aligned as the verifier wants it.
#[derive(Clone, Copy, Debug)]
struct Ask<'t> {
    descriptor: &'t Descriptor,
    line: PoolLine,
    hash: FlowHash,
    flow: FlowKeyV6,
    is_v4: u64,
    sequence: u64,
    tcp_flags: u64,
    pool: u64,
    service_flags: u64,
}

impl<'t> Ask<'t> {
    #[inline(always)]
    const fn new(
        service: &Service,
        (line, descriptor): (PoolLine, &'t Descriptor),
        hash: FlowHash,
        parsed: &Parsed,
    ) -> Self {
        Self {
            descriptor,
            line,
            hash,
            flow: flow_key_v6(&parsed.flow),
            is_v4: (parsed.flow.version == IPV4) as u64,
            sequence: parsed.sequence as u64,
            tcp_flags: parsed.tcp_flags as u64,
            pool: service.pool as u64,
            service_flags: service.flags as u64,
        }
    }

    /// Index of the descriptor.
    #[inline(always)]
    const fn version(&self) -> u32 {
        self.line.versions().current()
    }

    /// Whether the service has one of some flags.
    #[inline(always)]
    const fn service_has(&self, flags: u32) -> bool {
        self.service_flags as u32 & flags != 0
    }

    /// Whether the packet has one of some TCP control bits.
    #[inline(always)]
    const fn tcp_has(&self, flags: u8) -> bool {
        self.tcp_flags as u8 & flags != 0
    }

    #[inline(always)]
    const fn is_v4(&self) -> bool {
        self.is_v4 != 0
    }

    /// The TCP sequence number.
    #[inline(always)]
    const fn sequence(&self) -> u32 {
        self.sequence as u32
    }

    /// The flow.
    #[inline(always)]
    const fn flow(&self) -> FlowTuple {
        let version = if self.is_v4() { IPV4 } else { IPV6 };
        FlowTuple { version, ..flow_of_v6(&self.flow) }
    }

    /// The former version of the pool with the flow's hash under it, while its home still counts.
    #[inline(always)]
    fn former<T: Tables + ?Sized>(&self, tables: &'t T) -> Option<(&'t Descriptor, FlowHash)> {
        let former = self.line.versions().former();
        if former == 0 {
            return None;
        }
        let descriptor = tables.descriptor(former)?;
        let by_address = self.service_has(SERVICE_BY_ADDRESS);
        Some((descriptor, hash_of(&self.flow(), by_address, descriptor)))
    }

    /// Hash of all of the flow's addresses and ports, whatever the service hashes by.
    #[inline(always)]
    fn identity(&self) -> FlowHash {
        if self.service_has(SERVICE_BY_ADDRESS) {
            return FlowHash::of(&self.flow(), &self.descriptor.hash_key);
        }
        self.hash
    }

    /// The flow as a tracking service tells flows apart.
    #[inline(always)]
    const fn tracked_flow(&self) -> FlowTuple {
        let flow = self.flow();
        if self.service_has(SERVICE_BY_ADDRESS) { FlowTuple { client_port: 0, ..flow } } else { flow }
    }
}
