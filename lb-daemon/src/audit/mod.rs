//! Who changed what, who captured packets, who had ways through tunnels tried: a line of the log under the target
//! `audit`, and a line of JSON in a file where one is set.
//!
//! A change has two lines with the same id: its intent, which is in the file before the command is queued, and its
//! outcome. The file is written by a thread of its own. A file that takes no lines delays nothing for longer than
//! [`PATIENCE`], refuses nothing, and is named among the conditions.

mod change;
mod file;
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

use change::Change;
use lb_base::{conditions::Conditions, rate_limited_log::RateLimit};
use lb_control::command::{Actor, Applied, Apply, Commands, Refusal, Stopping};
use writer::Writer;

/// Longest time that a change waits for its intent to be written.
const PATIENCE: Duration = Duration::from_secs(1);

/// The log of changes. Clones write to the same one.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    writer: Option<Writer>,
    denials: Arc<RateLimit>,
    ids: Arc<Ids>,
}

/// Ids of changes, which no other daemon gives, nor this one after a restart.
#[derive(Debug)]
struct Ids {
    prefix: u64,
    last: AtomicU64,
}

impl Default for Ids {
    fn default() -> Self {
        Self { prefix: fastrand::u64(..), last: AtomicU64::new(0) }
    }
}

impl Audit {
    /// A log that is also written to a file, at its end; readable for its owner alone where it is
    /// made. Where it cannot be written later, or is a pipe that is not read, that is a condition.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: Option<&Path>, conditions: Conditions) -> io::Result<Self> {
        let writer = path.map(|path| Writer::open(path, conditions)).transpose()?;
        Ok(Self { writer, ..Self::default() })
    }

    /// Opens the file anew, as after it was moved away. Where that fails the former one is written on.
    pub fn reopen(&self) {
        if let Some(writer) = &self.writer {
            writer.reopen();
        }
    }

    /// Waits until all that was noted is written, or cannot be; no longer than a second, and not at all
    /// while the file takes nothing.
    pub async fn flush(&self) {
        if let Some(writer) = &self.writer {
            writer.flush(PATIENCE).await;
        }
    }

    /// Puts a configuration in force, or says what that would change. The intent is in the log before the command is
    /// queued, the outcome before this returns. A dry run is not logged.
    ///
    /// # Errors
    /// The daemon is stopping; whether the change was made is not known.
    pub async fn apply(
        &self,
        commands: &Commands,
        apply: Apply,
    ) -> Result<Result<Applied, Refusal>, Stopping> {
        if apply.dry_run {
            return commands.apply(apply, None).await;
        }
        let change = self.intend(&apply.actor, &apply.request).await;
        let answer = commands.apply(apply, Some(Box::new(change))).await;
        self.flush().await;
        answer
    }

    async fn intend(&self, actor: &Actor, wanted: &str) -> Change {
        let change = Change::new(self.clone(), actor.clone(), self.id());
        change.intended(wanted);
        self.flush().await;
        change
    }

    /// What somebody wanted was refused before it became a command.
    pub fn refused(&self, actor: &Actor, wanted: &str, cause: &str) {
        Change::new(self.clone(), actor.clone(), self.id()).refused_at_once(wanted, cause);
    }

    /// The settings were read again, at a signal or a call; `Err`: they cannot be used, and nothing changed.
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

    /// A reload was asked for by a call. It opens the file anew: after a rotation its line stands in the new one.
    pub fn reload_asked(&self, actor: &Actor) {
        self.reopen();
        tracing::info!(target: "audit", actor = %actor, "reload: a caller asked for it");
        self.line("reload", actor, json!({}));
    }

    /// Somebody captures packets.
    pub fn capture_began(&self, actor: &Actor, wanted: &str) {
        tracing::info!(target: "audit", actor = %actor, "capture began: {wanted}");
        self.line("capture", actor, json!({"wanted": wanted}));
    }

    /// Somebody's capture ended.
    pub fn capture_ended(&self, actor: &Actor, summary: &str) {
        tracing::info!(target: "audit", actor = %actor, "capture ended: {summary}");
        self.line("capture_ended", actor, json!({"summary": summary}));
    }

    /// Somebody tries ways through tunnels, with packets of so many bytes.
    pub fn probed(&self, actor: &Actor, ways: usize, size: u16) {
        tracing::info!(target: "audit", actor = %actor, ways, size, "VIP probe began: {ways} ways, packets of {size} bytes");
        self.line("probe", actor, json!({"ways": ways, "packet_size": size}));
    }

    /// Somebody called what they may not. Ten such lines a second are kept, the others counted.
    pub fn denied(&self, actor: &Actor, call: &str, cause: &str) {
        let Some(left_out) = self.denials.now(10) else { return };
        tracing::warn!(target: "audit", actor = %actor, call, left_out, "call {call}: denied: {cause}");
        self.line("denied", actor, json!({"call": call, "left_out": left_out}));
    }

    fn id(&self) -> String {
        let Ids { prefix, last } = &*self.ids;
        format!("{prefix:016x}-{}", last.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn line(&self, what: &'static str, actor: &Actor, more: Value) {
        self.large_line(what, actor, 1, || more);
    }

    /// A line that the writing thread puts together, of a size in objects.
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

fn who(actor: &Actor) -> Value {
    match actor {
        Actor::Unknown => json!({}),
        // Not as a path: one that is no UTF-8 has no JSON.
        Actor::File(path) => json!({"file": path.display().to_string()}),
        Actor::User(uid) => json!({"uid": uid}),
        Actor::Certificate(name) => json!({"certificate": name}),
    }
}
