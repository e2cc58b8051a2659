//! Health: asks every backend whether it serves, and tells changes.
//!
//! One loop probes each distinct (address, check definition), however many pools name it
//! (`probe_loop`); its results go to every target that uses it (`board`). A target, a backend in
//! a pool, is healthy when all its checks pass.
//!
//! - A probe passes at its first success, and fails after `fall` failures in a row, the first of all
//!   included. From then on it comes up after `rise` successes in a row (`streak`). Until it has decided,
//!   a new target takes nothing, and one that was known before, to this daemon or an earlier one, stays as
//!   it was.
//! - The first check of a probe starts at once where a target waits for it, as it takes nothing; else
//!   anywhere in the interval, so that neither a start of the daemon nor an edit asks all at once (`pace`).
//! - While a row of results has begun that would change that, checks follow at the fast interval
//!   (`pace`).
//! - A check that gets no connection (over UDP no answer), not even a refusal, asks the host itself
//!   (`host`), in the time that the check has. A probe whose last `fall` results show no sign of the host calls it silent,
//!   and takes that back at the first sign. A target is silent when all its checks call it so.
//! - A check may hear what the backend says of itself (`word`), as an agent or in a header. That it is
//!   down fails an agent's check as any failure does. An agent that cannot be had or read fails
//!   nothing: what it said stands until `fall` such results in a row. Nor does it speak for the host's
//!   silence against other checks, but for as many without a sign of the host.
//! - A check through the tunnel goes to each VIP of its pool as clients' packets do (`tunnel`); a pool
//!   that no service uses has none, and is not asked.
//! - Whatever a backend sends, a check takes its timeout at most, and bounded memory (`check`).
//! - A configuration that leaves a probe's definition as it was leaves the probe running. One that asks
//!   the same of a target at other times, or judges it by another rise and fall, starts another probe,
//!   which goes on with the rows of the former one.
//! - A change is told as soon as the check that brought it about has ended.

mod agent_report;
pub mod check;
mod counters;
pub mod host;
mod judge;
mod lateness;
mod pace;
mod probe_loop;
mod prober;
mod streak;
mod targets;
pub mod tunnel;

use std::{collections::BTreeSet, fmt, net::IpAddr};

pub use agent_report::{Said, Utilisation};
pub use counters::{Check, Counters};
pub use lateness::Lateness;
pub use prober::Prober;
use tunnel::Through;
pub use tunnel::{AttachProgram, TunnelProgram, Tunnels};

use lb_model::{Encapsulation, HealthCheck, Name, Via};

/// A backend in a pool, and what judges it there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The pool.
    pub pool: Name,
    /// The backend.
    pub address: IpAddr,
    /// All must pass, each with the name that reasons call it by; none: it is healthy.
    pub checks: Vec<(Name, HealthCheck)>,
    /// The VIPs of the pool's services: a check through the tunnel asks for each, if there is one.
    pub vips: BTreeSet<IpAddr>,
    /// How the pool's packets get to the backend.
    pub encapsulation: Encapsulation,
    /// Whether it takes nothing and waits for its first result, so that new probes of it begin at once.
    pub urgent: bool,
}

/// What checks say of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It serves.
    Passing,
    /// It does not, but its host is there, or has been until a moment ago.
    Failing,
    /// It does not, and nothing at all has come from its host for as many checks in a row as `fall`
    /// says.
    Silent,
}

/// Failures in a row that decide nothing yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// How many there have been.
    pub failed: u32,
    /// How many decide.
    pub fall: u32,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failure {} of {}", self.failed, self.fall)
    }
}

/// What a target's checks say from now on.
///
/// Told when health changes, while it is bad or undecided when the reason does, when what the backend says of itself
/// changes by as much as matters, and again after each configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthChange {
    /// The pool.
    pub pool: Name,
    /// The backend.
    pub address: IpAddr,
    /// What they say together.
    pub health: Health,
    /// The row that has only begun; until it is whole, a target that has served stays as it was.
    pub undecided: Option<Row>,
    /// Why: `check web-http: connection refused`.
    pub reason: String,
    /// Whether nothing was told of this target before.
    pub first: bool,
    /// What it says of itself.
    pub said: Said,
}

/// What one loop probes: pools that agree on both share it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Probed {
    address: IpAddr,
    check: HealthCheck,
    /// What it goes through; `None`: it goes to the backend's own address.
    through: Option<Through>,
}

impl Probed {
    /// Whether both ask the same question in the same way, be it at other times and judged otherwise.
    fn asks_the_same(&self, other: &Self) -> bool {
        (self.address, self.through) == (other.address, other.through)
            && self.check.asks_the_same(&other.check)
    }
}

impl Target {
    /// The probes of a check.
    fn probes(&self, check: &HealthCheck) -> Vec<Probed> {
        let probed = |through| Probed { address: self.address, check: check.clone(), through };
        let encapsulation = self.encapsulation;
        match check.via {
            Via::Address => vec![probed(None)],
            Via::Tunnel => {
                let through = |vip: &IpAddr| Some(Through { vip: *vip, encapsulation });
                self.vips.iter().map(|vip| probed(through(vip))).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests;
