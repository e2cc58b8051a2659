//! Compares two scrapes and notes which metrics moved.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use lb_tests::daemon::scrape;
use lb_tests::openmetrics::Exposition;
use lb_tests::process::until;

use super::{MOVES, PATIENCE};
use crate::metrics::fixture::MetricsFixture;

/// The scrapes before and after something, which must have moved what is said to be moved by it.
pub(super) struct Watch<'f> {
    pub(super) fixture: &'f MetricsFixture,
    pub(super) before: Exposition,
    pub(super) moved: BTreeSet<String>,
}

impl Watch<'_> {
    /// Waits until a scrape shows something, which must have moved what is listed for its cause.
    pub(super) fn until(&mut self, cause: &str, shows: impl Fn(&Exposition) -> bool) -> Result<()> {
        let now = until(cause, PATIENCE, || {
            let now = scrape(&self.fixture.fabric.balancer)?;
            Ok(shows(&now).then_some(now))
        })?;
        let listed = MOVES.iter().find(|(name, _)| *name == cause).context("not in the list")?;
        for name in listed.1 {
            let name = format!("spillway_{name}");
            let family = |of: &Exposition| of.families.get(&name).cloned();
            ensure!(family(&now).is_some(), "{name} is not served");
            ensure!(family(&now) != family(&self.before), "{name} does not move when {cause}");
            self.moved.insert(name);
        }
        self.before = now;
        Ok(())
    }

    /// How much a counter rose since a scrape.
    pub(super) fn rose(&self, since: &Exposition, name: &str, labels: &[(&str, &str)]) -> f64 {
        let value = |of: &Exposition| of.value(name, labels).unwrap_or_default();
        value(&self.before) - value(since)
    }
}
