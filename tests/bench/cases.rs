//! The cases that are timed in a test run.

use anyhow::Result;
use lb_common::abi::{
    capture::{Capture, Ends, Prefix},
    form::Form,
};
use serde_json::{Value, json};

use lb_tests::statistics::median;
use lb_tests::test_run::{
    fill::{self, Situation, State},
    frame::{Packet, template},
    programs::{Programs, Settings, Target},
};

const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;
const XDP_TX: u32 = 3;

/// One timed case.
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
    /// How packets get to backends.
    pub(crate) form: Form,
    /// How the regions are.
    pub(crate) situation: Situation,
    /// What each of the same flows sent before.
    pub(crate) before: &'static [Packet],
    /// What is captured meanwhile.
    pub(crate) capture: Capture,
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
        form: Form::IP_IN_IP,
        situation: Situation::Steady,
        before: &[],
        capture: NOTHING,
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

/// So many flows that a run hardly meets one twice.
const DISTINCT: u64 = 1 << 32;
/// Packets of a run where each flow's packet before must still be remembered.
const REMEMBERED: u32 = 100_000;

/// All of them.
pub(crate) const CASES: &[Case] = &[
    case("tcp established", Packet::Open, 4, 1),
    case("tcp established", Packet::Open, 4, 100_000),
    case("tcp established", Packet::Open, 4, 1_000_000),
    case("tcp syn", Packet::Syn, 4, 1_000_000),
    case("udp", Packet::Udp, 4, 1_000_000),
    case("ipv6 tcp established", Packet::Open, 6, 1),
    case("ipv6 tcp established", Packet::Open, 6, 1_000_000),
    formed("tcp established, in GUE", Form::gue(6_080)),
    formed("tcp established, direct", Form::DIRECT),
    case("not ours", Packet::NotOurs, 4, 1_000_000),
    remembered("syn with a limit", Situation::Limited, &[], Packet::Syn, DISTINCT),
    remembered("syn refused", Situation::Full, &[], Packet::Syn, DISTINCT),
    remembered("syn spilled", Situation::Spilling, &[], Packet::Syn, DISTINCT),
    remembered("promotion", Situation::Spilling, &[Packet::Syn], Packet::Open, DISTINCT),
    remembered(
        "displaced entry hit",
        Situation::Spilling,
        &[Packet::Syn, Packet::Open],
        Packet::Open,
        1_000,
    ),
    remembered(
        "displaced entry hit",
        Situation::Spilling,
        &[Packet::Syn, Packet::Open],
        Packet::Open,
        DISTINCT,
    ),
    remembered("miss, displaced check on", Situation::Open, &[], Packet::Open, 1_000),
    remembered("miss, displaced check on", Situation::Open, &[], Packet::Open, DISTINCT),
    remembered("miss with handshake entry", Situation::Open, &[Packet::Syn], Packet::Open, 1_000),
    remembered(
        "miss with handshake entry",
        Situation::Open,
        &[Packet::Syn],
        Packet::Open,
        DISTINCT,
    ),
    remembered("syn repeated", Situation::Limited, &[Packet::Syn], Packet::Syn, 1_000),
    captured("others captured", Capture { version: 6, ..ALL }),
    captured("captured, nobody reads", ALL),
];

/// Medians of a case, nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// The case.
    pub(crate) case: Case,
    /// One packet through wrapper and balancer.
    pub(crate) ns: f64,
    /// One packet through wrapper and floor.
    pub(crate) floor_ns: f64,
}

impl Timing {
    /// As it stands in the report.
    pub(crate) fn to_json(self) -> Value {
        json!({
            "case": self.case.name, "flows": self.case.flows, "ns": self.ns,
            "floor_ns": self.floor_ns, "above_floor_ns": self.ns - self.floor_ns,
        })
    }
}

/// Times a case: `rounds` rounds of `repeat` packets, balancer and floor in turn.
///
/// # Errors
/// A run that fails or ends with the wrong action.
pub(crate) fn time(
    programs: &mut Programs,
    case: Case,
    rounds: usize,
    repeat: u32,
) -> Result<Timing> {
    let (grown, action) = match (case.packet, case.version, case.situation) {
        (Packet::NotOurs, ..) => (0, XDP_PASS),
        (_, _, Situation::Full) => (0, XDP_DROP),
        (_, version, _) => (usize::from(case.form.overhead(version == 4)), XDP_TX),
    };
    let repeat = if case.flows == DISTINCT { repeat.min(REMEMBERED) } else { repeat };
    let Case { situation, form, capture, .. } = case;
    let state = State { interface: 1, v6: case.version == 6, situation, form, capture };
    fill::fill(&mut programs.balancer, &state)?;
    let (mut balancer, mut floor) = (Vec::new(), Vec::new());
    let number = CASES
        .iter()
        .take_while(|other| (other.name, other.flows) != (case.name, case.flows))
        .count();
    // Each case's connections begin at a number of their own, lest one case meets another's handshake entries.
    let sequence = 1 + 1_000_000 * number as u32;
    let frame = |packet| template((packet, sequence), case.version, grown);
    let first = number * rounds;
    for round in 0..rounds {
        // The same flows within a round, others in each.
        let settings = Settings {
            grown: grown as u64,
            version: u64::from(case.version),
            flows: case.flows,
            sequence: (first + round) as u64 * 2 + 1,
        };
        for &packet in case.before {
            programs.set(settings)?;
            programs.run(Target::Balancer, &frame(packet), repeat, action)?;
        }
        let least = if grown == 0 { XDP_PASS } else { XDP_TX };
        for (target, times, action) in
            [(Target::Balancer, &mut balancer, action), (Target::Floor, &mut floor, least)]
        {
            programs.set(settings)?;
            times
                .push(programs.run(target, &frame(case.packet), repeat, action)?.as_nanos() as f64);
        }
    }
    Ok(Timing { case, ns: median(&mut balancer), floor_ns: median(&mut floor) })
}
