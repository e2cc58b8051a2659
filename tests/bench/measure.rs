//! Measures one round of a case with the objects of this revision.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use lb_tests::test_run::{
    fill::{self, Situation, State},
    frame::{Packet, template},
    programs::{Programs, Settings, Target},
    throughput::{Exit, Veths},
};

use crate::cases::{CASES, Case, DISTINCT};
use crate::peer_program::PeerProgram;
use crate::question::{CaseName, Sample};

const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;
const XDP_TX: u32 = 3;

/// Packets of a round where each flow's packet before must still be remembered.
const REMEMBERED: u32 = 100_000;

/// Flows in the flow table above which a round begins with an empty one: a quarter of its default size.
const MOST_LEFT: u64 = 1 << 18;

/// The loaded objects, and what they are filled for.
pub(crate) struct Bench {
    objects: PathBuf,
    programs: Programs,
    /// Measured instead of this revision's balancer.
    peer: Option<PeerProgram>,
    realtime: bool,
    veths: Option<Veths>,
    filled: Option<usize>,
    /// Flows that rounds may have left in the flow table since.
    left_behind: u64,
    rounds: u64,
}

impl Bench {
    /// Loads the objects of a folder. With `realtime` test runs have priority over ordinary processes.
    ///
    /// # Errors
    /// An object that is missing or that the kernel refuses.
    pub(crate) fn load(objects: &Path, realtime: bool, peer: Option<PeerProgram>) -> Result<Self> {
        let programs = Programs::load(objects)?;
        Ok(Self {
            objects: objects.into(),
            programs,
            peer,
            realtime,
            veths: None,
            filled: None,
            left_behind: 0,
            rounds: 0,
        })
    }

    /// What it measures.
    pub(crate) fn cases(&self) -> impl Iterator<Item = &'static Case> {
        CASES.iter().filter(|case| self.peer.is_none() || case.is_for_any())
    }

    /// One round of so many packets: this revision's balancer, then its floor.
    ///
    /// # Errors
    /// A case that there is not, or a run that fails or ends with the wrong action.
    pub(crate) fn round(&mut self, name: &CaseName, packets: u32) -> Result<Sample> {
        let is_asked = |case: &Case| case.name() == *name;
        ensure!(self.cases().any(is_asked), "{name}: no such case");
        let number = CASES.iter().position(is_asked);
        let number = number.with_context(|| format!("{name}: no such case"))?;
        let case = &CASES[number];
        // Above a quarter of the flow table, so that no round finds a pool that has its share of it.
        let flows = case.flows.min(packets.into()).min(REMEMBERED.into());
        let remembers = !case.before.is_empty() && case.packet != Packet::Syn;
        if self.filled != Some(number) || remembers && self.left_behind > MOST_LEFT {
            self.fill(number)?;
            self.left_behind = 0;
        }
        self.left_behind += flows;
        self.rounds += 1;
        // The same flows within a round, others in each.
        let settings = Settings {
            grown: grown(case) as u64,
            version: u64::from(case.version),
            flows: case.flows,
            services: case.services,
            sequence: self.rounds * 2 + 1,
        };
        match case.live {
            Some(exit) => self.live_round(exit, settings, packets),
            None => self.test_run_round(number, settings, packets),
        }
    }

    /// Sets the maps to what a case needs.
    fn fill(&mut self, number: usize) -> Result<()> {
        let leaves_more =
            |number: usize| CASES[number].services > 0 || CASES[number].live.is_some();
        if self.filled.is_some_and(leaves_more) {
            // Frees the tables, and detaches the sinks.
            self.programs = Programs::load(&self.objects)?;
        }
        self.filled = None;
        let case = &CASES[number];
        if self.realtime {
            schedule(if case.live.is_some() { ["--other", "0"] } else { ["--fifo", "1"] })?;
        }
        match case.live {
            Some(exit) => {
                let veths = match self.veths.take() {
                    Some(veths) => veths,
                    None => Veths::new()?,
                };
                self.veths.insert(veths).prepare(&mut self.programs, exit)?;
            }
            None => {
                let Case { situation, form, capture, services: own_pools, .. } = *case;
                let v6 = case.version == 6;
                let state = State { interface: 1, v6, situation, form, capture, own_pools };
                fill::fill(&mut self.programs.balancer, &state)?;
            }
        }
        self.filled = Some(number);
        Ok(())
    }

    fn live_round(&mut self, exit: Exit, settings: Settings, frames: u32) -> Result<Sample> {
        let veths = self.veths.as_ref().context("no veth pair was made")?;
        let floor = match exit {
            Exit::Transmit => Target::Floor,
            Exit::Redirect => Target::RedirectFloor,
        };
        let mut rate =
            |target| veths.round(&mut self.programs, target, settings, (Packet::Open, frames));
        Ok(Sample { value: rate(Target::Balancer)?, floor: rate(floor)? })
    }

    fn test_run_round(
        &mut self,
        number: usize,
        settings: Settings,
        packets: u32,
    ) -> Result<Sample> {
        let case = &CASES[number];
        let packets = if case.flows == DISTINCT { packets.min(REMEMBERED) } else { packets };
        let action = match case.situation {
            Situation::Full | Situation::Unreachable | Situation::Unserved => XDP_DROP,
            _ if case.packet.is_unserved() => XDP_PASS,
            _ => XDP_TX,
        };
        // Each case's connections begin at a number of their own, lest one case meets another's cells.
        let sequence = 1 + 1_000_000 * number as u32;
        let frame = |packet| template((packet, sequence), case.version, grown(case));
        for &packet in case.before {
            self.programs.set(settings)?;
            self.programs.run(Target::Balancer, &frame(packet), packets, action)?;
        }
        let least = if grown(case) == 0 { XDP_PASS } else { XDP_TX };
        let frame = frame(case.packet);
        self.programs.set(settings)?;
        let value = match &self.peer {
            Some(peer) => self.programs.run_other(peer.fd()?, &frame, packets, action)?,
            None => self.programs.run(Target::Balancer, &frame, packets, action)?,
        };
        self.programs.set(settings)?;
        let floor = self.programs.run(Target::Floor, &frame, packets, least)?;
        Ok(Sample { value: value.as_nanos() as f64, floor: floor.as_nanos() as f64 })
    }
}

/// Changes how this process is scheduled (sched(7)). Live frames are handled by a thread of the kernel, which a sender
/// before all ordinary threads would outrun.
fn schedule([policy, priority]: [&str; 2]) -> Result<()> {
    let own = std::process::id().to_string();
    let status = Command::new("chrt").args([policy, "--pid", priority, &own]).status();
    let status = status.context("chrt")?;
    ensure!(status.success(), "chrt {policy}: {status}");
    Ok(())
}

/// Bytes that the balancer puts in front of a case's packets.
fn grown(case: &Case) -> usize {
    match case.situation {
        Situation::Full | Situation::Unreachable => 0,
        _ if case.packet.is_unserved() => 0,
        _ => usize::from(case.form.overhead(case.version == 4)),
    }
}
