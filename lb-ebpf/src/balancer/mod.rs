//! The balancer: decide, encapsulate, emit.
//!
//! What steady state needs is a function of its own, with the registers and most of the stack to
//! itself. Where it cannot tell at once what becomes of a packet, the slow functions are asked: for
//! limits, records, exceptions, and the search for somebody else where home is dead.

mod apart;
mod capture;
mod emit;
mod maps;
mod slow;

use aya_ebpf::programs::XdpContext;
use lb_common::{path::Large, wire::vlan::Tags};

use self::emit::{Ended, Later};
use crate::kernel::{self, Frame};

/// One packet through the balancer.
#[inline(always)]
pub fn run(context: &XdpContext) -> u32 {
    if kernel::is_captured() {
        capture::before(context);
    }
    let ended = way(context);
    if kernel::is_captured() {
        // Of a number that it knows the verifier would walk what follows anew for each.
        capture::after(context, apart::any(u64::from(ended)));
    }
    Ended(ended).action()
}

/// What becomes of a packet: an [`Ended`].
#[inline(always)]
fn way(context: &XdpContext) -> u32 {
    let mut later = Later::Nothing;
    let mut tags = 0;
    let mut done = at_once(context, &mut later);
    if emit::is_ended(done) {
        return done;
    }
    if done == emit::TAGGED {
        tags = untag(context);
        done = at_once_tagged(context, &mut later, tags);
        if emit::is_ended(done) {
            return done;
        }
    }
    // Or else the verifier would walk all that follows once for no tags and once for any.
    let tags = apart::any(tags);
    if done == emit::SET_ASIDE {
        done = read_aside(context, &mut later, tags);
    }
    if done == emit::SET_ASIDE {
        return answer_echo(context, tags);
    }
    if let Later::Question(question) = &later {
        match slow::run(context, question, tags) {
            Ok(done) => return done,
            Err(large) => later = Later::Large(large),
        }
    }
    match &later {
        Later::Large(packet) => too_large(context, packet, tags),
        _ => done,
    }
}

/// The way of a packet in steady state.
#[inline(never)]
fn at_once(context: &XdpContext, later: &mut Later) -> u32 {
    emit::emit_at_once(&mut Frame::apart(context), later, Tags::NONE)
}

/// The same of one that had VLAN tags, which goes on with them: by itself, so that others need not ask.
#[inline(never)]
fn at_once_tagged(context: &XdpContext, later: &mut Later, tags: u64) -> u32 {
    emit::emit_at_once(&mut Frame::apart(context), later, Tags(tags))
}

/// Takes the VLAN tags off a frame, and says what they were.
#[inline(never)]
fn untag(context: &XdpContext) -> u64 {
    Frame::apart(context).untag().0
}

/// The question of a frame that steady state cannot read: an ICMP error, or one with IPv6 extension
/// headers.
#[inline(never)]
fn read_aside(context: &XdpContext, later: &mut Later, tags: u64) -> u32 {
    emit::read_aside(&mut Frame::apart(context), later, Tags(tags))
}

/// What becomes of a frame that does not fit.
#[inline(never)]
fn too_large(context: &XdpContext, packet: &Large, tags: u64) -> u32 {
    emit::too_large(&mut Frame::apart(context), packet, Tags(tags))
}

/// The answer to a frame of no flow, if it asks for one.
#[inline(never)]
fn answer_echo(context: &XdpContext, tags: u64) -> u32 {
    emit::echo(&mut Frame::apart(context), Tags(tags))
}
