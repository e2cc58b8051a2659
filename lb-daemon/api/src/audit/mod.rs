//! The audit log: who changed what, captured packets, or probed VIPs. Each entry is a line of the log with the target
//! `audit`, and a line of JSON in a file if the settings name one.
//!
//! A change has two lines with the same id: its intent, written to the file before the command is queued, and its
//! outcome. A thread of its own writes the file. A file that accepts no lines delays a change by [`WRITE_TIMEOUT`] at
//! most, does not refuse it, and is a condition.

#[cfg(test)]
pub(crate) mod tests;
mod writer;

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value, json};
use writer::Writer;

use lb_base::{conditions::Conditions, error_chain, rate_limited_log::RateLimit};
use lb_config::Reason;
use lb_control::command::{
    Actor, Applied, Apply, ChangeRecord, EndRecord, FleetRefusal, OverrideChange, OverridesChanged,
    Refusal, Stopping,
};
use lb_member::Changes;
use lb_model::overrides::{End, Key, Scope};

/// What outcomes are called in the file.
const APPLY: &str = "apply";
const OVERRIDES: &str = "overrides";

/// Longest time that a change waits for its intent to be written.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// The audit log. Clones write to the same file.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    writer: Option<Writer>,
    denials: Arc<RateLimit>,
    ids: Arc<ChangeIds>,
}

/// Ids of changes, different from those of other daemons and of this one before a restart.
#[derive(Debug)]
struct ChangeIds {
    prefix: u64,
    last: AtomicU64,
}

impl Default for ChangeIds {
    fn default() -> Self {
        Self { prefix: fastrand::u64(..), last: AtomicU64::new(0) }
    }
}

impl Audit {
    /// An audit log with a file, if `path` is set. A new file is readable by its owner only. A file that cannot be
    /// written later, or a pipe without a reader, is a condition.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: Option<&Path>, conditions: Conditions) -> io::Result<Self> {
        let writer = path.map(|path| Writer::open(path, conditions)).transpose()?;
        Ok(Self { writer, ..Self::default() })
    }

    /// Reopens the file, for example after a rotation. If that fails, lines still go to the previous file.
    pub fn reopen(&self) {
        if let Some(writer) = &self.writer {
            writer.reopen();
        }
    }

    /// Waits until all lines are written or have failed, for [`WRITE_TIMEOUT`] at most, and not at all while the file
    /// accepts nothing.
    pub async fn flush(&self) {
        if let Some(writer) = &self.writer {
            writer.flush(WRITE_TIMEOUT).await;
        }
    }

    /// Sends an apply. Its intent is logged before the command is queued, its outcome before this returns. A dry run is
    /// not logged.
    ///
    /// # Errors
    /// The daemon is stopping; it is unknown whether the change was made.
    pub async fn apply(
        &self,
        changes: &Changes,
        apply: Apply,
    ) -> Result<Result<Applied, Refusal>, Stopping> {
        if apply.dry_run {
            return changes.apply(apply, None).await;
        }
        let change = self.log_intent(&apply).await;
        let answer = changes.apply(apply, Some(Box::new(change))).await;
        self.flush().await;
        answer
    }

    /// Sends a change of overrides. Unlike an apply it does not wait for the file. A dry run is not logged.
    ///
    /// # Errors
    /// The daemon is stopping; it is unknown whether the change was made.
    pub async fn change_overrides(
        &self,
        changes: &Changes,
        change: OverrideChange,
        dry_run: bool,
        (actor, reason): (Actor, Reason),
    ) -> Result<Result<OverridesChanged, Refusal>, Stopping> {
        if dry_run {
            return changes.change_overrides(change, dry_run, (actor, reason)).await;
        }
        let record = AuditedChange::new(self.clone(), actor.clone(), self.id(), OVERRIDES);
        record.intended(&describe(&change), reason.given(), false);
        let answer = changes.change_overrides(change, dry_run, (actor, reason)).await;
        if let Ok(result) = &answer {
            record.overrides_changed(result);
        }
        answer
    }

    async fn log_intent(&self, apply: &Apply) -> AuditedChange {
        let change = AuditedChange::new(self.clone(), apply.actor.clone(), self.id(), APPLY);
        change.intended(&apply.request, apply.reason.given(), apply.force);
        self.flush().await;
        change
    }

    /// Logs a request that was refused before it became a command.
    pub fn refused(&self, actor: &Actor, request: &str, cause: &str) {
        let change = AuditedChange::new(self.clone(), actor.clone(), self.id(), APPLY);
        change.refused_early(request, cause);
    }

    /// Logs that the settings were read again. `Err`: they cannot be used, so nothing changed.
    pub fn settings_read(&self, result: Result<(), &str>) {
        let outcome = if result.is_ok() { "read" } else { "refused" };
        match result {
            Ok(()) => tracing::info!(target: "audit", "settings were read again"),
            Err(cause) => {
                tracing::warn!(target: "audit", "settings refused: {cause}");
            }
        }
        let cause = result.err();
        self.line("settings", &Actor::Unknown, json!({"outcome": outcome, "cause": cause}));
    }

    /// Logs that a caller wants to change whether, or with what, this balancer is a member of its fleet.
    pub fn membership_requested(&self, actor: &Actor, request: &str) {
        tracing::info!(target: "audit", actor = %actor, "change requested: {request}");
        self.line("membership_intent", actor, json!({"request": request}));
    }

    /// Logs what became of it; `cause`: it was refused, or not completed.
    pub fn membership_changed(&self, actor: &Actor, request: &str, cause: Option<&str>) {
        match cause {
            None => tracing::info!(target: "audit", actor = %actor, "{request}: done"),
            Some(cause) => tracing::warn!(target: "audit", actor = %actor, "{request}: {cause}"),
        }
        let outcome = if cause.is_none() { "changed" } else { "refused" };
        let more = json!({"request": request, "outcome": outcome, "cause": cause});
        self.line("membership", actor, more);
    }

    /// Logs a call of `Reload`, after reopening the file: after a rotation the line is in the new one.
    pub fn reload_requested(&self, actor: &Actor, force: bool) {
        self.reopen();
        let forced = if force { ", with force" } else { "" };
        tracing::info!(target: "audit", actor = %actor, "reload: requested by a caller{forced}");
        self.line("reload", actor, json!({"force": force.then_some(true)}));
    }

    pub fn capture_began(&self, actor: &Actor, filter: &str) {
        tracing::info!(target: "audit", actor = %actor, "capture began: {filter}");
        self.line("capture", actor, json!({"request": filter}));
    }

    pub fn capture_ended(&self, actor: &Actor, summary: &str) {
        tracing::info!(target: "audit", actor = %actor, "capture ended: {summary}");
        self.line("capture_ended", actor, json!({"summary": summary}));
    }

    /// Logs a call of `ProbeVips`: the number of targets, and the full size of packets in bytes.
    pub fn probe_began(&self, actor: &Actor, targets: usize, size: u16) {
        tracing::info!(target: "audit", actor = %actor, targets, size, "VIP probe began: {targets} targets, packets of {size} bytes");
        self.line("probe", actor, json!({"targets": targets, "packet_size": size}));
    }

    /// Logs a call that the role does not permit: ten lines a second at most, the others are counted.
    pub fn denied(&self, actor: &Actor, call: &str, cause: &str) {
        let Some(left_out) = self.denials.now(10) else { return };
        tracing::warn!(target: "audit", actor = %actor, call, left_out, "call {call}: denied: {cause}");
        self.line("denied", actor, json!({"call": call, "left_out": left_out}));
    }

    fn id(&self) -> String {
        let ChangeIds { prefix, last } = &*self.ids;
        format!("{prefix:016x}-{}", last.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn line(&self, what: &'static str, actor: &Actor, more: Value) {
        self.large_line(what, actor, 1, || more);
    }

    /// Adds a line that the writer's thread formats. `size` counts the objects in it.
    fn large_line(
        &self,
        what: &'static str,
        actor: &Actor,
        size: usize,
        more: impl FnOnce() -> Value + Send + 'static,
    ) {
        let Some(writer) = &self.writer else { return };
        let (time, who) = (writer::now(), who(actor));
        writer.line(size, move || {
            let mut line = Map::new();
            line.extend([("time".into(), time), ("what".into(), what.into()), ("who".into(), who)]);
            if let Value::Object(more) = more() {
                line.extend(more.into_iter().filter(|(_, value)| !value.is_null()));
            }
            Value::Object(line)
        });
    }
}

/// Most objects that the description of a request names.
const MOST_NAMED: usize = 10;

/// Describes a change of overrides.
fn describe(change: &OverrideChange) -> String {
    let listed = |named: Vec<String>, number: usize| {
        let more = number.saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more}", named.join(", "))
    };
    match change {
        OverrideChange::Set { targets, action, time, scope } => {
            let local = if *scope == Scope::Local { "local " } else { "" };
            let named = targets.iter().take(MOST_NAMED).map(ToString::to_string).collect();
            let time = time.map_or_else(String::new, |time| format!(" for {} s", time.as_secs()));
            format!("{local}override {action} of {}{time}", listed(named, targets.len()))
        }
        OverrideChange::Remove(keys) => {
            let named = keys.iter().take(MOST_NAMED).map(ToString::to_string).collect();
            format!("removal of overrides {}", listed(named, keys.len()))
        }
        OverrideChange::Follow(shared) => {
            let named = shared.iter().take(MOST_NAMED).map(|(key, _)| key.to_string()).collect();
            format!("the overrides of the fleet: {}", listed(named, shared.len()))
        }
        OverrideChange::ClockSet => "the wall clock was set".into(),
        OverrideChange::Unfollow => "overrides of this balancer alone".into(),
    }
}

fn who(actor: &Actor) -> Value {
    match actor {
        Actor::Unknown => json!({}),
        // As text: JSON has no form for a path that is not UTF-8.
        Actor::File(path) => json!({"file": path.display().to_string()}),
        Actor::User { uid, .. } => json!({"uid": uid}),
        Actor::Certificate(name) => json!({"certificate": name}),
        Actor::Fleet { author } => json!({"fleet": author}),
    }
}

/// A change whose outcome will be logged once: by one of the methods that consume it, or as not carried out if it is
/// dropped first.
#[derive(Debug)]
struct AuditedChange {
    audit: Audit,
    actor: Actor,
    id: String,
    /// What its outcome is called in the file.
    what: &'static str,
    settled: bool,
}

impl AuditedChange {
    fn new(audit: Audit, actor: Actor, id: String, what: &'static str) -> Self {
        Self { audit, actor, id, what, settled: false }
    }

    /// `force`: it may remove however much it does.
    fn intended(&self, request: &str, reason: Option<&str>, force: bool) {
        let Self { audit, actor, id, .. } = self;
        let forced = if force { ", with force" } else { "" };
        tracing::info!(target: "audit", actor = %actor, id, reason, "change requested: {request}{forced}");
        let force = force.then_some(true);
        audit.line(
            "intent",
            actor,
            json!({"id": id, "request": request, "reason": reason, "force": force}),
        );
    }

    fn overrides_changed(mut self, result: &Result<OverridesChanged, Refusal>) {
        self.settled = true;
        let Self { audit, actor, id, .. } = &self;
        match result {
            Ok(changed) => {
                let (revision, number) = (changed.revision, changed.overrides.len());
                let unstored = changed.unstored.as_deref();
                tracing::info!(
                    target: "audit",
                    actor = %actor, id, revision, number, unstored,
                    "overrides were changed: revision {revision}"
                );
                let (id, changed) = (id.clone(), changed.clone());
                audit.large_line(OVERRIDES, actor, number + 1, move || {
                    let keys = changed.overrides.iter().map(|(key, _)| key.to_string());
                    json!({
                        "id": id, "outcome": "changed", "revision": changed.revision,
                        "overrides": keys.collect::<Vec<_>>(), "unstored": changed.unstored,
                    })
                });
            }
            Err(refusal) => self.not_done("refused", None, &error_chain::message(refusal)),
        }
    }

    fn refused_early(mut self, request: &str, cause: &str) {
        self.settled = true;
        self.not_done("refused", Some(request), cause);
    }

    fn not_done(&self, outcome: &str, request: Option<&str>, cause: &str) {
        let Self { audit, actor, id, .. } = self;
        tracing::warn!(target: "audit", actor = %actor, id, request, "change {outcome}: {cause}");
        let more = json!({"id": id, "outcome": outcome, "request": request, "cause": cause});
        audit.line(self.what, actor, more);
    }
}

impl EndRecord for Audit {
    fn ended(&self, key: &Key, set_by: &str, why: End) {
        tracing::info!(target: "audit", who = set_by, "override {key} ended: {why}");
        let (key, why) = (key.to_string(), why.to_string());
        let more = json!({"override": key, "set_by": set_by, "cause": why});
        self.line("override_ended", &Actor::Unknown, more);
    }
}

impl ChangeRecord for AuditedChange {
    fn changed(mut self: Box<Self>, before: u64, applied: &Applied, behind: Option<String>) {
        self.settled = true;
        let Self { audit, actor, id, .. } = &*self;
        let (after, changes) = (applied.generation, applied.changes.len());
        // Without force there are none.
        let removals = applied.removals.iter().map(ToString::to_string);
        let takeovers = applied.takeovers.iter().map(ToString::to_string);
        let forced: Vec<_> = removals.chain(takeovers).collect();
        let forced = (!forced.is_empty()).then_some(forced);
        tracing::info!(
            target: "audit",
            actor = %actor, id, before, after, changes, behind, forced = forced.as_deref().map(|it| it.join(", ")),
            "the configuration was changed"
        );
        let outcome = if behind.is_some() { "behind" } else { "changed" };
        let (id, changes) = (id.clone(), applied.changes.clone());
        audit.large_line(APPLY, actor, changes.len() + 1, move || {
            let changes = changes.into_iter().map(|change| {
                let kind = change.kind.to_string();
                let object = change.object.to_string();
                let details: Vec<_> = change.fields.iter().map(ToString::to_string).collect();
                json!({"kind": kind, "object": object, "details": details})
            });
            json!({
                "id": id, "outcome": outcome, "before": before, "after": after,
                "changes": changes.collect::<Vec<_>>(), "cause": behind, "forced": forced,
            })
        });
    }

    fn finished(mut self: Box<Self>, result: &Result<Applied, Refusal>) {
        self.settled = true;
        match result {
            Ok(applied) => {
                let Self { audit, actor, id, .. } = &*self;
                let generation = applied.generation;
                tracing::info!(target: "audit", actor = %actor, id, generation, "generation {generation}: nothing to change");
                audit.line(
                    APPLY,
                    actor,
                    json!({
                        "id": id, "outcome": "unchanged",
                        "before": generation, "after": generation, "changes": [],
                    }),
                );
            }
            Err(
                refusal @ (Refusal::Behind { .. } | Refusal::Fleet(FleetRefusal::Behind { .. })),
            ) => {
                self.not_done("behind", None, &error_chain::message(refusal));
            }
            Err(
                refusal @ Refusal::Fleet(
                    FleetRefusal::Unknown(_) | FleetRefusal::UnknownOverrides(_),
                ),
            ) => {
                self.not_done("unknown", None, &error_chain::message(refusal));
            }
            Err(refusal) => self.not_done("refused", None, &error_chain::message(refusal)),
        }
    }
}

impl Drop for AuditedChange {
    fn drop(&mut self) {
        if !self.settled {
            let cause = "the caller disconnected first, or the daemon stopped";
            self.not_done("not_carried_out", None, cause);
        }
    }
}
