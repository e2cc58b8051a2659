//! Epochs: how parts are created again after a balancer was forgotten.
//!
//! An epoch is a record that all balancers see alike (in etcd). Each member that is not forgotten says in it what it owns,
//! once, and then neither gives nor takes. A forgotten one that comes back meanwhile says that it owns nothing. Once all
//! members have done so, the epoch is closed. From its record each balancer computes who owns what from then on: in
//! proportion to what they owned, but together the whole. Transfers of earlier epochs are void on both sides.

use std::collections::{BTreeMap, BTreeSet};

use lb_model::Name;
use serde::{Deserialize, Serialize};

use crate::{
    GroupKey, Parts,
    ledger::{Pair, as_list},
};

/// What a balancer owns when an epoch asks it, and what it sent and applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contribution {
    #[serde(with = "as_list")]
    pub owned: BTreeMap<GroupKey, Parts>,
    pub pairs: BTreeMap<Name, Pair>,
}

/// An epoch, as all balancers see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Epoch {
    pub number: u64,
    /// The generation that was in force when it was opened. Balancers contribute once they have it. Groups that later
    /// generations created are not part of the epoch: their owners keep what they have.
    pub generation: u64,
    /// Balancers whose parts are created again for the others.
    pub forgotten: BTreeSet<Name>,
    /// What the others said that they own, and those forgotten ones that came back.
    pub contributions: BTreeMap<Name, Contribution>,
    /// Whether all have said so, and the result is in force.
    pub closed: bool,
}

impl Epoch {
    /// Members that have yet to say what they own.
    pub fn awaited<'e>(&'e self, members: &'e BTreeSet<Name>) -> impl Iterator<Item = &'e Name> {
        let is_known =
            |name: &&Name| self.forgotten.contains(*name) || self.contributions.contains_key(*name);
        members.iter().filter(move |name| !is_known(name))
    }
}

/// Who belongs to a fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    /// Each member, with the last epoch that it is known to have the result of: the one in which it joined, or the one in
    /// which it was forgotten, once it has given up what it owned.
    pub members: BTreeMap<Name, u64>,
    /// Those whose lease is there.
    pub alive: BTreeSet<Name>,
    /// What some of these say in etcd.
    pub statements: BTreeMap<Name, Statement>,
}

/// What a balancer says in etcd of the others, for those that do not hear its messages. It holds until it says something else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// The last epoch whose result it has applied.
    pub epoch: u64,
    /// As in [`Message::silent`](crate::Message::silent).
    pub silent: BTreeSet<Name>,
}

/// What an epoch needs of a balancer. The caller writes it in a transaction, which fails if another epoch has been opened
/// meanwhile, or if the epoch forgets other members than it did, or is closed.
#[derive(Clone, Debug, PartialEq)]
pub enum EpochStep {
    /// Open the epoch with this number.
    Open { number: u64, forgotten: Forgotten },
    /// Forget these in the open epoch too: they are gone before they said what they own.
    Forget(Forgotten),
    /// Say what this balancer owns. A contribution needs a key of its own: together they may be larger than a value of
    /// etcd.
    Contribute(Contribution),
    /// All have said what they own. The transaction checks that the members are the same.
    Close,
}

/// Members that an epoch forgets, and what the transaction checks of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// They are gone: their leases are not there.
    pub gone: BTreeSet<Name>,
    /// They say that their store is an old copy. Their leases may be there.
    pub old_copies: BTreeSet<Name>,
    /// They were forgotten before and own nothing since: the epoch in [`Membership::members`] is the one that was seen.
    pub still_forgotten: BTreeSet<Name>,
    /// Alive balancers whose messages do not come, so that their statements in etcd were believed when others were found gone. The
    /// transaction checks that these are unchanged.
    pub stated_by: BTreeSet<Name>,
}

impl Forgotten {
    /// All of them.
    pub fn names(&self) -> BTreeSet<Name> {
        &(&self.gone | &self.old_copies) | &self.still_forgotten
    }

    /// Whether nothing calls for an epoch: those that are still forgotten do not.
    pub(crate) fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.old_copies.is_empty()
    }
}

/// Who owns what once an epoch is closed, by group and balancer.
///
/// A transfer that its receiver had not applied when it contributed goes back to its sender, because the receiver will
/// not apply it any more. What a forgotten balancer owned, and what was on its way to it, is created again.
pub fn compute_result(epoch: &Epoch) -> BTreeMap<GroupKey, BTreeMap<Name, Parts>> {
    let live = || epoch.contributions.iter().filter(|(name, _)| !epoch.forgotten.contains(*name));
    let mut owned: BTreeMap<&GroupKey, BTreeMap<&Name, Parts>> = BTreeMap::new();
    for (name, given) in &epoch.contributions {
        let is_forgotten = epoch.forgotten.contains(name);
        for (group, parts) in &given.owned {
            let covered = is_forgotten && group.birth <= epoch.generation;
            let parts = if covered { Parts::NONE } else { (*parts).min(Parts::WHOLE) };
            owned.entry(group).or_default().insert(name, parts);
        }
    }
    for (sender, given) in live() {
        for (receiver, pair) in &given.pairs {
            let Some(theirs) = epoch.contributions.get(receiver) else { continue };
            if epoch.forgotten.contains(receiver) {
                continue;
            }
            let applied = theirs.pairs.get(sender).map_or(0, |theirs| theirs.applied);
            for transfer in pair.unacknowledged.iter().filter(|t| t.number > applied) {
                let back = owned.get_mut(&transfer.group).and_then(|owned| owned.get_mut(sender));
                if let Some(back) = back {
                    *back = (*back + transfer.parts.min(Parts::WHOLE)).min(Parts::WHOLE);
                }
            }
        }
    }
    let scale = |group: &GroupKey, owned: BTreeMap<&Name, Parts>| {
        let mut amounts: Vec<_> = owned.values().copied().collect();
        if group.birth <= epoch.generation {
            amounts = Parts::scale_to_whole(&amounts);
        }
        owned.into_keys().cloned().zip(amounts).collect()
    };
    owned.into_iter().map(|(group, owned)| (group.clone(), scale(group, owned))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{group, name};
    use crate::{Ledger, Transfer};

    fn contribution(owned: u64, pairs: &[(&str, Pair)]) -> Contribution {
        let pairs = pairs.iter().map(|(other, pair)| (name(other), pair.clone())).collect();
        Ledger { owned: [(group(), Parts(owned))].into(), pairs, ..Ledger::default() }
            .contribution()
    }

    fn sent(number: u64, parts: u64) -> Pair {
        let transfer = Transfer { number, group: group(), parts: Parts(parts) };
        Pair { sent: number, applied: 0, unacknowledged: vec![transfer] }
    }

    fn settled(forgotten: &[&str], contributions: &[(&str, Contribution)]) -> Vec<u64> {
        let epoch = Epoch {
            number: 1,
            generation: 1,
            forgotten: forgotten.iter().map(|text| name(text)).collect(),
            contributions: contributions.iter().map(|(who, c)| (name(who), c.clone())).collect(),
            ..Epoch::default()
        };
        compute_result(&epoch)
            .remove(&group())
            .unwrap()
            .into_values()
            .map(|parts| parts.0)
            .collect()
    }

    const QUARTER: u64 = Parts::WHOLE.0 / 4;

    #[test]
    fn what_is_left_is_scaled_to_the_whole() {
        let left = [("a", contribution(QUARTER, &[])), ("b", contribution(2 * QUARTER, &[]))];
        assert_eq!(settled(&["c"], &left), [1_431_655_766, 2_863_311_530]);
    }

    #[test]
    fn what_was_not_applied_goes_back_and_what_was_does_not() {
        let a = contribution(QUARTER, &[("b", sent(1, QUARTER))]);
        let before = contribution(QUARTER, &[]);
        let both = [("a", a.clone()), ("b", before)];
        assert_eq!(settled(&["c"], &both), [1_431_655_766 * 2 - 1, 1_431_655_765]);
        let applied = Pair { applied: 1, ..Pair::default() };
        let after = contribution(2 * QUARTER, &[("a", applied)]);
        let both = [("a", a), ("b", after)];
        assert_eq!(settled(&["c"], &both), [1_431_655_766, 2_863_311_530]);
    }

    #[test]
    fn what_was_on_its_way_to_a_forgotten_one_is_created_again() {
        let a = contribution(0, &[("c", sent(1, 3 * QUARTER))]);
        let b = contribution(QUARTER, &[]);
        assert_eq!(settled(&["c"], &[("a", a), ("b", b)]), [0, Parts::WHOLE.0]);
    }

    #[test]
    fn if_nobody_owns_any_all_get_the_same() {
        let nothing = || contribution(0, &[]);
        let whole = settled(&["c"], &[("a", nothing()), ("b", nothing())]);
        assert_eq!(whole, [2 * QUARTER, 2 * QUARTER]);
        // So does a forgotten one that came back, which owns nothing if others do.
        let back = || contribution(3 * QUARTER, &[]);
        let half = 2 * QUARTER;
        assert_eq!(settled(&["c"], &[("a", nothing()), ("c", back())]), [half, half]);
        let owner = contribution(QUARTER, &[]);
        assert_eq!(settled(&["c"], &[("a", owner), ("c", back())]), [Parts::WHOLE.0, 0]);
    }

    #[test]
    fn a_group_of_a_later_generation_stays_as_it_is() {
        let later = GroupKey { birth: 2, ..group() };
        let owning = |parts| Contribution {
            owned: [(later.clone(), Parts(parts))].into(),
            ..Contribution::default()
        };
        let mut epoch = Epoch { generation: 1, ..Epoch::default() };
        epoch.forgotten.insert(name("c"));
        epoch.contributions = [(name("a"), owning(QUARTER)), (name("c"), owning(QUARTER))].into();
        let owned = &compute_result(&epoch)[&later];
        assert_eq!(owned[&name("a")], Parts(QUARTER));
        assert_eq!(owned[&name("c")], Parts(QUARTER), "it was alive when the group was created");
    }
}
