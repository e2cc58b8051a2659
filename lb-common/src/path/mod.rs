//! The packet path as pure code: frame in, decision out. One direction, one file per stage:
//! `parse → service → hash → select → encapsulate`; the program that runs it emits.
//!
//! In steady state [`mod@fast_path`] decides. All other packets take the slow path, which has one file
//! per kind of packet: [`syn`] for a SYN, [`established`] for the packets of an open connection,
//! [`udp_flow`] for datagrams of tracked flows. They share [`admit`] (limits), [`known`] (what the flow table
//! has), [`mod@homes`] (where the tables put a flow now and next), [`backend_state`] (whether the backend of a
//! known connection still takes it), [`mod@select`] and [`search`] (tables and states).

pub mod admit;
pub mod answers;
mod backend_state;
pub mod encapsulate;
mod established;
mod fast_path;
mod homes;
pub mod icmp_error;
pub mod icmp_reply;
mod known;
pub mod oversize;
pub mod parse;
pub mod parse_slow;
pub mod probe;
mod query;
mod quoted;
pub mod search;
pub mod select;
mod syn;
pub mod tables;
mod udp_flow;
pub mod unserved;

pub use encapsulate::{Head, Shim};
pub use homes::homes;
pub use known::key as flow_key;
pub use parse::{Kind, Parsed, Version};
pub use query::{Deferred, Query};
pub use search::{FURTHER_SLOTS, Search};
pub use select::{Choice, Memory, Observe, Outcome, Position, RegionSkip, Unobserved};
pub use tables::Tables;

use crate::{
    abi::{
        backend::Backend,
        pool::Descriptor,
        service::{SERVICE_FRAGMENTS, SERVICE_TRACKED, Service},
        verdict::Verdict,
    },
    flow_hash::{FlowHash, FlowTuple},
    martian,
    wire::{Packet, tcp},
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
    /// What the outer header shows of its flow, so that networks and cards spread flows ([`Query`]'s `entropy`).
    pub entropy: FlowHash,
    /// The member that gets it.
    pub choice: Choice,
    /// That member's backend.
    pub backend: &'t Backend,
}

/// Decides a frame.
///
/// # Errors
/// The verdict of a frame that no backend gets. One of [`Verdict::OtherProtocol`] may be a ping: [`icmp_reply::echo`] has its
/// verdict.
#[inline(always)]
pub fn decide<'t, P: Packet + ?Sized, T: Tables + ?Sized>(
    packet: &P,
    tables: &'t T,
) -> Result<Forward<'t>, Verdict> {
    let decided = parse_for(packet, tables).and_then(|parsed| decide_parsed(parsed, tables));
    decided.map_err(|verdict| match verdict {
        Verdict::OtherProtocol => verdict,
        _ => unserved::judge(packet, tables, verdict),
    })
}

/// Parses a frame that may be for one of some services.
///
/// # Errors
/// The verdict of a frame that no backend gets.
#[inline(always)]
pub fn parse_for<P: Packet + ?Sized, T: Tables + ?Sized>(
    packet: &P,
    tables: &T,
) -> Result<Parsed, Verdict> {
    parse::parse(packet).or_else(|verdict| match verdict {
        Verdict::OtherProtocol => match unserved::judge_unread(packet, tables) {
            None => parse_slow(packet),
            Some(verdict) => Err(verdict),
        },
        _ => Err(verdict),
    })
}

#[inline(always)]
fn decide_parsed<T: Tables + ?Sized>(parsed: Parsed, tables: &T) -> Result<Forward<'_>, Verdict> {
    let query = build_query(tables, &parsed)?;
    let mut choice = Choice::NONE;
    resolve(tables, &query, &mut choice, &mut Unobserved)?;
    forward_by(tables, &query, &choice, parsed)
}

/// Parses a frame whatever it is for, with what only the slow path reads.
///
/// # Errors
/// The verdict of a frame that no backend gets, whatever the tables say.
#[inline(always)]
pub fn parse_any<P: Packet + ?Sized>(packet: &P) -> Result<Parsed, Verdict> {
    match parse::parse(packet) {
        Err(Verdict::OtherProtocol) => parse_slow(packet),
        parsed => parsed,
    }
}

/// Parses a frame of which [`parse::parse`] says that it is of another protocol.
#[inline(always)]
fn parse_slow<P: Packet + ?Sized>(packet: &P) -> Result<Parsed, Verdict> {
    match parse::version(packet)? {
        Version::V4 => Err(Verdict::OtherProtocol),
        Version::V6 => parse_slow::parse_ipv6(packet),
    }
}

/// The query of a parsed frame.
///
/// # Errors
/// The verdict of a frame that no service can have.
#[inline(always)]
pub fn build_query<T: Tables + ?Sized>(tables: &T, parsed: &Parsed) -> Result<Query, Verdict> {
    let service = find_service(tables, parsed)?;
    admissible(parsed, service)?;
    Query::new(tables, service, parsed)
}

/// Decides a parsed frame on the fast path: it goes home, or where its cell says, and the cell does not change. `None`:
/// `defer` was called with the query, for [`resolve`] on the slow path, which gives the same result wherever both decide.
///
/// # Errors
/// As [`decide`].
#[inline(always)]
pub fn decide_fast<T: Tables + ?Sized>(
    parsed: Parsed,
    tables: &T,
    defer: impl FnOnce(&Query),
) -> Result<Option<Forward<'_>>, Verdict> {
    let query = build_query(tables, &parsed)?;
    match fast_path::resolve(tables, &query, parsed.kind)? {
        None => {
            defer(&query);
            Ok(None)
        }
        Some(choice) => forward_by(tables, &query, &choice, parsed).map(Some),
    }
}

/// Resolves a query on the slow path: finds the member that gets the packet, and stores it in `to`, one place for all
/// callees, because a packet program has little stack.
///
/// # Errors
/// The verdict of a packet that no backend gets.
#[inline(always)]
pub fn resolve<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &Query,
    to: &mut Choice,
    observer: &mut O,
) -> Result<(), Verdict> {
    match query.kind() {
        Kind::OpenConnection => established::resolve(tables, query, to, observer),
        Kind::NewConnection => syn::resolve(tables, query, to, observer),
        Kind::Datagram if query.service_has(SERVICE_TRACKED) => {
            udp_flow::resolve(tables, query, to, observer)
        }
        Kind::Datagram => select::select_out_of_line(tables, query, to, observer),
    }
}

/// Hash and choice of a packet whose service is known; `observer` sees each entry that is looked at.
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
    admissible(&parsed, service)?;
    let query = Query::new(tables, service, &parsed)?;
    let mut choice = Choice::NONE;
    resolve(tables, &query, &mut choice, observer)?;
    forward_by(tables, &query, &choice, parsed)
}

/// A packet on its way to the member that was chosen.
///
/// # Errors
/// [`Verdict::Inconsistent`].
#[inline(always)]
pub fn forward_by<'t, T: Tables + ?Sized>(
    tables: &'t T,
    query: &Query,
    choice: &Choice,
    parsed: Parsed,
) -> Result<Forward<'t>, Verdict> {
    let descriptor =
        tables.descriptor(query.line().versions().now()).ok_or(Verdict::Inconsistent)?;
    let backend = tables.backend(choice.member.backend()).ok_or(Verdict::Inconsistent)?;
    if backend.incarnation != choice.member.incarnation() {
        return Err(Verdict::Inconsistent);
    }
    let (service, entropy) = (query.service(), query.entropy(&descriptor.hash_key));
    Ok(Forward { parsed, service, descriptor, entropy, choice: *choice, backend })
}

/// The service a packet is for: that of its port, else that of any port of the address.
///
/// # Errors
/// [`Verdict::NotOurs`], [`Verdict::LaterFragment`].
#[inline(always)]
pub fn find_service<'t, T: Tables + ?Sized>(
    tables: &'t T,
    parsed: &Parsed,
) -> Result<&'t Service, Verdict> {
    let key = parsed.flow.service_key();
    let (key, unserved) = if parsed.is_without_ports {
        (key.fragments(), Verdict::LaterFragment)
    } else {
        (key, Verdict::NotOurs)
    };
    tables.service_of_port(&key).ok_or(unserved)
}

/// Whether a packet of a service is one that may be forwarded at all. Comes before anything is counted against a limit,
/// remembered or answered.
#[inline(always)]
fn admissible(parsed: &Parsed, service: &Service) -> Result<(), Verdict> {
    if parsed.is_fragment && service.flags & SERVICE_FRAGMENTS == 0 {
        return Err(Verdict::Fragment);
    }
    if parsed.tcp_flags & tcp::SYN != 0 && parsed.tcp_flags & (tcp::FIN | tcp::RST) != 0 {
        return Err(Verdict::InvalidTcpFlags);
    }
    if martian::is_martian(&parsed.source, &parsed.flow.vip, parsed.flow.version) {
        return Err(Verdict::MartianSource);
    }
    if parsed.hop_limit <= 1 {
        return Err(Verdict::HopLimitExceeded);
    }
    Ok(())
}

/// Hash of a flow by its service's affinity.
#[inline(always)]
pub fn flow_hash(service: &Service, descriptor: &Descriptor, flow: &FlowTuple) -> FlowHash {
    query::hash_flow(flow, service.flags, descriptor)
}
