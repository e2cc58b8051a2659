//! Health checks: probes every backend and reports changes.
//!
//! One loop (`probe_loop`) probes each distinct pair of address and check definition, however many pools have it.
//! Its results go to every target that uses it (`targets`). A target is a backend in a pool, and healthy if all its
//! checks pass.
//!
//! - A probe passes at its first success, and fails after `fall` consecutive failures, also at first. After that it
//!   passes again after `rise` consecutive successes (`streak`). Until it is decided, a new target takes nothing,
//!   and one that this daemon or an earlier one knew keeps its state.
//! - If a target waits for its first result, the first check starts at once. Otherwise it starts anywhere in the
//!   interval, so that neither a start of the daemon nor an edit causes all checks at once (`pace`).
//! - While results have begun that could change the state, checks follow at the fast interval (`pace`).
//! - If a check gets no connection (over UDP no answer) and no refusal, the host is probed within the check's
//!   timeout (`host`). A probe is silent after `fall` results without a sign of the host, until the first sign. A
//!   target is silent if all its checks are.
//! - A check may read an agent report (`agent_report`), from an agent or a header. A report of `down` fails an
//!   agent's check like any failure. An agent that does not answer or cannot be read fails nothing: its last report
//!   applies until `fall` such results in a row. Its silence counts only together with the silence of the other
//!   checks.
//! - A check through the tunnel goes to each VIP of its pool as clients' packets do (`tunnel`). A pool without
//!   services has no VIP, and such a check is not made.
//! - Whatever a backend sends, a check ends with its timeout and uses bounded memory (`check`).
//! - An edit that does not change a probe's definition does not affect it. If only times, rise or fall change, a
//!   new probe continues the results of the old one (`judge`).
//! - A change is reported as soon as the check that caused it has ended.
//! - A restart of the daemon continues the results, if it does not take long (`saved`).

mod agent_report;
pub mod check;
pub mod connect;
mod counters;
pub mod host;
mod judge;
mod lateness;
mod pace;
mod probe_loop;
mod prober;
mod saved;
mod streak;
mod targets;
pub mod tunnel;

use std::{collections::BTreeSet, fmt, hash::Hash, net::IpAddr, time::Instant};

use serde::{Deserialize, Serialize};

pub use agent_report::{AgentReport, Utilisation};
pub use counters::{Check, Counters};
pub use lateness::Lateness;
pub use prober::Prober;
pub use saved::{SavedStreak, Streaks};
use tunnel::VipTunnel;
pub use tunnel::{AttachProgram, TunnelProgram, Tunnels};

use lb_model::{Encapsulation, HealthCheck, Name, StateReason, Via};

/// A backend in a pool, and its checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub pool: Name,
    pub address: IpAddr,
    /// Checks by name. All must pass; without any it is healthy.
    pub checks: Vec<(Name, HealthCheck)>,
    /// The VIPs of the pool's services, for checks through the tunnel.
    pub vips: BTreeSet<IpAddr>,
    pub encapsulation: Encapsulation,
    /// Whether it takes nothing until its first result, so that its new probes start at once.
    pub urgent: bool,
    /// Whether it takes all packets, as far as is known, so that none of its checks fails.
    pub is_up: bool,
}

/// The result of a backend's checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// All pass.
    Passing,
    /// At least one fails, but the host has given a sign within the last `fall` checks.
    Failing,
    /// They fail, and the host has given no sign for `fall` checks in a row.
    Silent,
}

/// Consecutive failures that do not decide yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// How many there are.
    pub failed: u32,
    /// How many decide.
    pub fall: u32,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failure {} of {}", self.failed, self.fall)
    }
}

/// A target's new state.
///
/// Sent when its health changes, when the reason changes while it is bad or undecided, when its agent report
/// changes enough, and again after each configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthChange {
    pub pool: Name,
    pub address: IpAddr,
    /// The combined result of its checks.
    pub health: Health,
    /// Failures that have begun without a decision. Meanwhile a target that has served keeps its state.
    pub undecided: Option<Row>,
    /// Why.
    pub reason: StateReason,
    /// Whether it is the first report of this target.
    pub first: bool,
    /// Its agent report.
    pub report: AgentReport,
    /// When the check that caused the change ended.
    pub at: Instant,
}

/// What a probe probes; pools with equal checks share a probe.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ProbeKey {
    address: IpAddr,
    check: HealthCheck,
    /// The tunnel; `None`: the check goes to the backend's own address.
    tunnel: Option<VipTunnel>,
}

impl ProbeKey {
    /// Whether both ask the same question, maybe at other times and with another rise and fall.
    fn asks_the_same(&self, other: &Self) -> bool {
        self.question() == other.question()
    }

    fn question(&self) -> impl Eq + Hash + '_ {
        (self.address, self.tunnel, self.check.question())
    }
}

impl Target {
    /// The probes of a check: one for each VIP if it goes through the tunnel.
    fn probes(&self, check: &HealthCheck) -> Vec<ProbeKey> {
        let probed = |tunnel| ProbeKey { address: self.address, check: check.clone(), tunnel };
        let encapsulation = self.encapsulation;
        match check.via {
            Via::Address => vec![probed(None)],
            Via::Tunnel => {
                let tunnel = |vip: &IpAddr| Some(VipTunnel { vip: *vip, encapsulation });
                self.vips.iter().map(|vip| probed(tunnel(vip))).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests;
