use serde_json::json;

use super::Audit;
use lb_base::error_chain;
use lb_control::command::{Actor, Applied, ChangeRecord, Refusal};

/// A change whose intent is noted. Its outcome is noted once: by one of the methods that take it, or,
/// where it is dropped before its turn came, as not carried out.
#[derive(Debug)]
pub(super) struct Change {
    audit: Audit,
    actor: Actor,
    id: String,
    settled: bool,
}

impl Change {
    pub(super) fn new(audit: Audit, actor: Actor, id: String) -> Self {
        Self { audit, actor, id, settled: false }
    }

    pub(super) fn intended(&self, wanted: &str) {
        let Self { audit, actor, id, .. } = self;
        tracing::info!(target: "audit", actor = %actor, id, "change intended: {wanted}");
        audit.line("intent", actor, json!({"id": id, "wanted": wanted}));
    }

    pub(super) fn refused_at_once(mut self, wanted: &str, cause: &str) {
        self.settled = true;
        self.not_done("refused", Some(wanted), cause);
    }

    fn not_done(&self, outcome: &str, wanted: Option<&str>, cause: &str) {
        let Self { audit, actor, id, .. } = self;
        tracing::warn!(target: "audit", actor = %actor, id, wanted, "change {outcome}: {cause}");
        let more = json!({"id": id, "outcome": outcome, "wanted": wanted, "cause": cause});
        audit.line("apply", actor, more);
    }
}

impl ChangeRecord for Change {
    fn changed(mut self: Box<Self>, before: u64, applied: &Applied, behind: Option<String>) {
        self.settled = true;
        let Self { audit, actor, id, .. } = &*self;
        let (after, changes) = (applied.generation, applied.changes.len());
        tracing::info!(
            target: "audit",
            actor = %actor, id, before, after, changes, behind,
            "the configuration was changed"
        );
        let outcome = if behind.is_some() { "behind" } else { "changed" };
        let (id, changes) = (id.clone(), applied.changes.clone());
        audit.large_line("apply", actor, changes.len() + 1, move || {
            let changes = changes.into_iter().map(|change| {
                let kind = change.kind.to_string();
                json!({"kind": kind, "object": change.object, "details": change.details})
            });
            json!({
                "id": id, "outcome": outcome, "before": before, "after": after,
                "changes": changes.collect::<Vec<_>>(), "cause": behind,
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
                    "apply",
                    actor,
                    json!({
                        "id": id, "outcome": "unchanged",
                        "before": generation, "after": generation, "changes": [],
                    }),
                );
            }
            Err(refusal @ Refusal::Behind { .. }) => {
                self.not_done("behind", None, &error_chain::message(refusal));
            }
            Err(refusal) => self.not_done("refused", None, &error_chain::message(refusal)),
        }
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        if !self.settled {
            let cause = "its caller was gone before its turn, or the daemon stopped";
            self.not_done("not_carried_out", None, cause);
        }
    }
}
