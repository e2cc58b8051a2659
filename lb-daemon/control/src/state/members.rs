//! The state of each backend in each pool, its reason, and its last changes.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    mem,
    net::IpAddr,
    time::{Instant, SystemTime},
};

use lb_common::abi::member::Accepts;

use super::PacketPath;
use crate::command::StateChange;
use lb_health::{AgentReport, Health, HealthChange};
use lb_model::{AdminState, Configuration, MemberState, Name, Pool};

pub(super) type Key = (Name, IpAddr);

/// A backend in a pool.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    pub(super) state: MemberState,
    pub(super) reason: String,
    pub(super) since: SystemTime,
    pub(super) decided_by: DecidedBy,
    /// Whether `decided_by` has decided yet. Until then the state is the one found in the packet path.
    pub(super) is_decided: bool,
    /// The state and reason without draining.
    undrained: (MemberState, String),
    /// Whether it may have connections, as far as is known. A backend that never passed a check has none.
    has_served: bool,
    /// Whether the operator drains it.
    drained: bool,
    pub(super) agent_report: AgentReport,
    /// Share that follows from its utilisation; `None` if no backend of its group reports one.
    pub(super) balance: Option<f64>,
    /// The last value written to the packet path.
    pub(super) last_resort: Option<bool>,
    /// When it came up, if this daemon saw that.
    pub(super) up_since: Option<Instant>,
    /// The last value written to the packet path.
    pub(super) ramp: Option<u8>,
    pub(super) history: History,
}

/// What decides the state of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecidedBy {
    /// The operator disabled it.
    Operator,
    /// Its pool has no checks, so it is up.
    NoChecks,
    /// Its checks, or until their first result the state found in the packet path.
    Checks,
}

/// The members of all pools.
#[derive(Debug, Default)]
pub(super) struct Members {
    members: BTreeMap<Name, BTreeMap<IpAddr, Member>>,
    pools: HashMap<IpAddr, Vec<Name>>,
    /// Pools with a member that has an agent report, or whose shares still show one.
    pub(super) reporting: BTreeSet<Name>,
    /// When shares were last balanced by utilisation.
    pub(super) balanced_at: Option<Instant>,
}

impl Members {
    pub(super) fn get(&self, (pool, address): &Key) -> Option<&Member> {
        self.pool_members(pool)?.get(address)
    }

    pub(super) fn get_mut(&mut self, (pool, address): &Key) -> Option<&mut Member> {
        self.members.get_mut(pool)?.get_mut(address)
    }

    pub(super) fn pool_members(&self, pool: &Name) -> Option<&BTreeMap<IpAddr, Member>> {
        self.members.get(pool)
    }

    /// Pools that contain an address, by name.
    pub(super) fn pools_of(&self, address: &IpAddr) -> &[Name] {
        self.pools.get(address).map_or(&[], Vec::as_slice)
    }

    /// Takes over the backends of a configuration. States of backends that an earlier daemon left come from
    /// `path`. Returns new and changed members.
    pub(super) fn configure(
        &mut self,
        configuration: &Configuration,
        path: &impl PacketPath,
        now: SystemTime,
    ) -> Vec<Key> {
        let previous = mem::take(self);
        self.balanced_at = previous.balanced_at;
        let mut previous = previous.members;
        let mut changed = Vec::new();
        for (name, pool) in &configuration.pools {
            let mut previous = previous.remove(name).unwrap_or_default();
            let mut members = BTreeMap::new();
            for (address, backend) in &pool.backends {
                let before = previous.remove(address);
                let mut member = match before.clone() {
                    Some(before) => before,
                    None => Member::new(path.state(name, *address), now),
                };
                member.set_decided_by(decided_by(pool, backend.admin_state));
                member.drained = backend.admin_state == AdminState::Drain;
                member.update_state(now);
                if before.as_ref() != Some(&member) {
                    changed.push((name.clone(), *address));
                }
                if !member.agent_report.is_nothing() || member.balance.is_some() {
                    self.reporting.insert(name.clone());
                }
                members.insert(*address, member);
                self.pools.entry(*address).or_default().push(name.clone());
            }
            self.members.insert(name.clone(), members);
        }
        changed
    }

    /// Makes the packet path agree. Members that are undecided take over the state of the packet path
    /// instead.
    pub(super) fn write_states(&mut self, path: &mut impl PacketPath, now: SystemTime) {
        let members = self.members.iter_mut();
        let members =
            members.flat_map(|(pool, members)| members.iter_mut().map(move |m| (pool, m)));
        for (pool, (address, member)) in members {
            let Some(accepts) = path.state(pool, *address) else { continue };
            if accepts != member.state.accepts() && !member.is_decided {
                member.recover(accepts);
                member.update_state(now);
                member.up_since = None;
            }
            if accepts != member.state.accepts() {
                path.set_state(pool, *address, member.state.accepts());
            }
        }
    }

    /// Takes a result of checks. Returns the member's state if state or reason changed.
    pub(super) fn take_health_change(
        &mut self,
        change: &HealthChange,
        now: SystemTime,
    ) -> Option<MemberState> {
        let members = self.members.get_mut(&change.pool)?;
        // Results for backends that were removed or disabled meanwhile do not count.
        let member = members.get_mut(&change.address)?;
        if member.decided_by != DecidedBy::Checks {
            return None;
        }
        member.is_decided |= change.undecided.is_none();
        member.take_result(change);
        if !member.agent_report.is_nothing() && !self.reporting.contains(&change.pool) {
            self.reporting.insert(change.pool.clone());
        }
        member.update_state(now).then_some(member.state)
    }
}

/// Whether a backend needs probes, because its checks decide its state.
pub(super) fn is_checked(pool: &Pool, admin_state: AdminState) -> bool {
    decided_by(pool, admin_state) == DecidedBy::Checks
}

fn decided_by(pool: &Pool, admin_state: AdminState) -> DecidedBy {
    match admin_state {
        AdminState::Disabled => DecidedBy::Operator,
        // A drained backend is still probed.
        _ if pool.health_checks.is_empty() => DecidedBy::NoChecks,
        _ => DecidedBy::Checks,
    }
}

impl Member {
    /// A backend of which only its state in the packet path is known.
    fn new(there: Option<Accepts>, now: SystemTime) -> Self {
        let mut member = Self {
            state: MemberState::recovered(there.unwrap_or(Accepts::Nothing)),
            reason: String::new(),
            since: now,
            decided_by: DecidedBy::Checks,
            is_decided: false,
            undrained: (MemberState::Pending, String::new()),
            has_served: false,
            drained: false,
            agent_report: AgentReport::default(),
            balance: None,
            last_resort: None,
            up_since: None,
            ramp: None,
            history: History::default(),
        };
        member.recover(there.unwrap_or(Accepts::Nothing));
        member
    }

    fn recover(&mut self, accepts: Accepts) {
        let reason = match accepts {
            Accepts::Nothing => "not checked yet",
            _ => "state from before the daemon's start, not checked yet",
        };
        self.has_served = accepts != Accepts::Nothing;
        self.undrained = (MemberState::recovered(accepts), reason.into());
    }

    /// If the host answers, its connections stay, if it can have any. The state also stays while a row of
    /// failures is not complete.
    fn take_result(&mut self, change: &HealthChange) {
        let reason = change.reason.clone();
        self.agent_report = change.report.clone();
        self.has_served |= change.health == Health::Passing;
        if let Some(row) = change.undecided.filter(|_| self.has_served) {
            self.undrained.1 = format!("{reason} ({row})");
            return;
        }
        self.undrained = match change.health {
            Health::Passing => (MemberState::Up, reason),
            Health::Failing if self.has_served => (MemberState::Unhealthy, reason),
            Health::Failing => {
                (MemberState::Pending, format!("{reason} (gets no connections until it passes)"))
            }
            Health::Silent => (MemberState::Unreachable, reason),
        };
    }

    fn set_decided_by(&mut self, decided_by: DecidedBy) {
        if self.decided_by == decided_by {
            return;
        }
        self.decided_by = decided_by;
        self.agent_report = AgentReport::default();
        self.is_decided = decided_by != DecidedBy::Checks;
        let (state, reason) = match decided_by {
            DecidedBy::Operator => (MemberState::Disabled, "disabled"),
            DecidedBy::NoChecks => (MemberState::Up, "no checks"),
            DecidedBy::Checks => {
                (MemberState::recovered(self.undrained.0.accepts()), "not checked yet")
            }
        };
        // A disabled backend comes back as a new one: its connections have moved.
        self.has_served = state.accepts() != Accepts::Nothing;
        self.undrained = (state, reason.into());
    }

    /// Whether the operator or its agent drains it.
    pub(super) fn is_drained(&self) -> bool {
        self.drained || self.agent_report.drain.is_some()
    }

    /// Whether it may get new connections as soon as the operator allows it. Nothing is known of a disabled
    /// backend, so it may.
    pub(super) fn may_serve(&self) -> bool {
        let healthy = self.undrained.0 == MemberState::Up && self.agent_report.drain.is_none();
        healthy || self.decided_by == DecidedBy::Operator
    }

    /// Derives the state. Returns whether state or reason changed.
    fn update_state(&mut self, now: SystemTime) -> bool {
        let (known, reason) = &self.undrained;
        let state = if self.is_drained() { known.drained() } else { *known };
        let reason = match (known, &self.agent_report.drain) {
            (MemberState::Up, _) if self.drained => "drained".into(),
            (MemberState::Up, Some(why)) => format!("drained: {why}"),
            _ => reason.clone(),
        };
        let reason = reason.as_str();
        let news = self.state != state || self.reason != reason;
        if self.state != state {
            self.since = now;
            self.up_since = (state == MemberState::Up).then(clock);
        }
        self.history.take(now, state, reason, self.is_decided);
        (self.state, self.reason) = (state, reason.into());
        news
    }
}

/// Changes kept of each backend.
const KEPT: usize = 16;

/// The last changes of a backend's state, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    changes: VecDeque<StateChange>,
    /// Whether the newest state was not decided by checks yet.
    was_undecided: bool,
}

impl History {
    pub(super) fn changes(&self) -> impl Iterator<Item = &StateChange> {
        self.changes.iter()
    }

    /// Adds a state. If the state is the same, that is no change, but the first result of checks replaces the
    /// reason, because it explains the state better.
    pub(super) fn take(
        &mut self,
        at: SystemTime,
        state: MemberState,
        reason: &str,
        is_decided: bool,
    ) {
        let was_undecided = mem::replace(&mut self.was_undecided, !is_decided);
        match self.changes.front_mut() {
            Some(newest) if newest.state == state => {
                if was_undecided && is_decided {
                    newest.reason = reason.into();
                }
            }
            _ => {
                self.changes.truncate(KEPT - 1);
                self.changes.push_front(StateChange { at, state, reason: reason.into() });
            }
        }
    }
}

/// The monotonic clock, which tests can pause.
pub(super) fn clock() -> Instant {
    tokio::time::Instant::now().into_std()
}
