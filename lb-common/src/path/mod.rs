//! The way of a packet, pure: frame in, decision out. One direction, one file a stage:
//! `parse → service → hash → choose → encapsulate`; the program that runs it emits.

pub mod choose;
pub mod encapsulate;
pub mod parse;
pub mod tables;

pub use choose::{Choice, Observe, Outcome, Place, Search, Unobserved};
pub use encapsulate::Head;
pub use parse::{Kind, Parsed, Version};
pub use tables::Tables;

use crate::{
    abi::{
        backend::Backend,
        descriptor::Descriptor,
        service::{SERVICE_BY_ADDRESS, Service, ServiceKey},
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
    let pool = tables.pool(service.pool).ok_or(Verdict::Inconsistent)?;
    let descriptor = tables.descriptor(pool.current()).ok_or(Verdict::Inconsistent)?;
    let hash = flow_hash(service, descriptor, &parsed.flow);
    let choice = choose::choose(tables, (pool.current(), descriptor), hash, parsed.kind, observer)?;
    let backend = tables.backend(choice.member.backend()).ok_or(Verdict::Inconsistent)?;
    if backend.incarnation != choice.member.incarnation() {
        return Err(Verdict::Inconsistent);
    }
    Ok(Forward { parsed, service: *service, descriptor, hash, choice, backend })
}

/// Hash of a flow as its service wants it.
#[inline(always)]
pub fn flow_hash(service: &Service, descriptor: &Descriptor, flow: &FlowTuple) -> FlowHash {
    let by_address = service.flags & SERVICE_BY_ADDRESS != 0;
    let client_port = if by_address { 0 } else { flow.client_port };
    FlowHash::of(&FlowTuple { client_port, ..*flow }, &descriptor.hash_key)
}
