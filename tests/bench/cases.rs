//! The cases: what is sent, and over which maps.

use lb_common::abi::{
    capture::{Capture, Ends, Prefix},
    form::Form,
};

use lb_tests::test_run::{fill::Situation, frame::Packet, throughput::Exit};

use crate::question::{CaseName, Unit};

/// One case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    /// Its name in tables and files.
    pub(crate) name: &'static str,
    /// What is sent.
    pub(crate) packet: Packet,
    /// IP version, inside and outside.
    pub(crate) version: u8,
    /// Random flows it is spread over.
    pub(crate) flows: u64,
    /// Services with a pool of their own that it is spread over; 0: one service, and the pool that others have too.
    pub(crate) services: u32,
    /// How packets get to backends.
    pub(crate) form: Form,
    /// How the regions are.
    pub(crate) situation: Situation,
    /// What each of the same flows sent before.
    pub(crate) before: &'static [Packet],
    /// What is captured meanwhile.
    pub(crate) capture: Capture,
    /// Over a veth pair with live frames instead of in a test run.
    pub(crate) live: Option<Exit>,
}

impl Case {
    /// How it is called in questions, tables and files.
    pub(crate) fn name(&self) -> CaseName {
        let unit = if self.live.is_some() { Unit::Mpps } else { Unit::Nanoseconds };
        CaseName { case: self.name.into(), flows: self.flows, unit }
    }

    /// Whether any balancer that tunnels in IP can be asked for it, whose maps somebody filled once: test runs of packets
    /// that need neither other maps nor what packets before them left.
    pub(crate) fn is_for_any(&self) -> bool {
        self.situation == Situation::Steady
            && self.live.is_none()
            && self.services == 0
            && self.form == Form::IP_IN_IP
            && self.capture == NOTHING
    }
}

/// Nobody captures.
const NOTHING: Capture = Capture {
    until: 0,
    number: 0,
    verdicts: 0,
    client: Prefix::ANY,
    vip: Prefix::ANY,
    backend: Prefix::ANY,
    except: Ends::NONE,
    port: 0,
    version: 0,
    reserved: 0,
    snap: 0,
};
/// All of it, of which nobody reads anything.
const ALL: Capture =
    Capture { until: u64::MAX, number: 1, verdicts: u64::MAX, snap: 256, ..NOTHING };

const fn case(name: &'static str, packet: Packet, version: u8, flows: u64) -> Case {
    Case {
        name,
        packet,
        version,
        flows,
        services: 0,
        form: Form::IP_IN_IP,
        situation: Situation::Steady,
        before: &[],
        capture: NOTHING,
        live: None,
    }
}

const fn remembered(
    name: &'static str,
    situation: Situation,
    before: &'static [Packet],
    packet: Packet,
    flows: u64,
) -> Case {
    Case { situation, before, ..case(name, packet, 4, flows) }
}

const fn formed(name: &'static str, form: Form) -> Case {
    Case { form, ..case(name, Packet::Open, 4, 1_000_000) }
}

const fn captured(name: &'static str, capture: Capture) -> Case {
    Case { capture, ..case(name, Packet::Open, 4, 100_000) }
}

const fn unserved(name: &'static str, packet: Packet) -> Case {
    Case { situation: Situation::Unserved, ..case(name, packet, 4, 1_000_000) }
}

const fn random(name: &'static str, services: u32) -> Case {
    Case { services, ..case(name, Packet::Open, 4, 1_000_000) }
}

const fn live(name: &'static str, exit: Exit, flows: u64) -> Case {
    Case { live: Some(exit), ..case(name, Packet::Open, 4, flows) }
}

/// So many flows that a run hardly meets one twice.
pub(crate) const DISTINCT: u64 = 1 << 32;

/// What makes a connection a displaced one.
const DISPLACED: &[Packet] = &[Packet::Syn, Packet::Open];
/// What gives a connection that a remap moves a cell for as long as it is open.
const MOVED: &[Packet] = &[Packet::Open, Packet::Open];
/// What gives a flow of datagrams one.
const TRACKED: &[Packet] = &[Packet::Udp, Packet::Udp];

/// All of them.
pub(crate) const CASES: &[Case] = &[
    case("tcp established", Packet::Open, 4, 1),
    case("tcp established", Packet::Open, 4, 100_000),
    case("tcp established", Packet::Open, 4, 1_000_000),
    case("tcp syn", Packet::Syn, 4, 1_000_000),
    case("syn without a capacity, all new", Packet::Syn, 4, DISTINCT),
    case("udp", Packet::Udp, 4, 100_000),
    case("udp", Packet::Udp, 4, 1_000_000),
    case("ipv6 tcp established", Packet::Open, 6, 1),
    case("ipv6 tcp established", Packet::Open, 6, 100_000),
    case("ipv6 tcp established", Packet::Open, 6, 1_000_000),
    formed("tcp established, in GUE", Form::gue(6_080)),
    formed("tcp established, direct", Form::DIRECT),
    case("not ours", Packet::NotOurs, 4, 1_000_000),
    case("another protocol, not ours", Packet::HostProtocol, 4, 1_000_000),
    case("unserved port, to the host", Packet::UnservedPort, 4, 1_000_000),
    unserved("unserved port", Packet::UnservedPort),
    unserved("unserved protocol", Packet::UnservedProtocol),
    unserved("fragment without ports", Packet::LaterFragment),
    Case { version: 6, ..unserved("ipv6 fragment without ports", Packet::LaterFragment) },
    case("icmp error of a connection", Packet::Error, 4, 1_000_000),
    random("1 service of 10 backends", 1),
    random("100 services of 10, random", 100),
    random("1,000 services of 10, random", 1_000),
    remembered("syn with a limit", Situation::Limited, &[], Packet::Syn, DISTINCT),
    remembered("syn refused", Situation::Full, &[], Packet::Syn, DISTINCT),
    remembered("syn to the next region", Situation::Spilling, &[], Packet::Syn, DISTINCT),
    remembered("packet after it", Situation::Spilling, &[Packet::Syn], Packet::Open, DISTINCT),
    remembered("displaced connection", Situation::Spilling, DISPLACED, Packet::Open, 1_000),
    remembered("displaced connection", Situation::Spilling, DISPLACED, Packet::Open, DISTINCT),
    remembered("at home, one of 100 away", Situation::OneAway, &[], Packet::Open, 1_000),
    remembered("at home, one of 100 away", Situation::OneAway, &[], Packet::Open, DISTINCT),
    remembered("at home, all zones on", Situation::Open, &[], Packet::Open, 1_000),
    remembered("at home, all zones on", Situation::Open, &[], Packet::Open, DISTINCT),
    remembered("at home, after its syn", Situation::Open, &[Packet::Syn], Packet::Open, 1_000),
    remembered("at home, after its syn", Situation::Open, &[Packet::Syn], Packet::Open, DISTINCT),
    remembered("remap, home stays", Situation::RemapStays, &[], Packet::Open, 1_000_000),
    remembered("remap moves it, first packet", Situation::RemapMoves, &[], Packet::Open, DISTINCT),
    remembered("remap moves it, later", Situation::RemapMoves, MOVED, Packet::Open, 1_000),
    remembered("syn repeated", Situation::Limited, &[Packet::Syn], Packet::Syn, 1_000),
    remembered("udp tracked", Situation::Tracked, TRACKED, Packet::Udp, 100_000),
    remembered("packet, nobody is up", Situation::Unreachable, &[], Packet::Open, 1_000_000),
    remembered("syn, nobody is up", Situation::Unreachable, &[], Packet::Syn, DISTINCT),
    captured("others captured", Capture { version: 6, ..ALL }),
    captured("captured, nobody reads", ALL),
    live("veth, XDP_TX", Exit::Transmit, 100_000),
    live("veth, XDP_TX", Exit::Transmit, 1_000_000),
    live("veth, redirect", Exit::Redirect, 1_000_000),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_cases_have_one_name() {
        let names: BTreeSet<_> = CASES.iter().map(|case| (case.name, case.flows)).collect();
        assert_eq!(names.len(), CASES.len());
    }
}
