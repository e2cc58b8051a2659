//! The way of a packet, pure: frame in, decision out. One direction, one file a stage:
//! `parse → service → hash → choose → encapsulate`; the program that runs it emits.
//!
//! In steady state every packet is told at once where it goes ([`mod@at_once`]). For all others,
//! choosing has one file for each kind of packet: [`connect`] for a SYN, [`open`] for the packets of
//! an open connection, [`track`] for datagrams whose flow is remembered. What they share: [`admit`]
//! (limits), [`records`] (what a SYN decided), [`hosts`] (where a remembered connection is),
//! [`mod@choose`] and [`search`] (tables and states).

pub mod admit;
pub mod answer;
pub mod aside;
mod at_once;
pub mod choose;
mod connect;
pub mod encapsulate;
mod hosts;
pub mod large;
mod open;
pub mod parse;
pub mod probe;
mod question;
pub mod records;
pub mod search;
mod stay;
pub mod tables;
mod track;

pub use choose::{Choice, Left, Memory, Observe, Outcome, Place, Unobserved};
pub use encapsulate::{Head, Shim};
pub use large::Large;
pub use parse::{Kind, Parsed, Version};
pub use question::Question;
pub use search::{FURTHER_SLOTS, Search};
pub use tables::Tables;

use crate::{
    abi::{
        backend::Backend,
        descriptor::Descriptor,
        service::{SERVICE_FRAGMENTS, Service, ServiceKey},
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
    /// Index of the service it is for.
    pub service: u32,
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
    let parsed = match parse::parse(packet) {
        Err(Verdict::OtherProtocol) => aside::parse(packet)?,
        parsed => parsed?,
    };
    let question = ask(tables, &parsed)?;
    let mut choice = Choice::NOBODY;
    question.answer(tables, &mut choice, &mut Unobserved)?;
    forward_by(tables, &question, &choice, parsed)
}

/// What a frame asks whose headers were read.
///
/// # Errors
/// The verdict of a frame that no service can have.
#[inline(always)]
pub fn ask<T: Tables + ?Sized>(tables: &T, parsed: &Parsed) -> Result<Question, Verdict> {
    let service = find_service(tables, parsed)?;
    admissible(parsed, &service)?;
    Question::of(tables, &service, parsed)
}

/// What becomes of a frame whose headers were read, if that can be told at once: in steady state, where
/// its home has it and nothing is remembered of any connection. `None`: `later` was told the question,
/// which [`Question::answer`] answers; where this told an answer, that one would be the same.
///
/// # Errors
/// As [`decide`].
#[inline(always)]
pub fn decide_at_once<T: Tables + ?Sized>(
    parsed: Parsed,
    tables: &T,
    later: impl FnOnce(&Question),
) -> Result<Option<Forward<'_>>, Verdict> {
    let question = ask(tables, &parsed)?;
    match at_once::at_once(tables, &question, parsed.kind)? {
        None => {
            later(&question);
            Ok(None)
        }
        Some(choice) => forward_by(tables, &question, &choice, parsed).map(Some),
    }
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
    let question = Question::of(tables, service, &parsed)?;
    let mut choice = Choice::NOBODY;
    question.answer(tables, &mut choice, observer)?;
    forward_by(tables, &question, &choice, parsed)
}

/// A packet's way out, as it was decided.
///
/// # Errors
/// [`Verdict::Inconsistent`].
#[inline(always)]
pub fn forward_by<'t, T: Tables + ?Sized>(
    tables: &'t T,
    question: &Question,
    choice: &Choice,
    parsed: Parsed,
) -> Result<Forward<'t>, Verdict> {
    let descriptor = tables.descriptor(question.version()).ok_or(Verdict::Inconsistent)?;
    let backend = tables.backend(choice.member.backend()).ok_or(Verdict::Inconsistent)?;
    if backend.incarnation != choice.member.incarnation() {
        return Err(Verdict::Inconsistent);
    }
    let (service, hash) = (question.service(), question.hash);
    Ok(Forward { parsed, service, descriptor, hash, choice: *choice, backend })
}

/// The service a packet is for: that of its port, else that of any port of the address.
///
/// # Errors
/// [`Verdict::NotOurs`], [`Verdict::LaterFragment`].
#[inline(always)]
pub fn find_service<T: Tables + ?Sized>(tables: &T, parsed: &Parsed) -> Result<Service, Verdict> {
    let key = ServiceKey::of(&parsed.flow);
    if parsed.is_without_ports {
        let key = key.fragments();
        return match tables.service(&key) {
            Some(service) if service.key == key => Ok(service),
            _ => Err(Verdict::LaterFragment),
        };
    }
    match tables.service_of_port(&key) {
        Some(service) if service.key == key || service.key == key.any_port() => Ok(service),
        _ => Err(Verdict::NotOurs),
    }
}

/// Whether a packet of a service is one that may be forwarded at all.
#[inline(always)]
fn admissible(parsed: &Parsed, service: &Service) -> Result<(), Verdict> {
    if parsed.is_fragment && service.flags & SERVICE_FRAGMENTS == 0 {
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

/// Hash of a flow as its service wants it.
#[inline(always)]
pub fn flow_hash(service: &Service, descriptor: &Descriptor, flow: &FlowTuple) -> FlowHash {
    question::hash_of(flow, service.flags, descriptor)
}
