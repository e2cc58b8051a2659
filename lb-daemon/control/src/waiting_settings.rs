//! Settings that changed and wait for the next start of the daemon.

use tokio::sync::watch;

/// Names of changed settings that wait for the next start, as of the last reload. Clones are of the same ones.
#[derive(Clone, Debug, Default)]
pub struct WaitingSettings(watch::Sender<Vec<String>>);

impl WaitingSettings {
    /// These wait from now on, and no others.
    pub fn set(&self, names: Vec<String>) {
        if *self.0.borrow() == names {
            return;
        }
        if names.is_empty() {
            tracing::info!("no setting waits for the next start any more");
        } else {
            tracing::warn!("changed settings that wait for the next start: {}", names.join(", "));
        }
        self.0.send_replace(names);
    }

    /// Those there are now.
    pub fn now(&self) -> Vec<String> {
        self.0.borrow().clone()
    }

    /// A receiver that changes whenever they do.
    pub fn changes(&self) -> watch::Receiver<Vec<String>> {
        self.0.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_wait_until_they_are_as_they_were() {
        let waiting = WaitingSettings::default();
        let mut changes = waiting.changes();
        waiting.set(vec!["region".into()]);
        assert!(changes.has_changed().unwrap());
        assert_eq!(waiting.now(), ["region"]);
        changes.mark_unchanged();
        waiting.set(vec!["region".into()]);
        assert!(!changes.has_changed().unwrap());
        waiting.set(Vec::new());
        assert!(changes.has_changed().unwrap() && waiting.now().is_empty());
    }
}
