//! What a balancer owns, in the form that survives a crash.

use std::collections::{BTreeMap, BTreeSet};

use lb_model::Name;
use serde::{Deserialize, Serialize};

use crate::{
    Parts,
    epoch::{self, Contribution, Epoch},
};

/// A group of the fleet, as far as its capacity is shared. A group that was removed and added again has another birth, so
/// what was owned of the earlier one says nothing about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupKey {
    pub pool: Name,
    pub region: Name,
    /// The generation that created the group.
    pub birth: u64,
}

/// Parts on their way from one balancer to another. Transfers between two balancers are numbered from 1 in each epoch, and
/// applied in that order, each once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    pub number: u64,
    pub group: GroupKey,
    pub parts: Parts,
}

/// What is known of transfers to and from one other balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// Number of the last transfer that was sent.
    pub sent: u64,
    /// Number of the last transfer of the other one that was applied.
    pub applied: u64,
    /// Transfers that were sent and are not known to be applied, in order.
    pub unacknowledged: Vec<Transfer>,
}

/// What a balancer owns and has sent. A change of it must be stored before it has any effect: what it lost must not be
/// enforced by the time that another balancer hears of it, and what it gained must not be lost by a crash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Which start of this balancer it is; rises with each.
    pub incarnation: u64,
    /// The last epoch whose result it contains.
    pub epoch: u64,
    /// The epoch for which it said what it owns. Until that is closed it neither gives nor takes.
    pub frozen: Option<u64>,
    /// The last generation whose new groups it has its portion of.
    pub adopted: u64,
    /// The store turned out to be an old copy: others may own what it says. Nothing of it is enforced until the balancer
    /// was forgotten.
    pub is_old_copy: bool,
    #[serde(with = "as_list")]
    pub owned: BTreeMap<GroupKey, Parts>,
    pub pairs: BTreeMap<Name, Pair>,
}

impl Ledger {
    /// The ledger of a balancer that joins a fleet. It owns nothing, and has a portion only of groups that are created
    /// after `generation`, which has to be the one that was in force when the fleet first saw the balancer alive. `epoch`
    /// is the last one that is closed; one that is open waits for the new member too. A balancer that was a member before
    /// has to go on from its last incarnation.
    pub fn new_member(generation: u64, epoch: u64) -> Self {
        Self { adopted: generation, epoch, ..Self::default() }
    }

    /// The ledger of a balancer that joins a fleet without members: the others gave their portions to each other until the last
    /// one left, so nobody owns anything, and it has the whole of each group. Otherwise as [`Self::new_member`].
    pub fn only_member(
        generation: u64,
        epoch: u64,
        groups: impl IntoIterator<Item = GroupKey>,
    ) -> Self {
        let owned = groups.into_iter().map(|group| (group, Parts::WHOLE)).collect();
        Self { owned, ..Self::new_member(generation, epoch) }
    }

    /// What it owns of a group.
    pub fn owned(&self, group: &GroupKey) -> Parts {
        self.owned.get(group).copied().unwrap_or_default()
    }

    /// What is on its way to another balancer, of one group.
    pub fn on_its_way(&self, to: &Name, group: &GroupKey) -> Parts {
        let pair = self.pairs.get(to).into_iter();
        let transfers = pair.flat_map(|pair| &pair.unacknowledged);
        transfers.filter(|transfer| transfer.group == *group).map(|transfer| transfer.parts).sum()
    }

    /// Gives parts to another balancer, at most what it owns.
    pub(crate) fn give(&mut self, to: &Name, group: &GroupKey, parts: Parts) {
        let Some(owned) = self.owned.get_mut(group) else { return };
        let parts = parts.min(*owned);
        if parts == Parts::NONE {
            return;
        }
        *owned -= parts;
        let pair = self.pairs.entry(to.clone()).or_default();
        pair.sent += 1;
        let transfer = Transfer { number: pair.sent, group: group.clone(), parts };
        pair.unacknowledged.push(transfer);
    }

    /// Applies the transfers of another balancer that come next. Parts of a group that `is_gone` are gone with it.
    pub(crate) fn apply(
        &mut self,
        from: &Name,
        transfers: &[Transfer],
        is_gone: impl Fn(&GroupKey) -> bool,
    ) {
        if transfers.is_empty() {
            return;
        }
        let pair = self.pairs.entry(from.clone()).or_default();
        for transfer in transfers {
            if transfer.number != pair.applied + 1 {
                continue;
            }
            pair.applied = transfer.number;
            if !is_gone(&transfer.group) {
                let owned = self.owned.entry(transfer.group.clone()).or_default();
                *owned = (*owned + transfer.parts).min(Parts::WHOLE);
            }
        }
    }

    /// Forgets transfers that another balancer says it has applied. This need not be stored: it says so again.
    pub(crate) fn acknowledge(&mut self, by: &Name, applied: u64) {
        if let Some(pair) = self.pairs.get_mut(by) {
            pair.unacknowledged.retain(|transfer| transfer.number > applied);
        }
    }

    /// Takes its portions of the groups that were created since the last time, and forgets groups that are gone.
    ///
    /// `births` are the groups of `generation`, each with the balancers that were alive when it was created. What it owns
    /// of groups that are created by later generations stays: others, which know them already, gave it that.
    pub(crate) fn adopt(
        &mut self,
        own: &Name,
        generation: u64,
        births: &BTreeMap<GroupKey, BTreeSet<Name>>,
    ) {
        for (group, owners) in births.iter().filter(|(group, _)| group.birth > self.adopted) {
            let portion = owners.iter().position(|owner| owner == own);
            let portion = portion.map(|index| Parts::equal_portion(owners.len(), index));
            *self.owned.entry(group.clone()).or_default() += portion.unwrap_or_default();
        }
        self.adopted = self.adopted.max(generation);
        self.owned.retain(|group, _| group.birth > generation || births.contains_key(group));
        for group in births.keys() {
            self.owned.entry(group.clone()).or_default();
        }
    }

    /// Takes over the result of a closed epoch.
    pub(crate) fn enter(&mut self, own: &Name, epoch: &Epoch) {
        for (group, owners) in epoch::compute_result(epoch) {
            if let (Some(owned), Some(parts)) = (self.owned.get_mut(&group), owners.get(own)) {
                *owned = *parts;
            }
        }
        self.epoch = epoch.number;
        self.frozen = None;
        self.pairs.clear();
    }

    /// Gives up what a forgotten balancer owned: the others have it.
    pub(crate) fn give_up(&mut self, epoch: &Epoch) {
        let is_covered = |group: &GroupKey| group.birth <= epoch.generation;
        self.owned
            .iter_mut()
            .filter(|(group, _)| is_covered(group))
            .for_each(|(_, p)| *p = Parts::NONE);
        self.adopted = self.adopted.max(epoch.generation);
        self.is_old_copy = false;
        self.pairs.clear();
    }

    /// What it says to an epoch.
    pub(crate) fn contribution(&self) -> Contribution {
        Contribution { owned: self.owned.clone(), pairs: self.pairs.clone() }
    }
}

/// JSON has no maps whose keys are objects.
pub(crate) mod as_list {
    use super::*;
    use serde::{Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        owned: &BTreeMap<GroupKey, Parts>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(owned)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<GroupKey, Parts>, D::Error> {
        Ok(Vec::deserialize(from)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{group, name};

    fn owner(parts: u64) -> Ledger {
        Ledger { owned: [(group(), Parts(parts))].into(), ..Ledger::default() }
    }

    #[test]
    fn transfers_are_applied_in_order_and_once() {
        let (mut giver, mut taker) = (owner(100), owner(0));
        for parts in [10, 20, 30] {
            giver.give(&name("b"), &group(), Parts(parts));
        }
        assert_eq!(giver.owned(&group()), Parts(40));
        assert_eq!(giver.on_its_way(&name("b"), &group()), Parts(60));
        let sent = giver.pairs[&name("b")].unacknowledged.clone();
        taker.apply(&name("a"), &sent[1..], |_| false);
        assert_eq!(taker.owned(&group()), Parts::NONE, "the first one is missing");
        taker.apply(&name("a"), &sent[..2], |_| false);
        taker.apply(&name("a"), &sent[..2], |_| false);
        assert_eq!(taker.owned(&group()), Parts(30));
        taker.apply(&name("a"), &sent, |_| false);
        assert_eq!(taker.owned(&group()), Parts(60));
        giver.acknowledge(&name("b"), 2);
        assert_eq!(giver.on_its_way(&name("b"), &group()), Parts(30));
    }

    #[test]
    fn nobody_gives_more_than_it_owns() {
        let mut giver = owner(5);
        giver.give(&name("b"), &group(), Parts(9));
        giver.give(&name("b"), &group(), Parts(1));
        assert_eq!(giver.owned(&group()), Parts::NONE);
        assert_eq!(giver.on_its_way(&name("b"), &group()), Parts(5));
        assert_eq!(giver.pairs[&name("b")].sent, 1);
    }

    #[test]
    fn a_stored_ledger_is_read_back() {
        let mut ledger = owner(100);
        ledger.give(&name("b"), &group(), Parts(10));
        ledger.frozen = Some(3);
        let text = serde_json::to_string(&ledger).unwrap();
        assert_eq!(serde_json::from_str::<Ledger>(&text).unwrap(), ledger);
    }
}
