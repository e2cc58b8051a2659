//! What all balancers see alike: members, leases, the last epoch, with transactions.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use lb_model::Name;
use lb_sharing::{
    epoch::Epoch,
    forget::{EpochStep, Membership},
};

/// How long a lease lasts without a renewal.
const LEASE: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, Default)]
pub(crate) struct Register {
    /// Each member, with the epoch in which it joined or gave up, and its last incarnation.
    pub(crate) members: BTreeMap<Name, (u64, u64)>,
    leases: BTreeMap<Name, Duration>,
    pub(crate) epoch: Option<Epoch>,
    pub(crate) generation: u64,
}

impl Register {
    pub(crate) fn renew(&mut self, name: &Name, now: Duration) {
        self.leases.insert(name.clone(), now + LEASE);
    }

    pub(crate) fn membership(&self, now: Duration) -> Membership {
        let members = self.members.iter().map(|(name, (epoch, _))| (name.clone(), *epoch));
        let alive = self.leases.iter().filter(|(_, until)| **until > now);
        Membership {
            members: members.collect(),
            alive: alive.map(|(name, _)| name.clone()).collect(),
        }
    }

    /// Writes a step of a balancer, if what it saw is still so.
    pub(crate) fn commit(
        &mut self,
        by: &Name,
        step: EpochStep,
        seen: (&Membership, Option<&Epoch>),
        lost: &BTreeSet<Name>,
        now: Duration,
    ) -> bool {
        let current = self.membership(now);
        let is_alive = |name: &Name| current.alive.contains(name) && !lost.contains(name);
        let (membership, epoch) = seen;
        // A contribution adds to what others add at the same time.
        let is_open = self.epoch.as_ref().is_some_and(|epoch| !epoch.closed);
        let same_number = self.epoch.as_ref().map(|e| e.number) == epoch.map(|e| e.number);
        if !same_number {
            return false;
        }
        match step {
            EpochStep::Open(forgotten) => {
                if is_open || forgotten.iter().any(is_alive) {
                    return false;
                }
                let number = self.epoch.as_ref().map_or(0, |epoch| epoch.number) + 1;
                let generation = self.generation;
                self.epoch = Some(Epoch { number, generation, forgotten, ..Epoch::default() });
            }
            EpochStep::Forget(forgotten) => {
                let Some(epoch) = self.epoch.as_mut().filter(|epoch| !epoch.closed) else {
                    return false;
                };
                if forgotten
                    .iter()
                    .any(|name| is_alive(name) || epoch.contributions.contains_key(name))
                {
                    return false;
                }
                epoch.forgotten.extend(forgotten);
            }
            EpochStep::Contribute(contribution) => {
                let Some(epoch) = self.epoch.as_mut().filter(|epoch| !epoch.closed) else {
                    return false;
                };
                epoch.contributions.insert(by.clone(), contribution);
            }
            EpochStep::Close => {
                let same_members = current.members.keys().eq(membership.members.keys());
                let Some(epoch) = self.epoch.as_mut().filter(|epoch| !epoch.closed) else {
                    return false;
                };
                let members = current.members.keys().cloned().collect();
                if !same_members || epoch.awaited(&members).next().is_some() {
                    return false;
                }
                epoch.closed = true;
            }
        }
        true
    }
}
