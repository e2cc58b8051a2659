//! The members of all pools.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::Arc,
    time::{Instant, SystemTime},
};

use super::{
    Cause, MemberUpdate, clock,
    member::{Counts, DecidedBy, Member, Overridden},
};
use crate::health_state::RestoredHoldDowns;
use lb_common::abi::member::Accepts;
use lb_health::HealthChange;
use lb_model::{MemberState, Name, Pool, overrides::Overrides};
use lb_publish::reconcile::MemberPath;

#[derive(Debug, Default)]
pub(super) struct Members {
    pools: BTreeMap<Name, PoolMembers>,
    /// Hold-downs that an earlier daemon knew, until their members are found in the packet path.
    restored: RestoredHoldDowns,
    overrides: Arc<Overrides>,
    /// When shares were last balanced by utilisation.
    pub(super) balanced_at: Option<Instant>,
    /// Members that changed since the last update.
    changed: Vec<(Name, IpAddr, Cause)>,
}

/// The members of a pool, with what follows from all of them, so that a change of one looks at no other.
#[derive(Debug, Default)]
pub(super) struct PoolMembers {
    members: BTreeMap<IpAddr, Arc<Member>>,
    counts: Counts,
    /// Whether it was in panic mode when last resorts were last written; `None`: never written.
    pub(super) panics: Option<bool>,
    /// Until when a member may be in slow start.
    pub(super) starting_until: Option<Instant>,
}

/// What a result of checks did to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TakenResult {
    pub(super) state: MemberState,
    /// Whether anything changed that others can see or that follows from all members of the pool.
    pub(super) is_news: bool,
    /// Whether a hold began.
    pub(super) is_held: bool,
}

impl PoolMembers {
    pub(super) fn get(&self, address: &IpAddr) -> Option<&Member> {
        self.members.get(address).map(Arc::as_ref)
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// Changes a member and the counts.
    pub(super) fn change<T>(
        &mut self,
        address: &IpAddr,
        change: impl FnOnce(&mut Member) -> T,
    ) -> Option<T> {
        let member = Arc::make_mut(self.members.get_mut(address)?);
        let before = member.counts();
        let result = change(member);
        self.counts.replace(before, member.counts());
        Some(result)
    }

    fn insert(&mut self, address: IpAddr, member: Member) {
        self.remove(&address);
        self.counts.replace(Counts::default(), member.counts());
        self.members.insert(address, Arc::new(member));
    }

    fn remove(&mut self, address: &IpAddr) {
        if let Some(member) = self.members.remove(address) {
            self.counts.replace(member.counts(), Counts::default());
        }
    }
}

impl Members {
    pub(super) fn new(restored: RestoredHoldDowns, overrides: Arc<Overrides>) -> Self {
        Self { restored, overrides, ..Self::default() }
    }

    /// Replaces the overrides. What follows for members is written by [`Self::override_backends`].
    pub(super) fn set_overrides(&mut self, overrides: Arc<Overrides>) {
        self.overrides = overrides;
    }

    /// Takes over what overrides ask of backends of a pool. Returns those to which that makes a difference, with their
    /// states.
    pub(super) fn override_backends(
        &mut self,
        name: &Name,
        configured: &Pool,
        backends: &[IpAddr],
        now: SystemTime,
    ) -> BTreeMap<IpAddr, Accepts> {
        let Some(pool) = self.pools.get_mut(name) else { return BTreeMap::new() };
        let mut changed = BTreeMap::new();
        for address in backends {
            let Some(backend) = configured.backends.get(address) else { continue };
            let overridden = Overridden::of(&self.overrides, name, address, &backend.region);
            let taken = pool.change(address, |member| {
                member.set_override(overridden, now).then_some(member.state.accepts())
            });
            if let Some(accepts) = taken.flatten() {
                changed.insert(*address, accepts);
                self.changed.push((name.clone(), *address, Cause::Override));
            }
        }
        changed
    }

    pub(super) fn pool(&self, pool: &Name) -> Option<&PoolMembers> {
        self.pools.get(pool)
    }

    pub(super) fn pool_mut(&mut self, pool: &Name) -> Option<&mut PoolMembers> {
        self.pools.get_mut(pool)
    }

    /// Notes a change, for the next update.
    pub(super) fn note(&mut self, pool: &Name, address: IpAddr, cause: Cause) {
        self.changed.push((pool.clone(), address, cause));
    }

    /// What changed since this was last called.
    pub(super) fn take_updates(&mut self) -> Vec<MemberUpdate> {
        let changed = std::mem::take(&mut self.changed).into_iter();
        let update = |(pool, address, cause): (Name, IpAddr, Cause)| {
            let member = Arc::clone(self.pools.get(&pool)?.members.get(&address)?);
            Some(MemberUpdate::Member { pool, address, member, cause })
        };
        changed.filter_map(update).collect()
    }

    pub(super) fn remove_pool(&mut self, pool: &Name) {
        self.pools.remove(pool);
    }

    /// Takes over the backends of a pool. States of backends that an earlier daemon left come from `path`.
    pub(super) fn configure(
        &mut self,
        name: &Name,
        pool: &Pool,
        path: &impl MemberPath,
        now: SystemTime,
    ) {
        let there = self.pools.entry(name.clone()).or_default();
        let gone = there.members.keys().filter(|address| !pool.backends.contains_key(address));
        let gone: Vec<_> = gone.copied().collect();
        gone.iter().for_each(|address| there.remove(address));
        // The threshold may be another one.
        there.panics = None;
        for (address, backend) in &pool.backends {
            let before = there.members.get(address);
            let mut member = match before {
                Some(before) => (**before).clone(),
                None => {
                    let state = path.state(name, *address);
                    let restored = state.and_then(|accepts| {
                        self.restored.take((name, *address), accepts, pool, clock())
                    });
                    Member::new(state, restored, now)
                }
            };
            let overridden = Overridden::of(&self.overrides, name, address, &backend.region);
            member.configure(pool, backend, overridden, now);
            if before.is_none_or(|before| **before != member) {
                there.insert(*address, member);
                self.changed.push((name.clone(), *address, Cause::Configuration));
            }
        }
    }

    /// Makes the packet path agree with a pool. Members that are undecided take over the state of the packet path
    /// instead.
    pub(super) fn write_states(
        &mut self,
        name: &Name,
        configured: &Pool,
        path: &mut impl MemberPath,
        now: SystemTime,
    ) {
        let Some(pool) = self.pools.get_mut(name) else { return };
        let differing = |(address, member): (&IpAddr, &Arc<Member>)| {
            let there = path.state(name, *address)?;
            (there != member.state.accepts()).then_some((*address, there))
        };
        let differing: Vec<_> = pool.members.iter().filter_map(differing).collect();
        let (mut falls, mut rises) = (Vec::new(), Vec::new());
        for (address, there) in differing {
            let restored = &mut self.restored;
            let write = pool.change(&address, |member| {
                if !member.is_decided {
                    let restored = restored.take((name, address), there, configured, clock());
                    member.recover_state(there, restored, now);
                }
                (member.state.accepts() != there).then_some(member.state.accepts())
            });
            if let Some(accepts) = write.flatten() {
                let writes = if accepts as u8 > there as u8 { &mut rises } else { &mut falls };
                writes.push((address, accepts));
            }
            self.changed.push((name.clone(), address, Cause::Share));
        }
        path.set_states(name, &falls);
        path.set_states(name, &rises);
    }

    /// Takes a result of checks. Failures before `excused` may be this host's own. `None`: checks do not decide about the
    /// member.
    pub(super) fn take_health_change(
        &mut self,
        change: &HealthChange,
        now: SystemTime,
        at: Instant,
        excused: Option<Instant>,
    ) -> Option<TakenResult> {
        let HealthChange { pool, address, .. } = change;
        let members = self.pools.get_mut(pool)?;
        // Results for backends that were removed or disabled meanwhile do not count.
        if members.get(address)?.decided_by != DecidedBy::Checks {
            return None;
        }
        let (is_news, taken) = members.change(address, |member| {
            let before = member.counts();
            let is_news = member.take_health_change(change, now, at, excused);
            let counts = member.counts();
            let is_held = counts.held > before.held;
            (
                is_news,
                TakenResult { state: member.state, is_news: is_news || before != counts, is_held },
            )
        })?;
        let cause = if is_news { Cause::Checks } else { Cause::Share };
        self.changed.push((pool.clone(), *address, cause));
        Some(taken)
    }

    /// Ends the holds whose time is over. Returns the members that are no longer held, with their states.
    pub(super) fn release_held(
        &mut self,
        now: SystemTime,
        at: Instant,
    ) -> Vec<(Name, IpAddr, MemberState)> {
        let mut released = Vec::new();
        for (name, pool) in self.pools.iter_mut().filter(|(_, pool)| pool.counts.held > 0) {
            let held = pool.members.iter().filter(|(_, member)| member.is_held());
            let held: Vec<_> = held.map(|(address, _)| *address).collect();
            for address in held {
                let state =
                    pool.change(&address, |member| member.release(now, at).then_some(member.state));
                if let Some(state) = state.flatten() {
                    released.push((name.clone(), address, state));
                    self.changed.push((name.clone(), address, Cause::Checks));
                }
            }
        }
        released
    }
}
