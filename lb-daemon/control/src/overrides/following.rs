//! Overrides that a fleet decides: all of them but the local ones, or none.

use std::time::Duration;

use super::{
    file,
    override_loop::{Checked, OverrideLoop, now},
};
use crate::{command::Refusal, members::clock};
use lb_base::conditions::{ConditionReason, Subject};
use lb_model::overrides::{Key, Override, Overrides, Scope};

/// Subject of the condition that overrides are in force beyond their time.
const OVERDUE: Subject = Subject::new(ConditionReason::Overrides, "expired overrides");

/// How long the fleet may take to remove an override whose time is over.
const REMOVAL_TIME: Duration = Duration::from_secs(10);

/// Most overrides that the condition names.
const MOST_NAMED: usize = 5;

impl OverrideLoop {
    /// What a fleet has is followed even if it cannot act here: its target may be in a later generation.
    pub(super) fn check_followed(
        &self,
        mut next: Overrides,
        shared: &[(Key, Override)],
    ) -> Result<Checked, Refusal> {
        let changed = next.follow(shared.iter().filter_map(file::storable));
        if next.are_too_many() {
            return Err(Refusal::TooManyOverrides);
        }
        if self.require_usable().is_ok() {
            next.observe(&self.observed, now());
        }
        let overrides = changed.into_iter().filter_map(|key| {
            let it = next.get(&key).or_else(|| self.overrides.get(&key))?.clone();
            Some((key, it))
        });
        let overrides = overrides.collect();
        Ok(Checked { next, overrides, warnings: Vec::new() })
    }

    /// Refuses changes that are not the fleet's while it is followed, local ones while it is not, and all while no target is
    /// known.
    pub(super) fn require_own(&self, scope: Scope, dry_run: bool) -> Result<(), Refusal> {
        match (scope, self.overrides.is_followed()) {
            (Scope::Shared, true) if !dry_run => Err(Refusal::Member),
            (Scope::Local, false) => Err(Refusal::NoMember),
            _ => self.require_usable(),
        }
    }

    /// Begins or ends the condition that overrides of the fleet are in force beyond their time.
    pub(super) fn report_overdue(&self) {
        let overdue: Vec<_> = match self.overrides.is_followed() {
            true => self.overrides.overdue(clock(), REMOVAL_TIME).collect(),
            false => Vec::new(),
        };
        if overdue.is_empty() {
            return self.conditions.end(&OVERDUE);
        }
        let named: Vec<_> = overdue.iter().take(MOST_NAMED).map(ToString::to_string).collect();
        let more = overdue.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let cause = format!(
            "their time is over, and they stay in force until the fleet removes them: {}{more}",
            named.join(", ")
        );
        self.conditions.begin(&OVERDUE, &cause);
    }
}
