//! The state of a backend in a pool, its reason, and its last changes.

use std::{
    collections::VecDeque,
    mem,
    net::IpAddr,
    time::{Duration, Instant, SystemTime},
};

use lb_common::abi::member::{Accepts, FULL_RAMP};

use super::clock;
use crate::command::StateChange;
use lb_health::{AgentReport, Health, HealthChange};
use lb_model::{
    AdminState, Backend, MemberState, Name, Pool, StateCause, StateReason,
    hold_down::{HoldDown, HoldDownTimes},
    overrides::{Action, Key, MemberOverride, Override, Overrides},
};

/// A backend in a pool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    pub(crate) state: MemberState,
    pub(crate) reason: StateReason,
    pub(crate) since: SystemTime,
    pub(super) decided_by: DecidedBy,
    /// Whether `decided_by` has decided yet. Until then the state is the one found in the packet path.
    pub(crate) is_decided: bool,
    /// The state and reason without draining and without hold-down.
    undrained: (MemberState, StateReason),
    /// Whether it may have connections, as far as is known. A backend that never passed a check has none.
    has_served: bool,
    hold_down: HoldDown,
    /// When it went down, and what its hold-down was before. `None`: it is not down.
    failed: Option<(Instant, HoldDown)>,
    /// `None` before the first configuration.
    hold_times: Option<HoldDownTimes>,
    /// Whether the configuration drains it.
    drained: bool,
    overridden: Overridden,
    /// Whether it has a weight.
    pub(super) weighted: bool,
    pub(crate) agent_report: AgentReport,
    /// Share that follows from its utilisation; `None` if no backend of its group reports one.
    pub(super) balance: Option<f64>,
    /// The last value written to the packet path.
    pub(super) last_resort: Option<bool>,
    /// When it came up, if this daemon saw that.
    pub(super) up_since: Option<Instant>,
    /// The last value written to the packet path.
    pub(crate) ramp: Option<u8>,
    pub(crate) history: History,
}

/// What overrides ask of a member.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Overridden {
    pub(super) by: MemberOverride,
    /// Whose override keeps it from new connections, and why, as the reason of its state shows it. Empty: none does.
    pub(super) why: String,
}

impl Overridden {
    const NONE: Self = Self { by: MemberOverride::NONE, why: String::new() };

    /// Of a backend of a pool.
    pub(super) fn of(overrides: &Overrides, pool: &Name, address: &IpAddr, region: &Name) -> Self {
        let by = overrides.member(pool, address, region);
        if !by.drained && !by.disabled {
            return Self { by, why: String::new() };
        }
        let stops = |(_, it): &(Key, &Override)| match by.disabled {
            true => it.action == Action::Disable,
            false => it.action.stops(),
        };
        let stopping = overrides.of_member(pool, address, region).find(stops);
        let why = stopping.map_or_else(String::new, |(key, it)| {
            let an = if key.is_local() { "a local" } else { "an" };
            let colon = if it.reason.is_empty() { "" } else { ": " };
            format!("by {an} override of {}{colon}{}", it.who, it.reason)
        });
        Self { by, why }
    }
}

/// How many members of a pool are so; of one member 0 or 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Those that should take connections.
    pub(super) active: usize,
    /// Of those, the healthy ones.
    pub(super) healthy: usize,
    /// Those with a weight that are up and have less than their full share.
    pub(super) uneven: usize,
    /// Those with an agent report, or a share that follows from one.
    pub(super) reporting: usize,
    /// Those that are held down.
    pub(super) held: usize,
}

impl Counts {
    /// The counts after one member changed.
    pub(super) fn replace(&mut self, before: Self, after: Self) {
        self.active = self.active + after.active - before.active;
        self.healthy = self.healthy + after.healthy - before.healthy;
        self.uneven = self.uneven + after.uneven - before.uneven;
        self.reporting = self.reporting + after.reporting - before.reporting;
        self.held = self.held + after.held - before.held;
    }
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

/// Whether a backend needs probes, because its checks decide its state.
pub(crate) fn is_checked(pool: &Pool, admin_state: AdminState) -> bool {
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
    /// A backend of which only its state in the packet path is known, and maybe the hold-down that an earlier daemon knew.
    pub(super) fn new(there: Option<Accepts>, restored: Option<HoldDown>, now: SystemTime) -> Self {
        let mut member = Self {
            state: MemberState::recovered(there.unwrap_or(Accepts::Nothing)),
            reason: not_checked(Accepts::Nothing),
            since: now,
            decided_by: DecidedBy::Checks,
            is_decided: false,
            undrained: (MemberState::Pending, not_checked(Accepts::Nothing)),
            has_served: false,
            hold_down: HoldDown::default(),
            failed: None,
            hold_times: None,
            drained: false,
            overridden: Overridden::NONE,
            weighted: false,
            agent_report: AgentReport::default(),
            balance: None,
            last_resort: None,
            up_since: None,
            ramp: None,
            history: History::default(),
        };
        member.recover(there.unwrap_or(Accepts::Nothing), restored);
        member
    }

    /// Takes over what the configuration and overrides say of it.
    pub(super) fn configure(
        &mut self,
        pool: &Pool,
        backend: &Backend,
        overridden: Overridden,
        now: SystemTime,
    ) {
        self.take_override(overridden);
        self.set_decided_by(decided_by(pool, backend.admin_state));
        // The operator's ways to end a hold: other times, or a backend that was drained and no longer is.
        let times = Some(HoldDownTimes::new(pool));
        let has_other_times = self.hold_times.is_some() && self.hold_times != times;
        let was_drained = mem::replace(&mut self.drained, backend.admin_state == AdminState::Drain);
        if has_other_times || (was_drained && !self.drained) {
            self.forget_failures();
        }
        self.hold_times = times;
        self.weighted = backend.weight > 0;
        self.update_state(now);
    }

    /// Takes over what overrides ask of it. Returns whether anything changed.
    pub(super) fn set_override(&mut self, overridden: Overridden, now: SystemTime) -> bool {
        let is_news = self.overridden != overridden;
        self.take_override(overridden);
        self.update_state(now) | is_news
    }

    fn take_override(&mut self, overridden: Overridden) {
        let before = mem::replace(&mut self.overridden, overridden).by;
        let now = self.overridden.by;
        let has_ended = |was: bool, is: bool| was && !is;
        if has_ended(before.drained, now.drained) || has_ended(before.disabled, now.disabled) {
            // The operator's way to end a hold.
            self.forget_failures();
        }
        if has_ended(before.disabled, now.disabled) {
            // Its connections have moved, so it comes back as a new one.
            self.has_served = self.undrained.0 == MemberState::Up;
            if self.undrained.0 == MemberState::Unhealthy {
                self.undrained.0 = MemberState::Pending;
            }
        }
    }

    /// Share of its weight that overrides leave it, above 0 and at most 1.
    pub(super) fn asked_weight(&self) -> f64 {
        self.overridden.by.weight
    }

    /// Takes over the state of the packet path, if its checks have not decided.
    pub(super) fn recover_state(
        &mut self,
        accepts: Accepts,
        restored: Option<HoldDown>,
        now: SystemTime,
    ) {
        self.recover(accepts, restored);
        self.update_state(now);
        self.up_since = None;
    }

    /// Takes a result of checks. Failures before `excused` may be this host's own. Returns whether state or reason changed.
    pub(super) fn take_health_change(
        &mut self,
        change: &HealthChange,
        now: SystemTime,
        at: Instant,
        excused: Option<Instant>,
    ) -> bool {
        self.is_decided |= change.undecided.is_none();
        self.take_result(change, at, excused);
        self.update_state(now)
    }

    /// Ends a hold whose time is over. Returns whether it did. One from before a restart lasts until a check has passed
    /// since.
    pub(super) fn release(&mut self, now: SystemTime, at: Instant) -> bool {
        let is_over = self.is_decided && self.hold_down.release(at);
        if is_over {
            self.update_state(now);
        }
        is_over
    }

    /// Whether it passes its checks and is held down, drained or not.
    pub(super) fn is_held(&self) -> bool {
        self.hold_down.is_held()
    }

    /// What a restart must not forget of its hold-down.
    pub(crate) fn hold_down(&self) -> Option<(HoldDownTimes, HoldDown)> {
        Some((self.hold_times?, self.hold_down)).filter(|(_, it)| *it != HoldDown::default())
    }

    /// How much longer it is held down, if that is its state, and the reason with that time.
    pub(crate) fn hold_left(&self, now: Instant) -> Option<(Duration, StateReason)> {
        let left = self.hold_down.left(now).filter(|_| self.state == MemberState::HeldDown)?;
        Some((left, self.hold_reason(left, " more")))
    }

    pub(super) fn counts(&self) -> Counts {
        let is_active =
            self.weighted && self.decided_by != DecidedBy::Operator && !self.is_withdrawn();
        let is_up = self.state == MemberState::Up;
        Counts {
            active: is_active.into(),
            healthy: (is_active && is_up).into(),
            uneven: (is_up
                && self.weighted
                && (self.ramp != Some(FULL_RAMP) || self.asked_weight() < 1.0))
                .into(),
            reporting: (!self.agent_report.is_nothing() || self.balance.is_some()).into(),
            held: self.is_held().into(),
        }
    }

    fn recover(&mut self, accepts: Accepts, restored: Option<HoldDown>) {
        self.has_served = accepts != Accepts::Nothing;
        self.undrained = (MemberState::recovered(accepts), not_checked(accepts));
        self.failed = None;
        // If nothing is known of what it did before the start, its next return is the first one.
        self.hold_down = restored.unwrap_or_else(|| match accepts {
            Accepts::OpenOnly => HoldDown::DOWN,
            Accepts::All | Accepts::Nothing => HoldDown::default(),
        });
        // A held backend passed its checks.
        if self.is_held() {
            self.undrained.0 = MemberState::Up;
        }
    }

    /// If the host answers, its connections stay, if it can have any. The state also stays while a row of
    /// failures is not complete.
    fn take_result(&mut self, change: &HealthChange, at: Instant, excused: Option<Instant>) {
        let reason = change.reason.clone();
        self.agent_report = change.report.clone();
        self.has_served |= change.health == Health::Passing;
        if let Some(row) = change.undecided.filter(|_| self.has_served) {
            self.undrained.1 = with_note(reason, &row.to_string());
            return;
        }
        if let Some(times) = self.hold_times.filter(|_| self.has_served) {
            match change.health {
                Health::Passing => {
                    let failed = self.failed.take();
                    // Judged only now, because the news of an interface may come after the failure.
                    if let Some((_, before)) = failed.filter(|(at, _)| excused >= Some(*at)) {
                        self.hold_down = before;
                    }
                    self.hold_down.pass(at, times);
                }
                Health::Failing | Health::Silent => {
                    self.failed.get_or_insert((at, self.hold_down));
                    self.hold_down.fail(at, times);
                }
            }
        }
        self.undrained = match change.health {
            Health::Passing => (MemberState::Up, reason),
            Health::Failing if self.has_served => (MemberState::Unhealthy, reason),
            Health::Failing => {
                (MemberState::Pending, with_note(reason, "gets no connections until it passes"))
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
        self.forget_failures();
        self.is_decided = decided_by != DecidedBy::Checks;
        let (state, reason) = match decided_by {
            DecidedBy::Operator => {
                (MemberState::Disabled, StateReason::new(StateCause::Configuration, "disabled"))
            }
            DecidedBy::NoChecks => {
                (MemberState::Up, StateReason::new(StateCause::NoChecks, "no checks"))
            }
            DecidedBy::Checks => {
                let state = MemberState::recovered(self.undrained.0.accepts());
                (state, not_checked(Accepts::Nothing))
            }
        };
        // A disabled backend comes back as a new one: its connections have moved.
        self.has_served = state.accepts() != Accepts::Nothing;
        self.undrained = (state, reason);
    }

    fn forget_failures(&mut self) {
        (self.hold_down, self.failed) = (HoldDown::default(), None);
    }

    /// Whether the configuration, an override or its agent drains it.
    fn is_drained(&self) -> bool {
        self.drained || self.overridden.by.drained || self.agent_report.drain.is_some()
    }

    /// Whether somebody asked that it gets no new connections.
    pub(super) fn is_withdrawn(&self) -> bool {
        self.is_drained() || self.overridden.by.disabled
    }

    /// Whether it may get new connections as soon as the configuration allows it. Nothing is known of a backend that the
    /// configuration disables, so it may.
    pub(crate) fn may_serve(&self) -> bool {
        // The end of a drain ends a hold too.
        let healthy = self.undrained.0 == MemberState::Up
            && self.agent_report.drain.is_none()
            && (self.drained || !self.is_held());
        healthy || self.decided_by == DecidedBy::Operator
    }

    /// Whether it can take new connections, or could if local overrides did not stop it: these mark nothing out.
    pub(crate) fn is_available(&self) -> bool {
        let could = || {
            self.undrained.0 == MemberState::Up
                && !self.drained
                && self.agent_report.drain.is_none()
                && !self.is_held()
        };
        self.state == MemberState::Up || (self.overridden.by.stopped_locally && could())
    }

    /// Derives the state. Returns whether state or reason changed.
    fn update_state(&mut self, now: SystemTime) -> bool {
        let (known, reason) = &self.undrained;
        let held = self.hold_down.length().filter(|_| *known == MemberState::Up);
        let is_disabled = self.overridden.by.disabled && *known != MemberState::Disabled;
        let state = match known {
            _ if is_disabled => MemberState::Disabled,
            _ if self.is_drained() => known.drained(),
            _ if held.is_some() => MemberState::HeldDown,
            _ => *known,
        };
        let reason = match (known, &self.agent_report.drain) {
            _ if is_disabled => {
                let text = format!("disabled {}", self.overridden.why);
                StateReason::new(StateCause::Override, text)
            }
            (MemberState::Up, _) if self.drained => {
                StateReason::new(StateCause::Configuration, "drained")
            }
            (MemberState::Up, _) if self.overridden.by.drained => {
                let text = format!("drained {}", self.overridden.why);
                StateReason::new(StateCause::Override, text)
            }
            (MemberState::Up, Some(why)) => {
                StateReason::new(StateCause::AgentReport, format!("drained: {why}"))
            }
            _ => held.map_or_else(|| reason.clone(), |length| self.hold_reason(length, "")),
        };
        let news = self.state != state || self.reason != reason;
        if self.state != state {
            self.since = now;
            self.up_since = (state == MemberState::Up).then(clock);
        }
        self.history.take(now, state, &reason, self.is_decided);
        (self.state, self.reason) = (state, reason);
        news
    }

    /// Why it is held down for a time, whole seconds rounded up.
    fn hold_reason(&self, time: Duration, more: &str) -> StateReason {
        let seconds = time.as_millis().div_ceil(1000);
        let within = self.hold_times.map_or(0, |times| times.longest.as_secs());
        let row = match self.hold_down.failures() {
            0 | 1 => String::new(),
            row => format!(", {row} times in a row"),
        };
        let text = format!(
            "held down for {seconds} s{more}: went down within {within} s of its return{row}"
        );
        StateReason::new(StateCause::HeldDown, text)
    }
}

/// Until the first result of checks, of a backend that accepted such packets before.
fn not_checked(accepts: Accepts) -> StateReason {
    let text = match accepts {
        Accepts::Nothing => "not checked yet",
        _ => "state from before the daemon's start, not checked yet",
    };
    StateReason::new(StateCause::NotChecked, text)
}

fn with_note(reason: StateReason, note: &str) -> StateReason {
    StateReason { text: format!("{reason} ({note})"), ..reason }
}

/// Changes kept of each backend.
const KEPT: usize = 16;

/// The last changes of a backend's state, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct History {
    changes: VecDeque<StateChange>,
    /// Whether the newest state was not decided by checks yet.
    was_undecided: bool,
}

impl History {
    pub(crate) fn changes(&self) -> impl Iterator<Item = &StateChange> {
        self.changes.iter()
    }

    /// Adds a state. If the state is the same, that is no change, but the first result of checks replaces the
    /// reason, because it explains the state better.
    pub(super) fn take(
        &mut self,
        at: SystemTime,
        state: MemberState,
        reason: &StateReason,
        is_decided: bool,
    ) {
        let was_undecided = mem::replace(&mut self.was_undecided, !is_decided);
        match self.changes.front_mut() {
            Some(newest) if newest.state == state => {
                if was_undecided && is_decided {
                    newest.reason = reason.clone();
                }
            }
            _ => {
                self.changes.truncate(KEPT - 1);
                self.changes.push_front(StateChange { at, state, reason: reason.clone() });
            }
        }
    }
}
