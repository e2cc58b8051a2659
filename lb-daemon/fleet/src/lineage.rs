//! Whether a balancer may follow what etcd offers, given what it has in force. Pure.
//!
//! After etcd was restored from a backup, or a balancer was pointed at another cluster, etcd may hold an older state, or one
//! with another past. A balancer then keeps what it has until an operator decides: for etcd, at this balancer alone, or for
//! all by a restore generation, which they follow wherever it is.
//!
//! Old generations are removed from etcd ([`crate::collect`]). A balancer that was off for so long that they do not reach back
//! to its own follows a higher number of the same cluster at a higher revision: an old backup has neither when it is restored.

use std::{collections::BTreeMap, ops::Bound};

use lb_pieces::Digest;
use serde::{Deserialize, Serialize};

/// A generation and the one that it builds on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    pub digest: Digest,
    pub parent: Option<Digest>,
}

/// A state of etcd, as far as its past matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lineage {
    pub cluster: u64,
    /// `mod_revision` of `changed`; 0: nothing was shared yet.
    pub revision: i64,
    /// Number of the current generation; `None`: there is none.
    pub current: Option<u64>,
    /// Generations that are kept, by number, the current one among them. Those before the one in force are not needed.
    pub history: BTreeMap<u64, Link>,
    /// Number of the last restore generation that the current one is, or descends from; 0: none.
    pub restored: u64,
    /// The current generation cannot be read, so `current` may be an older one, or none. Only cluster and revision are
    /// judged then: otherwise a newer format would be taken for a conflict.
    pub is_current_unreadable: bool,
}

/// What a balancer has in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InForce {
    pub cluster: u64,
    pub revision: i64,
    /// Number and digest; `None`: no generation.
    pub generation: Option<(u64, Digest)>,
}

/// Why a balancer must not follow what etcd offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Conflict {
    #[error(
        "etcd is another cluster ({offered:x}) than the one that the configuration in force came from ({in_force:x})"
    )]
    OtherCluster { in_force: u64, offered: u64 },
    #[error(
        "etcd is at revision {offered}, but revision {in_force} is in force: it was restored from an old backup"
    )]
    Older { in_force: i64, offered: i64 },
    #[error("etcd has no configuration, but generation {in_force} is in force")]
    Gone { in_force: u64 },
    #[error(
        "etcd has generation {offered}, but generation {in_force} is in force: it was restored from an old backup"
    )]
    OlderGeneration { in_force: u64, offered: u64 },
    #[error(
        "generation {offered} of etcd does not descend from generation {in_force}, which is in force"
    )]
    NotDescended { in_force: u64, offered: u64 },
}

impl Lineage {
    /// # Errors
    /// Why a balancer with `in_force` must not follow this state.
    pub fn check(&self, in_force: &InForce) -> Result<(), Conflict> {
        if self.is_restored_above(in_force) {
            return Ok(());
        }
        if self.cluster != in_force.cluster {
            let (in_force, offered) = (in_force.cluster, self.cluster);
            return Err(Conflict::OtherCluster { in_force, offered });
        }
        if self.revision < in_force.revision {
            let (in_force, offered) = (in_force.revision, self.revision);
            return Err(Conflict::Older { in_force, offered });
        }
        if self.is_current_unreadable {
            return Ok(());
        }
        let Some((number, digest)) = in_force.generation else { return Ok(()) };
        let Some(current) = self.current else {
            return Err(Conflict::Gone { in_force: number });
        };
        if current < number {
            return Err(Conflict::OlderGeneration { in_force: number, offered: current });
        }
        self.trace(number, digest, current)
    }

    /// Whether the current generation is, or descends from, a restore generation with a higher number than the one that is
    /// in force. Restore generations are numbered above all that any balancer had, so it was decided on after that one.
    /// Each generation says it, so it is known however long ago it was, and whatever the history still has.
    pub fn is_restored_above(&self, in_force: &InForce) -> bool {
        self.restored > in_force.generation.map_or(0, |(number, _)| number)
    }

    /// Follows the parents of `offered` down to generation `in_force`, as far as the history has them.
    fn trace(&self, in_force: u64, digest: Digest, offered: u64) -> Result<(), Conflict> {
        let known = |number| match number == in_force {
            true => Some(digest),
            false => self.history.get(&number).map(|link| link.digest),
        };
        let is_linked = |number: u64, link: &Link| match (link.parent, known(number - 1)) {
            (Some(parent), Some(before)) => parent == before,
            (Some(_), None) => true,
            (None, _) => false,
        };
        let above = (Bound::Excluded(in_force), Bound::Included(offered));
        let mut later = self.history.range(above);
        let here = self.history.get(&in_force).is_none_or(|link| link.digest == digest);
        match here && later.all(|(number, link)| is_linked(*number, link)) {
            true => Ok(()),
            false => Err(Conflict::NotDescended { in_force, offered }),
        }
    }
}

/// What a balancer has in force, and its conflict with etcd, if there is one. A conflict stays although etcd changes again:
/// what looks right later may have been wrong in between. The caller stores this value whenever it changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineageGuard {
    in_force: Option<InForce>,
    conflict: Option<Conflict>,
}

impl LineageGuard {
    /// `None`: nothing of etcd is in force yet, so whatever it has may be followed.
    pub const fn new(in_force: Option<InForce>) -> Self {
        Self { in_force, conflict: None }
    }

    pub const fn in_force(&self) -> Option<&InForce> {
        self.in_force.as_ref()
    }

    /// From which generation on [`Self::offer`] needs the history; `None`: it needs none.
    pub fn traced_from(&self) -> Option<u64> {
        self.in_force.and_then(|it| it.generation).map(|(number, _)| number)
    }

    pub const fn conflict(&self) -> Option<&Conflict> {
        self.conflict.as_ref()
    }

    /// Whether a state of etcd may be followed. While there is a conflict, only one that was restored may be.
    ///
    /// # Errors
    /// The first conflict, which is kept.
    pub fn offer(&mut self, offered: &Lineage) -> Result<(), Conflict> {
        let Some(in_force) = &self.in_force else { return Ok(()) };
        if let Some(conflict) = self.conflict
            && !offered.is_restored_above(in_force)
        {
            return Err(conflict);
        }
        offered.check(in_force).inspect_err(|conflict| self.conflict = Some(*conflict))
    }

    /// Takes note that a state is in force which [`Self::offer`] allowed. It ends a conflict.
    pub fn put_in_force(&mut self, state: &Lineage) {
        let before = self.in_force.and_then(|it| it.generation);
        let link = state.current.and_then(|number| Some((number, state.history.get(&number)?)));
        let generation = match state.is_current_unreadable {
            true => before,
            false => link.map(|(number, link)| (number, link.digest)),
        };
        let (cluster, revision) = (state.cluster, state.revision);
        *self = Self::new(Some(InForce { cluster, revision, generation }));
    }

    /// The operator decided for what etcd has. What comes later has to descend from that, so it ends a conflict too.
    pub fn decide_for_etcd(&mut self, state: &Lineage) {
        self.put_in_force(state);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Generations 1 to `length`; those after `fork` differ by `branch`.
    fn chain(length: u64, fork: u64, branch: u8) -> Lineage {
        let mut parent = None;
        let mut lineage = Lineage { cluster: 1, revision: 100, ..Lineage::default() };
        for number in 1..=length {
            let branch = if number > fork { branch } else { 0 };
            let digest = Digest::new(format!("{parent:?} {number} {branch}").as_bytes());
            lineage.history.insert(number, Link { digest, parent });
            parent = Some(digest);
        }
        lineage.current = Some(length).filter(|it| *it > 0);
        lineage
    }

    fn in_force(lineage: &Lineage, number: u64) -> InForce {
        let generation = lineage.history.get(&number).map(|link| (number, link.digest));
        InForce { cluster: lineage.cluster, revision: lineage.revision, generation }
    }

    #[test]
    fn each_conflict_has_its_sentence() {
        let offered = chain(5, 0, 0);
        let mine = in_force(&offered, 4);
        let sentence = |it: &Lineage| it.check(&mine).unwrap_err().to_string();
        assert_eq!(
            sentence(&Lineage { cluster: 255, ..offered.clone() }),
            "etcd is another cluster (ff) than the one that the configuration in force came from (1)"
        );
        assert_eq!(
            sentence(&Lineage { revision: 99, ..offered.clone() }),
            "etcd is at revision 99, but revision 100 is in force: it was restored from an old backup"
        );
        assert_eq!(
            sentence(&chain(0, 0, 0)),
            "etcd has no configuration, but generation 4 is in force"
        );
        assert_eq!(
            sentence(&chain(3, 0, 0)),
            "etcd has generation 3, but generation 4 is in force: it was restored from an old backup"
        );
        assert_eq!(
            sentence(&chain(5, 3, 1)),
            "generation 5 of etcd does not descend from generation 4, which is in force"
        );
    }

    /// As `lineage`, of another cluster at its first revision, with generation `number` made a restore.
    fn restored(lineage: &Lineage, number: u64) -> Lineage {
        Lineage { cluster: 2, revision: 1, restored: number, ..lineage.clone() }
    }

    #[test]
    fn a_conflict_is_kept_until_it_is_decided() {
        let mine = chain(5, 0, 0);
        let fork = chain(6, 3, 1);
        let mut guard = LineageGuard::new(None);
        assert_eq!(guard.offer(&fork), Ok(()), "nothing is in force");
        guard.put_in_force(&mine);
        assert_eq!(guard.in_force(), Some(&in_force(&mine, 5)));
        assert_eq!((guard.offer(&mine), guard.conflict()), (Ok(()), None));
        let conflict = Conflict::NotDescended { in_force: 5, offered: 6 };
        assert_eq!(guard.offer(&fork), Err(conflict));
        // Neither what was right before, nor another conflict, changes it.
        let older = chain(4, 0, 0);
        for offered in [&mine, &older, &restored(&fork, 5)] {
            assert_eq!((guard.offer(offered), guard.conflict()), (Err(conflict), Some(&conflict)));
        }
        let text = serde_json::to_string(&guard).unwrap();
        assert_eq!(serde_json::from_str::<LineageGuard>(&text).unwrap(), guard);
        let mut decided = guard;
        decided.decide_for_etcd(&older);
        assert_eq!((decided.offer(&chain(6, 0, 0)), decided.conflict()), (Ok(()), None));
        assert_eq!(
            decided.offer(&chain(6, 2, 1)),
            Err(Conflict::NotDescended { in_force: 4, offered: 6 })
        );
        let by_restore = restored(&fork, 6);
        assert_eq!(guard.offer(&by_restore), Ok(()));
        guard.put_in_force(&by_restore);
        assert_eq!((guard.in_force(), guard.conflict()), (Some(&in_force(&by_restore, 6)), None));
        assert!(guard.offer(&mine).is_err());
    }

    #[test]
    fn a_generation_that_cannot_be_read_is_no_conflict_and_is_not_in_force() {
        let mine = chain(5, 0, 0);
        let mut guard = LineageGuard::default();
        guard.put_in_force(&mine);
        let unreadable = Lineage { is_current_unreadable: true, revision: 200, ..chain(0, 0, 0) };
        assert_eq!(guard.offer(&unreadable), Ok(()));
        guard.put_in_force(&unreadable);
        assert_eq!(guard.in_force(), Some(&InForce { revision: 200, ..in_force(&mine, 5) }));
        let elsewhere = Lineage { cluster: 2, ..unreadable };
        let other_cluster = Conflict::OtherCluster { in_force: 1, offered: 2 };
        assert_eq!(guard.offer(&elsewhere), Err(other_cluster));
    }

    proptest! {
        #[test]
        fn a_restore_above_what_is_in_force_is_accepted(
            mine in 1u64..20, restore in 1u64..20, more in 0u64..20, kept in 1u64..40,
        ) {
            let before = in_force(&chain(mine, 0, 1), mine);
            let mut offered = restored(&chain(restore + more, 0, 2), restore);
            // However little of the history is left.
            offered.history.retain(|number, _| *number + kept > restore + more);
            prop_assert_eq!(offered.check(&before).is_ok(), restore > mine);
        }

        #[test]
        fn what_descends_is_accepted(length in 1u64..30, back in 0u64..30) {
            let offered = chain(length, 0, 0);
            let mine = in_force(&offered, length.saturating_sub(back));
            prop_assert_eq!(offered.check(&mine), Ok(()));
        }

        #[test]
        fn another_past_is_a_conflict(fork in 0u64..20, mine in 1u64..20, more in 0u64..20) {
            let mine = fork + mine;
            let before = chain(mine, fork, 1);
            let offered = chain(mine + more, fork, 2);
            let conflict = Conflict::NotDescended { in_force: mine, offered: mine + more };
            prop_assert_eq!(offered.check(&in_force(&before, mine)), Err(conflict));
        }

        #[test]
        fn a_history_that_begins_later_is_followed(length in 1u64..30, kept in 1u64..30, back in 0u64..30) {
            let mut offered = chain(length, 0, 0);
            let mine = in_force(&offered, length.saturating_sub(back).max(1));
            offered.history.retain(|number, _| *number + kept > length);
            prop_assert_eq!(offered.check(&mine), Ok(()));
            let elsewhere = Lineage { cluster: 2, ..offered.clone() };
            prop_assert!(elsewhere.check(&mine).is_err());
            offered.revision = mine.revision - 1;
            prop_assert!(offered.check(&mine).is_err());
        }

        #[test]
        fn what_is_kept_of_another_past_is_a_conflict(
            fork in 0u64..20, mine in 1u64..20, more in 0u64..20, kept in 1u64..40,
        ) {
            let mine = fork + mine;
            let before = chain(mine, fork, 1);
            let mut offered = chain(mine + more, fork, 2);
            offered.history.retain(|number, _| *number + kept > mine + more);
            // What comes right after the own generation names another parent than that one.
            let is_seen = kept >= more.max(1);
            prop_assert_eq!(offered.check(&in_force(&before, mine)).is_err(), is_seen);
        }
    }
}
