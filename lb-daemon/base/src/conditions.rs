//! Conditions: problems that last while the daemon continues, such as a file that it cannot read. The code that
//! detects one begins and ends it here; `spillway status` shows those that have begun.

use std::{collections::BTreeMap, time::SystemTime};

use tokio::sync::watch;

/// Subject of the condition that the packet path is not at the generation in force.
pub const PACKET_PATH: &str = "packet path";

/// Subject of the condition that the stored configuration cannot be used.
pub const STORED: &str = "stored configuration";

/// Subject of the condition that the store cannot be written.
pub const STORE: &str = "store";

/// Subject of the condition that overrides are in memory only, or that those from before the start are lost.
pub const OVERRIDES: &str = "overrides";

/// Subject of the condition that settings of sizes wait, because the pinned maps have others.
pub const MAP_SIZES: &str = "map sizes";

/// Subject of the condition that the API's own certificate expires soon, or has expired.
pub const CERTIFICATE: &str = "TLS certificate";

/// Subject of the condition that all authorities of clients of the API expire soon, or have expired.
pub const AUTHORITIES: &str = "TLS authorities";

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What is affected, such as the path of a file.
    pub subject: String,
    /// What is wrong.
    pub cause: String,
    /// When it began; a new cause does not change it.
    pub since: SystemTime,
}

/// The current conditions. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Conditions(watch::Sender<BTreeMap<String, Condition>>);

impl Conditions {
    /// Begins the condition of a subject, or replaces its cause.
    pub fn begin(&self, subject: &str, cause: &str) {
        let same = |was: &Condition| was.cause == cause;
        if self.0.borrow().get(subject).is_some_and(same) {
            return;
        }
        tracing::error!(subject, "{subject}: {cause}");
        self.0.send_modify(|conditions| {
            let since = conditions.get(subject).map_or_else(SystemTime::now, |was| was.since);
            let condition = Condition { subject: subject.into(), cause: cause.into(), since };
            conditions.insert(subject.into(), condition);
        });
    }

    /// Ends the condition of a subject, if there is one.
    pub fn end(&self, subject: &str) {
        if self.0.send_if_modified(|conditions| conditions.remove(subject).is_some()) {
            tracing::info!(subject, "{subject}: resolved");
        }
    }

    /// The current conditions, sorted by subject.
    pub fn now(&self) -> Vec<Condition> {
        self.0.borrow().values().cloned().collect()
    }

    /// Notified whenever a condition begins, changes or ends.
    pub fn changes(&self) -> watch::Receiver<BTreeMap<String, Condition>> {
        self.0.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn causes(conditions: &Conditions) -> Vec<(String, String)> {
        conditions.now().into_iter().map(|t| (t.subject, t.cause)).collect()
    }

    #[test]
    fn a_condition_lasts_from_its_first_cause_to_its_end() {
        let conditions = Conditions::default();
        let mut changes = conditions.changes();
        conditions.begin("b", "broken");
        let since = conditions.now()[0].since;
        conditions.begin("a", "gone");
        conditions.begin("b", "still broken");
        assert_eq!(
            causes(&conditions),
            [("a".into(), "gone".into()), ("b".into(), "still broken".into())]
        );
        assert_eq!(conditions.now()[1].since, since);

        changes.mark_unchanged();
        conditions.end("c");
        assert!(!changes.has_changed().unwrap());
        conditions.end("b");
        assert!(changes.has_changed().unwrap());
        assert_eq!(causes(&conditions), [("a".into(), "gone".into())]);
    }
}
