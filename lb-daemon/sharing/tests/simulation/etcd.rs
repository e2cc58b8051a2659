//! What all balancers see alike: members, leases, the last epoch, with transactions.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use lb_model::Name;
use lb_sharing::epoch::{Epoch, EpochStep, Forgotten, Membership, Statement};

/// How long a lease lasts without a renewal.
const LEASE: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, Default)]
pub(crate) struct Etcd {
    /// Each member, with the epoch in which it joined or gave up, and its last incarnation.
    pub(crate) members: BTreeMap<Name, (u64, u64)>,
    leases: BTreeMap<Name, Duration>,
    /// What those with a lease say.
    statements: BTreeMap<Name, Statement>,
    pub(crate) epoch: Option<Epoch>,
    pub(crate) generation: u64,
}

impl Etcd {
    pub(crate) fn renew(&mut self, name: &Name, now: Duration) {
        self.leases.insert(name.clone(), now + LEASE);
    }

    /// The lease holds it.
    pub(crate) fn state(&mut self, name: &Name, statement: Option<Statement>) {
        match statement {
            Some(statement) => self.statements.insert(name.clone(), statement),
            None => self.statements.remove(name),
        };
    }

    pub(crate) fn remove(&mut self, name: &Name) {
        self.members.remove(name);
        self.leases.remove(name);
    }

    pub(crate) fn membership(&self, now: Duration) -> Membership {
        let members = self.members.iter().map(|(name, (epoch, _))| (name.clone(), *epoch));
        let alive = self.leases.iter().filter(|(_, until)| **until > now);
        let alive: BTreeSet<Name> = alive.map(|(name, _)| name.clone()).collect();
        let statements = self.statements.iter().filter(|(name, _)| alive.contains(*name));
        let statements = statements.map(|(name, it)| (name.clone(), it.clone())).collect();
        Membership { members: members.collect(), alive, statements }
    }

    /// Writes a step of a balancer, if what it saw is still so.
    pub(crate) fn commit(
        &mut self,
        by: &Name,
        step: EpochStep,
        seen: (&Membership, Option<&Epoch>),
        now: Duration,
    ) -> bool {
        let current = self.membership(now);
        let (membership, epoch) = seen;
        // A contribution adds to what others add at the same time.
        let is_open = self.epoch.as_ref().is_some_and(|epoch| !epoch.closed);
        let same_number = self.epoch.as_ref().map(|e| e.number) == epoch.map(|e| e.number);
        if !same_number {
            return false;
        }
        // What the transaction checks of those that are to be forgotten.
        let may_forget = |forgotten: &Forgotten| {
            let same = |name: &Name| current.members.get(name) == membership.members.get(name);
            let stands =
                |name: &Name| current.statements.get(name) == membership.statements.get(name);
            forgotten.stated_by.iter().all(stands)
                && !forgotten.gone.iter().any(|name| current.alive.contains(name))
                && forgotten.still_forgotten.iter().all(same)
        };
        match step {
            EpochStep::Open { number, forgotten } => {
                if is_open || !may_forget(&forgotten) {
                    return false;
                }
                let (generation, forgotten) = (self.generation, forgotten.names());
                self.epoch = Some(Epoch { number, generation, forgotten, ..Epoch::default() });
            }
            EpochStep::Forget(forgotten) => {
                let names = forgotten.names();
                let Some(epoch) = self.epoch.as_ref().filter(|epoch| !epoch.closed) else {
                    return false;
                };
                if !may_forget(&forgotten)
                    || names.iter().any(|n| epoch.contributions.contains_key(n))
                {
                    return false;
                }
                if let Some(epoch) = &mut self.epoch {
                    epoch.forgotten.extend(names);
                }
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
