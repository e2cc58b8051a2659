//! Overrides: what operators ask for beside the configuration, until they take it back or its time is over. Pure: times are
//! handed in.
//!
//! An override only takes away. A drain or disable is added to what the configuration says; weights are multiplied; of scales
//! the lowest counts. Those of an address, of its pool, group and region act together. When the object of an override goes,
//! the override stays for [`KEPT`], and acts again if the object comes back.

mod affected;
mod target;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    net::IpAddr,
    time::{Duration, Instant, SystemTime},
};

pub use affected::{Affected, affected};
pub use target::{Action, ActionError, Key, KeyError, Kind, Percent, PercentError, Scope, Target};

use crate::{Configuration, GroupSettings, Name, NamedValue, Scaler};

/// How long an override stays when its object is gone.
pub const KEPT: Duration = Duration::from_secs(3600);

/// A wall clock that differs by less from what is expected was not set: both clocks are read one after the other.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(1);

/// Most overrides at a time, without the local ones.
pub const MOST: usize = 10_000;

/// Most local overrides at a time.
pub const MOST_LOCAL: usize = 1000;

/// A point in time: the wall clock to show it, the monotonic clock to wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub wall: SystemTime,
    pub instant: Instant,
}

impl Moment {
    /// `None`: beyond what a clock can tell.
    pub fn after(self, time: Duration) -> Option<Self> {
        Some(Self { wall: self.wall.checked_add(time)?, instant: self.instant.checked_add(time)? })
    }
}

/// What an operator asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    pub action: Action,
    pub who: String,
    /// Why; empty: no reason was given.
    pub reason: String,
    pub set_at: SystemTime,
    /// When it ends by itself.
    pub until: Option<Moment>,
    /// Since when the configuration does not have its target.
    pub absent_since: Option<Moment>,
}

impl Override {
    /// Whether an operator asks for the same: all but what this balancer knows of it.
    fn asks_as(&self, other: &Self) -> bool {
        let asked = |it: &Self| (it.action, it.set_at, it.until.map(|until| until.wall));
        asked(self) == asked(other) && self.who == other.who && self.reason == other.reason
    }

    /// Whether it ends at another moment than `other`, which asks for the same: the wall clock was set in between.
    fn has_other_end(&self, other: &Self) -> bool {
        let ends = self.until.zip(other.until).map(|(one, other)| (one.instant, other.instant));
        ends.is_some_and(|(one, other)| one.max(other) - one.min(other) >= CLOCK_TOLERANCE)
    }

    /// Whether its target has been gone for [`KEPT`].
    fn is_gone(&self, now: Instant) -> bool {
        self.absent_since.is_some_and(|since| now.saturating_duration_since(since.instant) >= KEPT)
    }
}

/// Why an override ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its time is over.
    Expired,
    /// Its object has been gone for [`KEPT`].
    Gone,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "its time is over",
            Self::Gone => "what it was about has been gone for an hour",
        })
    }
}

/// All overrides, as of a revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Rises with each change.
    revision: u64,
    /// Whether a fleet decides them, but for the local ones. Otherwise there are no local ones.
    is_followed: bool,
    entries: BTreeMap<Key, Override>,
    /// What acts on backends, so that all members of a pool can be asked in little time.
    backends: HashMap<IpAddr, Vec<(Option<Name>, Action, Scope)>>,
}

/// What overrides do to a member.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemberOverride {
    pub drained: bool,
    pub disabled: bool,
    /// Whether it is drained or disabled by local overrides alone.
    pub stopped_locally: bool,
    /// Share of its weight, above 0 and at most 1.
    pub weight: f64,
}

impl MemberOverride {
    /// Nothing is overridden.
    pub const NONE: Self =
        Self { drained: false, disabled: false, stopped_locally: false, weight: 1.0 };

    fn add(&mut self, action: Action) {
        match action {
            Action::Disable => self.disabled = true,
            _ if action.stops() => self.drained = true,
            Action::Weight(percent) => self.weight *= percent.share(),
            Action::Drain | Action::Scale(_) => {}
        }
    }
}

/// What overrides do to a pool's backends in one region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupOverride {
    /// Most of the capacity that may be in use; [`Scaler::NONE`] if it is drained.
    pub scale: Scaler,
}

impl GroupOverride {
    /// Nothing is overridden.
    pub const NONE: Self = Self { scale: Scaler::WHOLE };

    fn add(&mut self, action: Action) {
        let scale = match action {
            Action::Scale(percent) => Scaler::new(percent.share()).unwrap_or(Scaler::NONE),
            Action::Drain => Scaler::NONE,
            Action::Disable | Action::Weight(_) => Scaler::WHOLE,
        };
        if scale < self.scale {
            self.scale = scale;
        }
    }

    /// Settings of a group under the override.
    #[must_use]
    pub fn apply_to(self, settings: GroupSettings) -> GroupSettings {
        match self.scale < settings.effective_scaler() {
            true => GroupSettings { scaler: self.scale, ..settings },
            false => settings,
        }
    }
}

impl Overrides {
    /// Those that were stored.
    pub fn restored(revision: u64, entries: BTreeMap<Key, Override>) -> Self {
        let mut overrides = Self { revision, entries, ..Self::default() };
        overrides.index();
        overrides
    }

    /// The same, decided by a fleet or not.
    #[must_use]
    pub fn followed(self, is_followed: bool) -> Self {
        Self { is_followed, ..self }
    }

    /// Whether a fleet decides them. Then none ends by itself.
    pub const fn is_followed(&self) -> bool {
        self.is_followed
    }

    pub const fn revision(&self) -> u64 {
        self.revision
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// By key.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Override)> {
        self.entries.iter()
    }

    /// The local ones, by key.
    pub fn local(&self) -> impl Iterator<Item = (&Key, &Override)> {
        self.entries.iter().filter(|(key, _)| key.is_local())
    }

    /// Whether there are more than allowed.
    pub fn are_too_many(&self) -> bool {
        let local = self.local().count();
        local > MOST_LOCAL || self.entries.len() - local > MOST
    }

    pub fn get(&self, key: &Key) -> Option<&Override> {
        self.entries.get(key)
    }

    /// What acts on a member.
    pub fn member(&self, pool: &Name, address: &IpAddr, region: &Name) -> MemberOverride {
        let mut member = MemberOverride::NONE;
        if self.entries.is_empty() {
            return member;
        }
        let shared = self.shared_group(pool, region).scale;
        let mut is_stopped = shared == Scaler::NONE;
        member.drained = is_stopped || self.group(pool, region).scale == Scaler::NONE;
        for (only, action, scope) in self.backends.get(address).into_iter().flatten() {
            if only.as_ref().is_none_or(|only| only == pool) {
                member.add(*action);
                is_stopped |= action.stops() && *scope == Scope::Shared;
            }
        }
        member.stopped_locally = (member.drained || member.disabled) && !is_stopped;
        member
    }

    /// What acts on a pool's backends in a region.
    pub fn group(&self, pool: &Name, region: &Name) -> GroupOverride {
        self.group_of(&Scope::ALL, pool, region)
    }

    /// The same without the local ones.
    pub fn shared_group(&self, pool: &Name, region: &Name) -> GroupOverride {
        self.group_of(&[Scope::Shared], pool, region)
    }

    fn group_of(&self, scopes: &[Scope], pool: &Name, region: &Name) -> GroupOverride {
        let mut group = GroupOverride::NONE;
        if self.entries.is_empty() {
            return group;
        }
        let targets = [
            Target::Pool(pool.clone()),
            Target::Group { pool: pool.clone(), region: region.clone() },
            Target::Region(region.clone()),
        ];
        for target in targets {
            for (kind, scope) in [Kind::Drain, Kind::Scale]
                .into_iter()
                .flat_map(|kind| scopes.iter().map(move |scope| (kind, *scope)))
            {
                let key = Key::new(target.clone(), kind).with_scope(scope);
                if let Some(it) = self.entries.get(&key) {
                    group.add(it.action);
                }
            }
        }
        group
    }

    /// The keys of those that act on a member, the local ones last.
    pub fn of_member<'a>(
        &'a self,
        pool: &'a Name,
        address: &IpAddr,
        region: &'a Name,
    ) -> impl Iterator<Item = (Key, &'a Override)> {
        let own = |pool| Target::Backend { address: *address, pool };
        let targets = [
            own(None),
            own(Some(pool.clone())),
            Target::Pool(pool.clone()),
            Target::Group { pool: pool.clone(), region: region.clone() },
            Target::Region(region.clone()),
        ];
        let keys = Scope::ALL.into_iter().flat_map(move |scope| {
            targets.clone().into_iter().flat_map(move |target| {
                let key = move |kind: &Kind| Key { target: target.clone(), kind: *kind, scope };
                Kind::ALL.iter().map(key)
            })
        });
        keys.filter_map(|key| self.entries.get(&key).map(|it| (key, it)))
    }

    /// Adds or replaces overrides, as one revision.
    pub fn set(&mut self, overrides: impl IntoIterator<Item = (Key, Override)>) {
        self.entries.extend(overrides);
        self.changed();
    }

    /// Removes overrides, as one revision. Those that are not there are left out of what it returns.
    pub fn remove<'a>(&mut self, keys: impl IntoIterator<Item = &'a Key>) -> Vec<(Key, Override)> {
        let removed: Vec<_> =
            keys.into_iter().filter_map(|key| self.entries.remove_entry(key)).collect();
        if !removed.is_empty() {
            self.changed();
        }
        removed
    }

    /// Replaces all but the local ones by those of a fleet, as one revision, and follows it from then on. Returns the keys of
    /// those that are new, others or gone. What is as it was keeps what is known of it here: since when its target is gone, and
    /// when it ends unless the wall clock was set ([`CLOCK_TOLERANCE`]). Of others that is not known until they are observed: their hour
    /// begins with the change.
    pub fn follow(&mut self, shared: impl IntoIterator<Item = (Key, Override)>) -> Vec<Key> {
        let mut before: BTreeMap<_, _> =
            self.entries.extract_if(.., |key, _| !key.is_local()).collect();
        let (mut changed, mut was_clock_set) = (Vec::new(), false);
        for (key, it) in shared.into_iter().filter(|(key, _)| !key.is_local()) {
            let known = before.remove(&key);
            let it = match known {
                Some(known) if known.asks_as(&it) => {
                    let has_other_end = known.has_other_end(&it);
                    was_clock_set |= has_other_end;
                    Override { until: if has_other_end { it.until } else { known.until }, ..known }
                }
                _ => {
                    changed.push(key.clone());
                    it
                }
            };
            self.entries.insert(key, it);
        }
        changed.extend(before.into_keys());
        let was_followed = std::mem::replace(&mut self.is_followed, true);
        if !changed.is_empty() || !was_followed || was_clock_set {
            self.changed();
        }
        changed
    }

    /// Follows a fleet no longer. What is in force stays, and ends by itself again. All are this balancer's own then: of a local
    /// one and another one that ask the same, the one that lasts longer stays.
    pub fn unfollow(&mut self) {
        let local: Vec<_> = self.entries.extract_if(.., |key, _| key.is_local()).collect();
        for (key, it) in &local {
            let key = key.clone().with_scope(Scope::Shared);
            let lasts_longer = |other: &Override| match (it.until, other.until) {
                (None, Some(_)) => true,
                (Some(one), Some(other)) => one.instant > other.instant,
                (_, None) => false,
            };
            if self.entries.get(&key).is_none_or(lasts_longer) {
                self.entries.insert(key, it.clone());
            }
        }
        if std::mem::take(&mut self.is_followed) || !local.is_empty() {
            self.changed();
        }
    }

    /// Those of a fleet whose time has been over for so long, and which are still here.
    pub fn overdue(&self, now: Instant, time: Duration) -> impl Iterator<Item = &Key> {
        let is_overdue = move |it: &Override| {
            it.until.is_some_and(|until| now.saturating_duration_since(until.instant) >= time)
        };
        let shared = self.entries.iter().filter(|(key, _)| !key.is_local());
        shared.filter(move |(_, it)| is_overdue(it)).map(|(key, _)| key)
    }

    /// Those of a fleet whose target has been gone for [`KEPT`] by both clocks: the fleet has to remove them. What a file has was
    /// converted by the wall clock as it was at the start, which may have been set since.
    pub fn gone(&self, now: Moment) -> impl Iterator<Item = &Key> {
        let shared = self.entries.iter().filter(|(key, _)| !key.is_local());
        let is_gone = move |it: &Override| {
            let by_wall =
                it.absent_since.and_then(|since| now.wall.duration_since(since.wall).ok());
            it.is_gone(now.instant) && by_wall.is_some_and(|absent| absent >= KEPT)
        };
        shared.filter(move |(_, it)| is_gone(it)).map(|(key, _)| key)
    }

    /// Whether this balancer ends it, and no fleet.
    const fn ends_here(is_followed: bool, key: &Key) -> bool {
        !is_followed || matches!(key.scope, Scope::Local)
    }

    /// Removes those whose time is over, and returns why. While a fleet is followed, it removes those that are not local.
    pub fn expire(&mut self, now: Instant) -> Vec<(Key, Override, End)> {
        let is_followed = self.is_followed;
        let end = |it: &Override| {
            if it.until.is_some_and(|until| until.instant <= now) {
                Some(End::Expired)
            } else {
                it.is_gone(now).then_some(End::Gone)
            }
        };
        let ended: Vec<_> = self
            .entries
            .extract_if(.., |key, it| Self::ends_here(is_followed, key) && end(it).is_some())
            .collect();
        if !ended.is_empty() {
            self.changed();
        }
        let ended = ended.into_iter();
        ended.filter_map(|(key, it)| end(&it).map(|end| (key, it, end))).collect()
    }

    /// When the next one ends by itself.
    pub fn next_end(&self) -> Option<Instant> {
        let end = |it: &Override| {
            let gone = it.absent_since.and_then(|since| since.instant.checked_add(KEPT));
            it.until.map(|until| until.instant).into_iter().chain(gone).min()
        };
        let own = self.entries.iter().filter(|(key, _)| Self::ends_here(self.is_followed, key));
        own.filter_map(|(_, it)| end(it)).min()
    }

    /// Forgets since when objects are gone: a generation that was not observed may have had them, or the wall clock was set.
    /// Returns whether any was.
    pub fn forget_absent_since(&mut self) -> bool {
        let absent = self.entries.values_mut().filter(|it| it.absent_since.is_some());
        let is_changed = absent.map(|it| it.absent_since = None).count() > 0;
        self.revision += u64::from(is_changed);
        is_changed
    }

    /// Notes which of them have an object in a configuration. Returns whether that changed.
    pub fn observe(&mut self, configuration: &Configuration, now: Moment) -> bool {
        let present = self.present_backends(configuration);
        let mut is_changed = false;
        for (key, it) in &mut self.entries {
            let exists = match &key.target {
                Target::Backend { address, pool: None } => present.contains(address),
                target => target.exists(configuration),
            };
            if exists == it.absent_since.is_some() {
                it.absent_since = (!exists).then_some(now);
                is_changed = true;
            }
        }
        if is_changed {
            self.revision += 1;
        }
        is_changed
    }

    /// Backends with overrides in all pools that a configuration has, in one pass over it.
    fn present_backends(&self, configuration: &Configuration) -> HashSet<IpAddr> {
        if self.backends.is_empty() {
            return HashSet::new();
        }
        let addresses = configuration.pools.values().flat_map(|pool| pool.backends.keys());
        addresses.filter(|it| self.backends.contains_key(it)).copied().collect()
    }

    fn changed(&mut self) {
        self.revision += 1;
        self.index();
    }

    fn index(&mut self) {
        self.backends.clear();
        for (key, it) in &self.entries {
            if let Target::Backend { address, pool } = &key.target {
                self.backends.entry(*address).or_default().push((
                    pool.clone(),
                    it.action,
                    key.scope,
                ));
            }
        }
    }
}
