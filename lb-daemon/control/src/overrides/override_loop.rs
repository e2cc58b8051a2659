use std::{collections::BTreeSet, future::Future, path::Path, sync::Arc};

use tokio::sync::{oneshot, watch};

use super::{file, saver::Saver};
use crate::{
    command::{
        OverrideChange, OverrideEnds, OverrideRequest, OverridesChanged, OverridesInForce, Refusal,
        Warning, WarningReason,
    },
    members::{MemberCommands, clock, wall_clock},
    status::{InForce, StatusUpdate},
};
use lb_base::{
    conditions::{Conditions, OVERRIDES},
    error_chain,
    heartbeat::Heartbeat,
    loops::{LoopCounters, LoopEnd, SECOND, ticks},
    queue::{Receiver, UnboundedSender},
};
use lb_model::{
    AdminState, Configuration, ObjectReference, Scaler,
    overrides::{self, Action, Key, Moment, Override, Overrides, Target, affected},
};

/// Most warnings of a kind in an answer.
const MOST_WARNINGS: usize = 20;

/// Owns the overrides.
#[derive(Debug)]
pub struct OverrideLoop {
    pub(super) overrides: Arc<Overrides>,
    requests: Receiver<OverrideRequest>,
    /// From the state loop; `None` until it has begun.
    state: watch::Receiver<Option<Arc<InForce>>>,
    /// What targets were last looked up in.
    pub(super) observed: Arc<Configuration>,
    /// Its generation; `None`: there was none since the start.
    observed_generation: Option<u64>,
    members: MemberCommands,
    /// To the state loop.
    in_force: watch::Sender<Arc<Overrides>>,
    status: UnboundedSender<StatusUpdate>,
    ends: OverrideEnds,
    saver: Saver,
    pub(super) conditions: Conditions,
    counters: LoopCounters,
}

/// To the other loops, and the audit log.
#[derive(Debug)]
pub(crate) struct Others {
    pub(crate) state: watch::Receiver<Option<Arc<InForce>>>,
    pub(crate) members: MemberCommands,
    pub(crate) status: UnboundedSender<StatusUpdate>,
    pub(crate) ends: OverrideEnds,
}

/// A change that was checked.
pub(super) struct Checked {
    pub(super) next: Overrides,
    /// Those that are set or removed.
    pub(super) overrides: Vec<(Key, Override)>,
    pub(super) warnings: Vec<Warning>,
}

impl OverrideLoop {
    /// With the overrides that an earlier daemon stored. A file that cannot be used is a condition until it is replaced.
    pub(crate) fn new(
        state_directory: &Path,
        conditions: Conditions,
        (requests, counters): (Receiver<OverrideRequest>, LoopCounters),
        others: Others,
    ) -> Self {
        let path = state_directory.join(file::FILE);
        let overrides = match file::read(&path, now()) {
            Ok(overrides) => overrides,
            Err(error) if error.is_missing() => Overrides::default(),
            Err(error) => {
                let (path, error) = (path.display(), error_chain::message(&error));
                let cause = format!(
                    "{path} cannot be used, so those from before the start are lost: {error}; set those that are still \
                     needed again, which replaces the file"
                );
                conditions.begin(&OVERRIDES, &cause);
                Overrides::default()
            }
        };
        if !overrides.is_empty() {
            let (number, revision) = (overrides.len(), overrides.revision());
            tracing::info!(revision, "{number} overrides of revision {revision} are in force");
        }
        let Others { state, members, status, ends } = others;
        let saver = Saver::new(path, conditions.clone(), overrides.revision());
        let overrides = Arc::new(overrides);
        let (in_force, _) = watch::channel(Arc::clone(&overrides));
        let observed = Arc::new(Configuration::EMPTY);
        Self {
            overrides,
            requests,
            state,
            observed,
            observed_generation: None,
            members,
            in_force,
            status,
            ends,
            saver,
            conditions,
            counters,
        }
    }

    pub(crate) fn in_force(&self) -> watch::Receiver<Arc<Overrides>> {
        self.in_force.subscribe()
    }

    /// Runs until `stop` is done or the state loop is gone.
    pub async fn run(mut self, heartbeat: Heartbeat, stop: impl Future<Output = ()>) -> LoopEnd {
        tokio::pin!(stop);
        let (mut beat, mut second) = (ticks(heartbeat.interval()), ticks(SECOND));
        let counters = self.counters.clone();
        self.show();
        loop {
            let has_begun = self.state.borrow().is_some();
            tokio::select! {
                biased;
                () = &mut stop => {
                    self.saver.save_at_last(&self.overrides).await;
                    return LoopEnd::Stopped;
                }
                _ = beat.tick() => heartbeat.beat(),
                told = self.state.changed() => match told {
                    Ok(()) => {
                        let _turn = counters.turn();
                        self.observe();
                    }
                    Err(_) => {
                        self.saver.save_at_last(&self.overrides).await;
                        return LoopEnd::Stopped;
                    }
                },
                // Before requests: of those there may always be another one.
                () = self.saver.ended() => self.show(),
                _ = second.tick() => {
                    let _turn = counters.turn();
                    self.expire().await;
                    self.report_overdue();
                    self.saver.follow(&self.overrides);
                }
                request = self.requests.recv(), if has_begun => match request {
                    Some(request) => {
                        let _turn = counters.turn();
                        self.execute(request).await;
                    }
                    None => return LoopEnd::Stopped,
                },
            }
        }
    }

    /// Notes which overrides have an object in the configuration in force.
    fn observe(&mut self) {
        let Some(in_force) = self.state.borrow_and_update().clone() else { return };
        let generation = in_force.generation;
        let is_observed = Arc::ptr_eq(&in_force.configuration, &self.observed)
            && self.observed_generation == Some(generation);
        // What an unusable configuration has is not known.
        if in_force.unusable.is_some() || is_observed {
            return;
        }
        self.observed = Arc::clone(&in_force.configuration);
        let before = self.observed_generation.replace(generation);
        let mut next = (*self.overrides).clone();
        // One in between may have had what is gone before and after it.
        let is_next =
            |before: u64| generation == before || before.checked_add(1) == Some(generation);
        let has_forgotten = !before.is_none_or(is_next) && next.forget_absent_since();
        if next.observe(&self.observed, now()) || has_forgotten {
            self.overrides = Arc::new(next);
            self.in_force.send_replace(Arc::clone(&self.overrides));
            self.saver.save(&self.overrides);
        }
        self.show();
    }

    async fn execute(&mut self, request: OverrideRequest) {
        // The caller hung up or its deadline is over.
        if request.reply.is_closed() {
            return;
        }
        let checked = match self.check(&request) {
            Ok(checked) => checked,
            Err(refusal) => return drop(request.reply.send(Err(refusal))),
        };
        let Checked { next, overrides, mut warnings } = checked;
        let targets = overrides.iter().map(|(key, _)| &key.target);
        let affected = affected(targets, &self.observed);
        let next = Arc::new(next);
        let is_set = matches!(request.change, OverrideChange::Set { .. });
        let (status_reply, more_warnings) = oneshot::channel();
        let pools = affected.iter().map(|it| it.pool.clone()).collect();
        let both = [&self.overrides, &next].map(Arc::clone);
        let question = StatusUpdate::JudgeOverrides(both, pools, status_reply);
        let is_change = next.revision() != self.overrides.revision();
        if is_change && !request.dry_run {
            self.put_in_force(next, affected).await;
        }
        if is_set {
            let _ = self.status.send(question);
        }
        let revision = self.overrides.revision();
        let outcome = (!request.dry_run).then(|| self.saver.outcome(revision));
        // The loop does not wait for the disk.
        tokio::spawn(async move {
            let unstored = match outcome {
                Some(outcome) => outcome.await.err(),
                None => None,
            };
            if is_set {
                warnings.extend(more_warnings.await.unwrap_or_default());
            }
            let changed = OverridesChanged { revision, overrides, unstored, warnings };
            let _ = request.reply.send(Ok(changed));
        });
    }

    async fn put_in_force(&mut self, next: Arc<Overrides>, affected: Vec<overrides::Affected>) {
        self.members.set_overrides(&next, affected).await;
        self.overrides = next;
        self.in_force.send_replace(Arc::clone(&self.overrides));
        self.saver.save(&self.overrides);
        self.show();
    }

    /// Ends those whose time is over.
    async fn expire(&mut self) {
        let now = clock();
        if self.overrides.next_end().is_none_or(|end| end > now) {
            return;
        }
        let mut next = (*self.overrides).clone();
        let ended = next.expire(now);
        for (key, it, why) in &ended {
            self.ends.ended(key, &it.who, *why);
        }
        let affected = affected(ended.iter().map(|(key, ..)| &key.target), &self.observed);
        self.put_in_force(Arc::new(next), affected).await;
    }

    /// Tells the status loop.
    fn show(&self) {
        let in_force = OverridesInForce {
            overrides: Arc::clone(&self.overrides),
            is_unstored: self.saver.saved().revision() < self.overrides.revision(),
            observed: self.observed_generation,
        };
        // Without a status loop the daemon is stopping.
        let _ = self.status.send(StatusUpdate::Overrides(in_force));
    }

    fn check(&mut self, request: &OverrideRequest) -> Result<Checked, Refusal> {
        self.observe();
        let mut next = (*self.overrides).clone();
        match &request.change {
            OverrideChange::Follow(shared) => self.check_followed(next, shared),
            OverrideChange::ClockSet => {
                next.forget_absent_since();
                if self.require_usable().is_ok() {
                    next.observe(&self.observed, now());
                }
                Ok(Checked { next, overrides: Vec::new(), warnings: Vec::new() })
            }
            OverrideChange::Unfollow => {
                next.unfollow();
                Ok(Checked { next, overrides: Vec::new(), warnings: Vec::new() })
            }
            OverrideChange::Set { targets, action, time, scope } => {
                self.require_own(*scope, request.dry_run)?;
                let missing = targets.iter().find(|target| !target.exists(&self.observed));
                if let Some(target) = missing {
                    return Err(Refusal::NoTarget(Box::new(target.clone())));
                }
                let now = now();
                let it = Override {
                    action: *action,
                    who: request.actor.to_string(),
                    reason: request.reason.to_string(),
                    set_at: now.wall,
                    until: time.and_then(|time| now.after(time)),
                    absent_since: None,
                };
                let key = |it: &Target| Key::new(it.clone(), action.kind()).with_scope(*scope);
                let keys = targets.iter().map(key);
                let overrides: Vec<_> = keys.map(|key| (key, it.clone())).collect();
                next.set(overrides.iter().cloned());
                if next.are_too_many() {
                    return Err(Refusal::TooManyOverrides);
                }
                let warnings = self.without_effect(targets, *action);
                Ok(Checked { next, overrides, warnings })
            }
            OverrideChange::Remove(keys) => {
                let scopes: BTreeSet<_> = keys.iter().map(|key| key.scope).collect();
                scopes.iter().try_for_each(|scope| self.require_own(*scope, request.dry_run))?;
                let is_unknown =
                    |key: &&Key| next.get(key).is_none() && !key.target.exists(&self.observed);
                if let Some(key) = keys.iter().find(is_unknown) {
                    return Err(Refusal::NoTarget(Box::new(key.target.clone())));
                }
                let overrides = next.remove(keys);
                let removed = overrides.iter().filter(|(_, it)| it.action.stops());
                let warnings = removed.flat_map(|(key, _)| self.still_stopped(&key.target, &next));
                let warnings = warnings.take(MOST_WARNINGS).collect();
                Ok(Checked { next, overrides, warnings })
            }
        }
    }

    pub(super) fn require_usable(&self) -> Result<(), Refusal> {
        self.state.borrow().as_ref().map_or(Ok(()), |in_force| in_force.require_usable())
    }

    /// Warnings about scales of groups whose capacity is unlimited.
    fn without_effect(&self, targets: &[Target], action: Action) -> Vec<Warning> {
        if !matches!(action, Action::Scale(_)) || action.stops() {
            return Vec::new();
        }
        let has_limit = |target: &&Target| {
            let pools = self.observed.pools.iter();
            let mut pools = pools.filter(|(name, pool)| target.concerns(name, pool));
            pools.any(|(_, pool)| {
                pool.groups.values().any(|group| group.capacity.is_some())
                    || pool.backends.values().any(|it| it.max_connection_rate.is_some())
            })
        };
        let without = targets.iter().filter(|target| !has_limit(target));
        let warning = |target: &Target| {
            let text = format!("{target} has no capacity, so a scale changes nothing");
            Warning::about(target.into(), WarningReason::OverrideLimited, text)
        };
        without.map(warning).take(MOST_WARNINGS).collect()
    }

    /// Warnings about what still keeps new connections away once an override of a target is gone.
    fn still_stopped(&self, target: &Target, next: &Overrides) -> Vec<Warning> {
        let pools = self.observed.pools.iter().filter(|(name, pool)| target.concerns(name, pool));
        let warnings = pools.filter_map(|(name, pool)| match target {
            Target::Backend { address, .. } => {
                let backend = pool.backends.get(address)?;
                let (pool, address) = (Some(name.clone()), *address);
                let about = ObjectReference::Backend { pool, address };
                if backend.admin_state != AdminState::Active {
                    let state = backend.admin_state;
                    let text = format!("{about} still has the admin_state {state} in the configuration");
                    return Some(Warning::about(about, WarningReason::StillStopped, text));
                }
                let mut others = next.of_member(name, &address, &backend.region);
                let (key, _) = others.find(|(_, it)| it.action.stops())?;
                let text = format!("{about} is still drained or disabled by the override {key}");
                Some(Warning::about(about, WarningReason::StillStopped, text))
            }
            Target::Group { region, .. } | Target::Region(region) => {
                let is_closed = pool.group(region).effective_scaler() == Scaler::NONE;
                is_closed.then(|| {
                    let text =
                        format!("pool {name} still has its backends in region {region} drained in the configuration");
                    let (pool, region) = (name.clone(), region.clone());
                    let group = ObjectReference::Group { pool, region };
                    Warning::about(group, WarningReason::StillStopped, text)
                })
            }
            Target::Pool(_) => None,
        });
        warnings.take(MOST_WARNINGS).collect()
    }
}

pub(super) fn now() -> Moment {
    Moment { wall: wall_clock(), instant: clock() }
}
