//! What is wrong though the daemon goes on: a file that it was refused or cannot read. Whoever meets
//! a trouble says so here, and says when it is over; the state shows those that last.

use std::{collections::BTreeMap, time::SystemTime};

use tokio::sync::watch;

/// What a packet path that is not at the generation in force is called among the troubles.
pub const PACKET_PATH: &str = "packet path";

/// What a stored configuration that cannot be used is called among the troubles.
pub const STORED: &str = "stored configuration";

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What it is about, such as the path of a file.
    pub subject: String,
    /// What is wrong with it.
    pub cause: String,
    /// Since when.
    pub since: SystemTime,
}

/// The troubles there are. Clones are of the same ones.
#[derive(Clone, Debug, Default)]
pub struct Troubles(watch::Sender<BTreeMap<String, Trouble>>);

impl Troubles {
    /// Something is wrong with `subject`: it takes the place of what was.
    pub fn begin(&self, subject: &str, cause: &str) {
        let same = |was: &Trouble| was.cause == cause;
        if self.0.borrow().get(subject).is_some_and(same) {
            return;
        }
        tracing::error!(subject, "{subject}: {cause}");
        self.0.send_modify(|troubles| {
            let since = troubles.get(subject).map_or_else(SystemTime::now, |was| was.since);
            let trouble = Trouble { subject: subject.into(), cause: cause.into(), since };
            troubles.insert(subject.into(), trouble);
        });
    }

    /// Nothing is wrong with `subject` any more.
    pub fn end(&self, subject: &str) {
        if self.0.send_if_modified(|troubles| troubles.remove(subject).is_some()) {
            tracing::info!(subject, "{subject}: no trouble any more");
        }
    }

    /// Those there are now, by subject.
    pub fn now(&self) -> Vec<Trouble> {
        self.0.borrow().values().cloned().collect()
    }

    /// A receiver that changes whenever they do.
    pub fn changes(&self) -> watch::Receiver<BTreeMap<String, Trouble>> {
        self.0.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(troubles: &Troubles) -> Vec<(String, String)> {
        troubles.now().into_iter().map(|t| (t.subject, t.cause)).collect()
    }

    #[test]
    fn a_trouble_lasts_from_its_first_cause_to_its_end() {
        let troubles = Troubles::default();
        let mut changes = troubles.changes();
        troubles.begin("b", "broken");
        let since = troubles.now()[0].since;
        troubles.begin("a", "gone");
        troubles.begin("b", "still broken");
        assert_eq!(
            words(&troubles),
            [("a".into(), "gone".into()), ("b".into(), "still broken".into())]
        );
        assert_eq!(troubles.now()[1].since, since);

        changes.mark_unchanged();
        troubles.end("c");
        assert!(!changes.has_changed().unwrap());
        troubles.end("b");
        assert!(changes.has_changed().unwrap());
        assert_eq!(words(&troubles), [("a".into(), "gone".into())]);
    }
}
