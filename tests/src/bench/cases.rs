//! The cases that are timed in a test run.

use anyhow::Result;
use serde_json::{Value, json};

use super::{
    fill,
    frame::{Packet, template},
    programs::{Programs, Settings, Target},
};

const XDP_PASS: u32 = 2;
const XDP_TX: u32 = 3;

/// One timed case.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name in tables and files.
    pub name: &'static str,
    /// What is sent.
    pub packet: Packet,
    /// IP version, inside and outside.
    pub version: u8,
    /// Random flows it is spread over.
    pub flows: u64,
}

const fn case(name: &'static str, packet: Packet, version: u8, flows: u64) -> Case {
    Case { name, packet, version, flows }
}

/// All of them.
pub const CASES: &[Case] = &[
    case("tcp established", Packet::Open, 4, 1),
    case("tcp established", Packet::Open, 4, 100_000),
    case("tcp established", Packet::Open, 4, 1_000_000),
    case("tcp syn", Packet::Syn, 4, 1_000_000),
    case("udp", Packet::Udp, 4, 1_000_000),
    case("ipv6 tcp established", Packet::Open, 6, 1),
    case("ipv6 tcp established", Packet::Open, 6, 1_000_000),
    case("not ours", Packet::NotOurs, 4, 1_000_000),
];

/// Medians of a case, nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The case.
    pub case: Case,
    /// One packet through wrapper and balancer.
    pub ns: f64,
    /// One packet through wrapper and floor.
    pub floor_ns: f64,
}

impl Timing {
    /// As it stands in the report.
    pub fn to_json(&self) -> Value {
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
pub fn time(programs: &mut Programs, case: Case, rounds: usize, repeat: u32) -> Result<Timing> {
    let (grown, action) = match (case.packet, case.version) {
        (Packet::NotOurs, _) => (0, XDP_PASS),
        (_, 4) => (20, XDP_TX),
        _ => (40, XDP_TX),
    };
    fill::fill(&mut programs.balancer, 1, case.version == 6)?;
    let version = u64::from(case.version);
    programs.set(Settings { grown: grown as u64, version, flows: case.flows })?;
    let frame = template(case.packet, case.version, grown);
    let (mut balancer, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        for (target, times) in [(Target::Balancer, &mut balancer), (Target::Floor, &mut floor)] {
            times.push(programs.run(target, &frame, repeat, action)?.as_nanos() as f64);
        }
    }
    Ok(Timing { case, ns: median(&mut balancer), floor_ns: median(&mut floor) })
}

/// The middle value.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
