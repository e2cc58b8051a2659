//! Emit: the only exit. Every packet is counted here, under exactly one verdict.

mod icmp_reply;

use aya_ebpf::{
    bindings::xdp_action::{XDP_DROP, XDP_PASS, XDP_TX},
    programs::XdpContext,
};
use lb_common::{
    abi::{
        counter::TrafficCounter,
        form::Form,
        next_hop::InterfaceWord,
        service::IPV4,
        verdict::{Action, Verdict},
    },
    path::{
        self, Choice, Forward, Head, Kind, Parsed, Query, Shim, Version, encapsulate, parse,
        parse_slow, unserved,
    },
    wire::{Packet, ethernet, ipv4, ipv6, vlan::Tags},
};

pub(super) use icmp_reply::{echo, time_exceeded, too_large};

use super::{
    capture, deferred,
    maps::{BACKEND_COUNTERS, DEVICES, Maps, SERVICE_COUNTERS},
};
use crate::{
    count_verdict,
    kernel::{self, Frame},
};

/// Decides a frame on the fast path, rewrites it, counts it, and returns its [`Disposition`]. If more must be done it
/// returns what, and leaves the rest [`deferred`], with the frame as it was and nothing counted. `tags` were taken off
/// the frame, here and below; `is_captured`: it is captured.
#[inline(always)]
pub(super) fn emit_fast(frame: &mut Frame<'_>, tags: Tags, is_captured: bool) -> u32 {
    emit_by(frame, &mut FastPath::<false> { is_captured }, tags)
}

/// As [`emit_fast`], of a frame that had tags.
#[inline(always)]
pub(super) fn emit_fast_tagged(frame: &mut Frame<'_>, tags: Tags, is_captured: bool) -> u32 {
    emit_by(frame, &mut FastPath::<true> { is_captured }, tags)
}

/// As [`emit_fast`], with the slow parser; a frame that it cannot parse either belongs to no flow.
#[inline(always)]
pub(super) fn parse_slow_path(frame: &mut Frame<'_>, tags: Tags) -> u32 {
    emit_by(frame, &mut SlowParser, tags)
}

/// Rewrites a frame as the slow path decided, counts it, and returns its [`Disposition`].
#[inline(always)]
pub(super) fn emit(frame: &mut Frame<'_>, decision: &mut Resolved<'_>, tags: Tags) -> u32 {
    emit_by(frame, decision, tags)
}

/// A decision of the slow path.
pub(super) struct Resolved<'d> {
    /// The verdict on a frame that no backend gets.
    pub(super) failure: Option<Verdict>,
    /// The query.
    pub(super) query: &'d Query,
    /// The member that gets the frame.
    pub(super) choice: &'d Choice,
}

/// Parses a frame and decides it. (A trait, because a closure would be one function for both IP versions.)
trait Decision {
    /// Whether the query was made before, when it was found out that a service takes the packet, and not at its last hop.
    const HAS_QUERY: bool = false;
    /// Whether it leaves what the fast parser cannot read to the slow one.
    const HAS_FAST_PARSER: bool = false;
    #[inline(always)]
    fn ipv4(&self, frame: &Frame<'_>) -> Result<Parsed, Verdict> {
        parse::parse_ipv4(frame)
    }
    #[inline(always)]
    fn ipv6(&self, frame: &Frame<'_>) -> Result<Parsed, Verdict> {
        parse::parse_ipv6(frame)
    }
    /// Whether the frame is captured.
    #[inline(always)]
    fn is_captured(&self) -> bool {
        deferred::is_captured()
    }
    /// Called for a frame that is too large for its backend.
    #[inline(always)]
    fn too_large(&mut self, _: &Forward<'_>) {}
    /// Decides a parsed frame; `None`: deferred.
    fn decide<'m>(
        &mut self,
        maps: &'m Maps,
        parsed: Parsed,
    ) -> Result<Option<Forward<'m>>, Verdict>;
}

/// The fast path, for steady state. That of frames that had tags has less stack, and leaves ICMP errors and IPv6 fragments to
/// the slow parser.
struct FastPath<const TAGGED: bool> {
    /// Whether the frame is captured.
    is_captured: bool,
}

impl<const TAGGED: bool> Decision for FastPath<TAGGED> {
    const HAS_FAST_PARSER: bool = true;

    #[inline(always)]
    fn ipv4(&self, frame: &Frame<'_>) -> Result<Parsed, Verdict> {
        if TAGGED { parse::parse_ipv4_without_errors(frame) } else { parse::parse_ipv4(frame) }
    }

    #[inline(always)]
    fn ipv6(&self, frame: &Frame<'_>) -> Result<Parsed, Verdict> {
        if TAGGED { parse::parse_ipv6_without_errors(frame) } else { parse::parse_ipv6(frame) }
    }

    #[inline(always)]
    fn is_captured(&self) -> bool {
        self.is_captured
    }

    #[inline(always)]
    fn too_large(&mut self, forward: &Forward<'_>) {
        deferred::set_room(encapsulate::room(forward.backend, forward.descriptor.form()));
    }

    #[inline(always)]
    fn decide<'m>(
        &mut self,
        maps: &'m Maps,
        parsed: Parsed,
    ) -> Result<Option<Forward<'m>>, Verdict> {
        path::decide_fast(parsed, maps, deferred::set_query)
    }
}

/// The slow parser, for what the fast one leaves ([`parse_slow`]); defers the query.
struct SlowParser;

impl Decision for SlowParser {
    #[inline(always)]
    fn ipv6(&self, frame: &Frame<'_>) -> Result<Parsed, Verdict> {
        parse_slow::parse_ipv6(frame)
    }

    #[inline(always)]
    fn decide<'m>(
        &mut self,
        maps: &'m Maps,
        parsed: Parsed,
    ) -> Result<Option<Forward<'m>>, Verdict> {
        deferred::set_query(&path::build_query(maps, &parsed)?);
        Ok(None)
    }
}

/// The query is resolved: of the frame only what goes into the outer header is read.
impl Decision for Resolved<'_> {
    const HAS_QUERY: bool = true;

    #[inline(always)]
    fn ipv4(&self, frame: &Frame<'_>) -> Result<Parsed, Verdict> {
        let (parsed, _) = parse::ipv4_header(frame)?;
        Ok(Parsed { kind: self.query.kind(), is_quoted: self.query.is_quoted(), ..parsed })
    }

    #[inline(always)]
    fn ipv6(&self, frame: &Frame<'_>) -> Result<Parsed, Verdict> {
        let parsed = parse::ipv6_header(frame)?;
        Ok(Parsed { kind: self.query.kind(), is_quoted: self.query.is_quoted(), ..parsed })
    }

    #[inline(always)]
    fn decide<'m>(
        &mut self,
        maps: &'m Maps,
        parsed: Parsed,
    ) -> Result<Option<Forward<'m>>, Verdict> {
        match self.failure {
            None => path::forward_by(maps, self.query, self.choice, parsed).map(Some),
            Some(verdict) => Err(verdict),
        }
    }
}

#[inline(always)]
fn emit_by(frame: &mut Frame<'_>, decision: &mut impl Decision, tags: Tags) -> u32 {
    let bytes = received_length(frame, tags);
    let Some(maps) = Maps::open() else { return inconsistent(bytes) };
    // One copy of the code for each IP version: the compiler then removes half of it, and the rest fits into registers.
    let done = match parse::version(frame) {
        Err(_) if tags.is_none() && !Tags::read(frame).is_none() => return TAGGED,
        Err(verdict) => Emitted::AsItIs(verdict),
        Ok(Version::V4) => {
            let parsed = decision.ipv4(frame);
            carry_out(frame, &maps, parsed, decision, (bytes, tags))
        }
        Ok(Version::V6) => {
            let parsed = decision.ipv6(frame);
            carry_out(frame, &maps, parsed, decision, (bytes, tags))
        }
    };
    match done {
        Emitted::Now(verdict, action) => {
            count_verdict(verdict, bytes);
            Disposition::new(verdict, action).0
        }
        Emitted::AsItIs(verdict) => {
            let (verdict, action) = leave(frame, (verdict, action_of(verdict)), tags);
            count_verdict(verdict, bytes);
            Disposition::new(verdict, action).0
        }
        // These frames are counted once they are handled.
        Emitted::Deferred => DEFERRED,
        Emitted::NeedsSlowParser => NEEDS_SLOW_PARSER,
        Emitted::TooLarge => TOO_LARGE,
        Emitted::AtLastHop => AT_LAST_HOP,
    }
}

/// Counts a frame for which a map or program is missing, and returns its [`Disposition`].
#[inline(always)]
pub(super) fn count_inconsistent(context: &XdpContext) -> u32 {
    inconsistent(received_length(&Frame::new(context), Tags::NONE))
}

#[inline(always)]
fn inconsistent(bytes: u64) -> u32 {
    count_verdict(Verdict::Inconsistent, bytes);
    Disposition::new(Verdict::Inconsistent, action_of(Verdict::Inconsistent)).0
}

/// Length of a frame as it came in, bytes.
#[inline(always)]
fn received_length(frame: &Frame<'_>, tags: Tags) -> u64 {
    // Hidden, because the compiler adds the tags to the packet's end otherwise, which the verifier forbids.
    kernel::opaque(frame.length() as u64) + tags.length() as u64
}

/// Verdict and action of a frame, as one number for functions to return: `{action 8, verdict 8, 0}` from the low end.
#[derive(Clone, Copy)]
pub(super) struct Disposition(pub(super) u32);

impl Disposition {
    #[inline(always)]
    const fn new(verdict: Verdict, action: u32) -> Self {
        Self(action | (verdict as u32) << 8)
    }

    /// What the driver does.
    #[inline(always)]
    pub(super) const fn action(self) -> u32 {
        self.0 & 0xff
    }

    /// Whether the frame leaves by the interface that it came in by.
    #[inline(always)]
    pub(super) const fn is_sent_back(self) -> bool {
        self.action() == XDP_TX
    }

    /// Number of the verdict.
    #[inline(always)]
    pub(super) const fn verdict(self) -> u32 {
        (self.0 >> 8) & 0x3f
    }

    /// Whether the frame goes out again.
    #[inline(always)]
    pub(super) const fn leaves(self) -> bool {
        !matches!(self.action(), XDP_PASS | XDP_DROP)
    }
}

/// Not done: the query was deferred.
pub(super) const DEFERRED: u32 = 1 << 16;
/// Not done: the frame needs the slow parser.
pub(super) const NEEDS_SLOW_PARSER: u32 = 1 << 17;
/// Not done: the frame is too large for its backend.
pub(super) const TOO_LARGE: u32 = 1 << 18;

/// Not done: the frame has VLAN tags, which must be taken off first.
pub(super) const TAGGED: u32 = 1 << 19;
/// Not done: TTL or hop limit would reach zero.
pub(super) const AT_LAST_HOP: u32 = 1 << 20;

/// Whether the number is a [`Disposition`], so that nothing is left to do.
#[inline(always)]
pub(super) const fn is_ended(number: u32) -> bool {
    number < DEFERRED
}

/// What was done with a frame.
enum Emitted {
    /// It has a verdict, and the driver must take this action.
    Now(Verdict, u32),
    /// It has a verdict and is unchanged: no backend gets it.
    AsItIs(Verdict),
    /// Nothing yet; its query was deferred.
    Deferred,
    /// Nothing yet; it needs the slow parser.
    NeedsSlowParser,
    /// Nothing yet; it does not fit.
    TooLarge,
    /// Nothing yet; its hop limit is used up.
    AtLastHop,
}

/// Puts the tags back on a frame that leaves; without room for them the frame is dropped.
#[inline(always)]
fn leave(frame: &mut Frame<'_>, decided: (Verdict, u32), tags: Tags) -> (Verdict, u32) {
    if tags.is_none() || decided.1 == XDP_DROP || frame.tag(tags) {
        return decided;
    }
    (Verdict::NoHeadroom, XDP_DROP)
}

#[inline(always)]
fn carry_out<D: Decision>(
    frame: &mut Frame<'_>,
    maps: &Maps,
    parsed: Result<Parsed, Verdict>,
    decision: &mut D,
    (bytes, tags): (u64, Tags),
) -> Emitted {
    let decided = match parsed {
        Err(Verdict::OtherProtocol) if D::HAS_FAST_PARSER => {
            return match unserved::judge_unread(frame, maps) {
                None => Emitted::NeedsSlowParser,
                Some(verdict) => Emitted::AsItIs(verdict),
            };
        }
        Err(Verdict::OtherProtocol) => return Emitted::NeedsSlowParser,
        Err(verdict) => Err(verdict),
        Ok(parsed) => decision.decide(maps, parsed),
    };
    let forward = match decided {
        Err(Verdict::HopLimitExceeded)
            if !D::HAS_QUERY && parsed.is_ok_and(|parsed| parsed.may_be_answered()) =>
        {
            return Emitted::AtLastHop;
        }
        Err(verdict) if D::HAS_QUERY => return Emitted::AsItIs(verdict),
        Err(verdict) => return Emitted::AsItIs(unserved::judge(frame, maps, verdict)),
        Ok(None) => return Emitted::Deferred,
        Ok(Some(forward)) => forward,
    };
    if decision.is_captured() {
        capture::note_choice(
            forward.choice.member.backend(),
            u32::from(forward.choice.next_hop.interface()),
        );
    }
    match rewrite(frame, maps, &forward, tags) {
        Err(Verdict::TooLarge) if !forward.parsed.is_quoted => {
            decision.too_large(&forward);
            Emitted::TooLarge
        }
        Err(verdict) => Emitted::AsItIs(verdict),
        Ok(()) => {
            let interface = forward.choice.next_hop.interface().into();
            let (backend, kind) = (forward.choice.member.backend(), forward.parsed.kind);
            let to = (interface, forward.service, backend, kind == Kind::NewConnection);
            let (verdict, action) = send(frame, to, bytes);
            Emitted::Now(verdict, action)
        }
    }
}

#[inline(always)]
const fn action_of(verdict: Verdict) -> u32 {
    match verdict.action() {
        Action::Pass => XDP_PASS,
        _ => XDP_DROP,
    }
}

/// Makes of a frame what its backend gets.
#[inline(always)]
fn rewrite(
    frame: &mut Frame<'_>,
    maps: &Maps,
    forward: &Forward<'_>,
    tags: Tags,
) -> Result<(), Verdict> {
    // IP in IP, the usual form, has its own copy of the code and pays for no other.
    match forward.descriptor.form() {
        Form::IP_IN_IP => rewrite_in(frame, maps, forward, (Form::IP_IN_IP, tags)),
        form => rewrite_in(frame, maps, forward, (form, tags)),
    }
}

/// Puts the new head in front, with the tags of the way out, and takes one from the packet's own hop limit.
#[inline(always)]
fn rewrite_in(
    frame: &mut Frame<'_>,
    maps: &Maps,
    forward: &Forward<'_>,
    (form, tags): (Form, Tags),
) -> Result<(), Verdict> {
    let (head, own) = encapsulate::head_in(maps, forward, form)?;
    let interface = forward.choice.next_hop.interface().into();
    if form.is_direct() {
        let to = frame.bytes(0).ok_or(Verdict::Malformed)?;
        if ethernet::destination(to) == forward.choice.next_hop.mac_word() {
            // A switch that does not know the backend's port flooded it: the frame is already on its way to the backend.
            return Err(Verdict::NotOurs);
        }
    }
    if forward.parsed.flow.version == IPV4 {
        let inner = frame.bytes_mut(ethernet::LENGTH).ok_or(Verdict::Malformed)?;
        ipv4::decrement_ttl(inner);
    } else {
        let inner = frame.bytes_mut(ethernet::LENGTH).ok_or(Verdict::Malformed)?;
        ipv6::decrement_hop_limit(inner);
    }
    let parsed = &forward.parsed;
    let shim = || {
        let length = parsed.ip_length as u16;
        encapsulate::shim(form, forward.entropy, parsed.flow.version, length)
    };
    match head {
        Head::V4(head) => write_head(frame, &head, form, shim)?,
        Head::V6(head) => write_head(frame, &head, form, shim)?,
        Head::Link(head) => *frame.bytes_mut(0).ok_or(Verdict::Malformed)? = head,
    }
    tag_out(frame, maps, (own, interface), tags)
}

/// Puts on the tags of the way out.
#[inline(always)]
fn tag_out(
    frame: &mut Frame<'_>,
    maps: &Maps,
    (own, interface): (InterfaceWord, u32),
    tags: Tags,
) -> Result<(), Verdict> {
    if tags.is_none() && own.vlan() == 0 {
        return Ok(());
    }
    let came = frame.interface();
    // The interface that the frame came by matters only if it is tagged and no VLAN is set for the one it leaves by.
    let came_by_it = own.vlan() == 0 && (interface == came || maps.is_port(came, interface));
    let tags = encapsulate::tags(own, came_by_it, tags);
    if tags.is_none() || frame.tag(tags) { Ok(()) } else { Err(Verdict::NoHeadroom) }
}

/// Puts a head in the place of the Ethernet header, and behind it what its form has there.
#[inline(always)]
fn write_head<const N: usize>(
    frame: &mut Frame<'_>,
    head: &[u8; N],
    form: Form,
    shim: impl FnOnce() -> Shim,
) -> Result<(), Verdict> {
    if !frame.grow(N - ethernet::LENGTH + usize::from(form.shim())) {
        return Err(Verdict::NoHeadroom);
    }
    if form.is_gue() {
        *frame.bytes_mut(N).ok_or(Verdict::NoHeadroom)? = shim();
    }
    *frame.bytes_mut(0).ok_or(Verdict::NoHeadroom)? = *head;
    Ok(())
}

/// Sends a frame out by an interface, and counts it by service and by backend, and new connections. A frame that came by
/// a port of a bond is redirected to the bond, which picks a port, as it does for frames that are sent back: to detect
/// that both are the same device would cost a look-up and change nothing.
#[inline(always)]
fn send(
    frame: &Frame<'_>,
    (interface, service, backend, is_new): (u32, u32, u32, bool),
    bytes: u64,
) -> (Verdict, u32) {
    let (verdict, action) = if interface == frame.interface() {
        (Verdict::Transmitted, XDP_TX)
    } else {
        match DEVICES.redirect(interface, 0) {
            Ok(action) => (Verdict::Redirected, action),
            Err(_) => return (Verdict::RedirectFailed, XDP_DROP),
        }
    };
    let count = |counter: &mut TrafficCounter| {
        counter.packets += 1;
        counter.bytes += bytes;
        counter.connections += u64::from(is_new);
    };
    kernel::per_cpu(&SERVICE_COUNTERS, service, count);
    kernel::per_cpu(&BACKEND_COUNTERS, backend, count);
    (verdict, action)
}
