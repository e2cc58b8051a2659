//! What is wrong though the daemon goes on: a file that it was refused or cannot read. Whoever meets
//! a condition says so here, and says when it is over; the state shows those that last.

use std::{collections::BTreeMap, time::SystemTime};

use tokio::sync::watch;

/// What a packet path that is not at the generation in force is called among the conditions.
pub const PACKET_PATH: &str = "packet path";

/// What a stored configuration that cannot be used is called among the conditions.
pub const STORED: &str = "stored configuration";

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What it is about, such as the path of a file.
    pub subject: String,
    /// What is wrong with it.
    pub cause: String,
    /// Since when.
    pub since: SystemTime,
}

/// The conditions there are. Clones are of the same ones.
#[derive(Clone, Debug, Default)]
pub struct Conditions(watch::Sender<BTreeMap<String, Condition>>);

impl Conditions {
    /// Something is wrong with `subject`: it takes the place of what was.
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

    /// Nothing is wrong with `subject` any more.
    pub fn end(&self, subject: &str) {
        if self.0.send_if_modified(|conditions| conditions.remove(subject).is_some()) {
            tracing::info!(subject, "{subject}: resolved");
        }
    }

    /// Those there are now, by subject.
    pub fn now(&self) -> Vec<Condition> {
        self.0.borrow().values().cloned().collect()
    }

    /// A receiver that changes whenever they do.
    pub fn changes(&self) -> watch::Receiver<BTreeMap<String, Condition>> {
        self.0.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(conditions: &Conditions) -> Vec<(String, String)> {
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
            words(&conditions),
            [("a".into(), "gone".into()), ("b".into(), "still broken".into())]
        );
        assert_eq!(conditions.now()[1].since, since);

        changes.mark_unchanged();
        conditions.end("c");
        assert!(!changes.has_changed().unwrap());
        conditions.end("b");
        assert!(changes.has_changed().unwrap());
        assert_eq!(words(&conditions), [("a".into(), "gone".into())]);
    }
}
