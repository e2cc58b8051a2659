//! What is shown of overrides, and what they cannot do.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use lb_common::abi::sizes::Size;

use super::{Known, StatusLoop};
use crate::command::{Event, OverridesEvent, OverridesInForce, Warning, WarningReason};
use lb_base::conditions::{ConditionReason, Subject};
use lb_model::{
    MemberState, Name, ObjectReference, Pool,
    overrides::{Overrides, affected},
    shares,
};
use lb_publish::reconcile::PathReader;

/// Most warnings in an answer.
const MOST_WARNINGS: usize = 20;

/// Subject of the condition that weights cannot be kept.
const SUBJECT: Subject = Subject::new(ConditionReason::OverrideWeights, "weights of overrides");

/// From which share on, connections that find no backend in the lists are worth a sentence.
const NOTABLE: f64 = 0.01;

/// Cells that the flow table should have for each flow.
const FLOWS_TO_CELLS: f64 = 3.0;

/// How long a cell is in use for a connection of a minute: two more once it has ended.
const FLOW_LIFE: Duration = Duration::from_secs(180);

impl<R: PathReader> StatusLoop<R> {
    pub(super) fn take_overrides(&mut self, next: OverridesInForce) {
        let before = std::mem::replace(&mut self.known.overrides, next);
        let next = &self.known.overrides;
        if before.overrides == next.overrides && before.is_unstored == next.is_unstored {
            return;
        }
        let (old, new) = (&before.overrides, &self.known.overrides.overrides);
        let set = new.iter().filter(|(key, it)| old.get(key) != Some(*it));
        let set: Vec<_> = set.map(|(key, it)| (key.clone(), it.clone())).collect();
        let ended = old.iter().filter(|(key, _)| new.get(key).is_none());
        let ended: Vec<_> = ended.map(|(key, _)| key.clone()).collect();
        let targets = set.iter().map(|(key, _)| key).chain(&ended).map(|key| &key.target);
        // Statuses name the overrides that act on a backend, whether or not they change its state.
        let mut changed = BTreeSet::new();
        for affected in affected(targets, &self.known.in_force.configuration) {
            self.backends.forget(&affected.pool);
            let backends = affected.backends.into_iter();
            changed.extend(backends.map(|address| (affected.pool.clone(), address)));
        }
        let (revision, is_unstored) = (new.revision(), self.known.overrides.is_unstored);
        self.announcements.announce(Event::Overrides(OverridesEvent {
            revision,
            set,
            ended,
            is_unstored,
        }));
        self.announce_backends(&changed);
    }

    /// What whoever sets overrides should know of what they do to pools, beyond what those before them did.
    pub(super) fn judge_overrides(
        &self,
        before: &Overrides,
        overrides: &Overrides,
        pools: &[Name],
    ) -> Vec<Warning> {
        let services = self.known.configuration().services.values();
        let used: BTreeSet<&Name> = services.map(|service| &service.pool).collect();
        let configured = pools.iter().filter_map(|name| {
            let pool = self.known.configuration().pools.get(name)?;
            Some((name, pool))
        });
        let warnings = configured.flat_map(|(name, pool)| {
            let is_emptied = self.known.view.serves(before, name, pool)
                && !self.known.view.serves(overrides, name, pool);
            let emptied =
                (is_emptied && used.contains(name)).then(|| Warning::pool_unserved(name));
            let missed = self.known.kept(overrides, name, pool).into_iter().filter_map(|(region, kept)| {
                let missed = shares::missed(kept);
                (missed > NOTABLE).then(|| {
                    let text = format!(
                        "pool {name}: weights of overrides leave {:.0} % of the slots in region {region}, so {:.0} % of \
                         its new connections go to backends with the highest weight whatever the others ask",
                        kept * 100.0,
                        missed * 100.0
                    );
                    let (pool, region) = (name.clone(), region.clone());
                    let group = ObjectReference::Group { pool, region };
                    Warning::about(group, WarningReason::OverrideLimited, text)
                })
            });
            emptied.into_iter().chain(missed).collect::<Vec<_>>()
        });
        let mut warnings: Vec<_> = warnings.take(MOST_WARNINGS).collect();
        let lack_of_room = self.lack_of_room(overrides);
        warnings
            .extend(lack_of_room.map(|text| Warning::new(WarningReason::OverrideLimited, text)));
        warnings
    }

    /// Begins or ends the condition that weights of overrides are not kept, once a second.
    pub(super) fn check_weights(&self) {
        let conditions = &self.settings.conditions;
        match self.lack_of_room(&self.known.overrides.overrides) {
            Some(cause) => conditions.begin(&SUBJECT, &cause),
            None => conditions.end(&SUBJECT),
        }
    }

    /// Why the weights of overrides are not kept, if they place more connections away from home than can be remembered.
    fn lack_of_room(&self, overrides: &Overrides) -> Option<String> {
        let has_weights =
            overrides.iter().any(|(_, it)| !it.action.stops() && it.action.percent().is_some());
        if !has_weights {
            return None;
        }
        let configuration = Arc::clone(&self.known.in_force.configuration);
        let mut needed = 0.0;
        for (name, pool) in &configuration.pools {
            for (region, kept) in self.known.kept(overrides, name, pool) {
                let ids =
                    self.known.in_force.ids.pool(name).zip(self.known.in_force.ids.region(region));
                let admitted = ids.and_then(|ids| self.loads.demand.admitted(ids));
                needed += admitted.unwrap_or_default() * (1.0 - kept);
            }
        }
        // Each has its cell for as long as it lasts, and a while longer.
        let room = f64::from(self.settings.sizes.get(Size::Flows)) / FLOWS_TO_CELLS;
        let sustained = room / FLOW_LIFE.as_secs_f64();
        (needed > sustained).then(|| {
            format!(
                "they place about {needed:.0} new connections a second away from home, and the flow table has room for \
                 {sustained:.0} a second that last a minute: others go to backends that should get less (the setting flows \
                 raises this)"
            )
        })
    }
}

impl Known {
    /// Share of their own slots that the backends of each region of a pool take, by weight; only regions in which a weight
    /// is overridden.
    fn kept<'a>(
        &self,
        overrides: &Overrides,
        name: &Name,
        pool: &'a Pool,
    ) -> BTreeMap<&'a Name, f64> {
        struct Sums {
            whole: f64,
            most: f64,
            asked: f64,
            is_overridden: bool,
        }
        let mut regions: BTreeMap<&Name, Sums> = BTreeMap::new();
        if overrides.is_empty() {
            return BTreeMap::new();
        }
        for (address, backend) in pool.backends.iter().filter(|(_, it)| it.weight > 0) {
            let none = Sums { whole: 0.0, most: 0.0, asked: 0.0, is_overridden: false };
            let sums = regions.entry(&backend.region).or_insert(none);
            let weight = f64::from(backend.weight);
            sums.whole += weight;
            let by = overrides.member(name, address, &backend.region);
            let is_up = self.view.get(name, address).is_some_and(|it| it.state == MemberState::Up);
            if is_up && !by.drained && !by.disabled {
                sums.most = sums.most.max(by.weight);
                sums.asked += weight * by.weight;
                sums.is_overridden |= by.weight < 1.0;
            }
        }
        let overridden = regions.into_iter().filter(|(_, sums)| sums.is_overridden);
        overridden.map(|(region, it)| (region, it.asked / it.most / it.whole)).collect()
    }
}
